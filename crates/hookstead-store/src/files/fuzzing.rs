//! The files of a `files:` store under any bytes (see [`crate::fuzzing`]). Digests and sums keep nearly all made-up bytes
//! out; so each input is also read with the right ones put to it, as whoever knows the format could.

use hookstead_core::{Digest, Identity, ProviderEventId, Scope, SourceNumber};
use serde_json::Value;

use super::entry::{Entry, delivery_id};
use super::log::{Chain, replay};
use super::marker::Marker;
use super::receipt::Stated;
use super::{journal, log};

/// An entry, a receipt or the marker of a folder. What is read of an entry has the digest that stands in it.
pub fn entry(input: &[u8]) {
    check_entry(input);
    if let Some(sealed) = with_right_digest(input) {
        check_entry(&sealed);
    }
    if let Err(why) = Stated::read(input) {
        assert!(!why.is_empty());
    }
    if let Ok(Ok(marker)) = Marker::read(input)
        && let Ok(key) = marker.key()
    {
        let again = Marker::new(key, String::new(), marker.seed_at_root);
        assert_eq!(again.key(), Ok(key));
    }
}

fn check_entry(bytes: &[u8]) {
    let entry = match Entry::read(bytes) {
        Ok(entry) => entry,
        Err(why) => return assert!(!why.is_empty()),
    };
    assert_eq!(Digest::of(&entry.body), entry.digest, "a body that is not the one of its digest");
    let Ok(id) = ProviderEventId::new(entry.delivery_id.as_bytes()) else { return };
    let is_as_written = delivery_id(&id) == entry.delivery_id;
    let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
    let found = Entry::body_of(bytes, &identity, entry.digest);
    assert_eq!(found.is_ok(), is_as_written, "{found:?}");
    let other = Digest::of(b"bytes that were never accepted");
    assert!(
        other == entry.digest || Entry::body_of(bytes, &identity, other).is_err(),
        "another body was given out"
    );
}

fn with_right_digest(input: &[u8]) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let mut json: Value = serde_json::from_slice(input).ok()?;
    let body = base64::prelude::BASE64_STANDARD.decode(json.get("body")?.as_str()?).ok()?;
    *json.get_mut("sha256")? = Value::String(Digest::of(&body).to_string());
    serde_json::to_vec(&json).ok()
}

/// The log of work and a segment of the journal: as they are; and the input as one batch, and as a record of a journal,
/// under the sums that it should have.
pub fn journal(input: &[u8]) {
    check_log(input);
    check_segment(input);
    let (first, rest) = input.split_at(input.iter().position(|byte| *byte == 0).unwrap_or(input.len()));
    if let Ok(batch) = std::str::from_utf8(first) {
        check_log(&log::sealed(batch));
        check_line(batch);
    }
    let (path, record) = rest.split_at(rest.len().min(40));
    let path = String::from_utf8_lossy(path);
    check_segment(&journal::sealed(first, &[(path.into_owned(), record)]));
}

fn check_log(text: &[u8]) {
    let mut batches = 0;
    let read = replay(text, |_| {
        batches += 1;
        Ok(())
    });
    match read {
        Ok(replay) => {
            assert!(replay.chain.number == batches && replay.torn_bytes <= text.len(), "{replay:?}");
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// What is read of a line is what is written of it.
fn check_line(batch: &str) {
    let line = log::sealed(batch);
    let Ok((batch, after)) = Chain::new().read(line.strip_suffix(b"\n").unwrap_or(&line)) else { return };
    assert_eq!(after.number, 1);
    let (again, _) = Chain::new().line(&batch).expect("what was read can be written");
    let (again, _) = Chain::new().read(again.strip_suffix(b"\n").unwrap_or(&again)).expect("it can be read");
    assert_eq!(again.rows, batch.rows);
    assert_eq!(again.journal, batch.journal);
}

fn check_segment(text: &[u8]) {
    match journal::read(text) {
        Ok(Some(segment)) => {
            let bytes = |batch: &journal::Journaled<'_>| {
                batch.line.len() + batch.records.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
            };
            let held: usize = segment.batches.iter().map(bytes).sum();
            assert!(held + segment.torn_bytes <= text.len());
            let records = segment.batches.iter().flat_map(|batch| &batch.records);
            for (path, _) in records {
                assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".."), "`{path}`");
            }
        }
        Ok(None) => {}
        Err(why) => assert!(!why.is_empty()),
    }
}
