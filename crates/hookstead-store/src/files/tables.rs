//! Everything that a store knows beside the bytes of bodies and receipts, with the indexes that its
//! operations need. It changes by [`Row`]s alone, and each change can be undone, so that a batch can be
//! rehearsed before it is written. It knows no rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use hookstead_core::attempt::ATTEMPTS_KEPT_MAX;
use hookstead_core::event::VARIANTS_MAX;
use hookstead_core::{
    Attempt, Bodies, Delivery, DeliveryId, DeliveryState, DeliveryTally, DestinationNumber, DestinationRow,
    Digest, Event, EventId, Identity, RawHeaders, Redelivery, RedeliveryId, Registry, RetryPolicy, RunName,
    Seq, SourceName, SourceNumber, SourceRow, StateName, Stats, StoreError, Timestamp,
};

use super::disk::Disk;
use super::failure::corrupt;
use super::layout::RecordPath;
use super::row::{EventRow, Row, RunRow, WorkKey, work_key};

/// What a store knows.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) registry: Registry,
    pub(super) events: BTreeMap<Seq, Arc<EventRow>>,
    by_id: HashMap<EventId, Seq>,
    by_identity: HashMap<Identity, Seq>,
    by_body: Bodies,
    kept: BTreeSet<(SourceNumber, Seq)>,
    pub(super) work: BTreeMap<WorkKey, Delivery>,
    attempts: BTreeMap<WorkKey, Vec<Attempt>>,
    due: BTreeSet<(DestinationNumber, Timestamp, WorkKey)>,
    leases: BTreeSet<(Timestamp, WorkKey)>,
    runs: BTreeMap<Seq, BTreeMap<RunName, RunRow>>,
    pub(super) redeliveries: BTreeMap<RedeliveryId, Redelivery>,
    stats: Stats,
    /// Records that are durable in the journal and have no file yet, for want of space.
    pub(super) unwritten: HashMap<RecordPath, Bytes>,
}

/// How to take a change back.
#[derive(Debug)]
pub(super) enum Undo {
    Source(SourceNumber, Option<SourceRow>),
    Destination(DestinationNumber, Option<DestinationRow>),
    Event(Seq, Option<Arc<EventRow>>),
    Delivery(WorkKey, Option<Box<Delivery>>),
    Attempts(WorkKey, Option<Vec<Attempt>>),
    Run(Seq, RunName, Option<RunRow>),
    Redelivery(RedeliveryId, Option<Box<Redelivery>>),
}

// Changing.
impl Tables {
    /// Carries out a change. [`StoreError::Corrupt`] if it speaks of an event that is not there.
    pub(super) fn put(&mut self, row: &Row) -> Result<Undo, StoreError> {
        Ok(match row {
            Row::Source(row) => Undo::Source(row.number, self.set_source(row.number, Some(row.clone()))),
            Row::Destination(row) => {
                Undo::Destination(row.number, self.set_destination(row.number, Some(row.clone())))
            }
            Row::Event(row) => {
                Undo::Event(row.event.seq, self.set_event(row.event.seq, Some(Arc::clone(row))))
            }
            Row::Variant(seq, variant) => {
                self.change_event(*seq, |row| row.variants.push(variant.clone()))?
            }
            Row::VariantState(seq, number, state) => self.change_event(*seq, |row| {
                let index = usize::from(*number).wrapping_sub(1);
                if let Some(variant) = row.variants.get_mut(index) {
                    variant.state = state.clone();
                }
            })?,
            Row::Erased(seq, at) => self.change_event(*seq, |row| erase(row, *at))?,
            Row::Duplicates(seq, duplicates) => {
                self.change_event(*seq, |row| row.event.duplicates = *duplicates)?
            }
            Row::Delivery(seq, delivery) => {
                let key = work_key(*seq, delivery);
                Undo::Delivery(key, self.set_delivery(key, Some(delivery.clone())).map(Box::new))
            }
            Row::Attempt(key, attempt) => {
                let kept = self.attempts.entry(*key).or_default();
                let before = (!kept.is_empty()).then(|| kept.clone());
                kept.push(attempt.clone());
                let surplus = kept.len().saturating_sub(ATTEMPTS_KEPT_MAX);
                kept.drain(..surplus);
                Undo::Attempts(*key, before)
            }
            Row::Run(seq, run, row) => {
                let runs = self.runs.entry(*seq).or_default();
                Undo::Run(*seq, run.clone(), runs.insert(run.clone(), row.clone()))
            }
            Row::Redelivery(row) => Undo::Redelivery(
                row.plan.id,
                self.redeliveries.insert(row.plan.id, row.clone()).map(Box::new),
            ),
        })
    }

