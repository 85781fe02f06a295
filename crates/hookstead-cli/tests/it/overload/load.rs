//! Senders who do not wait for one another: a request begins when it is due, however many are unanswered. Each takes
//! an idle connection or opens a new one, as a provider's many senders do. Times count from when a request was due.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::harness::{Request, unix_time};

/// Requests that may be unanswered at once: below what the server takes as connections. More wait here, and their
/// time runs.
const CONNECTIONS_MAX: usize = 4_000;

/// How often the senders look at what is due.
const TICK: Duration = Duration::from_millis(5);

/// A request that has no answer by then never gets one.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// Longer than any head that the server sends.
const HEAD_BYTES_MAX: usize = 4_096;

/// What became of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Which event it was.
    pub(super) number: usize,
    /// When it was due, from the beginning of the load.
    pub(super) due: Duration,
    /// From then to the end of its answer.
    pub(super) took: Duration,
    /// 0 when the connection broke instead.
    pub(super) status: u16,
    pub(super) retry_after: bool,
}

/// The event with this number.
pub(super) fn event(number: usize) -> (String, Vec<u8>) {
    let length = 200 + number * 7_919 % 1_600;
    (format!("event-{number}"), format!("{{\"number\":{number}}} ").bytes().cycle().take(length).collect())
}

/// Sends `rate` requests a second for as long as `goes_on` says, which is told how long it has been going on.
pub(super) async fn send(address: &str, rate: usize, mut goes_on: impl FnMut(Duration) -> bool) -> Vec<Sent> {
    let senders = Arc::new(Senders {
        address: address.to_owned(),
        idle: Mutex::default(),
        places: Semaphore::new(CONNECTIONS_MAX),
    });
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    let mut number = 0;
    let mut tick = tokio::time::interval(TICK);
    while goes_on(begun.elapsed()) {
        tick.tick().await;
        let due_by_now =
            usize::try_from(begun.elapsed().as_micros()).expect("a short test") * rate / 1_000_000;
        while number < due_by_now {
            let due = Duration::from_micros((number * 1_000_000 / rate) as u64);
            tasks.spawn(senders.clone().send_one(number, begun, due));
            number += 1;
        }
    }
    tasks.join_all().await
}

struct Senders {
    address: String,
    idle: Mutex<Vec<TcpStream>>,
    places: Semaphore,
}

impl Senders {
    async fn send_one(self: Arc<Self>, number: usize, begun: Instant, due: Duration) -> Sent {
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(number)).await;
        let answer = answer.map_err(io::Error::from).flatten();
        // What went wrong is counted: an answer that does not come is a fault of its own kind.
        let Answer { status, retry_after } = answer.unwrap_or(Answer { status: 0, retry_after: false });
        Sent { number, due, took: begun.elapsed().saturating_sub(due), status, retry_after }
    }

    async fn exchange(&self, number: usize) -> io::Result<Answer> {
        let _place = self.places.acquire().await.map_err(io::Error::other)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => TcpStream::connect(&self.address).await?,
        };
        stream.set_nodelay(true)?;
        let (id, body) = event(number);
        stream.write_all(&Request::signed_at(unix_time(), &id, &body).bytes()).await?;
        let (answer, closes) = receive(&mut stream).await?;
        if !closes {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        }
        Ok(answer)
    }
}

struct Answer {
    status: u16,
    retry_after: bool,
}

/// The next answer, and whether the connection ends with it.
async fn receive(stream: &mut TcpStream) -> io::Result<(Answer, bool)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > HEAD_BYTES_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let header = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    };
    let number = |text: Option<&str>| {
        text.and_then(|text| text.parse::<usize>().ok()).ok_or(io::ErrorKind::InvalidData)
    };
    let length = number(header("content-length").as_deref())?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status = number(head.get(9..12))?;
    let status = u16::try_from(status).map_err(io::Error::other)?;
    let closes = header("connection").is_some_and(|value| value == "close");
    Ok((Answer { status, retry_after: header("retry-after").is_some() }, closes))
}
