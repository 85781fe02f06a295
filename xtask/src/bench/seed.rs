//! The seed's own protocol (contract R42) behind the same front as the other servers: for every delivery each folder
//! up to the root is synced, the record is written under a temporary name, synced, linked to its own without
//! overwriting, the folder is synced again, and the temporary name goes. Deliveries that come at once are written at
//! once, as the seed's receiver does. It runs in a process of its own, `cargo xtask bench serve-seed FOLDER`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::log::verified_id;
use super::noop::{accepted, serve_router};
use super::template::SECRET;

#[derive(Clone)]
struct Front {
    key: hmac::Key,
    folder: Arc<PathBuf>,
    pending: Arc<AtomicU64>,
}

/// Serves until stdin ends, and keeps its records in `folder`.
pub(super) fn serve(folder: &Path) -> Result<()> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let front = Front { key, folder: Arc::new(std::path::absolute(folder)?), pending: Arc::default() };
    serve_router(Router::new().fallback(receive).with_state(front))
}

async fn receive(State(front): State<Front>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(id) = verified_id(&front.key, &headers, &body) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let pending = front.pending.fetch_add(1, Ordering::Relaxed);
    let kept = tokio::task::spawn_blocking(move || accept(&front.folder, pending, &id, &body)).await;
    match kept {
        Ok(Ok(())) => accepted().into_response(),
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn accept(folder: &Path, pending: u64, id: &[u8], body: &[u8]) -> io::Result<()> {
    let deliveries = folder.join("deliveries");
    DirBuilder::new().recursive(true).mode(0o700).create(&deliveries)?;
    for above in deliveries.ancestors() {
        File::open(above)?.sync_all()?;
    }
    let temporary = deliveries.join(format!(".pending-{pending}"));
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(&record(id, body))?;
    file.sync_all()?;
    drop(file);
    let name = hex::encode(digest(&SHA256, id).as_ref());
    fs::hard_link(&temporary, deliveries.join(format!("{name}.json")))?;
    File::open(&deliveries)?.sync_all()?;
    fs::remove_file(&temporary)
}

/// A record of about the seed's length: its text coding costs a third more than the body.
fn record(id: &[u8], body: &[u8]) -> Vec<u8> {
    let (id, sum) = (String::from_utf8_lossy(id), hex::encode(digest(&SHA256, body).as_ref()));
    let mut record =
        format!("{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"{id}\",\n  \"body\": \"").into_bytes();
    record.extend(body.chunks(3).flat_map(|three| [three[0] & 0x3f | 0x40; 4]));
    record.extend_from_slice(b"\",\n  \"sha256\": \"");
    record.extend_from_slice(sum.as_bytes());
    record.extend_from_slice(b"\",\n  \"acceptedAt\": \"2026-02-02T02:40:00Z\"\n}");
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_its_name_and_never_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        accept(folder.path(), 1, b"id", b"body").unwrap();
        let names: Vec<_> = fs::read_dir(folder.path().join("deliveries"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].len() == 64 + ".json".len(), "{names:?}");
        assert_eq!(
            accept(folder.path(), 2, b"id", b"other").unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }
}