    /// Takes a change back. Changes are taken back in the opposite order.
    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Source(number, before) => drop(self.set_source(number, before)),
            Undo::Destination(number, before) => drop(self.set_destination(number, before)),
            Undo::Event(seq, before) => drop(self.set_event(seq, before)),
            Undo::Delivery(key, before) => drop(self.set_delivery(key, before.map(|delivery| *delivery))),
            Undo::Attempts(key, before) => drop(set(&mut self.attempts, key, before)),
            Undo::Run(seq, run, before) => drop(set(self.runs.entry(seq).or_default(), run, before)),
            Undo::Redelivery(id, before) => drop(set(&mut self.redeliveries, id, before.map(|row| *row))),
        }
    }

    fn set_source(&mut self, number: SourceNumber, row: Option<SourceRow>) -> Option<SourceRow> {
        set_row(&mut self.registry.sources, |row| row.number == number, row)
    }

    fn set_destination(
        &mut self,
        number: DestinationNumber,
        row: Option<DestinationRow>,
    ) -> Option<DestinationRow> {
        set_row(&mut self.registry.destinations, |row| row.number == number, row)
    }

    fn change_event(&mut self, seq: Seq, change: impl FnOnce(&mut EventRow)) -> Result<Undo, StoreError> {
        let Some(before) = self.events.get(&seq) else {
            return Err(corrupt(format!("the log changes event {seq} and has not made it")));
        };
        let mut after = EventRow::clone(before);
        change(&mut after);
        Ok(Undo::Event(seq, self.set_event(seq, Some(Arc::new(after)))))
    }

    fn set_event(&mut self, seq: Seq, row: Option<Arc<EventRow>>) -> Option<Arc<EventRow>> {
        let before = self.events.remove(&seq);
        if let Some(before) = &before {
            self.unindex_event(before);
        }
        if let Some(row) = row {
            self.index_event(&row);
            self.events.insert(seq, row);
        }
        before
    }

    fn index_event(&mut self, row: &EventRow) {
        let event = &row.event;
        self.by_id.insert(event.id, event.seq);
        if event.revises.is_none() {
            self.by_identity.insert(event.identity.clone(), event.seq);
        }
        if row.is_kept() {
            self.kept.insert((event.identity.source, event.seq));
            if row.body_watched {
                self.by_body.remember(event.identity.source, event.digest, event.seq);
            }
            self.stats.body_bytes += event.body_bytes;
        }
        self.stats.conflicts_open += row.open_conflicts();
    }

    fn unindex_event(&mut self, row: &EventRow) {
        let event = &row.event;
        self.by_id.remove(&event.id);
        if event.revises.is_none() {
            self.by_identity.remove(&event.identity);
        }
        self.by_body.forget(event.identity.source, event.digest, event.seq);
        if self.kept.remove(&(event.identity.source, event.seq)) {
            self.stats.body_bytes -= event.body_bytes;
        }
        self.stats.conflicts_open -= row.open_conflicts();
    }

    fn set_delivery(&mut self, key: WorkKey, delivery: Option<Delivery>) -> Option<Delivery> {
        let before = self.work.remove(&key);
        if let Some(before) = &before {
            *self.count(before.state_name()) -= 1;
            match before.state {
                DeliveryState::Waiting { due } => drop(self.due.remove(&(key.1, due, key))),
                DeliveryState::Leased { expires_at } => drop(self.leases.remove(&(expires_at, key))),
                _ => {}
            }
        }
        if let Some(delivery) = delivery {
            *self.count(delivery.state_name()) += 1;
            match delivery.state {
                DeliveryState::Waiting { due } => drop(self.due.insert((key.1, due, key))),
                DeliveryState::Leased { expires_at } => drop(self.leases.insert((expires_at, key))),
                _ => {}
            }
            self.work.insert(key, delivery);
        }
        before
    }

    fn count(&mut self, state: StateName) -> &mut u64 {
        let tally = &mut self.stats.deliveries;
        match state {
            StateName::Waiting => &mut tally.waiting,
            StateName::Leased => &mut tally.leased,
            StateName::Done => &mut tally.done,
            StateName::Dead => &mut tally.dead,
            StateName::Held => &mut tally.held,
        }
    }
}

