//! Following the events: each once, in order, from wherever.

use hookstead::core::EventFilter;
use hookstead::{Inbox, TailFrom};

use crate::stores::{on_disk, patient, recorded};

fn ids(events: &[hookstead::core::Event]) -> Vec<String> {
    events.iter().map(|event| String::from_utf8_lossy(event.identity.id.as_bytes()).into_owned()).collect()
}

async fn inboxes() -> (tempfile::TempDir, Vec<Inbox>) {
    let folder = tempfile::tempdir().unwrap();
    let urls = on_disk(folder.path()).into_iter().chain(["memory:".to_owned()]);
    let open = |url: String| {
        let builder = Inbox::builder().store(url).limits(patient());
        builder.source(recorded("shop")).source(recorded("bank")).open().unwrap()
    };
    let inboxes = urls.map(open).collect();
    (folder, inboxes)
}

#[tokio::test]
async fn it_gives_what_is_there_and_then_what_comes() {
    let (_folder, inboxes) = inboxes().await;
    for inbox in inboxes {
        inbox.record("shop", "1", "body").await.unwrap();
        inbox.record("shop", "2", "body").await.unwrap();
        let mut tail = inbox.tail(TailFrom::Beginning, EventFilter::default()).await.unwrap();
        assert_eq!(ids(&tail.next(1).await.unwrap()), ["1"]);
        assert_eq!(ids(&tail.next(10).await.unwrap()), ["2"]);
        assert_eq!(ids(&tail.ready(10).await.unwrap()), [""; 0]);
        let (next, recorded) = tokio::join!(tail.next(10), inbox.record("shop", "3", "body"));
        recorded.unwrap();
        assert_eq!(ids(&next.unwrap()), ["3"]);
        assert_eq!(ids(&inbox.tail_from(tail.cursor()).await), [""; 0]);
    }
}

#[tokio::test]
async fn it_begins_now_or_behind_a_cursor() {
    let (_folder, inboxes) = inboxes().await;
    for inbox in inboxes {
        let mut empty = inbox.tail(TailFrom::Now, EventFilter::default()).await.unwrap();
        inbox.record("shop", "1", "body").await.unwrap();
        let mut now = inbox.tail(TailFrom::Now, EventFilter::default()).await.unwrap();
        inbox.record("shop", "2", "body").await.unwrap();
        assert_eq!(ids(&now.next(10).await.unwrap()), ["2"]);
        assert_eq!(ids(&empty.next(1).await.unwrap()), ["1"]);
        let cursor = empty.cursor().unwrap().clone();
        let mut again = inbox.tail(TailFrom::Cursor(cursor), EventFilter::default()).await.unwrap();
        assert_eq!(ids(&again.next(10).await.unwrap()), ["2"]);
    }
}

#[tokio::test]
async fn a_filter_leaves_out_and_the_place_moves_on() {
    let (_folder, inboxes) = inboxes().await;
    for inbox in inboxes {
        for (source, id) in [("shop", "1"), ("bank", "2"), ("shop", "3")] {
            inbox.record(source, id, "body").await.unwrap();
        }
        let bank = inbox.source("bank").unwrap().number();
        let filter = EventFilter { source: bank, ..EventFilter::default() };
        let mut tail = inbox.tail(TailFrom::Beginning, filter).await.unwrap();
        assert_eq!(ids(&tail.next(1).await.unwrap()), ["2"]);
        assert_eq!(ids(&tail.ready(1).await.unwrap()), [""; 0]);
        assert_eq!(ids(&inbox.tail_from(tail.cursor()).await), [""; 0], "behind what was left out");
    }
}

#[tokio::test]
async fn a_cursor_that_is_none_is_an_error() {
    let inbox = Inbox::builder().limits(patient()).source(recorded("shop")).open().unwrap();
    let cursor = TailFrom::Cursor("nonsense".parse().unwrap());
    let mut tail = inbox.tail(cursor, EventFilter::default()).await.unwrap();
    assert!(tail.ready(1).await.is_err());
}

/// What a new follower finds behind a cursor.
trait TailedFrom {
    async fn tail_from(&self, cursor: Option<&hookstead::core::Cursor>) -> Vec<hookstead::core::Event>;
}

impl TailedFrom for Inbox {
    async fn tail_from(&self, cursor: Option<&hookstead::core::Cursor>) -> Vec<hookstead::core::Event> {
        let from = cursor.map_or(TailFrom::Beginning, |cursor| TailFrom::Cursor(cursor.clone()));
        self.tail(from, EventFilter::default()).await.unwrap().ready(100).await.unwrap()
    }
}
