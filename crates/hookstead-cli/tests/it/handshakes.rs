//! Every handshake of every provider's record against one running server: those of the vectors, and of
//! `handshakes.json` for the providers whose vectors have none. What is signed is answered only if the signature
//! holds; a secret is taken once, and kept.
//!
//! The one that calls an address (Amazon SNS) needs that address: it has a network of its own (`subscription.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cases::stage::Stage;
use crate::harness::{Reply, Request, Server};

const NOW: i64 = 1_760_000_000;

/// Where the vectors' sources are registered.
const HOST: &str = "hooks.example.com";

/// The handshakes that are answered only if the signature holds.
const SIGNED: &[&str] = &[
    "azure-eventgrid/handshake-SubscriptionValidation",
    "discord-events/handshake-ping",
    "discord/handshake-ping",
    "slack/handshake-url_verification",
    "terraform-cloud/handshake-verification",
    "twitch/handshake-verification",
    "viber/handshake-webhook-set",
    "xero/handshake-intent-to-receive",
    "xero/handshake-intent-with-space",
    "zoom/handshake-url_validation",
];

/// Not here, and what begins so: see above.
const ELSEWHERE: &[&str] = &["aws-sns/handshake-subscribe"];

fn verify_crate(folder: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../hookstead-verify", folder].iter().collect()
}

/// The texts of all files of a folder, by their names without the ending.
fn texts(folder: &str, ending: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(verify_crate(folder)).expect("the folder is there");
    let paths = files.map(|file| file.expect("a file").path());
    let named = paths.filter(|path| path.extension().is_some_and(|extension| extension == ending));
    let text = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("a text"))
    };
    named.map(text).collect()
}

fn list(text: &str) -> Vec<Value> {
    match serde_json::from_str(text).expect("a file of vectors") {
        Value::Array(list) => list,
        mut wrapped => match wrapped["vectors"].take() {
            Value::Array(list) => list,
            other => panic!("no list of vectors: {other}"),
        },
    }
}

