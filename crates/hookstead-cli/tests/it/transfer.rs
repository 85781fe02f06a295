//! Events that are exported from one store and imported into another: the same bytes, one event an identity, and an
//! import that can be broken off anywhere and run again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::cases::hmac_hex;
use crate::harness::{
    Disk, Fault, Kind, Project, Request, SECRET, SOURCE, Server, StoreKind, Target, wait_until,
};

/// The largest body that the source of the harness takes.
const BODY_BYTES_MAX: usize = 1 << 16;

const MIB: usize = 1 << 20;

/// A source that takes large bodies and empty ones, and whose type and scope come from header fields.
const HUB: &str = "hub";

/// What an event is where it was accepted and where it is imported alike.
const SAME: [&str; 14] = [
    "format",
    "source",
    "provider_event_id",
    "scope_base64",
    "type",
    "account",
    "received_from",
    "received_at",
    "digest",
    "bytes",
    "query",
    "query_base64",
    "headers",
    "body_base64",
];

#[test]
fn events_are_the_same_from_sqlite_in_files() {
    check_round_trip(StoreKind::Sqlite, StoreKind::Files);
}

#[test]
fn events_are_the_same_from_files_in_sqlite() {
    check_round_trip(StoreKind::Files, StoreKind::Sqlite);
}

/// Both ways of either verb: over a server that runs, and on the store itself.
fn check_round_trip(from: StoreKind, to: StoreKind) {
    let project = |kind| Project::new().source(HUB, "github", SECRET).on(kind);
    let (first, second) = (project(from), project(to));
    let file = path(&first, "events.jsonl");
    let bodies = bodies();
    let server = first.serve();
    bodies.iter().for_each(|(id, body)| send(&server, id, body));
    let large: BTreeMap<String, Vec<u8>> =
        (0..5_u8).map(|number| (format!("large-{number}"), vec![number; MIB])).collect();
    large.iter().for_each(|(id, body)| send_to_hub(&server, id, body));
    send_to_hub(&server, "empty", b"");
    let all = bodies.len() + large.len() + 1;
    let exported = run(&first, &["events", "export", "--output", &file, "--json"], 0);
    assert_eq!((&exported["events"], &exported["ok"]), (&json!(all), &json!(true)), "{exported}");
    assert!(server.stop().success());

    let imported = run(&second, &["events", "import", &file, "--json"], 0);
    assert_eq!(counts(&imported), [all, 0, 0, 0, 0], "{imported}");
    let server = second.serve();
    let mut admin = server.admin();
    for (id, body) in &bodies {
        assert!(admin.body(SOURCE, id).as_ref() == Ok(body), "{id}");
    }
    for (id, body) in &large {
        assert!(admin.body(HUB, id).as_ref() == Ok(body), "{id}");
    }
    assert_eq!(admin.body(HUB, "empty"), Ok(Vec::new()));
    assert_eq!(admin.get(&format!("/v1/events/{HUB}:empty")).json()["query"], "hook=42&of=empty");
    let shown = admin.get(&format!("/v1/events/{SOURCE}:one")).json();
    let proof = shown["verified_by"].as_str().unwrap_or_default();
    assert!(proof.starts_with("imported: signed-inbox"), "{shown}");
    let again = run(&second, &["events", "import", &file, "--json"], 0);
    assert_eq!(counts(&again), [0, all, 0, 0, 0], "{again}");
    // What the provider sends again is known.
    let reply = server.connect().exchange(&Request::signed("one", b"1").bytes()).expect("an answer");
    assert_eq!(reply.status, 200, "{reply}");

    let back = second.run(&["events", "export"]);
    assert_eq!(back.exit_code, Some(0), "{back:?}");
    let (before, after) = (lines(&fs::read_to_string(&file).expect("a file")), lines(&back.stdout));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        for key in SAME {
            assert_eq!(before.get(key), after.get(key), "{key} of {}", before["id"]);
        }
        assert_ne!(before["id"], after["id"]);
    }
}

