//! The toy application of the tour: it takes pushes on loopback, checks each signature as an application should, and has
//! a bug until it is fixed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The longest request that it reads: a sample event and its headers.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// What it answers while it has its bug.
const BUG: &str = "500 Internal Server Error";

/// The application; it ends when this is dropped.
pub(super) struct Application {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    is_fixed: AtomicBool,
    failed: AtomicUsize,
    /// What its pushes are signed with.
    secret: Mutex<Option<String>>,
    done: Mutex<Option<Vec<u8>>>,
}

impl Application {
    /// Starts it.
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on 127.0.0.1")?;
        let address = listener.local_addr().context("the application's address")?;
        let state = Arc::<State>::default();
        let task = tokio::spawn(serve(listener, state.clone()));
        Ok(Self { address, state, task })
    }

    /// Where it takes pushes.
    pub(super) fn url(&self) -> String {
        format!("http://{}/webhooks", self.address)
    }

    /// Tells it what pushes are signed with.
    pub(super) fn trust(&self, secret: String) {
        *self.state.secret.lock().unwrap_or_else(PoisonError::into_inner) = Some(secret);
    }

    /// Takes its bug away.
    pub(super) fn fix(&self) {
        self.state.is_fixed.store(true, Ordering::SeqCst);
    }

    /// How many pushes met the bug.
    pub(super) fn failed(&self) -> usize {
        self.state.failed.load(Ordering::SeqCst)
    }

    /// The body that it worked, after its signature was right.
    pub(super) fn done(&self) -> Option<Vec<u8>> {
        self.state.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        // One at a time is enough for one event. What is no request is nothing to answer.
        drop(answer(stream, &state).await);
    }
}

async fn answer(mut stream: TcpStream, state: &State) -> Result<()> {
    let (head, body) = read(&mut stream).await?;
    let status = state.work(&head, body);
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.context("answer a push")
}

impl State {
    fn work(&self, head: &str, body: Vec<u8>) -> &'static str {
        if !self.is_fixed.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return BUG;
        }
        let secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !secret.is_some_and(|secret| is_signed(&secret, head, &body)) {
            return "401 Unauthorized";
        }
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        "200 OK"
    }
}

async fn read(stream: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = field(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Ok((head, bytes[end + 4..end + 4 + length].to_vec()));
            }
        }
        if bytes.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            bail!("no whole request");
        }
    }
}

/// As every library for Standard Webhooks does it.
fn is_signed(secret: &str, head: &str, body: &[u8]) -> bool {
    let part = |name| field(head, name).unwrap_or_default();
    let key = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok()).unwrap_or_default();
    let signed = [format!("{}.{}.", part("webhook-id"), part("webhook-timestamp")).as_bytes(), body].concat();
    let signatures =
        part("webhook-signature").split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
    let mut tags = signatures.filter_map(|signature| STANDARD.decode(signature).ok());
    tags.any(|tag| hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), &signed, &tag).is_ok())
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}
