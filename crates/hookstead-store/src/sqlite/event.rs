//! Reading one event or one body.

use bytes::Bytes;
use hookstead_core::identity::IDENTITY_PROBES_MAX;
use hookstead_core::{
    Body, BodySelector, DeliveryTally, Digest, Duplicates, Event, EventId, EventSelector, Identity,
    IdentityKey, Registry, Seq, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row};

use super::accept::check_body;
use super::delivery::seq_of;
use super::failure::reading;
use super::identities::Lookup;
use super::ledger::{count, int, source_name};
use super::published::Published;
use super::row;

/// The columns that [`event`] reads, without the body.
macro_rules! columns {
    () => {
        "seq, id, source, scope, provider_event_id, event_type, account, received_from, verified_by,
         received_at_us, committed_at_us, digest, body_bytes, erased_at_us, revises, headers,
         (SELECT count FROM duplicates WHERE duplicates.seq = events.seq),
         (SELECT last_at_us FROM duplicates WHERE duplicates.seq = events.seq),
         (SELECT count(*) FROM variants WHERE variants.seq = events.seq),
         (SELECT same_body_as FROM reused_bodies WHERE reused_bodies.seq = events.seq)"
    };
}

/// What readers know beside the database.
pub(super) struct Known<'a> {
    pub(super) identity_key: &'a IdentityKey,
    pub(super) registry: &'a Registry,
    pub(super) published: &'a Published,
}

/// An event by one of its names.
pub(super) fn select(
    connection: &Connection,
    known: &Known<'_>,
    selector: &EventSelector,
) -> Result<Option<Event>, StoreError> {
    let seq = match selector {
        EventSelector::Id(id) => seq_of(connection, id)?,
        EventSelector::Seq(seq) => Some(*seq),
        EventSelector::Identity(identity) => {
            seq_of_identity(connection, &mut Lookup::for_one(connection), known.identity_key, identity)?
        }
        EventSelector::Newest => newest(connection)?,
    };
    seq.map(|seq| by_seq(connection, known, seq)).transpose().map(Option::flatten)
}

/// A body or a variant's body, checked.
pub(super) fn body(connection: &Connection, selector: BodySelector) -> Result<Option<Body>, StoreError> {
    match selector {
        BodySelector::Event(id) => match seq_of(connection, &id)? {
            Some(seq) => body_of(connection, seq),
            None => Ok(None),
        },
        BodySelector::Variant(id, variant) => match seq_of(connection, &id)? {
            Some(seq) => variant_body(connection, seq, variant),
            None => Ok(None),
        },
    }
}

/// A row of [`columns`], with what comes from elsewhere filled in.
pub(super) fn event(connection: &Connection, known: &Known<'_>, row: &Row<'_>) -> Result<Event, StoreError> {
    let mut event = bare(row, known.registry).map_err(reading("read an event"))?;
    if let Some(counted) = known.published.counted(event.seq) {
        event.duplicates = counted;
    }
    event.deliveries = tally(connection, event.seq).map_err(reading("count the deliveries of an event"))?;
    Ok(event)
}

/// An event by its sequence number.
pub(super) fn by_seq(
    connection: &Connection,
    known: &Known<'_>,
    seq: Seq,
) -> Result<Option<Event>, StoreError> {
    let failed = reading("read an event");
    let mut statement = connection
        .prepare_cached(concat!("SELECT ", columns!(), " FROM events WHERE seq = ?1"))
        .map_err(&failed)?;
    let mut rows = statement.query([int(seq.0)]).map_err(&failed)?;
    rows.next().map_err(&failed)?.map(|row| event(connection, known, row)).transpose()
}

/// An event without counts of deliveries, from a row of [`columns`].
pub(super) fn bare(row: &Row<'_>, registry: &Registry) -> rusqlite::Result<Event> {
    let identity = row::identity(row, 2)?;
    let source = source_name(registry, identity.source)
        .ok_or_else(|| row::bad_word(2, "a source that was never registered"))?
        .clone();
    Ok(Event {
        seq: row::seq(row, 0)?,
        id: row::event_id(row, 1)?,
        source,
        identity,
        event_type: row.get(5)?,
        account: row.get(6)?,
        received_from: row.get(7)?,
        verified_by: row.get(8)?,
        received_at: row::time(row, 9)?,
        committed_at: row::time(row, 10)?,
        digest: row::digest(row, 11)?,
        body_bytes: count(row.get(12)?),
        erased_at: row::optional_time(row, 13)?,
        revises: row::optional_bytes(row, 14)?.map(EventId::from_bytes),
        headers: row::headers(row, 15)?,
        duplicates: Duplicates {
            count: count(row.get::<_, Option<i64>>(16)?.unwrap_or(0)),
            last_at: row::optional_time(row, 17)?,
        },
        conflicts: row.get(18)?,
        same_body_as: row::optional_bytes(row, 19)?.map(EventId::from_bytes),
        deliveries: DeliveryTally::default(),
    })
}

