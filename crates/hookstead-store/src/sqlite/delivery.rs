//! Deliveries as rows: where they are looked up, how they are read and written. What is unfinished lives in
//! `work`, what is done in `done`; the columns are the same. It moves no state.

use hookstead_core::{
    DeadReason, Decision, Delivery, DeliveryId, DeliveryState, DestinationNumber, EventId, LeaseToken,
    RedeliveryId, Seq, Settled, StateName, StoreError, Timestamp,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use super::batch::{Batch, held};
use super::failure::{reading, writing};
use super::ledger::int;
use super::row;

/// The columns of `work` and `done`, in the order in which [`delivery`] reads and [`save`] writes them.
macro_rules! columns {
    () => {
        "seq, destination, generation, event_id, state, due_us, ended_at_us, made_at_us, attempts, token,
         key_generation, redelivery, dead, dead_words, decision_by, decision_note, decision_at_us,
         settled_token, settled, settled_due_us, settled_words"
    };
}
pub(super) use columns;

/// The statements that every delivery goes through from its making to its end, held from their first use to the end of
/// the batch like [`Statements`](super::batch::Statements).
#[derive(Default)]
pub(super) struct DeliveryStatements<'a> {
    pub(super) due: Option<CachedStatement<'a>>,
    pub(super) add_attempt: Option<CachedStatement<'a>>,
    seq_of: Option<CachedStatement<'a>>,
    find: Option<CachedStatement<'a>>,
    insert: Option<CachedStatement<'a>>,
    lease: Option<CachedStatement<'a>>,
    take: Option<CachedStatement<'a>>,
    finish: Option<CachedStatement<'a>>,
}

impl Batch<'_> {
    /// The sequence number of an event.
    pub(super) fn seq_of(&mut self, id: &EventId) -> Result<Option<Seq>, StoreError> {
        // An accept comes here too, when it looks for what was made of a conflict.
        self.write_ids()?;
        seq_of(self.connection, id)
    }

    /// A delivery, and its event's sequence number.
    pub(super) fn find_delivery(&mut self, id: &DeliveryId) -> Result<Option<(Seq, Delivery)>, StoreError> {
        let connection = self.connection;
        let statement = held(&mut self.work.seq_of, connection, SEQ_OF).map_err(reading(LOOK_UP_EVENT))?;
        let Some(seq) = seq_by(statement, &id.event).map_err(reading(LOOK_UP_EVENT))? else {
            return Ok(None);
        };
        let failed = reading("look up a delivery");
        let statement = held(&mut self.work.find, connection, FIND_WORK).map_err(&failed)?;
        let mut found = find(statement, seq, id).map_err(&failed)?;
        if found.is_none() {
            let mut statement = connection.prepare_cached(FIND_DONE).map_err(&failed)?;
            found = find(&mut statement, seq, id).map_err(&failed)?;
        }
        match found {
            Some(delivery) if delivery.id != *id => Err(row::misled(&id.event, seq)),
            Some(delivery) => Ok(Some((seq, delivery))),
            // There is none, or the index led to an event that is owed to somebody else, or to none.
            None => seq_of(connection, &id.event).map(|_| None),
        }
    }

    /// Writes a new delivery.
    pub(super) fn add_delivery(&mut self, seq: Seq, delivery: &Delivery) -> Result<(), StoreError> {
        self.ledger.count_move(None, delivery.state_name());
        self.insert_delivery(seq, delivery)
    }

    /// Notes a delivery that is made with its event, for [`write_made`](Self::write_made): one that a claim of the same
    /// batch takes is written once, as leased.
    pub(super) fn make_delivery(&mut self, seq: Seq, delivery: Delivery) {
        self.ledger.count_move(None, delivery.state_name());
        self.made.push((seq, delivery));
    }

    /// Writes the deliveries that were noted: before anything but a claim looks for deliveries, and before the commit.
    pub(super) fn write_made(&mut self) -> Result<(), StoreError> {
        std::mem::take(&mut self.made)
            .iter()
            .try_for_each(|(seq, delivery)| self.insert_delivery(*seq, delivery))
    }

    fn insert_delivery(&mut self, seq: Seq, delivery: &Delivery) -> Result<(), StoreError> {
        held(&mut self.work.insert, self.connection, INSERT_WORK)
            .and_then(|statement| save(statement, seq, delivery))
            .map_err(writing(WRITE))
    }

    /// Writes a delivery that was in state `before` over what it was.
    pub(super) fn replace_delivery(
        &mut self,
        seq: Seq,
        before: StateName,
        delivery: &Delivery,
    ) -> Result<(), StoreError> {
        let after = delivery.state_name();
        let failed = writing(WRITE);
        if before != StateName::Done && after == StateName::Done {
            self.take_from_work(seq, &delivery.id)?;
        }
        if before == StateName::Done || after == StateName::Done {
            let statement = held(&mut self.work.finish, self.connection, REPLACE_DONE).map_err(&failed)?;
            save(statement, seq, delivery).map_err(&failed)?;
        } else {
            write_over(self.connection, seq, delivery)?;
        }
        self.ledger.count_move(Some(before), after);
        Ok(())
    }

    /// Writes what a claim changes of a delivery that waited, and nothing else of its row: every delivery is claimed
    /// once at the least.
    pub(super) fn lease_delivery(&mut self, seq: Seq, delivery: &Delivery) -> Result<(), StoreError> {
        let id = &delivery.id;
        held(&mut self.work.lease, self.connection, LEASE)
            .and_then(|statement| {
                let key = (int(seq.0), id.destination.0, id.generation);
                let due = delivery.due_at().map(Timestamp::as_micros);
                statement.execute(params![key.0, key.1, key.2, due, delivery.attempts, delivery.token.0])
            })
            .map_err(writing("lease a delivery"))?;
        self.ledger.count_move(Some(StateName::Waiting), delivery.state_name());
        Ok(())
    }

    fn take_from_work(&mut self, seq: Seq, id: &DeliveryId) -> Result<(), StoreError> {
        held(&mut self.work.take, self.connection, TAKE_WORK)
            .and_then(|statement| statement.execute((int(seq.0), id.destination.0, id.generation)))
            .map(drop)
            .map_err(writing("move a delivery to those that are done"))
    }
}

