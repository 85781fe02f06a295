//! Themes verification-handshake, verify-policy and url-signing-proxy: what a provider asks for before it sends, what
//! is never a source, and whose address a signature is for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::case::{Case, CaseRequest, wire};
use super::sketch;
use super::stage::Stage;
use super::trace::strace;
use crate::harness::{Reply, Server};

/// The server of a case, known to its providers as `https://hook.example` and to its proxy by an inner address.
fn stage(case: &Case) -> Stage {
    let stage = Stage::at(case.now())
        .server("public_url", &sketch::quoted("https://hook.example"))
        .server("intake_hosts", "[\"10.0.0.5\", \"localhost\"]");
    case.sources().iter().fold(stage, Stage::source)
}

/// The answers to the requests of a case.
fn answers(case: &Case, server: &Server) -> Vec<Reply> {
    case.requests().iter().map(|request| answer(server, request)).collect()
}

fn answer(server: &Server, request: &CaseRequest) -> Reply {
    let mut connection = server.connect();
    connection.send(&request.bytes).expect("it can be sent");
    let is_head = request.bytes.starts_with(b"HEAD ");
    let reply = if is_head { connection.receive_head() } else { connection.receive() };
    reply.expect("an answer").expect("an answer before the end")
}

/// Plays a case whose requests must get these statuses, and after which these provider event ids are stored.
fn play(id: &str, statuses: &[u16], stored: &[&str]) -> (Vec<Reply>, Stage) {
    let case = Case::get(id);
    let stage = stage(&case);
    let server = stage.serve();
    let replies = answers(&case, &server);
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), statuses, "{id}: {replies:#?}");
    let events = server.admin().events();
    let ids: Vec<_> = events.iter().map(|event| event["provider_event_id"].as_str().unwrap_or("?")).collect();
    assert_eq!(ids, stored, "{id}");
    (replies, stage)
}

#[test]
fn b029_a_head_before_a_webhook_is_made_is_answered() {
    let case = Case::get("B029");
    let stage = stage(&case)
        .variable("GITHUB", "hookbox-test-secret-01")
        .toml("[sources.gh]\nprovider = \"github\"\nsecret = { env = \"GITHUB\" }\n");
    let server = stage.serve();
    let replies = answers(&case, &server);
    assert_eq!((replies[0].status, replies[1].status), (200, 405), "{replies:#?}");
    assert_eq!(replies[1].header("allow"), Some("POST"));
    assert!(server.admin().events().is_empty());
}

#[test]
fn b030_a_challenge_comes_back_byte_for_byte() {
    let (replies, _) = play("B030", &[200, 403], &[]);
    assert_eq!(replies[0].body, b"1158201444");
    assert!(replies[0].header("content-type").is_some_and(|found| found.starts_with("text/plain")));
    assert!(!replies[1].body.windows(10).any(|part| part == b"1158201444"), "{}", replies[1]);
}

#[test]
fn b033_what_is_echoed_is_no_page() {
    let (replies, _) = play("B033", &[200], &[]);
    let header = |name: &str| replies[0].header(name);
    assert_eq!(replies[0].body, b"<script>alert(1)</script>");
    assert_eq!(header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header("x-content-type-options"), Some("nosniff"));
    assert_eq!(header("content-security-policy"), Some("default-src 'none'"));
}

#[test]
fn b034_a_wrong_signature_of_a_ping_is_401() {
    play("B034", &[401], &[]);
}

#[test]
fn b035_a_ping_is_answered_with_a_pong() {
    let (replies, _) = play("B035", &[200], &[]);
    assert_eq!(replies[0].body, b"{\"type\":1}");
    assert_eq!(replies[0].header("content-type"), Some("application/json"));
}

#[test]
fn b037_the_check_of_an_intent_gets_no_body_whether_it_is_signed_well_or_not() {
    let (replies, stage) = play("B037", &[200, 401], &[]);
    for reply in &replies {
        assert_eq!((reply.body.as_slice(), reply.header("content-length")), (&b""[..], Some("0")), "{reply}");
        assert_eq!(reply.header("content-type"), None, "{reply}");
    }
    let server = stage.serve();
    let unsigned = wire("POST", "/in/xero", &[("Host", "hook.example")], b"{\"events\":[]}");
    let garbled = [("Host", "hook.example"), ("x-xero-signature", "*")];
    let garbled = wire("POST", "/in/xero", &garbled, b"{\"events\":[]}");
    for request in [unsigned, garbled] {
        let reply = server.connect().exchange(&request).expect("an answer");
        assert_eq!(reply.to_string(), replies[1].to_string(), "whatever the reason, the answer is the same");
    }
}

#[test]
fn b115_the_header_with_the_time_has_its_own_name_and_some_escapes_are_undone() {
    play("B115", &[202, 401], &["1"]);
}