/// More than a page by their number; those beside them in the test, by their length.
fn bodies() -> BTreeMap<String, Vec<u8>> {
    let small = (0..210).map(|number| (format!("small-{number:03}"), format!("{number}").into_bytes()));
    let largest = (0..2_u8).map(|number| (format!("largest-{number}"), vec![number; BODY_BYTES_MAX]));
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let special = [("binary", every_byte), ("lines", b"{\"a\":\n1}\r\n".to_vec()), ("one", b"1".to_vec())];
    small.chain(largest).chain(special.map(|(id, body)| (id.to_owned(), body))).collect()
}

fn send(server: &Server, id: &str, body: &[u8]) {
    // A value that is no text, as HTTP allows.
    let request = Request::signed(id, body).with("X-Odd", "ODD-VALUE").bytes();
    let at = request.windows(9).position(|part| part == b"ODD-VALUE").expect("the header");
    let request = [&request[..at], b"\xff\xe9 \x80", &request[at + 9..]].concat();
    let reply = server.connect().exchange(&request).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

/// To the source of large bodies, with a type and a scope.
fn send_to_hub(server: &Server, id: &str, body: &[u8]) {
    let signature = format!("sha256={}", hmac_hex(SECRET, body));
    let request = Request::new("POST", &format!("/in/{HUB}?hook=42&of={id}"), "localhost")
        .with("X-GitHub-Delivery", id)
        .with("X-GitHub-Event", "push")
        .with("X-GitHub-Hook-ID", "42")
        .with("X-Hub-Signature-256", &signature)
        .with_body(body);
    let reply = server.connect().exchange(&request.bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

#[test]
fn each_line_is_answered_for_by_itself() {
    let (first, second) = (Project::new(), Project::new());
    let good = exported(&first, &[("one", b"1"), ("two", b"2"), ("three", b"3")]);
    let other_body = json!({ "body_base64": "eA==" });
    let conflict = json!({
        "body_base64": "eA==", "bytes": 1,
        "digest": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    });
    let newline = json!({ "headers": [{ "name": "a", "value": "b\r\nc: d" }] });
    let cut = &good[2].to_string()[..200];
    let text = [
        good[0].to_string(),
        changed(&good[1], &other_body),
        changed(&good[1], &json!({ "bytes": 2 })),
        changed(&good[1], &json!({ "format": 2 })),
        changed(&good[1], &json!({ "source": "elsewhere" })),
        changed(&good[1], &json!({ "provider_event_id": " " })),
        changed(&good[1], &json!({ "received_at": "1969-12-31T23:59:59Z" })),
        changed(&good[1], &newline),
        changed(&good[1], &json!({ "body_base64": null })),
        changed(&good[1], &json!({ "body_base64": null, "erased_at": "2026-01-01T00:00:00Z" })),
        String::new(),
        "what is this".to_owned(),
        good[0].to_string(),
        changed(&good[0], &conflict),
        good[1].to_string(),
        cut.to_owned(),
    ]
    .join("\n");
    let file = path(&second, "changed.jsonl");
    fs::write(&file, text).expect("it can be written");
    let imported = run(&second, &["events", "import", &file, "--json"], 7);
    assert_eq!(counts(&imported), [2, 1, 1, 1, 10], "{imported}");
    let problems: Vec<_> = imported["problems"].as_array().expect("a list").iter().collect();
    let told = |problem: &&Value| {
        let code = problem["code"].as_str().unwrap_or("conflict");
        (problem["line"].as_u64().expect("a number"), code.to_owned())
    };
    let expected = [
        (2, "digest"),
        (3, "digest"),
        (4, "other-format"),
        (5, "source-not-configured"),
        (6, "malformed"),
        (7, "time"),
        (8, "malformed"),
        (9, "malformed"),
        (12, "malformed"),
        (14, "conflict"),
        (16, "cut-off"),
    ];
    let expected: Vec<_> = expected.map(|(line, code)| (line, code.to_owned())).into();
    assert_eq!(problems.iter().map(told).collect::<Vec<_>>(), expected);
    let explained = |problem: &&&Value| problem["reason"].is_string() && problem["fix"].is_string();
    assert!(problems.iter().filter(explained).count() == 10, "{imported}");

    let server = second.serve();
    let mut admin = server.admin();
    assert_eq!(admin.body(SOURCE, "one"), Ok(b"1".to_vec()), "the other bytes changed nothing");
    assert_eq!(admin.conflicts().len(), 1);
    assert_eq!(admin.events().len(), 2);
    let told = second.run(&["events", "import", &file]);
    assert_eq!(told.exit_code, Some(7), "{told:?}");
    assert!(told.stdout.contains("refused") && told.stderr.contains("line 16"), "{told:?}");
    assert!(told.stderr.contains("1 erased: unknown here from now on"), "{told:?}");
}

#[test]
fn a_body_is_held_to_the_limit_of_its_source_and_a_line_to_that_of_the_largest() {
    let project = || Project::new().source(HUB, "github", SECRET);
    let (first, second) = (project(), project().source_key("body", "\"1 MiB\""));
    let server = first.serve();
    send_to_hub(&server, "over", &vec![b'x'; MIB + 1]);
    send_to_hub(&server, "far-over", &vec![b'x'; 3 * MIB]);
    send_to_hub(&server, "at", &vec![b'x'; MIB]);
    let file = path(&first, "events.jsonl");
    run(&first, &["events", "export", "--output", &file, "--json"], 0);
    let imported = run(&second, &["events", "import", &file, "--json"], 7);
    assert_eq!(counts(&imported), [1, 0, 0, 0, 2], "{imported}");
    for problem in imported["problems"].as_array().expect("a list") {
        assert_eq!(problem["code"], "too-large", "{problem}");
    }
}

#[test]
fn an_import_that_is_killed_is_run_again_and_ends_the_same() {
    const LINES: usize = 600;
    let (first, second) = (Project::new(), Project::new());
    let good = exported(&first, &[("one", b"1")]).remove(0);
    let line = |number: usize| changed(&good, &json!({ "provider_event_id": format!("id-{number}") })) + "\n";
    let text: String = (0..LINES).map(line).collect();
    let file = path(&first, "many.jsonl");
    fs::write(&file, &text).expect("it can be written");

    let mut child = second.spawn(&["events", "import"]);
    let half: String = text.split_inclusive('\n').take(LINES / 2).collect();
    // Open until the end: the import waits for more lines when it is killed.
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(half.as_bytes()).expect("it reads");
    stdin.flush().expect("it reads");
    wait_until(|| count(&second) > 0, || "nothing was imported".to_owned());
    child.kill().expect("an own child can be killed");
    child.wait().expect("an own child can be awaited");
    drop(stdin);
    let there = count(&second);
    assert!(there > 0 && there <= LINES / 2, "{there}");

    let imported = run(&second, &["events", "import", &file, "--json"], 0);
    assert_eq!(counts(&imported), [LINES - there, there, 0, 0, 0], "{imported}");
    let back = second.run(&["events", "export"]);
    let ids: BTreeSet<String> =
        lines(&back.stdout).iter().map(|line| line["provider_event_id"].to_string()).collect();
    assert_eq!((ids.len(), lines(&back.stdout).len()), (LINES, LINES));
    let check = second.run(&["store", "check"]);
    assert_eq!(check.exit_code, Some(0), "{check:?}");
}

#[test]
fn nobody_is_sent_an_imported_event_unless_it_is_asked_for() {
    let target = Target::answering(200, b"");
    let push = format!("[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url());
    let (first, second) = (Project::new(), Project::new().section(&push));
    let plain = json!({ "headers": [{ "name": "content-type", "value": "text/plain" }] });
    let good: Vec<String> = exported(&first, &[("quiet", b"1"), ("loud", b"2")])
        .iter()
        .map(|line| changed(line, &plain))
        .collect();
    let server = second.serve();
    let (quiet, loud) = (path(&second, "quiet"), path(&second, "loud"));
    fs::write(&quiet, &good[0]).expect("it can be written");
    fs::write(&loud, &good[1]).expect("it can be written");
    run(&second, &["events", "import", &quiet, "--json"], 0);
    run(&second, &["events", "import", &loud, "--deliver", "--json"], 0);
    assert_eq!(target.wait_for(1)[0].body, b"2");
    let deliveries = server.admin().get("/v1/deliveries").json();
    assert_eq!(deliveries["deliveries"].as_array().map(Vec::len), Some(1), "{deliveries}");
}

#[test]
fn a_file_is_there_when_it_is_whole_and_is_not_written_over() {
    let project = Project::new();
    let file = path(&project, "events.jsonl");
    exported(&project, &[("one", b"1")]);
    let text = project.run(&["events", "export"]).stdout;
    fs::write(&file, "mine").expect("it can be written");
    let refused = project.run(&["events", "export", "--output", &file]);
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine");
    let unknown = project.run(&["events", "export", "conf:unknown", "--output", &file, "--force"]);
    assert_eq!(unknown.exit_code, Some(3), "{unknown:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine");
    let forced = project.run(&["events", "export", "--output", &file, "--force"]);
    assert_eq!(forced.exit_code, Some(0), "{forced:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), text);
    let left = fs::read_dir(project.data()).expect("a folder").filter_map(Result::ok);
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".part")), "{left:?}");
}

/// Until it has its name nothing is left behind; after that it is said to be there.
#[test]
fn a_file_whose_folder_cannot_be_synced_is_said_to_be_there() {
    let (project, disk) = (Project::new(), Disk::build());
    exported(&project, &[("one", b"1")]);
    let text = project.run(&["events", "export"]).stdout;
    let folder = project.data().join("exports");
    fs::create_dir(&folder).expect("a new folder");
    let file = folder.join("events.jsonl");
    let export = ["events", "export", "--output", file.to_str().expect("UTF-8")];
    for (number, left) in [(1, None), (2, Some(text))] {
        disk.fail(Kind::Sync, Fault::Broken, number, number);
        let printed = project.run_under(disk.below(&folder), &export);
        assert_eq!((printed.exit_code, disk.struck()), (Some(1), 1), "{number}: {printed:?}");
        assert_eq!(printed.stderr.contains("nothing was left behind"), left.is_none(), "{printed:?}");
        assert_eq!(printed.stderr.contains("not-synced"), left.is_some(), "{printed:?}");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), usize::from(left.is_some()));
        assert_eq!(fs::read_to_string(&file).ok(), left, "{number}");
    }
}