// Looking up.
impl Tables {
    pub(super) fn newest(&self) -> Seq {
        self.events.last_key_value().map_or(Seq(0), |(seq, _)| *seq)
    }

    pub(super) fn source_name(&self, number: SourceNumber) -> Result<SourceName, StoreError> {
        let row = self.registry.sources.iter().find(|row| row.number == number);
        row.map(|row| row.name.clone()).ok_or_else(|| unknown("source", number.0))
    }

    pub(super) fn destination(&self, number: DestinationNumber) -> Result<&DestinationRow, StoreError> {
        let row = self.registry.destinations.iter().find(|row| row.number == number);
        row.ok_or_else(|| unknown("destination", number.0))
    }

    pub(super) fn retry_policy(&self, number: DestinationNumber) -> RetryPolicy {
        self.destination(number).map(|row| row.retry.clone()).unwrap_or_default()
    }

    pub(super) fn seq_of(&self, id: &EventId) -> Option<Seq> {
        self.by_id.get(id).copied()
    }

    pub(super) fn by_id(&self, id: &EventId) -> Option<&Arc<EventRow>> {
        self.events.get(self.by_id.get(id)?)
    }

    pub(super) fn by_identity(&self, identity: &Identity) -> Option<&Arc<EventRow>> {
        self.events.get(self.by_identity.get(identity)?)
    }

    /// The events of a source with this body, the oldest first, as far as it is looked out for.
    pub(super) fn with_body(
        &self,
        source: SourceNumber,
        digest: Digest,
    ) -> impl Iterator<Item = &Arc<EventRow>> {
        self.by_body.all_of(source, digest).filter_map(|seq| self.events.get(&seq))
    }

    pub(super) fn work_key(&self, id: &DeliveryId) -> Option<WorkKey> {
        self.seq_of(&id.event).map(|seq| (seq, id.destination, id.generation))
    }

    pub(super) fn work_of(&self, seq: Seq) -> impl Iterator<Item = &Delivery> {
        let from = (seq, DestinationNumber(0), 0);
        let to = (seq, DestinationNumber(u32::MAX), u32::MAX);
        self.work.range(from..=to).map(|(_, delivery)| delivery)
    }

    pub(super) fn attempts(&self, key: &WorkKey) -> &[Attempt] {
        self.attempts.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn tally(&self, seq: Seq) -> DeliveryTally {
        let mut tally = DeliveryTally::default();
        self.work_of(seq).for_each(|delivery| tally.add(delivery.state_name()));
        tally
    }

    /// An event with what is derived from elsewhere filled in.
    pub(super) fn event(&self, row: &EventRow) -> Event {
        let mut event = row.event.clone();
        event.deliveries = self.tally(event.seq);
        event.conflicts = u16::try_from(row.variants.len()).unwrap_or(VARIANTS_MAX);
        event
    }

    /// Deliveries that a destination is owed by `now`, by due time and then by event.
    pub(super) fn due(&self, to: DestinationNumber, now: Timestamp, max: usize) -> Vec<WorkKey> {
        let all = self.due.range(first_due(to)..);
        let due = all.take_while(|(destination, due, _)| *destination == to && *due <= now);
        due.take(max).map(|(_, _, key)| *key).collect()
    }

    /// Leases that have expired by `now`, the longest expired first.
    pub(super) fn expired(&self, now: Timestamp, max: usize) -> Vec<WorkKey> {
        let expired = self.leases.iter().take_while(|(expires_at, _)| *expires_at <= now);
        expired.take(max).map(|(_, key)| *key).collect()
    }

    /// Brings back what a run under a clock far ahead left behind; how many deliveries that were.
    pub(super) fn bring_back(&mut self, now: Timestamp) -> usize {
        let is_ahead = |delivery: &Delivery| match delivery.state {
            DeliveryState::Waiting { due } => due > Delivery::due_ahead_max(now),
            DeliveryState::Leased { expires_at } => expires_at > Delivery::expiry_ahead_max(now),
            _ => false,
        };
        let ahead = self.work.iter().filter(|(_, delivery)| is_ahead(delivery));
        let ahead: Vec<WorkKey> = ahead.map(|(key, _)| *key).collect();
        for key in &ahead {
            let policy = self.retry_policy(key.1);
            if let Some(mut delivery) = self.work.get(key).cloned() {
                delivery.bring_back(&policy, now);
                self.set_delivery(*key, Some(delivery));
            }
        }
        ahead.len()
    }

    /// The events of a source that have a body, the oldest first.
    pub(super) fn kept(&self, source: SourceNumber) -> impl Iterator<Item = &Arc<EventRow>> {
        let kept = self.kept.range((source, Seq(0))..=(source, Seq(u64::MAX)));
        kept.filter_map(|(_, seq)| self.events.get(seq))
    }

    /// The runs of an event, by name.
    pub(super) fn runs_of(&self, seq: Seq) -> impl Iterator<Item = (&RunName, &RunRow)> {
        self.runs.get(&seq).into_iter().flatten()
    }

    pub(super) fn run(&self, seq: Seq, run: &RunName) -> Option<&RunRow> {
        self.runs.get(&seq)?.get(run)
    }

    /// Every run, by event and name.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Seq, &RunName, &RunRow)> {
        self.runs.iter().flat_map(|(seq, runs)| runs.iter().map(|(run, row)| (*seq, run, row)))
    }