/// All handshakes, apart from those elsewhere.
fn handshakes() -> Vec<Value> {
    let vectors = texts("vectors", "json").into_values().flat_map(|text| list(&text));
    let all = vectors.chain(list(include_str!("handshakes.json")));
    let is_elsewhere = |id: &str| ELSEWHERE.iter().any(|elsewhere| id.starts_with(elsewhere));
    let is_one = |case: &Value| case["kind"] == "handshake" && !is_elsewhere(text(&case["id"]));
    all.filter(is_one).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn hands_over(case: &Value) -> bool {
    case["expect"]["response"]["store"].is_object()
}

/// The sources of the cases: one for each provider, more where the cases of one differ in what is configured.
struct Sources {
    stage: Stage,
    known: Vec<(String, Value)>,
}

impl Sources {
    fn new() -> Self {
        let stage = Stage::at(NOW).server("public_url", &format!("\"https://{HOST}\""));
        Self { stage, known: Vec::new() }
    }

    /// The name of the source that a case needs.
    fn of(&mut self, case: &Value) -> String {
        let provider = text(&case["provider"]);
        let wanted = serde_json::json!([provider, case["config"]]);
        if let Some((name, _)) = self.known.iter().find(|(_, known)| *known == wanted) {
            return name.clone();
        }
        let others = self.known.iter().filter(|(_, known)| known[0] == wanted[0]).count();
        let name = if others == 0 { provider.to_owned() } else { format!("{provider}-{}", others + 1) };
        self.add(&name, case);
        self.known.push((name.clone(), wanted));
        name
    }

    fn add(&mut self, name: &str, case: &Value) {
        let mut table = format!("[sources.{name}]\nprovider = {}\nidentity = \"body\"\n", case["provider"]);
        if let Some(secret) = case["config"]["secrets"].get(0).filter(|_| !hands_over(case)) {
            let variable = format!("SECRET_{}", self.known.len());
            writeln!(table, "secret = {{ env = \"{variable}\" }}").expect("a string takes all");
            let stage = std::mem::replace(&mut self.stage, Stage::at(NOW));
            self.stage = stage.variable(&variable, text(secret));
        }
        for (key, of_case) in [("conf", "vars"), ("keys", "keys")] {
            let Some(values) = case["config"][of_case].as_object() else { continue };
            let values: Vec<_> = values.iter().map(|(name, value)| format!("{name:?} = {value}")).collect();
            writeln!(table, "{key} = {{ {} }}", values.join(", ")).expect("a string takes all");
        }
        let stage = std::mem::replace(&mut self.stage, Stage::at(NOW));
        self.stage = stage.toml(&table);
    }
}

fn request(case: &Value, source: &str) -> Request {
    let sent = &case["request"];
    let place = format!("/in/{}", text(&case["provider"]));
    let target = text(&sent["path"]).replacen(&place, &format!("/in/{source}"), 1);
    let mut request = Request::new(text(&sent["method"]), &target, HOST);
    for header in sent["headers"].as_array().expect("headers") {
        request = request.with(text(&header[0]), text(&header[1]));
    }
    let body = STANDARD.decode(text(&sent["body_b64"])).expect("base64");
    if body.is_empty() && text(&sent["method"]) != "POST" { request } else { request.with_body(&body) }
}

fn exchange(server: &Server, request: &Request, method: &str) -> Reply {
    let mut connection = server.connect();
    connection.send(&request.bytes()).expect("it can be sent");
    let reply = if method == "HEAD" { connection.receive_head() } else { connection.receive() };
    reply.expect("an answer").expect("an answer before the end")
}

fn check(case: &Value, reply: &Reply) {
    let (id, expected) = (text(&case["id"]), &case["expect"]["response"]);
    assert_eq!(Some(u64::from(reply.status)), expected["status"].as_u64(), "{id}: {reply}");
    if let Some(content_type) = expected["type"].as_str() {
        assert!(
            reply.header("content-type").is_some_and(|found| found.starts_with(content_type)),
            "{id}: {reply}"
        );
    }
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        assert_eq!(reply.header(&name.to_ascii_lowercase()), Some(text(value)), "{id}: {reply}");
    }
    if let Some(body) = expected["body"].as_str() {
        assert_eq!(reply.body, body.as_bytes(), "{id}: {reply}");
    }
    if expected["json"].is_object() {
        assert_eq!(reply.json(), expected["json"], "{id}: {reply}");
    }
}

#[test]
fn every_handshake_of_the_records_is_answered() {
    let cases = handshakes();
    let mut sources = Sources::new();
    let named: Vec<_> = cases.iter().map(|case| (sources.of(case), case)).collect();
    let server = sources.stage.serve();
    for (source, case) in &named {
        let method = text(&case["request"]["method"]);
        check(case, &exchange(&server, &request(case, source), method));
    }
    let signed: Vec<_> = named.iter().filter(|(_, case)| SIGNED.contains(&text(&case["id"]))).collect();
    assert_eq!(signed.len(), SIGNED.len());
    for (source, case) in signed {
        wrong_signature(&server, source, case);
    }
    assert_eq!(server.admin().events(), [] as [Value; 0], "a handshake is no event");
}

/// The same with a body or a token that the signature is not for.
fn wrong_signature(server: &Server, source: &str, case: &Value) {
    let mut other = (*case).clone();
    let path = text(&other["request"]["path"]).replace("code=0", "code=1");
    other["request"]["path"] = path.into();
    let body = STANDARD.decode(text(&other["request"]["body_b64"])).expect("base64");
    other["request"]["body_b64"] = STANDARD.encode([&body[..], b" "].concat()).into();
    let reply = exchange(server, &request(&other, source), "POST");
    assert_eq!(reply.status, 401, "{}: {reply}", case["id"]);
    // Xero wants no body in any answer.
    if case["provider"] == "xero" {
        assert_eq!(reply.body, b"", "{}: {reply}", case["id"]);
    } else {
        assert!(reply.json()["code"] == "not-verified", "{}: {reply}", case["id"]);
    }
}