fn tally(connection: &Connection, seq: Seq) -> rusqlite::Result<DeliveryTally> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'leased'),
            count(*) FILTER (WHERE state = 'dead'), count(*) FILTER (WHERE state = 'held'),
            (SELECT count(*) FROM done WHERE seq = ?1)
         FROM work WHERE seq = ?1",
    )?;
    statement.query_row([int(seq.0)], |row| {
        Ok(DeliveryTally {
            waiting: count(row.get(0)?),
            leased: count(row.get(1)?),
            dead: count(row.get(2)?),
            held: count(row.get(3)?),
            done: count(row.get(4)?),
        })
    })
}

/// The first event of an identity: along the probes until one is free or its event has this identity.
pub(super) fn seq_of_identity(
    connection: &Connection,
    index: &mut Lookup<'_>,
    key: &IdentityKey,
    identity: &Identity,
) -> Result<Option<Seq>, StoreError> {
    for probe in 0..IDENTITY_PROBES_MAX {
        let Some(seq) = index.holder(key.hash(identity, probe))? else { return Ok(None) };
        match identity_of(connection, seq)? {
            None => return Ok(None),
            Some(holder) if holder == *identity => return Ok(Some(seq)),
            Some(_) => {}
        }
    }
    Ok(None)
}

fn identity_of(connection: &Connection, seq: Seq) -> Result<Option<Identity>, StoreError> {
    connection
        .prepare_cached("SELECT source, scope, provider_event_id FROM events WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row([int(seq.0)], |row| row::identity(row, 0)).optional())
        .map_err(reading("look up an identity"))
}

fn newest(connection: &Connection) -> Result<Option<Seq>, StoreError> {
    connection
        .prepare_cached("SELECT max(seq) FROM events")
        .and_then(|mut statement| statement.query_row([], |row| row.get::<_, Option<i64>>(0)))
        .map(|seq| seq.map(|seq| Seq(count(seq))))
        .map_err(reading("look for the newest event"))
}

/// The body of an event, checked.
pub(super) fn body_of(connection: &Connection, seq: Seq) -> Result<Option<Body>, StoreError> {
    let read = |row: &Row<'_>| {
        let (digest, body_bytes): (Digest, u64) = (row::digest(row, 0)?, count(row.get(1)?));
        let (erased_at, body) = (row::optional_time(row, 2)?, row.get_ref(3)?.as_blob_or_null()?);
        let checked = check_body(seq, &digest, body_bytes, erased_at.is_some(), body);
        Ok(checked.map(|()| body.map_or(Body::Erased, |body| Body::Kept(Bytes::copy_from_slice(body)))))
    };
    connection
        .prepare_cached("SELECT digest, body_bytes, erased_at_us, body FROM events WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row([int(seq.0)], read).optional())
        .map_err(reading("read a body"))?
        .transpose()
}

fn variant_body(connection: &Connection, seq: Seq, variant: u16) -> Result<Option<Body>, StoreError> {
    let read = |row: &Row<'_>| {
        let (digest, body_bytes): (Digest, u64) = (row::digest(row, 0)?, count(row.get(1)?));
        let body = row.get_ref(2)?.as_blob_or_null()?;
        Ok(check_variant(seq, variant, &digest, body_bytes, body)
            .map(|()| body.map_or(Body::Erased, |body| Body::Kept(Bytes::copy_from_slice(body)))))
    };
    connection
        .prepare_cached("SELECT digest, body_bytes, body FROM variants WHERE seq = ?1 AND variant = ?2")
        .and_then(|mut statement| statement.query_row((int(seq.0), variant), read).optional())
        .map_err(reading("read a conflict's body"))?
        .transpose()
}

/// A variant's body, where it is kept, against its length and digest.
pub(super) fn check_variant(
    seq: Seq,
    variant: u16,
    digest: &Digest,
    body_bytes: u64,
    body: Option<&[u8]>,
) -> Result<(), StoreError> {
    match body {
        Some(body) if body.len() as u64 != body_bytes || Digest::of(body) != *digest => {
            Err(row::corrupt(format!("the body of variant {variant} of event {seq} differs from its digest")))
        }
        _ => Ok(()),
    }
}
