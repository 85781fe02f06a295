//! Theme retry-backoff: when what failed is tried again, whatever the numbers, the answers and the clocks say.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::owed::{NOW, claim, delivery, post, post_many, post_to, seconds, settle, source, stage, wait_for};
use crate::harness::{Target, median, wait_until};

/// A week: the longest wait.
const CAP: i64 = 7 * 24 * 3_600;

/// From the sending of an event to its push, beside a destination that is slow.
const PUSHED_AFTER_MAX: Duration = Duration::from_secs(2);

#[test]
fn b150_the_wait_after_many_attempts_is_still_a_wait() {
    let stage =
        stage("[destinations.app]\npull = true\nmax_attempts = 1000\nretry = [\"0s\", \"1s\", \"7d\"]\n");
    let server = stage.serve();
    post(&server, "one", b"x");
    let mut admin = server.admin();
    for _ in 0..100 {
        let lease = claim(&mut admin, "max=1&wait=20s").remove(0);
        assert_eq!(settle(&mut admin, &lease, "retry", &json!({"after": "0s"})), 204);
    }
    let lease = claim(&mut admin, "max=1&wait=20s").remove(0);
    assert_eq!(lease["attempt"], 101, "{lease}");
    assert_eq!(settle(&mut admin, &lease, "retry", &Value::Null), 204);
    let wait = seconds(&delivery(&mut admin, "one", "app")["due"]) - NOW;
    // Up to a tenth longer than the schedule says, so that not all come at once.
    assert!((CAP..=CAP + CAP / 10 + 600).contains(&wait), "{wait}");
}

#[test]
fn b155_retry_after_only_lengthens_and_not_for_ever() {
    let values = [
        ("0", false),
        ("-5", false),
        ("99999999999", true),
        ("1.5", false),
        ("Thu, 01 Jan 1970 00:00:00 GMT", false),
        ("Fri, 31 Dec 9999 23:59:59 GMT", true),
        ("soon", false),
        ("7\r\nretry-after: 9", false),
    ];
    let cases: Vec<_> =
        [429, 503].into_iter().flat_map(|status| values.map(|value| (status, value))).collect();
    let target = |(status, (value, _)): &(u16, (&str, bool))| {
        let target = Target::answering(200, b"");
        let answer = format!("HTTP/1.1 {status} X\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n");
        target.answer_raw(answer.as_bytes());
        target
    };
    let targets: Vec<_> = cases.iter().map(target).collect();
    let table = |(number, target): (usize, &Target)| {
        let url = target.url();
        format!(
            "[destinations.d{number}]\npush = \"{url}\"\nallow_private = true\nretry = [\"0s\", \"60s\", \"60s\"]\n"
        )
    };
    let tables: String = targets.iter().enumerate().map(table).collect();
    let stage = stage(&tables);
    let server = stage.serve();
    post(&server, "one", b"x");
    let mut admin = server.admin();
    for (number, (status, (value, is_long))) in cases.iter().enumerate() {
        let tried = |delivery: &Value| delivery["attempts"] == 1 && delivery["state"] == "waiting";
        let waiting = wait_for(&mut admin, "one", &format!("d{number}"), tried);
        let wait = seconds(&waiting["due"]) - NOW;
        // Counted from the attempt, for which there is time.
        let allowed = if *is_long { CAP - 60..=CAP + 600 } else { 60..=600 };
        assert!(allowed.contains(&wait), "{status} {value}: {wait} s");
        assert!(targets[number].got().len() == 1, "{status} {value}");
    }
}

