//! Theme event-ids: never blank, never cut, never guessed.

use serde_json::{Value, json};

use super::case::{Case, text};
use super::play::{play, play_with, refused};
use super::stage::Stage;

#[test]
fn b082_a_blank_id_is_no_id() {
    let mut genid = Case::get("B082").sources().remove(0);
    genid["name"] = json!("genid");
    genid["event_id"] = json!("json:/id");
    let played = play_with("B082", &[genid]);
    played.refusals(&["id-missing", "id-missing", "id-missing"]);
    let listed: u64 = ["gen", "genid"]
        .iter()
        .flat_map(|source| refused(&played.server, source))
        .map(|(code, count)| if code == "id-missing" { count } else { 0 })
        .sum();
    assert_eq!(listed, 3, "each is in the list of its source");
}

#[test]
fn b084_long_ids_are_compared_to_their_last_byte() {
    let played = play("B084");
    let ids: Vec<_> = played.events.iter().map(|event| text(&event["provider_event_id"])).collect();
    assert!(ids[0].len() > 2_700 && ids[0] != ids[1], "{ids:?}");
}

#[test]
fn b087_one_delivery_id_at_two_hooks() {
    play("B087").ids(&["same-guid", "same-guid", "same-guid"]);
}

#[test]
fn b088_the_id_of_the_delivery_and_not_of_the_event_behind_it() {
    play("B088").ids(&["wh-1", "wh-2"]);
}

#[test]
fn b091_an_id_that_is_not_signed() {
    let played = play("B091");
    played.ids(&["om-1", "om-2"]).refusals(&["id-missing"]);
    let [first, second] = played.events.as_slice() else { panic!("two events") };
    assert_eq!(first["same_body_as"], Value::Null);
    assert_eq!(second["same_body_as"], first["id"]);
    let shown = played.stage.run(&["events", "show", "@"]);
    let mark = format!("same signed bytes as {}", text(&first["id"]));
    assert!(shown.stdout.contains(&mark), "{shown:?}");
    let listed = played.stage.run(&["events", "list"]);
    assert_eq!(listed.stdout.matches("reused body").count(), 1, "{listed:?}");
}

#[test]
fn b091_refused_where_the_source_says_so() {
    let case = Case::get("B091");
    let mut sketch = case.sources().remove(0);
    sketch["body_reuse"] = "refuse".into();
    for store in ["files:records", "sqlite:hookstead.db"] {
        let stage = Stage::at(case.now()).source(&sketch).store(&format!("url = \"{store}\"\n"));
        let server = stage.serve();
        let replies: Vec<_> = case
            .requests()
            .iter()
            .map(|request| server.connect().exchange(&request.bytes).expect("an answer"))
            .collect();
        let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, [202, 400, 409], "{replies:#?}");
        assert_eq!(replies[2].json()["code"], "body-reused");
        assert_eq!(server.admin().events().len(), 1);
    }
}

#[test]
fn b092_a_digest_as_the_id_by_choice() {
    let played = play("B092");
    let digest = text(&played.events[0]["digest"]).to_owned();
    played.ids(&[&digest]);
}
