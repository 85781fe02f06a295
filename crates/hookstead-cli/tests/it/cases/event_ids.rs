//! Theme event-ids: never blank, never cut, never guessed.

use serde_json::json;

use super::case::{Case, text};
use super::play::{play, play_with};

#[test]
fn b082_a_blank_id_is_no_id() {
    let mut genid = Case::get("B082").sources().remove(0);
    genid["name"] = json!("genid");
    genid["event_id"] = json!("json:/id");
    play_with("B082", &[genid]).refusals(&["id-missing", "id-missing", "id-missing"]);
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
    play("B091").ids(&["om-1", "om-2"]).refusals(&["id-missing"]);
}

#[test]
fn b092_a_digest_as_the_id_by_choice() {
    let played = play("B092");
    let digest = text(&played.events[0]["digest"]).to_owned();
    played.ids(&[&digest]);
}
