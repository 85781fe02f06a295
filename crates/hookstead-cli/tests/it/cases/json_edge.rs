//! Theme json-edge: numbers, surrogates, NUL and depth.

use super::case::{Case, text, wire};
use super::play::{body, events, play};
use super::stage::Stage;

#[test]
fn b075_ids_of_many_digits_stay_apart() {
    play("B075").ids(&["9007199254740993", "9007199254740992", "12345678901234567890123"]);
}

#[test]
fn b077_lone_surrogates_are_stored() {
    let played = play("B077");
    assert_eq!(played.events[0]["provider_event_id"], "ls-1");
    // No text, so it is shown in base64: `ls-` and the three bytes of U+DC00.
    assert_eq!(played.events[1]["provider_event_id_base64"], "bHMt7bCA");
}

#[test]
fn b078_nul_is_stored_or_refused_and_never_an_error() {
    play("B078").ids(&["nul-1", "nul-\0-3"]);
}

#[test]
fn b080_deep_nesting_costs_no_stack() {
    let case = Case::get("B080");
    let stage = Stage::at(case.now()).source(&case.sources()[0]);
    let server = stage.serve();
    let sent = case.built_body();
    let sign = case.input("/build/sign");
    let signature = text(&sign).rsplit(' ').next().expect("a signature");
    let request = wire("POST", "/in/gen", &[("X-Signature", signature)], &sent);
    let reply = server.connect().exchange(&request).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    let mut admin = server.admin();
    let events = events(&mut admin);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["provider_event_id"], "deep-1");
    assert_eq!(body(&mut admin, &events[0]), sent);
    let shown = stage.run(&["events", "show", "gen:deep-1"]);
    assert_eq!(shown.exit_code, Some(0), "{shown:?}");
}
