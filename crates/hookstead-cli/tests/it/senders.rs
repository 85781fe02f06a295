//! The providers' own SDKs and the running binary, both ways: what an SDK signs and sends is accepted, and the
//! SDK's verifier accepts what `hookstead sign` and `hookstead send` make and what a push brings.
//!
//! One row an SDK, one script a row (`senders/`), and four named tests from each that signs and verifies; one from
//! each that only verifies. `proxy` then sends one SDK's request in every shape that a proxy may give it.

mod proxy;
mod pushed;
mod sdk;

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::harness::{Connection, Request};
use crate::terminal::Terminal;
use sdk::{Receiver, Runtime, Sdk, SignedTime};

/// Base64 after the prefix, as Standard Webhooks has it; a good enough text for everyone else.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How providers reach the server. Some sign it, so it is another one than the tests post to.
const PUBLIC_URL: &str = "https://hooks.example.com";

macro_rules! sdks {
    ($($name:ident: $provider:literal, $runtime:ident, $signed_time:ident;)*) => {$(
        mod $name {
            use super::{Runtime, Sdk, SignedTime};

            pub(super) const SDK: Sdk = Sdk {
                script: stringify!($name),
                provider: $provider,
                runtime: Runtime::$runtime,
                signed_time: SignedTime::$signed_time,
            };

            #[test]
            fn what_it_sends_is_accepted() {
                super::check_sends(&SDK);
            }

            #[test]
            fn it_accepts_what_sign_makes() {
                super::check_accepts_signed(&SDK);
            }

            #[test]
            fn it_accepts_what_send_makes() {
                super::check_accepts_sent(&SDK);
            }

            #[test]
            fn it_accepts_what_a_push_brings() {
                super::check_accepts_pushed(&SDK);
            }
        }
    )*};
}

sdks! {
    octokit: "github", Node, Absent;
    shopify: "shopify", Node, Absent;
    shopify_events: "shopify", Node, Absent;
    slack_python: "slack", Python, Checked;
    standardwebhooks: "standardwebhooks", Node, Checked;
    standardwebhooks_python: "standardwebhooks", Python, Checked;
    stripe: "stripe", Node, Checked;
    svix: "svix", Node, Checked;
    twilio: "twilio", Node, Absent;
    twilio_json: "twilio", Node, Absent;
    twilio_shared_key: "twilio", Node, Absent;
}

/// SDKs that only verify.
macro_rules! verifiers {
    ($($name:ident: $runtime:ident, $signed_time:ident;)*) => {$(
        mod $name {
            use super::{Runtime, Sdk, SignedTime};

            pub(super) const SDK: Sdk = Sdk {
                script: stringify!($name),
                provider: stringify!($name),
                runtime: Runtime::$runtime,
                signed_time: SignedTime::$signed_time,
            };

            #[test]
            fn it_accepts_what_sign_makes_and_nothing_else() {
                super::check_verifies(&SDK);
            }
        }
    )*};
}

verifiers! {
    dodopayments: Node, Checked;
    line: Node, Absent;
    lithic: Node, Checked;
    mux: Node, Checked;
    paddle: Node, Checked;
    razorpay: Node, Absent;
    resend: Node, Checked;
    workos: Node, Checked;
}

/// WorkOS signs too, over JSON as JavaScript writes it: so not the samples, which are laid out for people.
#[test]
fn what_workos_sends_is_accepted() {
    check_sends(&workos::SDK);
}

/// Compact, as every language's JSON writes it, since some SDKs verify what they have parsed and written again.
const COMPACT: &str = r#"{"id":"evt_1SendersTest","event":"order.paid","data":{"name":"Zoe","total":1999}}"#;

/// Nobody takes a request that was signed an hour ago.
const STALE_S: i64 = 3_600;

/// Some take a request of the last five seconds only, which a busy machine may miss, but any from a bit later.
const AHEAD_S: i64 = 30;