/// The case is a forgery in a form that no variant of the record knows; the test adds one in the form that Amazon
/// uses, whose certificate is to be fetched from elsewhere.
#[test]
fn b074_what_a_forged_message_names_is_not_called() {
    let case = Case::get("B074");
    let stage = stage(&case);
    let trace = stage.data().join("connects");
    let server = stage.serve_traced(strace(&trace, "connect,sendto,sendmsg", 64));
    let mut replies = answers(&case, &server);
    for host in
        ["sns.evil.example", "sns.eu-west-1.amazonaws.com.evil.example", "169.254.169.254", "localhost"]
    {
        let body = format!(
            "{{\"Type\":\"SubscriptionConfirmation\",\"MessageId\":\"m\",\"Message\":\"x\",\"Timestamp\":\"2025-10-09T08:53:20Z\",\
             \"TopicArn\":\"arn\",\"Token\":\"t\",\"SubscribeURL\":\"https://{host}/confirm\",\"SignatureVersion\":\"2\",\
             \"SigningCertURL\":\"https://{host}/c.pem\",\"Signature\":\"AA==\"}}"
        );
        let request = wire("POST", "/in/sns", &[("Host", "hook.example")], body.as_bytes());
        replies.push(server.connect().exchange(&request).expect("an answer"));
    }
    assert!(replies.iter().all(|reply| reply.status == 401), "{replies:#?}");
    assert!(server.admin().events().is_empty());
    server.stop();
    let calls = std::fs::read_to_string(&trace).expect("the trace");
    assert!(!calls.contains("sa_family=AF_INET"), "somebody was called: {calls}");
}

/// The case's own secret is shorter than any of Twilio's, so its requests are signed anew: for the public address and
/// for the inner one.
#[test]
fn b110_the_configured_address_is_signed_whatever_host_a_proxy_names() {
    const SECRET: &str = "0123456789abcdef0123456789abcdef";
    let case = Case::get("B110");
    let mut sketch = case.sources()[0].clone();
    sketch["secrets"] = serde_json::json!([SECRET]);
    let server = Stage::at(case.now())
        .server("public_url", &sketch::quoted("https://hook.example"))
        .server("intake_hosts", "[\"10.0.0.5\"]")
        .source(&sketch);
    let server = server.serve();
    let target = "/in/twilio?team=a%20b";
    let form = "BodyHi there, &moreFrom+10000000001MessageSidSM0001To+10000000002";
    let body = b"Body=Hi+there%2C+%26more&From=%2B10000000001&MessageSid=SM0001&To=%2B10000000002";
    let post = |signed: &str, forwarded: &[(&str, &str)]| {
        let signature = hmac_sha1_base64(SECRET, &format!("{signed}{target}{form}"));
        let own = [
            ("Host", "10.0.0.5:8080"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("X-Twilio-Signature", &signature),
        ];
        let request = wire("POST", target, &[&own[..], forwarded].concat(), body);
        server.connect().exchange(&request).expect("an answer").status
    };
    let lies = [
        ("X-Forwarded-Host", "10.0.0.5:8080"),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example"),
    ];
    for forwarded in [&[][..], &lies] {
        for inner in
            ["http://10.0.0.5:8080", "https://10.0.0.5:8080", "http://hook.example", "https://evil.example"]
        {
            assert_eq!(post(inner, forwarded), 401, "{inner} {forwarded:?}");
        }
    }
    assert!(server.admin().events().is_empty());
    assert!((200..300).contains(&post("https://hook.example", &[])));
    assert!((200..300).contains(&post("https://hook.example", &lies)), "a proxy's word changes nothing");
    let events = server.admin().events();
    assert_eq!((events.len(), &events[0]["provider_event_id"]), (1, &"SM0001".into()));
}

fn hmac_sha1_base64(secret: &str, text: &str) -> String {
    use aws_lc_rs::hmac;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    STANDARD.encode(hmac::sign(&key, text.as_bytes()))
}

#[test]
fn b113_body_and_then_address() {
    play("B113", &[200, 401, 401], &["tr-1"]);
}

#[test]
fn b220_an_unknown_provider_is_nothing_else() {
    let case = Case::get("B220");
    let printed = stage(&case).refused_start();
    assert_eq!(printed.exit_code, Some(5), "{printed:?}");
    assert!(printed.stderr.contains("githubb") && printed.stderr.contains("`github`"), "{printed:?}");
}

#[test]
fn b223_nothing_unsigned_is_taken_unless_it_is_written() {
    let case = Case::get("B223");
    let mut sketch = case.sources()[0].clone();
    sketch["signature_header"] = "x-signature".into();
    let printed = Stage::at(case.now()).source(&sketch).refused_start();
    assert_eq!(printed.exit_code, Some(5), "{printed:?}");
    assert!(printed.stderr.contains("no secret is given"), "{printed:?}");
    let stage = Stage::at(case.now()).variable("GITHUB", "hookbox-test-secret-01");
    let server = stage.toml("[sources.github]\nsecret = { env = \"GITHUB\" }\n").serve();
    let asked = format!(
        "OPTIONS /v1/events HTTP/1.1\r\nHost: {}\r\nOrigin: https://evil.example\r\n\
         Access-Control-Request-Method: GET\r\n\r\n",
        server.admin_address()
    );
    let mut admin = crate::harness::Connection::open(server.admin_address()).expect("the admin listener");
    let reply = admin.exchange(asked.as_bytes()).expect("an answer");
    assert_eq!(reply.header("access-control-allow-origin"), None, "{reply}");
}