#[test]
fn a_part_of_the_events_is_exported() {
    let project = Project::new();
    exported(&project, &[("one", b"1"), ("two", b"2"), ("three", b"3")]);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let printed = project.run(&[&["events", "export"], arguments].concat());
        assert_eq!(printed.exit_code, Some(0), "{printed:?}");
        let id = |line: &Value| line["provider_event_id"].as_str().expect("an id").to_owned();
        lines(&printed.stdout).iter().map(id).collect()
    };
    assert_eq!(ids(&[]), ["one", "two", "three"]);
    assert_eq!(ids(&["--source", SOURCE]), ["one", "two", "three"]);
    assert_eq!(ids(&["@", "conf:one"]), ["three", "one"]);
    assert_eq!(ids(&["--before", "2020-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(ids(&["--from", "2020-01-01T00:00:00Z"]), ["one", "two", "three"]);
    let unknown = project.run(&["events", "export", "--source", "nobody"]);
    assert_eq!(unknown.exit_code, Some(3), "{unknown:?}");
}

/// A damaged event is left out and named; every other one is exported.
#[test]
fn damage_is_named_and_keeps_nothing_else_from_being_exported() {
    const SPOIL: &str = "import sqlite3, sys\n\
        database = sqlite3.connect(sys.argv[1])\n\
        database.execute(\"UPDATE events SET body = x'7a' WHERE body = x'32'\")\n\
        database.commit()";
    let project = Project::new();
    // A start looks at the newest 64, and would be refused for it.
    let newer: Vec<String> = (0..64).map(|number| format!("newer-{number}")).collect();
    let newer = newer.iter().map(|id| (id.as_str(), id.as_bytes()));
    let events: Vec<(&str, &[u8])> =
        [("one", &b"1"[..]), ("two", b"2"), ("three", b"3")].into_iter().chain(newer).collect();
    exported(&project, &events);
    let database = project.data().join("hookstead.db");
    let spoilt = std::process::Command::new("python3").args(["-c", SPOIL]).arg(&database).status();
    assert!(spoilt.expect("python3 starts").success());
    let printed = project.run(&["events", "export"]);
    assert_eq!(printed.exit_code, Some(7), "{printed:?}");
    assert_eq!(lines(&printed.stdout).len(), events.len() - 1, "{printed:?}");
    assert!(printed.stderr.contains("digest"), "{printed:?}");
    check_named_damage(&project);
    let server = project.serve();
    check_named_damage(&project);
    drop(server);
}

/// The same where the events are named, by the store itself or by its server.
fn check_named_damage(project: &Project) {
    let named = ["events", "export", "conf:two", "conf:three"];
    let printed = project.run(&named);
    assert_eq!(printed.exit_code, Some(7), "{printed:?}");
    let ids: Vec<Value> =
        lines(&printed.stdout).iter().map(|line| line["provider_event_id"].clone()).collect();
    assert_eq!(ids, ["three"], "{printed:?}");
    assert!(
        printed.stderr.contains("conf:two: ") && printed.stderr.contains("1 damaged event"),
        "{printed:?}"
    );
    let file = path(project, "named.jsonl");
    let summary = run(project, &[&named[..], &["--output", &file, "--force", "--json"]].concat(), 7);
    assert_eq!((&summary["ok"], &summary["events"]), (&json!(false), &json!(1)), "{summary}");
    assert_eq!(summary["damaged"].as_array().map(Vec::len), Some(1), "{summary}");
    assert_eq!(lines(&fs::read_to_string(&file).expect("a file")).len(), 1);
    let unknown = project.run(&["events", "export", "conf:two", "conf:unknown"]);
    assert_eq!(unknown.exit_code, Some(3), "{unknown:?}");
}

/// The lines of these events, accepted by a server of this project, which was stopped.
fn exported(project: &Project, events: &[(&str, &[u8])]) -> Vec<Value> {
    let server = project.serve();
    events.iter().for_each(|(id, body)| send(&server, id, body));
    assert!(server.stop().success());
    let printed = project.run(&["events", "export"]);
    assert_eq!(printed.exit_code, Some(0), "{printed:?}");
    lines(&printed.stdout)
}

/// A line with other values.
fn changed(line: &Value, values: &Value) -> String {
    let mut line = line.clone();
    for (key, value) in values.as_object().expect("an object") {
        line[key] = value.clone();
    }
    line.to_string()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// Runs a verb that prints one JSON document.
fn run(project: &Project, arguments: &[&str], exit_code: i32) -> Value {
    let printed = project.run(arguments);
    assert_eq!(printed.exit_code, Some(exit_code), "{printed:?}");
    serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("{error}: {printed:?}"))
}

/// Stored, duplicates, conflicts, erased, refused.
fn counts(document: &Value) -> [usize; 5] {
    ["stored", "duplicates", "conflicts", "erased", "refused"]
        .map(|name| document[name].as_u64().and_then(|count| count.try_into().ok()).expect("a count"))
}

fn count(project: &Project) -> usize {
    let printed = project.run(&["events", "list", "--limit", "1000", "--json"]);
    let document: Value = serde_json::from_str(&printed.stdout).unwrap_or_default();
    document["events"].as_array().map_or(0, Vec::len)
}

fn path(project: &Project, name: &str) -> String {
    Path::new(project.data()).join(name).display().to_string()
}
