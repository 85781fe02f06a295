//! Theme timestamps-skew: only a signed time counts, both ways, in its unit; ids are what guards against replays.

use serde_json::{Value, json};

use super::case::{Case, text};
use super::play::{find, play, play_on, play_with, refused};
use super::stage::Stage;

#[test]
fn b059_milliseconds_are_not_seconds() {
    let played = play_with("B059", &Case::get("B061").sources());
    played.ids(&["ms-1"]).refusals(&["too-old", "too-new"]);
}

#[test]
fn b061_the_window_has_two_sides() {
    play("B061").ids(&["evt_fut_2"]).refusals(&["too-new"]);
}

#[test]
fn b063_a_tolerance_of_a_day_takes_a_late_retry() {
    let played = play("B063");
    played.ids(&["old-1"]);
    // With five minutes it is refused, and the operator sees why.
    let mut sketch = played.case.sources().remove(0);
    sketch["tolerance_s"] = json!(300);
    let stage = Stage::at(played.case.now()).source(&sketch);
    let server = stage.serve();
    let reply = server.connect().exchange(&played.case.requests()[0].bytes).expect("an answer");
    assert_eq!(reply.status, 401, "{reply}");
    let log = stage.log();
    let codes: Vec<_> = log.iter().filter_map(|line| find(line, "refusal.code")).collect();
    assert_eq!(codes, ["too-old"], "{log:#?}");
    assert_eq!(refused(&server, text(&sketch["name"])), [("too-old".to_owned(), 1)]);
}

#[test]
fn b065_a_time_that_is_not_signed_is_no_time() {
    let case = Case::get("B065");
    let sketch = case.sources().remove(0);
    // As sketched it is refused: the server would seem to check what anybody can write.
    let refused = Stage::at(case.now()).source(&sketch).refused_start();
    assert_eq!(refused.exit_code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("must cover the time"), "{refused:?}");
    let stage = Stage::at(case.now()).source(&without(&sketch, "timestamp_header"));
    play_on(case, stage).ids(&["lin-1"]);
}

#[test]
fn b067_dedupe_outlasts_the_window_at_both_ends() {
    play("B067").ids(&["w-1"]);
}

fn without(sketch: &Value, key: &str) -> Value {
    let mut sketch = sketch.clone();
    sketch.as_object_mut().expect("a sketch is an object").remove(key);
    sketch
}
