//! Consuming within the program: no server, no sink but a handler.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookstead::core::{RetryPolicy, StateName};
use hookstead::{ConsumeError, Delivered, Done};

use crate::scene::{Scene, plain, until};

const GRACE: Duration = Duration::from_secs(5);

fn quick() -> RetryPolicy {
    RetryPolicy { schedule_s: vec![0, 5], attempts_max: 3, age_max_s: 3600, jitter_percent: 0 }
}

/// What a handler was given: provider id, attempt, key.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, u32, String)>>>);

impl Seen {
    fn note(&self, event: &Delivered) {
        let id = String::from_utf8_lossy(event.provider_id()).into_owned();
        self.0.lock().unwrap().push((id, event.attempt(), event.idempotency_key().to_owned()));
    }

    fn all(&self) -> Vec<(String, u32, String)> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_what_is_accepted_from_now_on_and_its_return_is_done() {
    let scene = Scene::new([]);
    scene.record("before").await;
    let seen = Seen::default();
    let noted = seen.clone();
    let consumer = scene.inbox.consume("mailer").run(move |event| {
        noted.note(&event);
        async { Ok::<_, String>(Done) }
    });
    let consumer = consumer.await.unwrap();
    scene.record("after").await;
    scene.until("mailer", StateName::Done, 1).await;
    assert_eq!(seen.all().iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), ["after"]);
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn what_came_while_no_consumer_ran_waits_for_the_next() {
    let scene = Scene::new([]);
    let run = || scene.inbox.consume("mailer").run(|_| async { Ok::<_, String>(Done) });
    run().await.unwrap().stop(GRACE).await;
    scene.record("meanwhile").await;
    assert_eq!(scene.count("mailer", StateName::Waiting), 1);
    let again = run().await.unwrap();
    scene.until("mailer", StateName::Done, 1).await;
    again.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_panic_are_retries_under_one_key() {
    let scene = Scene::new([]);
    let seen = Seen::default();
    let noted = seen.clone();
    let consumer = scene.inbox.consume("mailer").retry(quick()).run(move |event| {
        noted.note(&event);
        async move {
            match event.attempt() {
                1 => Err("not yet"),
                2 => panic!("worse"),
                _ => Ok(Done),
            }
        }
    });
    let consumer = consumer.await.unwrap();
    scene.record("evt_1").await;
    for made in 1..=3 {
        until(|| seen.all().len() == made, || format!("{:?}", seen.all())).await;
        scene.until("mailer", if made < 3 { StateName::Waiting } else { StateName::Done }, 1).await;
        scene.advance(Duration::from_secs(5)).await;
    }
    assert!(seen.all().iter().all(|(.., key)| *key == seen.all()[0].2));
    let errors: Vec<_> = scene.attempts("mailer").into_iter().map(|attempt| attempt.error).collect();
    assert_eq!(errors, [Some("not yet".into()), Some("it panicked: worse".into()), None]);
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_asked_for() {
    let scene = Scene::new([]);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, max) = (running.clone(), most.clone());
    let consumer = scene.inbox.consume("mailer").concurrency(3).run(move |_| {
        let (now, max) = (now.clone(), max.clone());
        async move {
            max.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, String>(Done)
        }
    });
    let consumer = consumer.await.unwrap();
    for number in 0..30 {
        scene.record(&format!("evt_{number}")).await;
    }
    scene.until("mailer", StateName::Done, 30).await;
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_back_what_a_handler_does_not_end() {
    let scene = Scene::new([]);
    let seen = Seen::default();
    let noted = seen.clone();
    let consumer = scene.inbox.consume("mailer").run(move |event| {
        noted.note(&event);
        std::future::pending::<Result<Done, String>>()
    });
    let consumer = consumer.await.unwrap();
    scene.record("evt_1").await;
    until(|| !seen.all().is_empty(), || "it was not called".into()).await;
    consumer.stop(Duration::ZERO).await;
    let delivery = scene.delivery("mailer");
    assert_eq!((delivery.state_name(), delivery.attempts), (StateName::Waiting, 0));
}

#[tokio::test(start_paused = true)]
async fn it_runs_until_it_is_told_to_stop() {
    let scene = Scene::new([]);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let consumer = scene
        .inbox
        .consume("mailer")
        .run_until(async { drop(stopped.await) }, |_| async { Ok::<_, String>(Done) });
    let work = async {
        until(|| scene.inbox.destination("mailer").is_some(), || "it is not known".into()).await;
        scene.record("evt_1").await;
        scene.until("mailer", StateName::Done, 1).await;
        stop.send(()).unwrap();
    };
    let (ended, ()) = tokio::join!(consumer, work);
    ended.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_consumer_outlives_a_configuration_and_does_not_take_its_names() {
    let scene = Scene::new([plain("app")]);
    let taken = scene.inbox.consume("app").run(|_| async { Ok::<_, String>(Done) }).await;
    assert!(matches!(taken, Err(ConsumeError::Register(_))));
    let consumer = scene.inbox.consume("mailer").run(|_| async { Ok::<_, String>(Done) }).await.unwrap();
    scene.inbox.reconfigure(vec![crate::stores::recorded("shop")], vec![]).await.unwrap();
    scene.record("evt_1").await;
    scene.until("mailer", StateName::Done, 1).await;
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_meant_is_refused() {
    let scene = Scene::new([]);
    let consume = |name: &str| scene.inbox.consume(name);
    let handler = |_| async { Ok::<_, String>(Done) };
    assert!(matches!(consume("No Name").run(handler).await, Err(ConsumeError::Name(_))));
    assert!(matches!(consume("a").sources(["B"]).run(handler).await, Err(ConsumeError::Name(_))));
    assert!(matches!(consume("a").types([""]).run(handler).await, Err(ConsumeError::Type { .. })));
    assert!(matches!(consume("a").equals("x", 1).run(handler).await, Err(ConsumeError::Filter(_))));
    assert!(scene.inbox.destinations().is_empty());
}
