//! Makes a small store of each kind with something of everything in it, as this program writes it. Kept in the
//! repository it is a fixture: every later program must be able to open it (`tests/it/fixtures`).
//!
//! `cargo xtask fixture` runs it: `fixture FOLDER`. Without a folder the stores go to a temporary one. All times and
//! keys are made up, so that two runs make the same stores.
#![expect(clippy::print_stdout, reason = "its output is its product")]

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hookstead_core::{
    Acceptance, AcceptanceFacts, Attempt, BodyReuse, Claim, Decision, DeliveryId, DestinationNumber,
    EventFilter, EventId, Identity, Lease, ProviderEventId, RawHeaders, RecordRun, Redeliver, RedeliveryId,
    RedeliveryPlan, Register, Resolve, RetentionRule, RetryPolicy, Scope, Settle, SourceNumber, Store,
    Subject, Sweep, Timestamp, Verdict, Write, Written,
};
use hookstead_store::{OpenOptions, backup, open};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SHOP: SourceNumber = SourceNumber(1);
const APP: DestinationNumber = DestinationNumber(1);
const MAIL: DestinationNumber = DestinationNumber(2);

/// When the store is made; everything else is so many seconds later.
const START_SECS: i64 = 1_770_000_000;

fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let to = std::env::args_os().nth(1).map_or_else(|| scratch.path().join("fixtures"), PathBuf::from);
    for kind in ["sqlite", "files"] {
        let made = make(kind, scratch.path(), &to)?;
        println!("{}", made.display());
    }
    Ok(())
}

/// A store of this kind, filled and closed, in a new folder of `to` that is named by its format.
fn make(kind: &str, scratch: &Path, to: &Path) -> Result<PathBuf> {
    let url = format!("{kind}:{}", scratch.join(kind).display());
    let options = OpenOptions { identity_key: Some([7; 32]), ..OpenOptions::default() };
    let store = open(&url, &options, at(0))?.store;
    Filler { store: store.as_ref() }.fill()?;
    store.close(at(1_000))?;
    drop(store);
    // The store of a backup is whole, closed and as short as it can be.
    let copy = scratch.join(format!("{kind}-backup"));
    backup(&url, &copy, &options, at(1_000), &mut |_| ())?;
    let copy = copy.join("store");
    if kind == "sqlite" { keep_database(&copy.join("hookstead.db"), to) } else { keep_folder(&copy, to) }
}

/// Compressed: most of a page of a database this small is empty.
fn keep_database(database: &Path, to: &Path) -> Result<PathBuf> {
    let raw = rusqlite::Connection::open(database)?;
    let schema: u32 = raw.query_row("SELECT max(number) FROM migrations", [], |row| row.get(0))?;
    drop(raw);
    let kept = to.join(format!("sqlite-schema-{schema}")).join("hookstead.db.gz");
    make_new_folder(kept.parent().unwrap_or(to))?;
    let mut encoder = GzEncoder::new(fs::File::create_new(&kept)?, Compression::best());
    encoder.write_all(&fs::read(database)?)?;
    encoder.finish()?.sync_all()?;
    Ok(kept)
}

fn keep_folder(folder: &Path, to: &Path) -> Result<PathBuf> {
    let marker: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("hookstead.json"))?)?;
    let kept = to.join(format!("files-format-{}", marker["format"]));
    copy_folder(folder, &kept)?;
    Ok(kept)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    make_new_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kept = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &kept)?;
        } else {
            fs::copy(entry.path(), &kept)?;
        }
    }
    Ok(())
}

fn make_new_folder(folder: &Path) -> Result<()> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    fs::create_dir(folder)
        .map_err(|error| format!("cannot make the new folder `{}`: {error}", folder.display()))?;
    Ok(())
}

const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(START_SECS + seconds)
}

/// Fills a store. What is in it is written down in `tests/it/fixtures.rs`.
struct Filler<'a> {
    store: &'a dyn Store,
}