/// A request is accepted, with each byte of the body changed in turn it is refused, and so is one of an hour ago.
fn check_verifies(sdk: &Sdk) {
    let terminal = configured(sdk.provider);
    terminal.write("body", COMPACT);
    let receiver = Receiver::start(sdk, SECRET);
    let url = receiver.url();
    let signed_at = |from_now_s: i64| {
        let time = (now_s() + from_now_s).to_string();
        let sign = ["sign", sdk.provider, "--to", &url, "--json", "--body", "body"];
        let rest = ["--id", "evt_1SendersTest", "--timestamp", &time];
        terminal.ok(&[sign.as_slice(), &rest].concat()).json()
    };
    check_signed(&receiver, &signed_at(AHEAD_S));
    if sdk.signed_time == SignedTime::Checked {
        let stale = signed_at(-STALE_S);
        assert_eq!(post(&receiver, &stale, COMPACT.as_bytes()), 401, "{stale}");
    }
}

fn now_s() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since_epoch.as_secs()).expect("a clock before the end of time")
}

/// A home with one source, named as its provider. A busy machine trickles slowly, which is not what is tested.
fn configured(provider: &str) -> Terminal {
    let mut terminal = Terminal::new();
    terminal.set("SENDERS_SECRET", SECRET);
    terminal.write(
        "hookstead.toml",
        &format!(
            "[server]\npublic_url = \"{PUBLIC_URL}\"\n\n\
             [store]\nmin_free = \"16 MiB\"\n\n[limits]\nheader_time = \"60s\"\nbody_time = \"60s\"\n\n\
             [sources.{provider}]\nprovider = \"{provider}\"\nsecret = {{ env = \"SENDERS_SECRET\" }}\n"
        ),
    );
    terminal
}

/// The SDK sends one event, again, and with each byte changed in turn.
fn check_sends(sdk: &Sdk) {
    let terminal = configured(sdk.provider);
    let server = terminal.serve();
    let path = format!("/in/{}", sdk.provider);
    let sent = sdk.send(SECRET, &format!("{PUBLIC_URL}{path}"), &format!("http://{}{path}", server.intake()));

    assert_eq!(sent["again"], 200, "{sent}");
    assert_eq!(sent["first"], first_status(sdk), "{sent}");
    let flipped = sent["flipped"].as_array().expect("a list of statuses");
    assert!(!flipped.is_empty() && flipped.iter().all(|status| *status == 401), "{sent}");

    let mut admin = server.admin();
    let [event] = &admin.events()[..] else { panic!("one event was sent: {sent}") };
    let stored = admin.get(&format!("/v1/events/{}/body", text(event, "id")));
    assert_eq!((stored.status, stored.body.as_slice()), (200, text(&sent, "body").as_bytes()));
    check_show(&terminal, event, &sent);
}

/// Slack takes nothing but 200 for success.
fn first_status(sdk: &Sdk) -> u16 {
    if sdk.provider == "slack" { 200 } else { 202 }
}

/// `events show` finds the event by the provider's own id, for people and for programs.
fn check_show(terminal: &Terminal, event: &Value, sent: &Value) {
    let name = format!("{}:{}", text(event, "source"), text(sent, "id"));
    let shown = terminal.ok(&["events", "show", &name, "--json"]).json();
    assert_eq!(shown["id"], event["id"]);
    assert_eq!(shown["provider_event_id"], sent["id"]);
    assert_eq!(shown["type"], sent["type"]);

    let shown = terminal.ok(&["events", "show", &name]);
    assert!(shown.stdout.contains(text(sent, "id")), "{shown:?}");
}

