//! What durability costs at the least: signatures are checked and deliveries appended to one file, with a sync for
//! all that came while the last one was under way. It knows no duplicates and can find nothing again. It runs in a
//! process of its own, `cargo xtask bench serve-log FILE`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use anyhow::{Context, Result};
use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use super::noop::{accepted, serve_router};
use super::template::SECRET;

/// As many as the server under test puts in a batch.
const BATCH_MAX: usize = 512;

/// More than the connections that the bench opens.
const QUEUE_MAX: usize = 4096;

/// A delivery on its way to the file.
struct Entry {
    id: Vec<u8>,
    body: Bytes,
    durable: oneshot::Sender<()>,
}

#[derive(Clone)]
struct Front {
    key: hmac::Key,
    queue: SyncSender<Entry>,
}

/// Serves until stdin ends, and appends to `path`.
pub(super) fn serve(path: &Path) -> Result<()> {
    let file = File::options().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot append to {}", path.display()))?;
    let (queue, entries) = sync_channel(QUEUE_MAX);
    std::thread::spawn(move || {
        if let Err(error) = append(file, &entries) {
            // Every request from now on is answered 503, because the queue has no other end.
            eprintln!("the log has failed: {error:#}");
        }
    });
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    serve_router(Router::new().fallback(receive).with_state(Front { key, queue }))
}

/// Takes what is queued, syncs once, answers all, and begins again.
fn append(mut file: File, entries: &Receiver<Entry>) -> Result<()> {
    let mut frames = Vec::new();
    let mut waiting = Vec::with_capacity(BATCH_MAX);
    while let Ok(first) = entries.recv() {
        frames.clear();
        for entry in std::iter::once(first).chain(entries.try_iter().take(BATCH_MAX - 1)) {
            frame(&mut frames, &entry)?;
            waiting.push(entry.durable);
        }
        file.write_all(&frames).context("write")?;
        file.sync_data().context("sync")?;
        for durable in waiting.drain(..) {
            // A sender that has gone does not wait for its answer.
            durable.send(()).ok();
        }
    }
    Ok(())
}

/// Two lengths, the id, the body.
fn frame(frames: &mut Vec<u8>, entry: &Entry) -> Result<()> {
    for part in [entry.id.as_slice(), &entry.body] {
        frames.extend_from_slice(&u32::try_from(part.len()).context("a length")?.to_le_bytes());
    }
    frames.extend_from_slice(&entry.id);
    frames.extend_from_slice(&entry.body);
    Ok(())
}

async fn receive(State(front): State<Front>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(id) = verified_id(&front.key, &headers, &body) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let (durable, committed) = oneshot::channel();
    match front.queue.try_send(Entry { id, body, durable }) {
        Ok(()) => {}
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
    }
    match committed.await {
        Ok(()) => accepted().into_response(),
        Err(_the_log_has_failed) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The delivery's id if its signature holds.
pub(super) fn verified_id(key: &hmac::Key, headers: &HeaderMap, body: &[u8]) -> Option<Vec<u8>> {
    let header = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let id = header("x-delivery-id")?;
    let signature = header("x-signature")?.strip_prefix(b"v1=")?;
    let mut given = [0; 32];
    hex::decode_to_slice(signature, &mut given).ok()?;
    let signed = [header("x-timestamp")?, b".", id, b".", body].concat();
    hmac::verify(key, &signed, &given).ok()?;
    Some(id.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::template::{Ids, Template};

    /// What an HTTP parser makes of a generated request.
    fn parsed(template: &Template) -> (HeaderMap, Vec<u8>) {
        let text = String::from_utf8(template.bytes().to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let fields = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
        let headers = fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        (headers, body.as_bytes().to_vec())
    }

    #[test]
    fn only_what_the_generator_signed_is_taken() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let mut template = Template::new("h", 100, &mut || 0).unwrap();
        template.patch(Ids { event: 1, body: 1 }, 1_770_000_000);
        let (headers, mut body) = parsed(&template);
        assert_eq!(verified_id(&key, &headers, &body).as_deref(), Some(&b"bench-0000000000000001"[..]));
        body[50] ^= 1;
        assert_eq!(verified_id(&key, &headers, &body), None);
    }

    #[test]
    fn all_that_is_queued_is_in_the_file_before_it_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (queue, entries) = sync_channel(4);
        let (durable, mut committed): (Vec<_>, Vec<_>) = (0..2).map(|_| oneshot::channel()).unzip();
        for (durable, body) in durable.into_iter().zip(["one", "two"]) {
            queue.send(Entry { id: b"id".to_vec(), body: body.into(), durable }).unwrap();
        }
        drop(queue);
        append(File::create(&path).unwrap(), &entries).unwrap();
        assert!(committed.iter_mut().all(|committed| committed.try_recv().is_ok()));
        let written = std::fs::read(path).unwrap();
        assert_eq!(written, b"\x02\0\0\0\x03\0\0\0idone\x02\0\0\0\x03\0\0\0idtwo");
    }
}
