//! P12: what the server keeps in memory while 256 senders push a megabyte each, slowly and all at once.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aws_lc_rs::hmac;
use serde::Serialize;

use super::contestant::Place;
use super::hookstead::{self, LARGE_TARGET};
use super::response::ResponseReader;
use super::settings::Settings;
use super::template::SECRET;
use super::usage::Meter;

const CONNECTIONS: usize = 256;
const BODY_BYTES: usize = 1024 * 1024;
const PIECE_BYTES: usize = 16 * 1024;

/// Between two pieces: a body takes two seconds, in which all of them are in flight.
const PAUSE: Duration = Duration::from_millis(30);

/// How long a sender waits for room in its socket or for its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Most of a thread's default stack would never be used.
const STACK_BYTES: usize = 256 * 1024;

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Memory {
    /// Resident memory at its highest.
    pub(super) peak_bytes: u64,
    /// Resident memory at its highest before the first body.
    pub(super) idle_bytes: u64,
    /// Answers by status; 0: the connection ended without one.
    pub(super) statuses: BTreeMap<u16, u32>,
}

/// Starts a server, sends it the bodies and reads its memory.
pub(super) fn run(binary: &Path, settings: &Settings) -> Result<Memory> {
    let place = Place::new(&settings.folder)?;
    let server = hookstead::start(binary, &place, &hookstead::sqlite(&place))?;
    let meter = Meter::new(server.pid, &place.data())?;
    let idle_bytes = meter.memory_peak_bytes()?;
    let statuses = send_all(server.address)?;
    let peak_bytes = meter.memory_peak_bytes()?;
    server.stop()?;
    ensure!(statuses.contains_key(&202), "no body was taken: {statuses:?}");
    Ok(Memory { peak_bytes, idle_bytes, statuses })
}

fn send_all(address: SocketAddr) -> Result<BTreeMap<u16, u32>> {
    let body = vec![b'x'; BODY_BYTES];
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hex::encode(hmac::sign(&key, &body));
    let everybody = Barrier::new(CONNECTIONS);
    let mut statuses = BTreeMap::new();
    std::thread::scope(|scope| {
        let mut senders = Vec::with_capacity(CONNECTIONS);
        for number in 0..CONNECTIONS {
            let head = head(address, number, &signature);
            let (body, everybody) = (&body, &everybody);
            let send = move || send(address, head.as_bytes(), body, everybody);
            let sender = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, send);
            senders.push(sender.context("cannot start a sender")?);
        }
        for sender in senders {
            let status = sender.join().expect("a sender does not panic")?;
            *statuses.entry(status).or_default() += 1;
        }
        Ok(statuses)
    })
}

fn head(address: SocketAddr, number: usize, signature: &str) -> String {
    format!(
        "POST {LARGE_TARGET} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         X-GitHub-Event: push\r\nX-GitHub-Delivery: memory-{number:03}\r\nX-Hub-Signature-256: sha256={signature}\r\n\
         Content-Length: {BODY_BYTES}\r\n\r\n"
    )
}

/// Sends piece by piece until the server has enough, and reads its answer; 0 if there was none.
fn send(address: SocketAddr, head: &[u8], body: &[u8], everybody: &Barrier) -> Result<u16> {
    let connected = connect(address);
    // Also without a connection: the others wait for this one.
    everybody.wait();
    let mut stream = connected?;
    stream.write_all(head).context("cannot send a head")?;
    for piece in body.chunks(PIECE_BYTES) {
        if stream.write_all(piece).is_err() {
            // The server has answered and closed; what it said may still be there.
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(answer(&mut stream).unwrap_or(0))
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn answer(stream: &mut TcpStream) -> Result<u16> {
    let mut reader = ResponseReader::default();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer)?;
        ensure!(length > 0, "closed");
        if let Some(answer) = reader.feed(&buffer[..length])? {
            return Ok(answer.status);
        }
    }
}
