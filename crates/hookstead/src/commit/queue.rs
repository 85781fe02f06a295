//! The queue to the committer: two bounded lanes, so that neither accepting nor the other work can starve.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hookstead_core::Write;

use super::pace::Pace;
use super::pending::Promise;

/// How much may wait for the store and how much goes into one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitLimits {
    /// Writes that may wait in each lane. More are refused.
    pub queue_entries_max: usize,
    /// Bytes of bodies that may wait in each lane. A single larger body still fits into an empty lane.
    pub queue_bytes_max: usize,
    /// Writes in one commit.
    pub batch_entries_max: usize,
    /// Bytes of bodies in one commit; a single larger body makes a commit of its own.
    pub batch_bytes_max: usize,
    /// How long an event may be expected to wait until it is durable, going by how long the last commit took.
    /// With a longer wait before it, it is refused at once.
    pub wait_max: Duration,
}

impl Default for CommitLimits {
    /// 512 writes or 8 MiB a commit, past which a batch gains nothing; 16 such commits may wait, which a disk
    /// of 10 ms an fsync works off in a fifth of a second.
    fn default() -> Self {
        Self {
            queue_entries_max: 8 * 1024,
            queue_bytes_max: 128 * 1024 * 1024,
            batch_entries_max: 512,
            batch_bytes_max: 8 * 1024 * 1024,
            // With a commit of its own behind it still within the ten seconds after which senders give up.
            wait_max: Duration::from_secs(4),
        }
    }
}

/// Which lane a write waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneName {
    /// Events on their way in.
    Accepts,
    /// Everything else: claims, settles, sweeps, decisions.
    Rest,
}

/// The part of a batch that the other lane leaves to [`LaneName::Rest`] while it has that much: a quarter.
const REST_SHARE: usize = 4;

/// The most effects in one commit: each may take as long as the store lets it, and all wait for all.
const EFFECTS_MAX: usize = 64;

/// A write and whoever waits for it.
pub(super) struct Entry {
    pub(super) write: Write,
    pub(super) answer: Promise,
}

#[derive(Default)]
struct Lane {
    entries: VecDeque<Entry>,
    bytes: usize,
}

/// Both lanes.
pub(super) struct Queue {
    accepts: Lane,
    rest: Lane,
    limits: CommitLimits,
    pace: Pace,
}