/// The sample event, and the event of the SDK's own script, which is not all ASCII.
fn check_accepts_signed(sdk: &Sdk) {
    let terminal = configured(sdk.provider);
    let receiver = Receiver::start(sdk, SECRET);
    let url = receiver.url();
    let sign = ["sign", sdk.provider, "--to", &url, "--json"];
    check_signed(&receiver, &terminal.ok(&sign).json());

    let own = sdk.sign(SECRET, &url);
    terminal.write("body", text(&own, "body"));
    let content_type = own["headers"]["content-type"].as_str().expect("a content type");
    let of_own = ["--body", "body", "--id", text(&own, "id"), "--content-type", content_type];
    let of_type: Vec<&str> = own["type"].as_str().map_or(vec![], |event_type| vec!["--event", event_type]);
    let signed = terminal.ok(&[sign.as_slice(), &of_own, &of_type].concat()).json();
    assert_eq!(STANDARD.decode(text(&signed, "body_base64")).as_deref(), Ok(text(&own, "body").as_bytes()));
    check_signed(&receiver, &signed);
}

/// The request as it was signed, and with each byte of the body changed in turn.
fn check_signed(receiver: &Receiver, signed: &Value) {
    let body = STANDARD.decode(text(signed, "body_base64")).expect("base64");
    assert_eq!(post(receiver, signed, &body), 200, "{signed}");
    for position in 0..body.len() {
        let mut flipped = body.clone();
        flipped[position] ^= 1;
        assert_eq!(post(receiver, signed, &flipped), 401, "byte {position} of {signed}");
    }
}

fn post(receiver: &Receiver, signed: &Value, body: &[u8]) -> u16 {
    let origin = format!("http://{}", receiver.address());
    let target = text(signed, "url").strip_prefix(&origin).expect("an address of the receiver");
    let request = with_headers(Request::new("POST", target, receiver.address()), signed).with_body(body);
    let connection = Connection::open(receiver.address());
    let reply = connection.and_then(|mut connection| connection.exchange(&request.bytes()));
    reply.expect("an answer of the SDK's script").status
}

/// Every sample event, then what must be refused: `send` fails unless the answer is the one that it asks for.
fn check_accepts_sent(sdk: &Sdk) {
    let terminal = configured(sdk.provider);
    let receiver = Receiver::start(sdk, SECRET);
    let url = receiver.url();
    let send = ["send", sdk.provider, "--to", &url, "--json"];
    for event_type in sample_events(&terminal, sdk.provider) {
        let sent = terminal.ok(&[send.as_slice(), &["--event", &event_type]].concat()).json();
        assert_eq!((&sent["status"], &sent["url"]), (&Value::from(200), &Value::from(url.as_str())));
    }
    for refused in ["--tamper", "--stale"] {
        if refused == "--tamper" || sdk.signed_time == SignedTime::Checked {
            let sent = terminal.ok(&[send.as_slice(), &[refused]].concat()).json();
            assert_eq!(sent["status"], 401, "{sent}");
        }
    }
}

/// Where hookstead's own fields bear the names of the provider's, its signature takes their place.
fn check_accepts_pushed(sdk: &Sdk) {
    if sdk.provider == "standardwebhooks" {
        pushed::check_own_signature(sdk);
    } else {
        pushed::check_providers_own(sdk);
    }
}

fn sample_events(terminal: &Terminal, provider: &str) -> Vec<String> {
    let listed = terminal.ok(&["send", "--list", "--json"]).json();
    let providers = listed.as_array().expect("a list");
    let listed = providers.iter().find(|listed| listed["provider"] == provider).expect("a known provider");
    let events = listed["events"].as_array().expect("a list of events");
    assert!(!events.is_empty(), "{listed}");
    events.iter().map(|event| event.as_str().expect("a type").to_owned()).collect()
}

fn with_headers(request: Request, signed: &Value) -> Request {
    let headers = signed["headers"].as_object().expect("headers");
    headers.iter().fold(request, |request, (name, value)| request.with(name, value.as_str().expect("a text")))
}

fn text<'a>(document: &'a Value, key: &str) -> &'a str {
    document[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {document}"))
}
