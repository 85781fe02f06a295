//! The line of a delivery: claimed, tried, settled, whatever the target does.

use std::num::NonZeroU16;
use std::time::Duration;

use hookstead::core::{
    DeadReason, DeliveryState, LeaseToken, Redeliver, RedeliveryPlan, RetryPolicy, StateName, Subject,
};
use hookstead::dispatch::{CIRCUIT_FAILURES_MAX, CIRCUIT_REST_MIN, CircuitState};
use hookstead::sink::{Tried, TriedVerdict};
use hookstead::{DestinationOptions, Inbox};

use crate::scene::{Reply, Scene, destination, plain, start};
use crate::stores::{on_disk, recorded};

const GRACE: Duration = Duration::from_secs(5);

/// Three attempts, five seconds apart.
fn three_attempts() -> RetryPolicy {
    RetryPolicy { schedule_s: vec![0, 5], attempts_max: 3, age_max_s: 3600, jitter_percent: 0 }
}

fn with_retry(retry: RetryPolicy) -> DestinationOptions {
    DestinationOptions { retry, ..DestinationOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_delivered_and_done_with_its_attempt_on_record() {
    let scene = Scene::new([plain("app")]);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("app", StateName::Done, 1).await;

    let [call] = &scene.targets.of("app").calls()[..] else { panic!("one call") };
    assert_eq!((call.id.as_str(), call.body.as_str(), call.attempt), ("evt_1", "body of evt_1", 1));
    assert_eq!(call.key, scene.delivery("app").idempotency_key());
    let [attempt] = &scene.attempts("app")[..] else { panic!("one attempt") };
    assert_eq!((attempt.number, attempt.token, attempt.rule.as_deref()), (1, LeaseToken(1), Some("ok")));
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_owed_before_the_start_is_delivered() {
    let scene = Scene::new([plain("app")]);
    scene.record("evt_1").await;
    let dispatcher = scene.dispatch();
    scene.until("app", StateName::Done, 1).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_by_the_schedule_under_one_key_until_it_is_dead() {
    let scene = Scene::new([destination("app", with_retry(three_attempts()))]);
    let app = scene.targets.of("app");
    app.says(Tried::retry("status-400", "no"));
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    for made in 1..=3 {
        app.called(made).await;
        scene.until("app", if made < 3 { StateName::Waiting } else { StateName::Dead }, 1).await;
        assert_eq!(app.calls().len(), made, "not before its time");
        scene.advance(Duration::from_secs(5)).await;
    }
    let calls = app.calls();
    assert!(calls.iter().all(|call| call.key == calls[0].key));
    assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    let DeliveryState::Dead { reason, .. } = scene.delivery("app").state else { panic!("dead") };
    assert_eq!(reason, DeadReason::AttemptsUsedUp);
    assert!(scene.attempts("app").iter().all(|attempt| attempt.error.as_deref() == Some("no")));
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn the_targets_wait_lengthens_the_schedules() {
    let scene = Scene::new([destination("app", with_retry(three_attempts()))]);
    let app = scene.targets.of("app");
    app.answers(|call| {
        let after = Some(Duration::from_secs(60));
        let verdict = if call.attempt == 1 { TriedVerdict::Retry { after } } else { TriedVerdict::Done };
        Reply::Say(Tried::new(verdict, "status-429"))
    });
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("app", StateName::Waiting, 1).await;
    app.called(1).await;
    scene.until("app", StateName::Waiting, 1).await;
    scene.advance(Duration::from_secs(59)).await;
    scene.until("app", StateName::Waiting, 1).await;
    assert_eq!(app.calls().len(), 1);
    scene.advance(Duration::from_secs(1)).await;
    scene.until("app", StateName::Done, 1).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn dead_and_held_are_what_a_target_can_say_too() {
    let scene = Scene::new([plain("refuses"), plain("gone")]);
    scene.targets.of("refuses").says(Tried::new(TriedVerdict::Dead("never".into()), "exit-1"));
    scene.targets.of("gone").says(Tried::new(TriedVerdict::Hold("410".into()), "status-410"));
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("refuses", StateName::Dead, 1).await;
    scene.until("gone", StateName::Held, 1).await;

    scene.targets.of("gone").says(Tried::done("ok"));
    scene.resolve(Subject::LetDeliveryGo(scene.delivery("gone").id)).await;
    scene.until("gone", StateName::Done, 1).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_sink_is_a_retry_and_stops_nobody_else() {
    let scene = Scene::new([plain("app")]);
    let app = scene.targets.of("app");
    app.answers(|call| if call.id == "bad" { Reply::Panic } else { Reply::Say(Tried::done("ok")) });
    let dispatcher = scene.dispatch();
    for id in ["1", "bad", "2"] {
        scene.record(id).await;
    }
    scene.until("app", StateName::Done, 2).await;
    scene.until("app", StateName::Waiting, 1).await;
    let bad =
        scene.deliveries("app").into_iter().find(|owed| owed.state_name() == StateName::Waiting).unwrap();
    let [attempt] = &scene.inbox.store().attempts(&bad.id).unwrap()[..] else { panic!("one attempt") };
    assert_eq!(attempt.error.as_deref(), Some("it panicked: the target's own fault"));
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_poison_event_stops_nobody_else() {
    let options = DestinationOptions { concurrency: NonZeroU16::MIN, ..with_retry(three_attempts()) };
    let scene = Scene::new([destination("app", options)]);
    let app = scene.targets.of("app");
    app.answers(|call| {
        Reply::Say(if call.id == "bad" { Tried::down("500", "no") } else { Tried::done("ok") })
    });
    let dispatcher = scene.dispatch();
    scene.record("bad").await;
    for round in 1..=12 {
        scene.record(&format!("good-{round}")).await;
        scene.until("app", StateName::Done, round).await;
        scene.advance(Duration::from_secs(5)).await;
    }
    scene.until("app", StateName::Dead, 1).await;
    assert_eq!(dispatcher.standing(&"app".parse().unwrap()).unwrap().circuit, CircuitState::Closed);
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_that_hangs_costs_one_attempt_its_timeout() {
    let scene = Scene::new([plain("app")]);
    let app = scene.targets.of("app");
    app.answers(|_| Reply::Hang);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    app.called(1).await;
    let timeout = scene.inbox.destination("app").unwrap().destination().timeout();
    scene.advance(timeout + Duration::from_secs(1)).await;
    scene.until("app", StateName::Waiting, 1).await;
    let [attempt] = &scene.attempts("app")[..] else { panic!("one attempt") };
    assert_eq!(attempt.rule.as_deref(), Some("timeout"));
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_down_rests_is_probed_and_burns_no_attempts_of_what_waits() {
    let scene = Scene::new([destination(
        "app",
        DestinationOptions { concurrency: NonZeroU16::MIN, ..DestinationOptions::default() },
    )]);
    let (app, name) = (scene.targets.of("app"), "app".parse().unwrap());
    app.says(Tried::down("connect", "refused"));
    let dispatcher = scene.dispatch();
    for number in 0..20 {
        scene.record(&format!("evt_{number}")).await;
    }
    let circuit = || dispatcher.standing(&name).unwrap().circuit;
    let is_open = || matches!(circuit(), CircuitState::Open { .. });
    crate::scene::until(is_open, || format!("{:?}", circuit())).await;
    scene.until("app", StateName::Waiting, 20).await;
    assert_eq!(app.calls().len(), CIRCUIT_FAILURES_MAX);
    let burnt = || scene.deliveries("app").iter().map(|owed| owed.attempts).sum::<u32>();
    assert_eq!(burnt(), 5);

    scene.advance(CIRCUIT_REST_MIN).await;
    app.called(6).await;
    crate::scene::until(is_open, || format!("{:?}", circuit())).await;
    scene.until("app", StateName::Waiting, 20).await;
    assert_eq!((app.calls().len(), burnt()), (6, 6), "one probe");

    app.says(Tried::done("ok"));
    scene.advance(CIRCUIT_REST_MIN * 2).await;
    scene.until("app", StateName::Done, 20).await;
    assert_eq!(circuit(), CircuitState::Closed);
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_destination_does_not_starve_a_fast_one() {
    let scene = Scene::new([plain("slow"), plain("fast")]);
    scene.targets.of("slow").answers(|_| Reply::Hang);
    let dispatcher = scene.dispatch();
    for number in 0..50 {
        scene.record(&format!("evt_{number}")).await;
    }
    scene.until("fast", StateName::Done, 50).await;
    scene.targets.of("slow").called(16).await;
    assert_eq!(scene.targets.of("slow").calls().len(), 16, "no more than its concurrency");
    dispatcher.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_kept() {
    let rate_per_s = NonZeroU16::new(2);
    let scene = Scene::new([destination("app", DestinationOptions { rate_per_s, ..Default::default() })]);
    let app = scene.targets.of("app");
    for number in 0..5 {
        scene.record(&format!("evt_{number}")).await;
    }
    let dispatcher = scene.dispatch();
    for begun in 1..=5 {
        scene.until("app", StateName::Done, begun).await;
        assert_eq!(app.calls().len(), begun);
        scene.advance(Duration::from_millis(500)).await;
    }
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_attempts_end_and_gives_back_those_that_do_not() {
    let scene = Scene::new([plain("app")]);
    let app = scene.targets.of("app");
    app.answers(|_| Reply::Hang);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    app.called(1).await;
    scene.until("app", StateName::Leased, 1).await;
    dispatcher.stop(Duration::ZERO).await;
    let delivery = scene.delivery("app");
    assert_eq!((delivery.state_name(), delivery.attempts), (StateName::Waiting, 0));
    assert_eq!(scene.attempts("app"), []);
    scene.record("evt_2").await;
    assert_eq!(app.calls().len(), 1, "a stopped dispatcher claims nothing");
}

#[test]
fn after_a_crash_a_lease_expires_and_the_event_comes_again_under_its_key() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let clock = start();
        let open = || Inbox::builder().store(url.clone());
        let first = paused(async {
            let scene = Scene::on(open(), clock.clone(), [plain("app")]);
            let app = scene.targets.of("app");
            app.answers(|_| Reply::Hang);
            let dispatcher = scene.dispatch();
            scene.record("evt_1").await;
            app.called(1).await;
            scene.until("app", StateName::Leased, 1).await;
            drop(dispatcher); // nothing is settled
            app.calls().remove(0)
        });
        let second = paused(async {
            let scene = Scene::on(open(), clock.clone(), [plain("app")]);
            let lease = scene.inbox.destination("app").unwrap().destination().lease_for();
            let dispatcher = scene.dispatch();
            scene.record("evt_2").await;
            scene.until("app", StateName::Done, 1).await;
            assert_eq!(scene.count("app", StateName::Leased), 1, "not before its lease has expired");
            let mut moved = Duration::ZERO;
            while scene.count("app", StateName::Leased) > 0 && moved < lease + Duration::from_secs(30) {
                scene.advance(Duration::from_secs(5)).await;
                moved += Duration::from_secs(5);
                tokio::task::spawn_blocking(|| ()).await.unwrap();
            }
            scene.until("app", StateName::Leased, 0).await;
            scene.advance(Duration::from_secs(10)).await;
            scene.until("app", StateName::Done, 2).await;
            dispatcher.stop(GRACE).await;
            scene.targets.of("app").calls().into_iter().find(|call| call.id == "evt_1").unwrap()
        });
        assert_eq!((first.attempt, second.attempt), (1, 2));
        assert_eq!(first.key, second.key);
    }
}

/// Runs on a runtime of its own, whose time is paused; what is left of it is dropped with it.
fn paused<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

#[tokio::test(start_paused = true)]
async fn it_follows_the_configuration() {
    let scene = Scene::new([plain("old")]);
    let dispatcher = scene.dispatch();
    scene.record("1").await;
    scene.until("old", StateName::Done, 1).await;

    scene.inbox.reconfigure(vec![recorded("shop")], vec![plain("new")]).await.unwrap();
    scene.record("2").await;
    scene.until("new", StateName::Done, 1).await;
    let ids = |name: &str| scene.targets.of(name).calls().into_iter().map(|call| call.id).collect::<Vec<_>>();
    assert_eq!((ids("old"), ids("new")), (vec!["1".to_owned()], vec!["2".to_owned()]));

    scene.inbox.reconfigure(vec![recorded("shop")], vec![plain("new"), plain("old")]).await.unwrap();
    scene.record("3").await;
    scene.until("old", StateName::Done, 2).await;
    scene.until("new", StateName::Done, 2).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_cannot_be_taken_over_changes_nothing() {
    let scene = Scene::new([plain("app")]);
    let twice = scene.inbox.reconfigure(vec![], vec![plain("new"), plain("new")]).await;
    assert_eq!(twice.unwrap_err().to_string(), "there are two destinations named `new`");
    let twice = scene.inbox.reconfigure(vec![recorded("a"), recorded("a")], vec![]).await;
    assert_eq!(twice.unwrap_err().to_string(), "there are two sources named `a`");
    assert!(scene.inbox.destination("app").is_some() && scene.inbox.destination("new").is_none());
    scene.record("still taken").await;
    assert_eq!(scene.deliveries("app").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_destination_without_a_sink_says_why_and_what_is_owed_to_it_waits() {
    let scene = Scene::new([plain("broken"), plain("app")]);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("app", StateName::Done, 1).await;
    let standing = dispatcher.standing(&"broken".parse().unwrap()).unwrap();
    assert_eq!(standing.problem.as_deref(), Some("it is broken"));
    scene.until("broken", StateName::Waiting, 1).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_destination_gets_nothing_until_it_is_resumed() {
    let scene = Scene::new([plain("app"), plain("other")]);
    let dispatcher = scene.dispatch();
    let app = scene.number("app");
    scene.resolve(Subject::PauseDestination(app)).await;
    scene.record("evt_1").await;
    scene.until("other", StateName::Done, 1).await;
    assert_eq!(scene.count("app", StateName::Waiting), 1);
    scene.resolve(Subject::ResumeDestination(app)).await;
    scene.until("app", StateName::Done, 1).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_comes_later_gets_the_past_only_by_a_redelivery() {
    let scene = Scene::new([]);
    scene.record("past").await;
    let event = scene.inbox.store().event(&hookstead::core::EventSelector::Newest).unwrap().unwrap();
    assert_eq!(event.deliveries, Default::default(), "nobody wanted it, and it is stored");
    scene.inbox.reconfigure(vec![recorded("shop")], vec![plain("app")]).await.unwrap();
    let dispatcher = scene.dispatch();
    scene.record("now").await;
    scene.until("app", StateName::Done, 1).await;

    let plan = RedeliveryPlan {
        id: hookstead::core::RedeliveryId([7; 16]),
        events: Default::default(),
        destination: scene.number("app"),
        fresh_key: false,
        by: "ada".into(),
        note: "the past too".into(),
    };
    scene.inbox.redeliver(Redeliver { plan, only: Some(event.seq), events_max: 100 }).await.unwrap();
    scene.until("app", StateName::Done, 2).await;
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_inbox_ends_the_work_in_order() {
    let scene = Scene::new([plain("app")]);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("app", StateName::Done, 1).await;
    let inbox = scene.inbox.clone();
    tokio::task::spawn_blocking(move || inbox.close()).await.unwrap().unwrap();
    dispatcher.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn an_accepted_conflict_is_owed_like_every_other_event() {
    let scene = Scene::new([plain("app")]);
    let dispatcher = scene.dispatch();
    scene.record("evt_1").await;
    scene.until("app", StateName::Done, 1).await;
    let receipt = scene.inbox.record("shop", "evt_1", "other bytes").await.unwrap();
    let decision =
        hookstead::core::Decision { by: "ada".into(), note: "right".into(), at: receipt.committed_at };
    scene.inbox.accept_conflict(receipt.event, 1, decision.clone()).await.unwrap();
    scene.until("app", StateName::Done, 2).await;
    assert_eq!(scene.targets.of("app").calls()[1].body, "other bytes");
    let again = scene.inbox.accept_conflict(receipt.event, 1, decision.clone()).await.unwrap();
    assert_eq!(again, hookstead::core::Resolved::Unchanged);
    let unknown = scene.inbox.accept_conflict(receipt.event, 2, decision).await.unwrap();
    assert_eq!(unknown, hookstead::core::Resolved::Unknown);
    dispatcher.stop(GRACE).await;
}