impl Queue {
    pub(super) fn new(limits: CommitLimits) -> Self {
        Self { accepts: Lane::default(), rest: Lane::default(), limits, pace: Pace::new(Instant::now()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accepts.entries.is_empty() && self.rest.entries.is_empty()
    }

    /// Queues an entry, or gives it back if its lane is full, or too slow for an event.
    pub(super) fn push(&mut self, name: LaneName, entry: Entry, now: Instant) -> Result<(), Entry> {
        let limits = self.limits;
        // What is not an event is owed already: it waits for as long as it takes.
        if name == LaneName::Accepts && self.expected_wait(now) > limits.wait_max {
            return Err(entry);
        }
        let lane = match name {
            LaneName::Accepts => &mut self.accepts,
            LaneName::Rest => &mut self.rest,
        };
        let bytes = body_bytes(&entry.write);
        let crowded = !lane.entries.is_empty() && lane.bytes + bytes > limits.queue_bytes_max;
        if lane.entries.len() >= limits.queue_entries_max || crowded {
            return Err(entry);
        }
        lane.bytes += bytes;
        lane.entries.push_back(entry);
        Ok(())
    }

    /// Whether a lane has room for so many more entries of work, which have no bodies.
    pub(super) fn has_room(&self, name: LaneName, entries: usize) -> bool {
        let lane = match name {
            LaneName::Accepts => &self.accepts,
            LaneName::Rest => &self.rest,
        };
        lane.entries.len() + entries <= self.limits.queue_entries_max
    }

    /// How long it would take until an event that comes now is durable.
    fn expected_wait(&self, now: Instant) -> Duration {
        let (lane, limits) = (&self.accepts, &self.limits);
        let by_entries = lane.entries.len() / limits.batch_entries_max.max(1);
        let by_bytes = lane.bytes / limits.batch_bytes_max.max(1);
        self.pace.expected_wait(by_entries.max(by_bytes), now)
    }

    /// Notes that a batch taken at `taken_at` was committed, or was not.
    pub(super) fn batch_ended(&mut self, taken_at: Instant, now: Instant) {
        self.pace.end(taken_at, now);
    }

    /// Takes the next batch: never empty unless the queue is, each lane in its own order but for claims: they come last,
    /// where they find also what the events before them have just made.
    pub(super) fn take_batch(&mut self, now: Instant) -> Vec<Entry> {
        self.pace.begin(now);
        let mut batch = Batch { entries: Vec::new(), bytes: 0, effects: 0, limits: self.limits };
        let reserved = self.rest.entries.len().min(self.limits.batch_entries_max / REST_SHARE);
        batch.fill(&mut self.rest, reserved);
        batch.fill(&mut self.accepts, self.limits.batch_entries_max);
        batch.fill(&mut self.rest, self.limits.batch_entries_max);
        batch.entries.sort_by_key(|entry| matches!(entry.write, Write::Claim(_)));
        batch.entries
    }

    /// Takes everything.
    pub(super) fn drain(&mut self) -> Vec<Entry> {
        let lanes = [&mut self.rest, &mut self.accepts];
        lanes.into_iter().flat_map(|lane| std::mem::take(lane).entries).collect()
    }
}

struct Batch {
    entries: Vec<Entry>,
    bytes: usize,
    effects: usize,
    limits: CommitLimits,
}

impl Batch {
    fn fill(&mut self, lane: &mut Lane, up_to: usize) {
        while self.entries.len() < up_to
            && let Some(next) = lane.entries.front()
        {
            let bytes = body_bytes(&next.write);
            let effects = usize::from(has_effect(&next.write));
            let is_full =
                self.bytes + bytes > self.limits.batch_bytes_max || self.effects + effects > EFFECTS_MAX;
            if !self.entries.is_empty() && is_full {
                return;
            }
            self.bytes += bytes;
            self.effects += effects;
            lane.bytes -= bytes;
            self.entries.extend(lane.entries.pop_front());
        }
    }
}

fn has_effect(write: &Write) -> bool {
    matches!(write, Write::Settle(settle) if settle.verdict.effect().is_some())
}

fn body_bytes(write: &Write) -> usize {
    match write {
        Write::Accept(acceptance) => acceptance.body().len(),
        Write::RecordRun(run) => run.payload.as_ref().map_or(0, bytes::Bytes::len),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::pending::pending;
    use hookstead_core::{
        Claim, DeliveryId, DestinationNumber, Effect, EventId, LeaseToken, Settle, Sweep, Verdict,
    };

    fn sweep(max: u32) -> Entry {
        Entry { write: Write::Sweep(Sweep { retention: Vec::new(), max }), answer: pending().0 }
    }

    fn queue(entries: usize) -> Queue {
        let limits =
            CommitLimits { queue_entries_max: entries, batch_entries_max: 8, ..CommitLimits::default() };
        Queue::new(limits)
    }

    fn push(queue: &mut Queue, lane: LaneName, count: u32, now: Instant) {
        (0..count).for_each(|n| assert!(queue.push(lane, sweep(n), now).is_ok()));
    }

    #[test]
    fn a_full_lane_refuses_and_leaves_the_other_alone() {
        let start = Instant::now();
        let mut queue = queue(2);
        push(&mut queue, LaneName::Accepts, 2, start);
        assert!(queue.push(LaneName::Accepts, sweep(9), start).is_err());
        assert!(queue.push(LaneName::Rest, sweep(9), start).is_ok());
    }

    #[test]
    fn the_rest_keeps_its_share_under_load_and_takes_what_is_left() {
        let start = Instant::now();
        let mut full = queue(100);
        push(&mut full, LaneName::Accepts, 50, start);
        push(&mut full, LaneName::Rest, 50, start);
        assert_eq!(full.take_batch(start).len(), 8);
        assert_eq!((full.rest.entries.len(), full.accepts.entries.len()), (48, 44));
        let mut quiet = queue(100);
        push(&mut quiet, LaneName::Rest, 6, start);
        assert_eq!(quiet.take_batch(start).len(), 6);
        assert!(quiet.is_empty());
    }

    #[test]
    fn lanes_keep_their_order() {
        let start = Instant::now();
        let mut queue = queue(100);
        push(&mut queue, LaneName::Rest, 20, start);
        let mut seen = Vec::new();
        while !queue.is_empty() {
            seen.extend(queue.take_batch(start).into_iter().map(|entry| match entry.write {
                Write::Sweep(sweep) => sweep.max,
                _ => unreachable!("only sweeps were queued"),
            }));
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn claims_come_behind_the_events_of_their_batch() {
        let start = Instant::now();
        let mut queue = queue(100);
        let claim = |destination| {
            let lease_for = Duration::from_secs(1);
            let claim = Claim { destination: DestinationNumber(destination), max: 1, lease_for };
            Entry { write: Write::Claim(claim), answer: pending().0 }
        };
        assert!(queue.push(LaneName::Rest, claim(1), start).is_ok());
        push(&mut queue, LaneName::Rest, 1, start);
        assert!(queue.push(LaneName::Rest, claim(2), start).is_ok());
        push(&mut queue, LaneName::Accepts, 2, start);
        let destination = |entry: Entry| match entry.write {
            Write::Claim(claim) => Some(claim.destination.0),
            _ => None,
        };
        let seen: Vec<_> = queue.take_batch(start).into_iter().map(destination).collect();
        assert_eq!(seen, [None, None, None, Some(1), Some(2)]);
    }

    #[test]
    fn no_more_effects_share_a_commit_than_the_maximum() {
        let start = Instant::now();
        let limits = CommitLimits { batch_entries_max: 512, ..CommitLimits::default() };
        let mut queue = Queue::new(limits);
        let settle = || {
            let delivery = DeliveryId {
                event: EventId::from_bytes([1; 16]),
                destination: DestinationNumber(1),
                generation: 1,
            };
            let verdict = Verdict::DoneWith(Effect::new("sqlite", ()));
            let settle = Settle { delivery, token: LeaseToken(1), verdict, attempt: None };
            Entry { write: Write::Settle(Box::new(settle)), answer: pending().0 }
        };
        for _ in 0..EFFECTS_MAX + 1 {
            assert!(queue.push(LaneName::Rest, settle(), start).is_ok());
        }
        push(&mut queue, LaneName::Rest, 1, start);
        push(&mut queue, LaneName::Accepts, 10, start);
        assert_eq!(queue.take_batch(start).len(), EFFECTS_MAX + 10, "the other lane does not wait");
        assert_eq!(queue.take_batch(start).len(), 2);
        assert!(queue.is_empty());
    }

    #[test]
    fn events_are_refused_that_would_wait_too_long_and_taken_again_when_the_store_is_idle() {
        let start = Instant::now();
        let mut queue = queue(100);
        push(&mut queue, LaneName::Accepts, 1, start);
        queue.take_batch(start);
        push(&mut queue, LaneName::Accepts, 8, start);
        let late = start + Duration::from_millis(2_500);
        assert!(queue.push(LaneName::Accepts, sweep(9), late).is_err(), "two batches of 2.5 s");
        assert!(queue.push(LaneName::Rest, sweep(9), late).is_ok());
        queue.batch_ended(start, late);
        queue.take_batch(late);
        queue.batch_ended(late, late + Duration::from_secs(9));
        queue.drain();
        assert!(queue.push(LaneName::Accepts, sweep(9), late).is_ok());
    }
}