/// What is being done, for errors.
const LOOK_UP_EVENT: &str = "look up an event id";
const WRITE: &str = "write a delivery";

const SEQ_OF: &str = "SELECT seq FROM event_ids WHERE id = ?1";
const CHECKED_SEQ_OF: &str = "SELECT event_ids.seq, events.id
     FROM event_ids LEFT JOIN events ON events.seq = event_ids.seq WHERE event_ids.id = ?1";
const FIND_WORK: &str =
    concat!("SELECT ", columns!(), " FROM work WHERE seq = ?1 AND destination = ?2 AND generation = ?3");
const FIND_DONE: &str =
    concat!("SELECT ", columns!(), " FROM done WHERE seq = ?1 AND destination = ?2 AND generation = ?3");
const LEASE: &str = "UPDATE work SET state = 'leased', due_us = ?4, attempts = ?5, token = ?6
                     WHERE seq = ?1 AND destination = ?2 AND generation = ?3";
const TAKE_WORK: &str = "DELETE FROM work WHERE seq = ?1 AND destination = ?2 AND generation = ?3";
const INSERT_WORK: &str = concat!(
    "INSERT INTO work (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
);
const REPLACE_WORK: &str = concat!(
    "REPLACE INTO work (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
);
const REPLACE_DONE: &str = concat!(
    "REPLACE INTO done (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
);

/// The sequence number of an event, once the event there was seen to be this one: where a damaged index leads to another,
/// nothing is served or done under the wrong name.
pub(super) fn seq_of(connection: &Connection, id: &EventId) -> Result<Option<Seq>, StoreError> {
    let found = connection
        .prepare_cached(CHECKED_SEQ_OF)
        .and_then(|mut statement| {
            let read = |row: &Row<'_>| Ok((row::seq(row, 0)?, row::optional_bytes::<16>(row, 1)?));
            statement.query_row([id.as_bytes()], read).optional()
        })
        .map_err(reading(LOOK_UP_EVENT))?;
    match found {
        Some((seq, Some(holder))) if holder == *id.as_bytes() => Ok(Some(seq)),
        Some((seq, _)) => Err(row::misled(id, seq)),
        None => Ok(None),
    }
}

fn seq_by(statement: &mut CachedStatement<'_>, id: &EventId) -> rusqlite::Result<Option<Seq>> {
    statement.query_row([id.as_bytes()], |row| row::seq(row, 0)).optional()
}

fn find(
    statement: &mut CachedStatement<'_>,
    seq: Seq,
    id: &DeliveryId,
) -> rusqlite::Result<Option<Delivery>> {
    statement.query_row((int(seq.0), id.destination.0, id.generation), delivery).optional()
}

/// Writes a delivery that is not done over what it was, and counts nothing.
pub(super) fn write_over(connection: &Connection, seq: Seq, delivery: &Delivery) -> Result<(), StoreError> {
    connection
        .prepare_cached(REPLACE_WORK)
        .and_then(|mut statement| save(&mut statement, seq, delivery))
        .map_err(writing(WRITE))
}

fn save(statement: &mut CachedStatement<'_>, seq: Seq, delivery: &Delivery) -> rusqlite::Result<()> {
    let parts = StateParts::of(&delivery.state);
    let settled = delivery.last_settled.as_ref().map(|(_, settled)| SettledParts::of(settled));
    let saved = statement.execute(params![
        int(seq.0),
        delivery.id.destination.0,
        delivery.id.generation,
        delivery.id.event.as_bytes(),
        delivery.state_name().as_str(),
        parts.due.map(Timestamp::as_micros),
        parts.ended_at.map(Timestamp::as_micros),
        delivery.made_at.as_micros(),
        delivery.attempts,
        delivery.token.0,
        delivery.key_generation,
        delivery.redelivery.as_ref().map(|id| id.0),
        parts.dead.map(|dead| dead.0),
        parts.dead.and_then(|dead| dead.1),
        parts.decision.map(|decision| &decision.by),
        parts.decision.map(|decision| &decision.note),
        parts.decision.map(|decision| decision.at.as_micros()),
        delivery.last_settled.as_ref().map(|(token, _)| token.0),
        settled.as_ref().map(|settled| settled.word),
        settled.as_ref().and_then(|settled| settled.due).map(Timestamp::as_micros),
        settled.as_ref().and_then(|settled| settled.words),
    ]);
    saved.map(drop)
}

