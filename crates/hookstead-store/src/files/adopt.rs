//! Taking in what lies in the folders and the log does not know: entries and receipts of the seed's own
//! receiver, and our own where a log was lost or replaced by an older one. Only what verifies is taken in; the
//! rest stays where it is, is served to nobody and keeps its identity shut.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hookstead_core::{
    ComparisonDigest, DeliveryTally, Digest, Duplicates, Event, EventId, Identity, IdentityKey,
    ProviderEventId, RawHeaders, Scope, Seq, SourceName, SourceNumber, Timestamp,
};

use super::disk::Disk;
use super::entry::{About, Entry, instant_of};
use super::layout::{Kind, RecordPath, SEED_SOURCE, SOURCES};
use super::receipt::Stated;
use super::recover::Scan;
use super::register::{FOUND, new_source, next_number};
use super::row::{EventRow, Row, RunRow};
use super::tables::Tables;

/// Puts what verifies into the tables. Returns what does not.
pub(super) fn adopt(
    disk: &Disk,
    tables: &mut Tables,
    unknown: Vec<RecordPath>,
    key: &IdentityKey,
    now: Timestamp,
) -> Vec<RecordPath> {
    let mut refused = Vec::new();
    let mut events = Vec::new();
    let mut receipts = Vec::new();
    for record in unknown {
        match (kind_of(&record), found_source(tables, &record)) {
            (Some(Kind::Delivery), Some(source)) => match read_event(disk, &record, &source, key, now) {
                Ok(row) => events.push((record, row)),
                Err(why) => refuse(&mut refused, record, &why),
            },
            (Some(Kind::Receipt), Some(_)) => receipts.push(record),
            _ => refuse(&mut refused, record, "no log knows it"),
        }
    }
    events
        .sort_by(|(a, row_a), (b, row_b)| (row_a.event.committed_at, a).cmp(&(row_b.event.committed_at, b)));
    for (record, row) in events {
        if let Err(why) = put_event(tables, row) {
            refuse(&mut refused, record, &why);
        }
    }
    for record in receipts {
        if let Err(why) = put_receipt(disk, tables, &record) {
            refuse(&mut refused, record, &why);
        }
    }
    refused
}

/// The records in the folders that the log does not know, in no order.
pub(super) fn unknown<T>(
    scan: &Scan,
    expected: &std::collections::HashMap<RecordPath, T>,
) -> Vec<RecordPath> {
    scan.records.iter().filter(|record| !expected.contains_key(*record)).cloned().collect()
}

fn refuse(refused: &mut Vec<RecordPath>, record: RecordPath, why: &str) {
    tracing::warn!(
        record,
        why,
        "a file in the store's folder is no record that can be used; it is left alone"
    );
    refused.push(record);
}

fn kind_of(record: &str) -> Option<Kind> {
    let folder = super::layout::folder_of(record).rsplit('/').next()?;
    Kind::ALL.into_iter().find(|kind| kind.folder() == folder)
}

/// The source in whose folder a record lies, made known if nobody has registered it.
fn found_source(tables: &mut Tables, record: &str) -> Option<(SourceName, SourceNumber)> {
    let name: SourceName = match record.strip_prefix(&format!("{SOURCES}/")) {
        Some(rest) => rest.split('/').next()?.parse().ok()?,
        None => SEED_SOURCE.parse().ok()?,
    };
    let rows = &tables.registry.sources;
    if let Some(row) = rows.iter().find(|row| row.name == name) {
        return Some((name, row.number));
    }
    let number = SourceNumber(next_number(rows.len()));
    tables.put(&Row::Source(new_source(number, &name, FOUND))).ok()?;
    Some((name, number))
}

