//! The one connection that writes: a batch is one transaction, and this is the one place where durability
//! is decided.
//!
//! A success rests on a commit that SQLite reported as synced, on this connection. After any failed commit
//! the connection is dropped, and nothing is accepted before a probe was committed through a new one and
//! read back through a third: a connection that went on would acknowledge into a transaction that nobody
//! commits. The first batch with events of a connection always commits, also if it holds nothing but duplicates:
//! what it compares with may have been written by a process that died before its sync.

use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{IdentityKey, Seq, StoreError, Timestamp, Write, Written};
use rusqlite::Connection;

use super::batch::{Batch, DuplicateCounts, FailedEffects, Statements};
use super::bring_back;
use super::checkpoint::{Log, Reset};
use super::connect::{PAGE_BYTES, Target, check_journal_mode, check_writer};
use super::delivery::DeliveryStatements;
use super::failure::{committing, reading, writing};
use super::files::Files;
use super::guard::Guard;
use super::identities::{self, Pending, Staged};
use super::ledger::{Ledger, int};
use super::published::{COUNTED_MAX, Published};
use crate::open::{IdentityFilter, IdentityFlush};

/// How many counts of duplicates ride in one commit.
const COUNTED_PER_COMMIT: usize = 256;

/// How long the writer waits for readers when the log is three quarters full: it can still do without.
const RESET_WAIT: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Writer {
    target: Target,
    guard: Arc<Guard>,
    files: Files,
    identity_key: IdentityKey,
    log: Arc<Log>,
    published: Arc<Published>,
    ledger: Ledger,
    /// What the connection has committed: read anew with each connection, so that a commit of which nobody knows what
    /// became of it leaves no guess behind.
    identities: Pending,
    identity_flush: IdentityFlush,
    identity_filter: IdentityFilter,
    /// `None` after a failure, until it is needed again.
    connection: Option<Connection>,
    /// A commit must succeed before a duplicate may be answered.
    barrier_due: bool,
    /// A probe must succeed before anything is written.
    probe_due: bool,
    /// The number of frames at which resetting the log is tried again.
    reset_at: u32,
    /// See [`COUNTED_MAX`].
    counted_max: usize,
}

/// What a writer is made of.
pub(super) struct Parts {
    pub(super) target: Target,
    pub(super) guard: Arc<Guard>,
    pub(super) files: Files,
    pub(super) identity_key: IdentityKey,
    pub(super) log: Arc<Log>,
    pub(super) published: Arc<Published>,
    pub(super) ledger: Ledger,
    pub(super) identities: Pending,
    pub(super) identity_flush: IdentityFlush,
    pub(super) identity_filter: IdentityFilter,
    pub(super) connection: Connection,
}

impl Writer {
    pub(super) fn new(parts: Parts) -> Self {
        let reset_at = early_reset(parts.target.wal.frames);
        Self {
            target: parts.target,
            guard: parts.guard,
            files: parts.files,
            identity_key: parts.identity_key,
            log: parts.log,
            published: parts.published,
            ledger: parts.ledger,
            identities: parts.identities,
            identity_flush: parts.identity_flush,
            identity_filter: parts.identity_filter,
            connection: Some(parts.connection),
            barrier_due: true,
            probe_due: true,
            reset_at,
            counted_max: COUNTED_MAX,
        }
    }

    /// Carries out a batch; see [`hookstead_core::Store::apply`].
    pub(super) fn apply(&mut self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        // Before the commit: what went into a file that was moved away is not there for the retry either.
        self.files.check()?;
        if self.probe_due {
            self.probe()?;
        }
        let connection = self.take_connection()?;
        let answers = self.make_room(&connection, self.frames_needed(writes)).and_then(|()| {
            self.transact(&connection, writes, now)
                .inspect_err(|failure| {
                    self.probe_due |= failure.connection_is_lost;
                })
                .map_err(|failure| failure.error)
        });
        if !self.probe_due {
            self.connection = Some(connection);
        }
        let answers = answers?;
        self.files.check()?;
        self.log.committed();
        Ok(answers)
    }

    /// Commits a probe and reads it back through another connection.
    pub(super) fn probe(&mut self) -> Result<(), StoreError> {
        self.probe_due = true;
        let connection = self.take_connection()?;
        let number = commit_probe(&connection)?;
        self.read_back(number)?;
        self.files.check()?;
        self.connection = Some(connection);
        self.probe_due = false;
        Ok(())
    }