/// A state, taken apart into columns.
#[derive(Default)]
struct StateParts<'a> {
    due: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    dead: Option<(&'static str, Option<&'a str>)>,
    decision: Option<&'a Decision>,
}

impl<'a> StateParts<'a> {
    fn of(state: &'a DeliveryState) -> Self {
        match state {
            DeliveryState::Waiting { due } => Self { due: Some(*due), ..Self::default() },
            DeliveryState::Leased { expires_at } => Self { due: Some(*expires_at), ..Self::default() },
            DeliveryState::Done { at, decision } => {
                Self { ended_at: Some(*at), decision: decision.as_ref(), ..Self::default() }
            }
            DeliveryState::Dead { at, reason } => {
                Self { ended_at: Some(*at), dead: Some(dead_parts(reason)), ..Self::default() }
            }
            DeliveryState::Held { decision } => Self { decision: Some(decision), ..Self::default() },
        }
    }
}

/// What a lease came to, taken apart into columns.
struct SettledParts<'a> {
    word: &'static str,
    due: Option<Timestamp>,
    words: Option<&'a str>,
}

impl<'a> SettledParts<'a> {
    fn of(settled: &'a Settled) -> Self {
        match settled {
            Settled::Done => Self { word: "done", due: None, words: None },
            Settled::Retry { due } => Self { word: "retry", due: Some(*due), words: None },
            Settled::Released => Self { word: "released", due: None, words: None },
            Settled::Dead(reason) => {
                let (word, words) = dead_parts(reason);
                Self { word, due: None, words }
            }
        }
    }
}

fn dead_parts(reason: &DeadReason) -> (&'static str, Option<&str>) {
    match reason {
        DeadReason::Refused(words) => ("refused", Some(words)),
        DeadReason::AttemptsUsedUp => ("attempts", None),
        DeadReason::AgeUsedUp => ("age", None),
    }
}

fn dead_reason(column: usize, word: &str, words: Option<String>) -> rusqlite::Result<DeadReason> {
    match (word, words) {
        ("refused", Some(words)) => Ok(DeadReason::Refused(words)),
        ("attempts", None) => Ok(DeadReason::AttemptsUsedUp),
        ("age", None) => Ok(DeadReason::AgeUsedUp),
        _ => Err(row::bad_word(column, word)),
    }
}

/// A row of `work` or `done`.
pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let id = DeliveryId {
        event: row::event_id(row, 3)?,
        destination: DestinationNumber(row.get(1)?),
        generation: row.get(2)?,
    };
    Ok(Delivery {
        id,
        state: state(row)?,
        made_at: row::time(row, 7)?,
        attempts: row.get(8)?,
        token: LeaseToken(row.get(9)?),
        key_generation: row.get(10)?,
        redelivery: row::optional_bytes(row, 11)?.map(RedeliveryId),
        last_settled: last_settled(row)?,
    })
}

/// A row of `work` or `done`, and its event's sequence number.
pub(super) fn keyed(row: &Row<'_>) -> rusqlite::Result<(Seq, Delivery)> {
    Ok((row::seq(row, 0)?, delivery(row)?))
}

fn state(row: &Row<'_>) -> rusqlite::Result<DeliveryState> {
    match row::word(row, 4)? {
        "waiting" => Ok(DeliveryState::Waiting { due: row::time(row, 5)? }),
        "leased" => Ok(DeliveryState::Leased { expires_at: row::time(row, 5)? }),
        "done" => Ok(DeliveryState::Done { at: row::time(row, 6)?, decision: row::decision(row, 14)? }),
        "dead" => {
            let reason = dead_reason(12, &row.get::<_, String>(12)?, row.get(13)?)?;
            Ok(DeliveryState::Dead { at: row::time(row, 6)?, reason })
        }
        "held" => {
            let decision = row::decision(row, 14)?.ok_or_else(|| row::bad_word(14, "held by nobody"))?;
            Ok(DeliveryState::Held { decision })
        }
        other => Err(row::bad_word(4, other)),
    }
}

fn last_settled(row: &Row<'_>) -> rusqlite::Result<Option<(LeaseToken, Settled)>> {
    let Some(token) = row.get(17)? else { return Ok(None) };
    let settled = match row::word(row, 18)? {
        "done" => Settled::Done,
        "retry" => Settled::Retry { due: row::time(row, 19)? },
        "released" => Settled::Released,
        dead => Settled::Dead(dead_reason(18, dead, row.get(20)?)?),
    };
    Ok(Some((LeaseToken(token), settled)))
}
