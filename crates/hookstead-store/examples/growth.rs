//! Fills a fresh SQLite store through [`Store::apply`] and prints what an event costs in each tenth of the way, as a
//! line of JSON: whether the last events cost more than the first shows whether the store stays fast as it grows.
//!
//! `cargo xtask bench growth` runs it: `growth DATABASE EVENTS`. Processor time and bytes are those of the whole
//! process, with the making of the events and with checkpoints.
#![expect(clippy::print_stdout, reason = "its output is its product")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use hookstead_core::{
    Acceptance, AcceptanceFacts, Identity, IdentityKey, Outcome, ProviderEventId, RawHeaders, Register,
    Scope, SourceNumber, Store, Timestamp, Write, Written,
};
use hookstead_store::OpenOptions;

/// What the server puts in a batch at the most.
const BATCH: u64 = 512;

const BODY_BYTES: usize = 256;

const STEPS: u64 = 10;

/// The time is made up and moves by a millisecond a batch, so that two fillings make the same store.
const START_SECS: i64 = 1_770_000_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(database), Some(events)) = (arguments.next(), arguments.next()) else {
        return Err("usage: growth DATABASE EVENTS".into());
    };
    fill(Path::new(&database), events.parse()?)
}

fn fill(database: &Path, events: u64) -> Result<()> {
    let start = Timestamp::from_secs(START_SECS);
    let opened =
        hookstead_store::open(&format!("sqlite:{}", database.display()), &OpenOptions::default(), start)?;
    let store = opened.store.as_ref();
    let name = "growth".parse()?;
    store
        .apply(&[Write::Register(Register::Source { name, identity_fingerprint: "growth".into() })], start)?;
    let mut filler = Filler { key: store.facts().identity_key.clone(), made: 0 };
    for step in 1..=STEPS {
        let before = Moment::now()?;
        let first = filler.made;
        filler.fill_to(events * step / STEPS, store)?;
        print(&before, filler.made - first, filler.made, database)?;
    }
    store.close(start)?;
    Ok(())
}

/// Makes events whose ids come in no order.
struct Filler {
    key: IdentityKey,
    made: u64,
}

impl Filler {
    fn fill_to(&mut self, events: u64, store: &dyn Store) -> Result<()> {
        while self.made < events {
            let now = START_SECS * 1_000_000 + i64::try_from(self.made / BATCH)? * 1000;
            let now = Timestamp::from_micros(now);
            let batch = BATCH.min(events - self.made);
            let writes: Vec<Write> = (self.made..self.made + batch)
                .map(|number| self.accept(number, now))
                .collect::<Result<_>>()?;
            self.made += batch;
            let written = store.apply(&writes, now)?;
            let is_stored = |written: &Written| matches!(written, Written::Accepted(receipt) if receipt.outcome == Outcome::Stored);
            if !written.iter().all(is_stored) {
                return Err("an event was there before".into());
            }
        }
        Ok(())
    }

    fn accept(&self, number: u64, now: Timestamp) -> Result<Write> {
        let id = mix(number);
        let event_id = ProviderEventId::new(format!("evt_{id:016x}").as_bytes())?;
        let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id: event_id };
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&id.to_le_bytes());
        let facts = AcceptanceFacts {
            received_at: now,
            headers: RawHeaders::from_fields([("content-type", &b"application/json"[..])]),
            ..AcceptanceFacts::default()
        };
        Ok(Write::Accept(Box::new(Acceptance::new(&self.key, identity, body(id), facts, entropy))))
    }
}

/// Digits that differ from event to event.
fn body(id: u64) -> Bytes {
    let mut body = String::with_capacity(BODY_BYTES + 16);
    let mut part = id;
    while body.len() < BODY_BYTES {
        part = mix(part);
        body += &format!("{part:016x}");
    }
    body.truncate(BODY_BYTES);
    body.into()
}

/// SplitMix64's mixer, which maps 64 bits to 64 bits one to one: ids in no order that never repeat.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// When, and what this process had spent until then.
struct Moment {
    at: Instant,
    cpu_ticks: u64,
    written_bytes: u64,
}

/// Linux counts processor time for programs in hundredths of a second on every platform that it runs on today.
const TICK_MICROS: u64 = 10_000;

impl Moment {
    fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no program name in /proc/self/stat")?;
        let ticks: Vec<u64> =
            fields.split(' ').skip(11).take(2).map(str::parse).collect::<std::result::Result<_, _>>()?;
        let io = fs::read_to_string("/proc/self/io")?;
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let written_bytes = written.ok_or("no write_bytes in /proc/self/io")?.parse()?;
        Ok(Self { at: Instant::now(), cpu_ticks: ticks.iter().sum(), written_bytes })
    }
}

fn print(before: &Moment, events: u64, all_events: u64, database: &Path) -> Result<()> {
    let after = Moment::now()?;
    let each = |total: u64| total as f64 / events as f64;
    let line = serde_json::json!({
        "events": all_events,
        "events_per_second": events as f64 / after.at.duration_since(before.at).as_secs_f64(),
        "cpu_us_per_event": each((after.cpu_ticks - before.cpu_ticks) * TICK_MICROS),
        "written_bytes_per_event": each(after.written_bytes - before.written_bytes),
        "stored_bytes_per_event": fs::metadata(database)?.len() as f64 / all_events as f64,
    });
    println!("{line}");
    Ok(())
}