fn read_event(
    disk: &Disk,
    record: &str,
    source: &(SourceName, SourceNumber),
    key: &IdentityKey,
    now: Timestamp,
) -> Result<EventRow, String> {
    let bytes = disk.read(record).map_err(|error| error.to_string())?.ok_or("it leads nowhere")?;
    let entry = Entry::read(&bytes)?;
    let identity = identity(&entry, source.1)?;
    if disk.layout.delivery(&source.0, &identity) != record {
        return Err("its name is not that of its id".to_owned());
    }
    let about = entry.about.unwrap_or_default();
    let committed_at = entry.accepted_at.unwrap_or(now);
    let bucket = key.hash(&identity, 0).bucket();
    let derived = EventId::new(committed_at, entropy(record), bucket);
    let comparison = about.comparison.as_ref().and_then(|(rule_version, digest)| {
        let mut bytes = [0; 32];
        hex::decode_to_slice(digest, &mut bytes).ok()?;
        Some(ComparisonDigest { rule_version: *rule_version, digest: Digest::from_bytes(bytes) })
    });
    let event = Event {
        id: about.event.parse().unwrap_or(derived),
        seq: Seq(0),
        source: source.0.clone(),
        identity,
        received_at: instant_of(&about.received_at).unwrap_or(committed_at),
        committed_at,
        digest: entry.digest,
        body_bytes: entry.body.len() as u64,
        erased_at: None,
        headers: headers(&about)?,
        revises: None,
        same_body_as: about.same_body_as.as_deref().and_then(|id| id.parse().ok()),
        event_type: about.event_type,
        account: about.account,
        received_from: about.received_from,
        verified_by: about.verified_by,
        duplicates: Duplicates::default(),
        conflicts: 0,
        deliveries: DeliveryTally::default(),
    };
    Ok(EventRow { event, comparison, body_watched: about.body_watched, variants: Vec::new() })
}

fn identity(entry: &Entry, source: SourceNumber) -> Result<Identity, String> {
    let about = entry.about.as_ref();
    let decode = |text: &String| BASE64_STANDARD.decode(text).map_err(|error| error.to_string());
    let exact = about.and_then(|about| about.provider_event_id_base64.as_ref()).map(decode).transpose()?;
    let scope = about.and_then(|about| about.scope_base64.as_ref()).map(decode).transpose()?;
    let id = exact.unwrap_or_else(|| entry.delivery_id.clone().into_bytes());
    Ok(Identity {
        source,
        scope: Scope::new(scope.unwrap_or_default()).map_err(|error| error.to_string())?,
        id: ProviderEventId::new(id).map_err(|error| error.to_string())?,
    })
}

fn headers(about: &About) -> Result<RawHeaders, String> {
    let block = match (&about.headers, &about.headers_base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(text)) => BASE64_STANDARD.decode(text).map_err(|error| error.to_string())?,
        (None, None) => Vec::new(),
    };
    Ok(RawHeaders::from_block(Bytes::from(block)))
}

/// The same entry always gets the same id, so that two starts, of which the first was cut short, agree.
fn entropy(record: &str) -> [u8; 10] {
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&Digest::of(record.as_bytes()).as_bytes()[..10]);
    entropy
}

fn put_event(tables: &mut Tables, mut row: EventRow) -> Result<(), String> {
    if tables.seq_of(&row.event.id).is_some() {
        return Err(format!("its event id {} is another event's", row.event.id));
    }
    row.event.seq = Seq(tables.newest().0 + 1);
    tables.put(&Row::Event(Arc::new(row))).map(drop).map_err(|error| error.to_string())
}

fn put_receipt(disk: &Disk, tables: &mut Tables, record: &str) -> Result<(), String> {
    let bytes = disk.read(record).map_err(|error| error.to_string())?.ok_or("it leads nowhere")?;
    let stated = Stated::read(&bytes)?;
    let (name, number) = found_source(tables, record).ok_or("it lies in no source's folder")?;
    let row = match &stated.event {
        Some(id) => id.parse().ok().and_then(|id| tables.by_id(&id)),
        None => {
            let id = ProviderEventId::new(stated.delivery_id.clone().into_bytes());
            let id = id.map_err(|error| error.to_string())?;
            tables.by_identity(&Identity { source: number, scope: Scope::default(), id })
        }
    };
    let row = row.filter(|row| row.event.source == name).ok_or("its event is unknown")?;
    if disk.layout.receipt(row, &stated.run) != record || stated.digest != row.event.digest.to_string() {
        return Err("its name or digest is not that of its event and run".to_owned());
    }
    let known = RunRow {
        digest: row.event.digest,
        processed_at: stated.processed_at.unwrap_or(row.event.committed_at),
        business_id: stated.business_id,
        payload: stated.payload.as_deref().map(Digest::of),
    };
    let seq = row.event.seq;
    tables.put(&Row::Run(seq, stated.run, known)).map(drop).map_err(|error| error.to_string())
}