impl Filler<'_> {
    fn fill(&self) -> Result<()> {
        self.register()?;
        self.accept_and_work()?;
        self.conflicts()?;
        self.decide_and_redeliver()?;
        self.leave_some_waiting()
    }

    fn apply(&self, write: Write, seconds: i64) -> Result<Written> {
        let mut written = self.store.apply(&[write], at(seconds))?;
        written.pop().ok_or_else(|| "a write was not answered".into())
    }

    fn register(&self) -> Result<()> {
        let source = Register::Source { name: "shop".parse()?, identity_fingerprint: "id-v1".to_owned() };
        self.apply(Write::Register(source), 0)?;
        for (name, fingerprint) in [("app", "to-app"), ("mail", "to-mail")] {
            let (name, fingerprint) = (name.parse()?, fingerprint.to_owned());
            let retry = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
            self.apply(Write::Register(Register::Destination { name, fingerprint, retry }), 0)?;
        }
        Ok(())
    }

    /// One delivery each that is done, waits for a retry, and is dead; a body that is erased; a run.
    fn accept_and_work(&self) -> Result<()> {
        self.accept("evt_erased", b"{\"gone\":true}", &[APP], 5)?;
        self.work("evt_erased", Verdict::Done, Some(204), 6)?;
        let done = self.accept("evt_done", b"{\"n\":1}", &[APP], 10)?;
        (11..14).try_for_each(|second| self.accept("evt_done", b"{\"n\":1}", &[APP], second).map(drop))?;
        self.work("evt_done", Verdict::Done, Some(200), 20)?;
        let run = RecordRun {
            event: done,
            run: "nightly".parse()?,
            business_id: Some("order_1".to_owned()),
            payload: Some(Bytes::from_static(b"{\"total\":1}")),
        };
        self.apply(Write::RecordRun(Box::new(run)), 21)?;
        self.accept("evt_retry", b"{\"n\":3}", &[APP], 60)?;
        self.work("evt_retry", Verdict::Retry { at: at(90_000) }, Some(500), 61)?;
        self.accept("evt_dead", b"{\"n\":4}", &[APP], 62)?;
        self.work("evt_dead", Verdict::Dead { reason: "it is gone".to_owned() }, Some(404), 63)
    }

    /// One that nobody decided, one that is dismissed, and one whose bytes became a revision.
    fn conflicts(&self) -> Result<()> {
        let event = self.accept("evt_conflict", b"first bytes", &[], 70)?;
        for (n, bytes) in [b"other bytes one", b"other bytes two", b"other bytes 333"].iter().enumerate() {
            self.accept("evt_conflict", *bytes, &[], 71 + i64::try_from(n)?)?;
        }
        self.decide(Subject::DismissConflict { event, variant: 2 }, 75)?;
        let revision = EventId::new(at(76), [9; 10], event.bucket());
        let destinations = Vec::new();
        self.decide(Subject::AcceptConflict { event, variant: 3, revision, destinations }, 76)
    }

    /// What retention erases, what a person holds, a redelivery that is complete and one that goes on.
    fn decide_and_redeliver(&self) -> Result<()> {
        let rule = RetentionRule { source: SHOP, finished_before: Some(at(8)), unfinished_before: None };
        // Of what is finished only `evt_erased` is that old.
        self.apply(Write::Sweep(Sweep { retention: vec![rule], max: 10 }), 80)?;
        let held = self.accept("evt_held", b"{\"n\":6}", &[MAIL], 81)?;
        self.decide(Subject::HoldDelivery(DeliveryId { event: held, destination: MAIL, generation: 1 }), 82)?;
        for (id, events_max) in [(1, 100), (2, 1)] {
            let plan = RedeliveryPlan {
                id: RedeliveryId([id; 16]),
                events: EventFilter { committed_from: Some(at(60)), ..EventFilter::default() },
                destination: MAIL,
                fresh_key: id == 2,
                by: "ops".to_owned(),
                note: "after the outage".to_owned(),
            };
            let step = Redeliver { plan, only: None, events_max };
            self.apply(Write::Redeliver(Box::new(step)), 83)?;
        }
        self.decide(Subject::PauseDestination(MAIL), 84)
    }

    /// A scoped event with bytes that are no text, a big body, and a lease that was never settled.
    fn leave_some_waiting(&self) -> Result<()> {
        let identity = Identity {
            source: SHOP,
            scope: Scope::new(*b"acct_1")?,
            id: ProviderEventId::new(*b"evt_\xff\x00bytes")?,
        };
        self.accept_as(identity, (0..=255).cycle().take(20_000).collect(), &[], 90)?;
        self.accept("evt_leased", b"{\"n\":8}", &[APP], 91)?;
        let leases = self.claim(APP, 92)?;
        if leases.len() != 1 {
            return Err(format!("one delivery was due, and these were claimed: {leases:?}").into());
        }
        self.accept("evt_waiting", b"{\"n\":9}", &[APP, MAIL], 93).map(drop)
    }

    fn accept(&self, id: &str, body: &[u8], to: &[DestinationNumber], seconds: i64) -> Result<EventId> {
        let id = ProviderEventId::new(id.as_bytes())?;
        let identity = Identity { source: SHOP, scope: Scope::default(), id };
        self.accept_as(identity, body.to_vec(), to, seconds)
    }

    fn accept_as(
        &self,
        identity: Identity,
        body: Vec<u8>,
        to: &[DestinationNumber],
        seconds: i64,
    ) -> Result<EventId> {
        let key = &self.store.facts().identity_key;
        let facts = AcceptanceFacts {
            received_at: at(seconds),
            destinations: to.to_vec(),
            headers: RawHeaders::from_fields([
                ("content-type", &b"application/json"[..]),
                ("x-raw", b"\xff \""),
            ]),
            event_type: Some("order.paid".to_owned()),
            account: Some("acct_1".to_owned()),
            received_from: Some("203.0.113.7".to_owned()),
            verified_by: Some("hmac".to_owned()),
            comparison: None,
            body_reuse: BodyReuse::Flag,
        };
        let mut entropy = [0; 10];
        entropy.copy_from_slice(&key.hash(&identity, 0).0[..10]);
        let acceptance = Acceptance::new(key, identity, body.into(), facts, entropy);
        match self.apply(Write::Accept(Box::new(acceptance)), seconds)? {
            Written::Accepted(receipt) => Ok(receipt.event),
            other => Err(format!("an accept was answered {other:?}").into()),
        }
    }

    fn claim(&self, destination: DestinationNumber, seconds: i64) -> Result<Vec<Lease>> {
        let claim = Claim { destination, max: 10, lease_for: Duration::from_secs(60) };
        match self.apply(Write::Claim(claim), seconds)? {
            Written::Claimed(leases) => Ok(leases),
            other => Err(format!("a claim was answered {other:?}").into()),
        }
    }

    /// Claims the one delivery that is due and settles it.
    fn work(&self, id: &str, verdict: Verdict, status: Option<u16>, seconds: i64) -> Result<()> {
        let leases = self.claim(APP, seconds)?;
        let [lease] = leases.as_slice() else {
            return Err(format!("`{id}` was due, and these were claimed: {leases:?}").into());
        };
        let attempt = Attempt {
            token: lease.token,
            number: lease.attempt,
            started_at: at(seconds),
            took_us: 1_500,
            status,
            excerpt: Bytes::from_static(b"\xffits answer"),
            error: None,
            rule: None,
        };
        let (delivery, token) = (lease.delivery, lease.token);
        self.apply(
            Write::Settle(Box::new(Settle { delivery, token, verdict, attempt: Some(attempt) })),
            seconds,
        )
        .map(drop)
    }

    fn decide(&self, subject: Subject, seconds: i64) -> Result<()> {
        let decision = Decision { by: "ops".to_owned(), note: "looked at".to_owned(), at: at(seconds) };
        self.apply(Write::Resolve(Box::new(Resolve { subject, decision })), seconds).map(drop)
    }
}