    pub(super) fn next_due(&self, destination: DestinationNumber) -> Option<Timestamp> {
        let row = self.registry.destinations.iter().find(|row| row.number == destination)?;
        let (to, due, _) = self.due.range(first_due(destination)..).next()?;
        (*to == destination && !row.paused).then_some(*due)
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.leases.first().map(|(expires_at, _)| *expires_at)
    }

    pub(super) fn stats(&self) -> Stats {
        let events = self.events.len() as u64;
        Stats { events, erased: events - self.kept.len() as u64, ..self.stats }
    }

    /// The bytes of a record that the store knows.
    pub(super) fn record(&self, disk: &Disk, record: &str) -> Result<Bytes, StoreError> {
        match self.unwritten.get(record) {
            Some(bytes) => Ok(bytes.clone()),
            None => disk.read_known(record).map(Bytes::from),
        }
    }

    /// The tables as changes that make them anew.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let sources = self.registry.sources.iter().cloned().map(Row::Source);
        let destinations = self.registry.destinations.iter().cloned().map(Row::Destination);
        let events = self.events.values().cloned().map(Row::Event);
        let work = self.work.iter().map(|(key, delivery)| Row::Delivery(key.0, delivery.clone()));
        let attempts = self
            .attempts
            .iter()
            .flat_map(|(key, attempts)| attempts.iter().map(|attempt| Row::Attempt(*key, attempt.clone())));
        let runs = self.runs().map(|(seq, run, row)| Row::Run(seq, run.clone(), row.clone()));
        let redeliveries = self.redeliveries.values().cloned().map(Row::Redelivery);
        sources.chain(destinations).chain(events).chain(work).chain(attempts).chain(runs).chain(redeliveries)
    }
}

/// Below everything that a destination may be owed.
fn first_due(to: DestinationNumber) -> (DestinationNumber, Timestamp, WorkKey) {
    (to, Timestamp::from_micros(i64::MIN), (Seq(0), DestinationNumber(0), 0))
}

fn erase(row: &mut EventRow, at: Timestamp) {
    row.event.erased_at = Some(at);
    row.event.headers = RawHeaders::default();
    for variant in &mut row.variants {
        variant.erased = true;
        variant.headers = RawHeaders::default();
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

/// Rows are numbered in the order in which they are made, so a new one goes to the end.
fn set_row<T>(rows: &mut Vec<T>, is_it: impl Fn(&T) -> bool, row: Option<T>) -> Option<T> {
    match (rows.iter().position(is_it), row) {
        (Some(index), Some(row)) => Some(std::mem::replace(&mut rows[index], row)),
        (Some(index), None) => Some(rows.remove(index)),
        (None, Some(row)) => {
            rows.push(row);
            None
        }
        (None, None) => None,
    }
}

fn unknown(what: &str, number: u32) -> StoreError {
    let reason = format!("{what} number {number} was never registered");
    StoreError::backend(format!("look up a {what}"), reason)
}
