//! Themes raw-body, charset-newlines and body-kinds: the bytes of the wire are the record.

use super::case::Case;
use super::play::{body, play};
use super::stage::Stage;
use crate::harness::Target;

#[test]
fn b001_json_is_not_written_anew() {
    let played = play("B001");
    played.ids(&["evt_raw_001"]);
    let sent = played.case.requests().remove(0).body.expect("a body");
    let printed = played.stage.run(&["events", "body", "stripe:evt_raw_001"]);
    assert_eq!(printed.stdout.as_bytes(), sent, "what a person gets is the same as well");
}

#[test]
fn b003_a_form_is_verified_as_it_came() {
    let played = play("B003");
    played.ids(&["5f0c1d1e-0000-4000-8000-000000000001"]);
    let form = ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned());
    let headers = played.headers();
    let kept = headers.iter().any(|(name, value)| (name.to_lowercase(), value.clone()) == form);
    assert!(kept, "{headers:?}");
}

#[test]
fn b005_a_body_that_is_no_utf8_is_a_body() {
    let played = play("B005");
    played.ids(&["x1"]);
    let stored = body(&mut played.server.admin(), &played.events[0]);
    assert_eq!(stored.iter().position(|byte| *byte == 0xe9), Some(21));
}

#[test]
fn b006_an_exported_event_is_the_same_bytes_where_it_is_imported_and_pushed() {
    let case = Case::get("B006");
    let request = case.requests().remove(0);
    let sent = request.body.expect("a body");
    assert_eq!(sent.len(), 67);
    let stage = || Stage::at(case.now()).source(&case.sources()[0]);
    let first = stage();
    let server = first.serve();
    assert_eq!(server.connect().exchange(&request.bytes).expect("an answer").status, 202);
    let file = first.data().join("events.jsonl").display().to_string();
    let exported = first.run(&["events", "export", "gen:bin-1", "--output", &file]);
    assert_eq!(exported.exit_code, Some(0), "{exported:?}");
    drop(server);

    let target = Target::answering(200, b"");
    let push = format!("[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url());
    let second = stage().toml(&push);
    let imported = second.run(&["events", "import", &file]);
    assert_eq!(imported.exit_code, Some(0), "{imported:?}");
    let server = second.serve();
    let mut admin = server.admin();
    assert_eq!(admin.body("gen", "bin-1").expect("a body"), sent);
    let asked = second.run(&["events", "redeliver", "gen:bin-1", "--to", "app"]);
    assert_eq!(asked.exit_code, Some(0), "{asked:?}");
    assert_eq!(target.wait_for(1)[0].body, sent);
    assert_eq!(target.got().len(), 1, "the import alone pushed nothing");
}

#[test]
fn b009_line_ends_are_kept_from_a_file_and_from_stdin() {
    let played = play("B009");
    played.ids(&["evt_lines_1"]);
    let stored = body(&mut played.server.admin(), &played.events[0]);
    assert!(stored.ends_with(b"}\n\n"), "{stored:?}");
}

#[test]
fn b011_a_byte_order_mark_is_skipped_by_the_id_and_kept_in_the_body() {
    play("B011").ids(&["bom-1"]);
}

#[test]
fn b013_characters_of_four_bytes() {
    play("B013").ids(&["emo-1"]);
}

#[test]
fn b015_changed_line_ends_are_a_mismatch() {
    let played = play("B015");
    played.refusals(&["signature-differs"]);
    let told = String::from_utf8_lossy(&played.replies[0].body).into_owned();
    assert!(!told.contains("LF") && !told.contains("differs"), "{told}");
}

#[test]
fn b068_an_empty_body_is_a_body() {
    let played = play("B068");
    played.ids(&["eb-1"]);
    assert_eq!(played.events[0]["bytes"], 0);
}

#[test]
fn b069_an_id_is_found_in_the_json_of_a_form() {
    play("B069").ids(&["77"]);
}