    /// Moves into the database what an earlier process left in the log, so that nothing rests on the last
    /// transaction there, in which damage cannot be told from a torn write; and that the next commit begins
    /// a new filling, with salts that no older frame has. Where that cannot be done now, the probe that
    /// follows does for the first of the two.
    ///
    /// A probe goes before it, so that a copy of the database that was made earlier is older than what the new filling
    /// is begun on (see [`super::own_log`]).
    pub(super) fn empty_log(&mut self) -> Result<(), StoreError> {
        let connection = self.take_connection()?;
        // On a full disk there is no room beyond the cap.
        if frames_in_log(&connection)? >= self.target.wal.frames {
            self.empty_log_of(&connection)?;
        }
        commit_probe(&connection)?;
        self.empty_log_of(&connection)?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Brings back what a run under a clock far ahead left behind; how many deliveries that were. Only a start does:
    /// the time of a running process goes on evenly.
    pub(super) fn bring_back(&mut self, now: Timestamp) -> Result<u32, StoreError> {
        let mut count = 0;
        loop {
            let connection = self.take_connection()?;
            let found = bring_back::found(&connection, &self.ledger.registry, now)?;
            if found.is_empty() {
                self.connection = Some(connection);
                return Ok(count);
            }
            // A page of the table and of two indexes each, and some above them.
            self.make_room(&connection, 4 * bring_back::STEP_MAX)?;
            begin(&connection)?;
            self.write_barrier(&connection)?;
            let mut ledger = self.ledger.clone();
            for delivery in found {
                let policy = ledger.retry_policy(delivery.1.id.destination);
                let (before, after) = bring_back::bring_back(&connection, delivery, &policy, now)?;
                ledger.count_move(Some(before), after);
                count += 1;
            }
            commit(&connection)?;
            self.ledger = ledger;
            self.published.publish(Arc::clone(&self.ledger.registry), self.ledger.stats);
            self.connection = Some(connection);
        }
    }

    /// Writes down what was only counted, moves the log into the database and drops the connection.
    ///
    /// At the end a probe is committed, so that the last transaction in the log is one that nobody misses:
    /// damage in it would look like a torn write. If the log could be emptied it is the only one, and
    /// whatever becomes of the log, the database holds everything.
    pub(super) fn close(&mut self) -> Result<(), StoreError> {
        let Some(connection) = self.connection.take().filter(|_| !self.probe_due) else { return Ok(()) };
        while !self.published.all_counted().is_empty() {
            let chunk = self.counted_chunk(&DuplicateCounts::new());
            begin(&connection)?;
            write_counts(&connection, &chunk)?;
            commit(&connection)?;
            self.forget_counted(&chunk);
        }
        self.empty_log_of(&connection)?;
        commit_probe(&connection).map(drop)
    }

    /// What of the log does not hold, if anything: what was committed to it is compared with what the file
    /// has. Between two writes, so that it stands still.
    pub(super) fn log_damage(&self) -> Result<Option<String>, StoreError> {
        let Some(connection) = &self.connection else { return Ok(None) };
        let committed = frames_in_log(connection)?;
        let scan = self.files.scan_log().map_err(|error| StoreError::backend("read the log", error))?;
        // Somebody else may have written meanwhile: then there is nothing to compare with.
        if committed == 0 || frames_in_log(connection)? != committed {
            return Ok(None);
        }
        let lost = (scan.committed < committed)
            .then(|| format!("{} of {committed} frames that were committed hold", scan.committed));
        Ok(scan.damage.map(|damage| damage.to_string()).or(lost))
    }

    /// The connection, for tests to put failures into.
    #[cfg(test)]
    pub(super) fn connection_for_tests(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// What is in memory of the index of identities.
    #[cfg(test)]
    pub(super) fn identities_for_tests(&mut self) -> &mut Pending {
        &mut self.identities
    }

    /// A bound that tests can reach.
    #[cfg(test)]
    pub(super) fn set_counted_max_for_tests(&mut self, counted_max: usize) {
        self.counted_max = counted_max;
    }

    /// Carries a batch out in one transaction. An effect that takes the transaction with it does no harm to the rest:
    /// the batch is run again without it.
    fn transact(
        &mut self,
        connection: &Connection,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<Written>, Failure> {
        let mut failed = FailedEffects::new();
        loop {
            match self.transact_without(connection, writes, now, &failed)? {
                Transacted::Committed(answers) => return Ok(answers),
                // There is one more each time, so this ends.
                Transacted::Undone(by) => failed.extend(by),
            }
        }
    }

    fn transact_without(
        &mut self,
        connection: &Connection,
        writes: &[Write],
        now: Timestamp,
        failed_effects: &FailedEffects,
    ) -> Result<Transacted, Failure> {
        begin(connection).map_err(Failure::before)?;
        let mut batch = Batch {
            connection,
            now,
            identity_key: &self.identity_key,
            ledger: self.ledger.clone(),
            identities: Staged::new(connection, &self.identities),
            published: &self.published,
            duplicates: DuplicateCounts::new(),
            statements: Statements::default(),
            work: DeliveryStatements::default(),
            made: Vec::new(),
            ids: Vec::new(),
            guard: &self.guard,
            failed_effects,
            not_again: FailedEffects::new(),
            is_undone: false,
        };
        let changes_before = connection.total_changes();
        let answers = match carry_out(&mut batch, writes) {
            Ok(answers) => answers,
            Err(error) => {
                let failure = roll_back(connection, error);
                let again = batch.is_undone && !failure.connection_is_lost;
                return if again { Ok(Transacted::Undone(batch.not_again)) } else { Err(failure) };
            }
        };
        let (ledger, duplicates, staged) = batch.finish();
        let must_commit = connection.total_changes() != changes_before
            || (self.barrier_due && decides_about_events(writes))
            || self.published.all_counted().len() + duplicates.len() > self.counted_max;
        if must_commit {
            let chunk = self.counted_chunk(&duplicates);
            let written = self.write_barrier(connection).and_then(|()| write_counts(connection, &chunk));
            let taken = written
                .and_then(|()| staged.write(ledger.newest))
                .map_err(|error| roll_back(connection, error))
                .inspect_err(|_| self.log.note_moved())?;
            let foreseen = self.identities.foresee(taken);
            commit(connection).map_err(Failure::of_commit)?;
            self.identities.join(foreseen);
            self.barrier_due &= !decides_about_events(writes);
            self.published.all_counted().extend(duplicates);
            self.forget_counted(&chunk);
        } else {
            end_unchanged(connection)?;
            self.published.all_counted().extend(duplicates);
        }
        self.ledger = ledger;
        self.published.publish(Arc::clone(&self.ledger.registry), self.ledger.stats);
        Ok(Transacted::Committed(answers))
    }

    /// Where the log may begin anew with this transaction, too: so a filling begins with the page that says whose it is,
    /// but for the moment that [`super::own_log`] names.
    fn write_barrier(&self, connection: &Connection) -> Result<(), StoreError> {
        if !self.log.take_moved() && !self.barrier_due {
            return Ok(());
        }
        connection
            .prepare_cached("UPDATE store SET barriers = barriers + 1")
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(writing("write the first barrier"))
    }

    /// Some of what is counted: this batch's first, then older ones.
    fn counted_chunk(&self, duplicates: &DuplicateCounts) -> DuplicateCounts {
        let older = self.published.all_counted();
        let older = older.iter().filter(|(seq, _)| !duplicates.contains_key(*seq));
        duplicates.iter().chain(older).take(COUNTED_PER_COMMIT).map(|(seq, count)| (*seq, *count)).collect()
    }

    fn forget_counted(&self, written: &DuplicateCounts) {
        let mut counted = self.published.all_counted();
        written.keys().for_each(|seq| {
            counted.remove(seq);
        });
    }

    /// About how many pages a batch changes, with what it flushes; rather too many.
    fn frames_needed(&self, writes: &[Write]) -> u32 {
        let events = writes.iter().filter(|write| matches!(write, Write::Accept(_))).count() as u64;
        let pages = self.identities.pages_due(Seq(self.ledger.newest.0 + events), events);
        frames_needed(writes).saturating_add(u32::try_from(pages).unwrap_or(u32::MAX))
    }

    /// Resets the log in time, so that it never grows beyond its cap.
    fn make_room(&mut self, connection: &Connection, needed: u32) -> Result<(), StoreError> {
        let (frames, cap) = (self.log.frames(), self.target.wal.frames);
        let must_reset = frames > 0 && frames.saturating_add(needed) > cap;
        if !must_reset && frames < self.reset_at {
            return Ok(());
        }
        let wait = if must_reset { self.target.busy_timeout } else { RESET_WAIT };
        let reset = self.reset_within(connection, wait);
        match reset {
            Ok(Reset::Done) => {
                self.reset_at = early_reset(cap);
                Ok(())
            }
            Ok(Reset::InUse) | Err(StoreError::Full { .. }) if !must_reset => {
                self.reset_at = frames.saturating_add(cap / 16);
                Ok(())
            }
            Ok(Reset::InUse) => Err(StoreError::Full {
                what: "the write-ahead log is at its cap, and a reader keeps it from being reset".to_owned(),
            }),
            Err(error) => Err(error),
        }
    }

    /// Resets the log if it can be done now. Neither a start nor a stop fails because it cannot.
    fn empty_log_of(&self, connection: &Connection) -> Result<(), StoreError> {
        match self.reset_within(connection, RESET_WAIT) {
            Ok(Reset::Done) => Ok(()),
            Ok(Reset::InUse) => {
                tracing::warn!("a reader keeps the log from being emptied; the next start reads it");
                Ok(())
            }
            Err(StoreError::Full { what }) => {
                tracing::warn!(what, "there is no room to empty the log; the next start reads it");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Resets the log, unless a reader needs it for longer than `wait`.
    fn reset_within(&self, connection: &Connection, wait: Duration) -> Result<Reset, StoreError> {
        connection.busy_timeout(wait).map_err(reading("set a time limit"))?;
        let reset = self.log.reset(connection);
        connection.busy_timeout(self.target.busy_timeout).map_err(reading("set a time limit"))?;
        reset
    }

    fn take_connection(&mut self) -> Result<Connection, StoreError> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let failed = writing("open a connection to write");
        let mut connection = self.target.writer().map_err(&failed)?;
        if let Some(not_kept) = check_writer(&connection).map_err(&failed)? {
            return Err(not_kept.into_store_error());
        }
        self.log.follow(&mut connection).map_err(&failed)?;
        self.guard.watch(&mut connection).map_err(&failed)?;
        self.identities = identities::load(&connection, self.identity_flush, self.identity_filter)?;
        self.barrier_due = true;
        Ok(connection)
    }

    /// Through a connection that was opened after the commit: it sees what the database says, and not what
    /// an earlier one remembers.
    fn read_back(&self, number: i64) -> Result<(), StoreError> {
        let failed = reading("read a probe back");
        let reader = self.target.reader().map_err(&failed)?;
        let found: i64 =
            reader.query_row("SELECT probes FROM store", [], |row| row.get(0)).map_err(&failed)?;
        if found != number {
            let reason = format!("probe {number} was committed, and another connection reads {found}");
            return Err(StoreError::Poisoned { reason });
        }
        match check_journal_mode(&reader).map_err(&failed)? {
            None => Ok(()),
            Some(not_kept) => Err(not_kept.into_store_error()),
        }
    }
}

/// What became of a transaction.
enum Transacted {
    Committed(Vec<Written>),
    /// An effect rolled it back. It is to be run again without these.
    Undone(FailedEffects),
}

/// Why a transaction failed, and whether its connection may be used again.
struct Failure {
    error: StoreError,
    connection_is_lost: bool,
}

impl Failure {
    /// The transaction never began: nothing is wrong with the connection, unless the disk is.
    fn before(error: StoreError) -> Self {
        let connection_is_lost = !matches!(error, StoreError::Busy { .. });
        Self { error, connection_is_lost }
    }

    /// After a failed commit nobody knows what the connection believes.
    fn of_commit(error: StoreError) -> Self {
        Self { error, connection_is_lost: true }
    }
}

/// Whether the answers of a batch may rest on what was there before this connection.
fn decides_about_events(writes: &[Write]) -> bool {
    writes.iter().any(|write| matches!(write, Write::Accept(_)))
}

fn begin(connection: &Connection) -> Result<(), StoreError> {
    connection
        .prepare_cached("BEGIN IMMEDIATE")
        .and_then(|mut statement| statement.execute([]))
        .map(drop)
        .map_err(writing("begin a batch"))
}

fn commit(connection: &Connection) -> Result<(), StoreError> {
    connection
        .prepare_cached("COMMIT")
        .and_then(|mut statement| statement.execute([]))
        .map_err(committing)?;
    if connection.is_autocommit() {
        return Ok(());
    }
    Err(StoreError::Poisoned { reason: "a commit succeeded and its transaction is still open".to_owned() })
}

/// Ends a transaction that changed nothing. No byte is written.
fn end_unchanged(connection: &Connection) -> Result<(), Failure> {
    let ended = connection.prepare_cached("ROLLBACK").and_then(|mut statement| statement.execute([]));
    ended.map(drop).map_err(writing("end a batch")).map_err(Failure::of_commit)
}

fn carry_out(batch: &mut Batch<'_>, writes: &[Write]) -> Result<Vec<Written>, StoreError> {
    writes.iter().try_for_each(|write| batch.check(write))?;
    let answers = writes.iter().map(|write| batch.apply(write)).collect::<Result<Vec<_>, _>>()?;
    batch.write_noted()?;
    Ok(answers)
}

/// Undoes a batch. If that does not work either, its parts may be anywhere.
fn roll_back(connection: &Connection, error: StoreError) -> Failure {
    // After some errors SQLite has rolled back by itself.
    let undone = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
    if !undone || !connection.is_autocommit() {
        let reason = format!("a batch failed ({error}) and could not be rolled back");
        return Failure { error: StoreError::Poisoned { reason }, connection_is_lost: true };
    }
    let connection_is_lost = !error.may_be_one_write();
    Failure { error, connection_is_lost }
}

fn write_counts(connection: &Connection, counts: &DuplicateCounts) -> Result<(), StoreError> {
    let failed = writing("write down how often events came again");
    let mut statement = connection
        .prepare_cached("REPLACE INTO duplicates (seq, count, last_at_us) VALUES (?1, ?2, ?3)")
        .map_err(&failed)?;
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_unstable_by_key(|(Seq(seq), _)| *seq);
    for (seq, counted) in sorted {
        let last_at = counted.last_at.map_or(0, Timestamp::as_micros);
        statement.execute((int(seq.0), int(counted.count), last_at)).map_err(&failed)?;
    }
    Ok(())
}

/// How many frames of the log are in use, whoever wrote them.
fn frames_in_log(connection: &Connection) -> Result<u32, StoreError> {
    connection
        .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
        .map_err(reading("ask for the frames of the log"))
}

/// Commits a probe; its number.
fn commit_probe(connection: &Connection) -> Result<i64, StoreError> {
    begin(connection)?;
    connection.execute("UPDATE store SET probes = probes + 1", []).map_err(writing("write a probe"))?;
    let number = connection
        .query_row("SELECT probes FROM store", [], |row| row.get(0))
        .map_err(reading("read a probe"))?;
    commit(connection)?;
    Ok(number)
}

/// From how many frames on the log is reset without need: what is left is enough for the batches that come
/// while a reader still uses it.
fn early_reset(cap: u32) -> u32 {
    cap / 4 * 3
}

/// About how many pages a batch changes by itself; rather too many.
fn frames_needed(writes: &[Write]) -> u32 {
    let bytes: u64 = writes.iter().map(bytes_needed).sum();
    u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX).saturating_add(8)
}

fn bytes_needed(write: &Write) -> u64 {
    /// A row of `work` with its index, as a share of a page.
    const DELIVERY: u64 = 512;
    /// What an effect writes, nobody knows: a guess. A log may become larger than its cap by what is beyond it, until it
    /// is reset.
    const EFFECT: u64 = 4 * PAGE_BYTES;
    match write {
        Write::Accept(acceptance) => {
            let headers = acceptance.facts().headers.as_block().len();
            let parts = acceptance.body().len() + headers + acceptance.identity().id.as_bytes().len();
            parts as u64 + 1024 + DELIVERY * acceptance.facts().destinations.len() as u64
        }
        Write::Claim(claim) => PAGE_BYTES + DELIVERY * u64::from(claim.max),
        Write::Redeliver(step) => PAGE_BYTES + DELIVERY * u64::from(step.events_max.min(1_000)),
        Write::Sweep(sweep) => PAGE_BYTES * u64::from(sweep.max.clamp(1, 1_000)),
        Write::RecordRun(run) => PAGE_BYTES + run.payload.as_ref().map_or(0, |payload| payload.len() as u64),
        Write::Settle(settle) if settle.verdict.effect().is_some() => PAGE_BYTES + EFFECT,
        Write::Settle(_) | Write::Extend(_) | Write::Resolve(_) | Write::Register(_) => PAGE_BYTES,
    }
}