/// The retention that the case names as well comes with retention.
#[test]
fn b156_a_change_of_the_clocks_moves_no_due_time() {
    // A minute before clocks are put back, and a minute before they are put forward.
    for (before, local) in [(1_761_440_340, "2025-10-26"), (1_774_745_940, "2026-03-29")] {
        let target = Target::answering(400, b"");
        let push = format!(
            "[destinations.app]\npush = \"{}\"\nallow_private = true\nretry = [\"0s\", \"60s\", \"60s\"]\n",
            target.url()
        );
        let stage = stage(&push).variable("TZ", "Europe/Berlin");
        stage.set_clock(before);
        let server = stage.serve();
        post(&server, "one", b"x");
        let tried = |delivery: &Value| delivery["attempts"] == 1 && delivery["state"] == "waiting";
        let waiting = wait_for(&mut server.admin(), "one", "app", tried);
        let due = waiting["due"].as_str().expect("a text");
        assert!(due.starts_with(local) && due.ends_with('Z'), "{due}");
        // Up to a tenth longer, and counted from the end of the attempt, for which there is time; an hour is another matter.
        let wait = seconds(&waiting["due"]) - before;
        assert!((60..=100).contains(&wait), "{local}: {wait} s");
        assert_eq!(server.stop().code(), Some(0));
        // Behind the change of the clocks: once, and not again at the hour that comes twice.
        stage.set_clock(before + 120);
        let server = stage.serve();
        target.answer(200, b"");
        wait_for(&mut server.admin(), "one", "app", |delivery| delivery["state"] == "done");
        assert_eq!(target.got().len(), 2, "{local}");
    }
}

#[test]
fn b157_a_slow_target_keeps_no_other_waiting() {
    let (slow, fast) = (Target::answering(200, b""), Target::answering(200, b""));
    // The head of an answer that goes on later, for each push: whoever waited for its end would do so for 15 minutes.
    slow.answer_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
    let table = |name: &str, source: &str, target: &Target| {
        let url = target.url();
        format!(
            "[destinations.{name}]\npush = \"{url}\"\nallow_private = true\ntimeout = \"15m\"\nsources = [\"{source}\"]\n"
        )
    };
    let tables = table("slow", "gen", &slow) + &table("fast", "b", &fast);
    let stage = stage(&tables).source(&source("b"));
    let server = stage.serve();
    post_many(&server, 1_000);
    slow.wait_for(16);
    let push = |number: usize| {
        let begun = Instant::now();
        post_to(&server, "b", &format!("b{number}"), b"x");
        wait_until(|| fast.got().len() == number, || format!("{} fast pushes", fast.got().len()));
        begun.elapsed()
    };
    let median = median((1..=3).map(push).collect());
    assert!(median < PUSHED_AFTER_MAX, "most of the pushes came after {median:?} and more");
    assert!(slow.got().len() < 1_000, "there was a backlog");
}

#[test]
fn b158_schedules_at_the_edge_are_refused_or_wait() {
    let refused = [
        "retry = []",
        "retry = [\"-1s\"]",
        "retry = [\"0.5s\"]",
        "retry = [\"8d\"]",
        "max_attempts = 0",
        "max_attempts = 99999999999",
        "max_age = \"0s\"",
        // The last wait is used again and again: that would be a loop without a pause.
        "retry = [\"5s\", \"0s\"]\nmax_attempts = 20",
        "retry = [\"0s\"]\nmax_attempts = 2",
    ];
    for keys in refused {
        let stage = stage(&format!("[destinations.app]\npull = true\n{keys}\n"));
        let refused = stage.refused_start();
        assert_eq!(refused.exit_code, Some(5), "{keys}: {refused:?}");
        assert!(refused.stderr.contains("hookstead.toml:"), "{keys}: {refused:?}");
    }
    // The smallest that is allowed: after each failure there is a wait.
    let stage = stage("[destinations.app]\npull = true\nretry = [\"0s\", \"1s\"]\nmax_attempts = 20\n");
    let server = stage.serve();
    post(&server, "one", b"x");
    let mut admin = server.admin();
    let begun = Instant::now();
    for _ in 0..2 {
        let lease = claim(&mut admin, "max=1&wait=20s").remove(0);
        assert_eq!(settle(&mut admin, &lease, "retry", &Value::Null), 204);
    }
    assert!(begun.elapsed().as_millis() >= 900, "{:?}", begun.elapsed());
}
