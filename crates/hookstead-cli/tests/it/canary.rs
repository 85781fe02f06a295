//! Secrets nowhere: two secrets go through every way in, right and wrong, with the most talkative log there is; then
//! neither is in any answer, verb's output, log or file, in no spelling.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::harness::{Project, Request, SECRET, Server, StoreKind, signature, unix_time};

/// The secret of a source whose header is the secret itself.
const TOKEN: &str = "canary-5e1f9c07-is-sung-nowhere";

#[test]
fn a_secret_is_in_no_answer_log_or_file_on_sqlite() {
    check_canary(StoreKind::Sqlite);
}

#[test]
fn a_secret_is_in_no_answer_log_or_file_on_files() {
    check_canary(StoreKind::Files);
}

fn check_canary(kind: StoreKind) {
    let project = Project::new()
        .on(kind)
        .source("lab", "gitlab", TOKEN)
        .source("mail", "mailchimp", TOKEN)
        .section("[destinations.app]\npull = true\n")
        .section("[observability]\nlog_level = \"trace\"");
    let server = project.serve();
    sing(&server);
    let mut answers = pages(&server);
    let verbs = |answers: &mut Vec<(String, String)>| {
        for verb in [
            "config show",
            "config show --json",
            "config check",
            "events list",
            "events list --json",
            "events show @",
            "store check",
            "store check --json",
            "destinations list",
            "deliveries list",
            "doctor",
            "doctor --json",
        ] {
            let words: Vec<&str> = verb.split(' ').collect();
            let printed = project.run(&words);
            answers.push((verb.to_owned(), format!("{printed:?}")));
        }
    };
    verbs(&mut answers);
    let backup = project.run(&["store", "backup", "backup"]);
    assert_eq!(backup.exit_code, Some(0), "{backup:?}");
    answers.push(("store backup".to_owned(), format!("{backup:?}")));
    server.kill9();
    verbs(&mut answers);
    for (name, answer) in &answers {
        assert_eq!(found_in(answer.as_bytes()), None, "{name}: {answer}");
    }
    let mut files = Vec::new();
    files_below(project.data(), &mut files);
    assert!(files.iter().any(|file| file.ends_with("server.log")), "the log is looked at");
    for file in files {
        let bytes = fs::read(&file).expect("it can be read");
        assert_eq!(found_in(&bytes), None, "{}", file.display());
    }
}

/// Right and wrong requests; the secrets of one source are also sent to the other, where they prove nothing.
fn sing(server: &Server) {
    let send = |request: Request, status: u16| {
        let reply = server.connect().exchange(&request.bytes()).expect("an answer");
        assert_eq!(reply.status, status, "{reply}");
        assert_eq!(found_in(format!("{reply:?}").as_bytes()), None, "{reply:?}");
        assert_eq!(found_in(&reply.body), None, "{reply}");
    };
    send(Request::signed("evt_1", b"{\"type\":\"a\"}"), 202);
    send(Request::signed("evt_1", b"{\"type\":\"a\"}"), 200);
    send(Request::signed("evt_1", b"{\"type\":\"b\"}"), 409);
    send(Request::signed("evt_2", b"{}").replacing("X-Signature", SECRET), 401);
    send(Request::signed_at(unix_time() - 100_000, "evt_3", b"{}"), 401);
    send(
        Request::signed("evt_4", b"{}").replacing("X-Signature", &signature(TOKEN.as_bytes(), 1, "", b"")),
        401,
    );
    let lab = |token: &str| {
        Request::new("POST", "/in/lab", "localhost")
            .with("X-Gitlab-Token", token)
            .with("X-Gitlab-Event", "Push Hook")
            .with("X-Gitlab-Event-UUID", "6f1a6b2c-0a51-4c0a-9d0e-1d2f3a4b5c6d")
            .with("Idempotency-Key", "5f1a6b2c-0a51-4c0a-9d0e-1d2f3a4b5c6d")
            .with("webhook-id", "lab_1")
            .with_body(b"{\"object_kind\":\"push\"}")
    };
    send(lab(TOKEN), 202);
    send(lab(&format!("{TOKEN}x")), 401);
    send(lab(SECRET), 401);
    send(lab(TOKEN).with("X-Gitlab-Token", TOKEN), 401);
    let mail = |query: &str| {
        Request::new("POST", &format!("/in/mail?{query}"), "localhost")
            .with("Content-Type", "application/x-www-form-urlencoded")
            .with_body(b"type=subscribe&fired_at=1&data%5Bid%5D=1")
    };
    send(mail(&format!("list=1&secret={TOKEN}")), 202);
    send(mail(&format!("list=1&%73ecret={TOKEN}&list=2")), 200);
    send(mail(&format!("secret={TOKEN}x")), 401);
    send(mail(&format!("secret={}", SECRET.replace(' ', "%20"))), 401);
    send(mail(&format!("secret={TOKEN}&secret={TOKEN}")), 401);
    let conf = |query: &str| Request::signed("evt_5", b"{}").with_target(&format!("/in/conf?{query}"));
    send(conf(&format!("a=1&token={TOKEN}&key={}", SECRET.replace(' ', "+"))), 202);
    send(Request::new("POST", &format!("/in/{TOKEN}"), "localhost").with_body(b"{}"), 404);
}

/// What the admin listener shows to whoever may see all.
fn pages(server: &Server) -> Vec<(String, String)> {
    let mut admin = server.admin();
    let targets = [
        "/livez",
        "/readyz",
        "/metrics",
        "/v1/doctor",
        "/v1/events",
        "/v1/events/conf:evt_1",
        "/v1/events/conf:evt_1/receipt",
        "/v1/events/conf:evt_5",
        "/v1/events/mail:subscribe:1:1",
        "/v1/events/@",
        "/v1/events/@/receipt",
        "/v1/events/@/runs",
        "/v1/destinations",
        "/v1/destinations/app",
        "/v1/deliveries",
        "/v1/conflicts",
        "/v1/sources",
        "/v1/stats",
        "/v1/redeliveries",
    ];
    let page = |target: &str| {
        let reply = admin.get(target);
        (target.to_owned(), format!("{reply:?} {reply}"))
    };
    targets.map(page).into()
}

/// The first spelling of a secret that is in the bytes.
fn found_in(bytes: &[u8]) -> Option<String> {
    let spellings = [SECRET, TOKEN].into_iter().flat_map(|secret| {
        // Without the last characters, whose base64 depends on what follows.
        let base64 = STANDARD.encode(&secret.as_bytes()[..secret.len() / 3 * 3]);
        let in_a_query = ["%20", "+"].map(|blank| secret.replace(' ', blank));
        [secret.to_owned(), hex::encode(secret), base64].into_iter().chain(in_a_query)
    });
    spellings.into_iter().find(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_search_finds_each_spelling() {
    let in_a_query = SECRET.replace(' ', "%20");
    for text in [TOKEN.to_owned(), hex::encode(SECRET), STANDARD.encode(TOKEN), in_a_query] {
        assert!(found_in(format!("before {text} after").as_bytes()).is_some(), "{text}");
    }
    assert_eq!(found_in(b"nothing of it"), None);
}