#[test]
fn no_handshake_is_left_out() {
    let in_records: BTreeSet<String> = texts("providers", "toml").iter().flat_map(names).collect();
    let tested: BTreeSet<String> = handshakes().iter().map(|case| text(&case["id"]).to_owned()).collect();
    let tested: BTreeSet<String> =
        tested.into_iter().chain(ELSEWHERE.iter().map(|id| (*id).to_owned())).collect();
    let untested: Vec<_> = in_records.difference(&tested).collect();
    assert!(in_records.len() >= 37 && untested.is_empty(), "{untested:?} of {}", in_records.len());
}

/// The handshakes of a record, as the vectors name them.
fn names((provider, record): (&String, &String)) -> Vec<String> {
    let blocks = record.split("\n[[handshake]]\n").skip(1);
    let name = |block: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix("name = \""));
        format!("{provider}/handshake-{}", line.expect("a name").trim_end_matches('"'))
    };
    blocks.map(name).collect()
}

#[test]
fn a_secret_is_taken_once_and_kept() {
    let case = handshakes().into_iter().find(hands_over).expect("one that hands over a secret");
    assert_eq!(case["provider"], "asana");
    let mut sources = Sources::new();
    let source = sources.of(&case);
    let given = text(&case["expect"]["response"]["store"]["secret"]);
    let stage = &sources.stage;
    let server = stage.serve();
    let post = |server: &Server, secret: &str, body: &[u8]| {
        let request = Request::new("POST", &format!("/in/{source}"), HOST);
        let request = request.with("X-Hook-Signature", &sign(secret, body)).with_body(body);
        exchange(server, &request, "POST").status
    };
    assert_eq!(post(&server, given, b"{\"events\":[1]}"), 401, "nothing is proved before");
    check(&case, &exchange(&server, &request(&case, &source), "POST"));
    let file = stage.data().join(".hookstead").join("handed-secrets.toml");
    let file = if file.exists() { file } else { stage.data().join("handed-secrets.toml") };
    let mode = fs::metadata(&file).expect("the secret is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut stranger = case.clone();
    stranger["request"]["headers"] = serde_json::json!([["X-Hook-Secret", "a-strangers-secret-0123456789"]]);
    let second = |server: &Server| exchange(server, &request(&stranger, &source), "POST").status;
    assert_eq!(second(&server), 401, "a second secret is not taken");
    assert_eq!(post(&server, "a-strangers-secret-0123456789", b"{\"events\":[2]}"), 401);
    assert_ne!(post(&server, given, b"{\"events\":[3]}"), 401);
    server.stop();

    let server = stage.serve();
    assert_eq!(second(&server), 401, "nor after a restart");
    assert_ne!(post(&server, given, b"{\"events\":[3]}"), 401);
    let kept = fs::read_to_string(file).expect("the secret is kept");
    assert!(kept.contains(given) && !kept.contains("stranger"), "one secret is kept");
    assert!(!format!("{:?}", stage.log()).contains(given), "and it is not logged");
}

fn sign(secret: &str, body: &[u8]) -> String {
    use aws_lc_rs::hmac;
    hex::encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body))
}

#[test]
fn methods_that_nobody_uses_are_refused() {
    let stage = Stage::at(NOW).variable("SECRET", "0123456789abcdef0123456789abcdef").toml(
        "[sources.github]\nsecret = { env = \"SECRET\" }\n[sources.meta]\nsecret = { env = \"SECRET\" }\n",
    );
    let server = stage.serve();
    for (method, source, allow) in [
        ("GET", "github", "POST"),
        ("DELETE", "meta", "POST, GET"),
        // Of a handshake, and this is none.
        ("GET", "meta", "POST, GET"),
        ("OPTIONS", "github", "POST"),
    ] {
        let reply = exchange(&server, &Request::new(method, &format!("/in/{source}"), "localhost"), method);
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {source}");
    }
}
