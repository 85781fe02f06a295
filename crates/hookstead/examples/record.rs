//! Recording events durably without any server: `cargo run -p hookstead --example record`.
//!
//! A program that hears of things in its own way (a queue, a poll, a file that appears) writes them down before it
//! says that it has them. It ends by itself and leaves nothing behind.
#![expect(clippy::print_stdout, reason = "what an example prints is its result")]

use std::error::Error;
use std::path::Path;

use hookstead::core::{Body, BodySelector, EventSelector};
use hookstead::{BlockingInbox, Inbox, Outcome, Source};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("inbox.db");

    let inbox = open(&database)?;
    let first = inbox.record("reports", "export-1", r#"{"rows":128}"#)?;
    assert_eq!(first.outcome, Outcome::Stored);
    println!("stored     {} is on the disk", first.seq);

    // Whoever told us did not hear our answer, and tells us again.
    let again = inbox.record("reports", "export-1", r#"{"rows":128}"#)?;
    assert_eq!((again.outcome, again.event), (Outcome::Duplicate, first.event));
    println!("duplicate  nothing was stored twice");

    // The same id with other bytes: the first event stays as it is, these are kept as evidence.
    let other = inbox.record("reports", "export-1", r#"{"rows":129}"#)?;
    assert_eq!(other.outcome, Outcome::Conflict { variant: Some(1) });
    println!("conflict   the first bytes stay");
    inbox.inbox().close()?;
    drop(inbox);

    // After a restart it is all there.
    let inbox = open(&database)?;
    let event = inbox.inbox().store().event(&EventSelector::Newest)?.ok_or("the event is gone")?;
    let body = inbox.inbox().store().body(BodySelector::Event(event.id))?;
    assert_eq!(body, Some(Body::Kept(r#"{"rows":128}"#.into())));
    println!("reopened   {} has its {} bytes", event.seq, event.body_bytes);
    inbox.inbox().close()?;
    Ok(())
}

fn open(database: &Path) -> Result<BlockingInbox, Box<dyn Error>> {
    let inbox = Inbox::builder()
        .store(format!("sqlite:{}", database.display()))
        .source(Source::recorded("reports".parse()?))
        .open()?;
    Ok(inbox.blocking())
}
