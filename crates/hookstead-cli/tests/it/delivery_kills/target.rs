//! A target of pushes that keeps a record of every request, and answers as it likes: success, refusals, nothing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::harness::Random;

/// A connection on which nothing comes for so long is given up; the server closes its own long before.
const QUIET_TIME_MAX: Duration = Duration::from_secs(40);

/// What came for one event.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// How many requests.
    pub(super) requests: usize,
    /// How many of them were answered with success.
    pub(super) successes: usize,
    /// The idempotency keys; one, if all is well.
    pub(super) keys: Vec<String>,
    /// Whether every one of them brought the bytes that were sent.
    pub(super) is_altered: bool,
}

/// What came, by the ids of the events.
pub(super) type Record = BTreeMap<String, Received>;

/// The target, which works until the test ends.
pub(super) struct Target {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    record: Mutex<Record>,
    random: Mutex<Random>,
    /// Word of each request when it has come and when it is answered.
    notices: Mutex<Sender<()>>,
    body_of: fn(&str) -> Vec<u8>,
}

/// What a request gets.
enum Answer {
    Status(u16),
    /// The end of the connection.
    HangUp,
    /// Nothing, until the other side gives up.
    Silence,
}

impl Target {
    /// Listens; `body_of` says which bytes belong to an id.
    pub(super) fn start(random: Random, notices: Sender<()>, body_of: fn(&str) -> Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let shared = Shared {
            record: Mutex::default(),
            random: Mutex::new(random),
            notices: Mutex::new(notices),
            body_of,
        };
        let shared = Arc::new(shared);
        let of_threads = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.expect("a connection"), of_threads.clone());
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    /// The URL to push to.
    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// What has come so far.
    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        locked(&self.shared.record)
    }
}

impl Shared {
    /// A connection ends when either side has had enough of it, or is killed.
    fn serve(&self, stream: TcpStream) {
        stream.set_read_timeout(Some(QUIET_TIME_MAX)).expect("a time limit can be set");
        let mut stream = BufReader::new(stream);
        while let Some(request) = read(&mut stream) {
            let answer = self.choose();
            // Before the answer: whatever is recorded as done was counted here.
            self.note(&request, &answer);
            match answer {
                Answer::Status(status) => {
                    let bytes = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok");
                    if stream.get_mut().write_all(bytes.as_bytes()).is_err() {
                        return;
                    }
                }
                Answer::HangUp => return,
                // Whatever the other side does next, most likely its end.
                Answer::Silence => return drop(stream.read(&mut [0])),
            }
            self.notify();
        }
    }

    /// Most are successes, and refusals that say nothing of the target: too many others in a row would have the
    /// destination rest instead of being killed at work.
    fn choose(&self) -> Answer {
        match locked(&self.random).below(100) {
            0..70 => Answer::Status(200),
            70..82 => Answer::Status(400),
            82..92 => Answer::Status(500),
            92..98 => Answer::HangUp,
            _ => Answer::Silence,
        }
    }

    fn note(&self, request: &Pushed, answer: &Answer) {
        let mut record = locked(&self.record);
        let received = record.entry(request.id.clone()).or_default();
        received.requests += 1;
        received.successes += usize::from(matches!(answer, Answer::Status(200)));
        received.is_altered |= request.body != (self.body_of)(&request.id);
        if !received.keys.contains(&request.key) {
            received.keys.push(request.key.clone());
        }
        drop(record);
        self.notify();
    }

    /// Nobody listens any more once the test ends.
    fn notify(&self) {
        locked(&self.notices).send(()).unwrap_or_default();
    }
}

struct Pushed {
    id: String,
    key: String,
    body: Vec<u8>,
}

/// The next request, or `None` at the end of the connection, also in the middle of a request.
fn read(stream: &mut BufReader<TcpStream>) -> Option<Pushed> {
    let mut fields = BTreeMap::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(": ") {
            fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let mut field = |name: &str| fields.remove(name).unwrap_or_else(|| panic!("a push has `{name}`"));
    let length = field("content-length").parse().expect("a length");
    let (id, key) = (field("x-delivery-id"), field("idempotency-key"));
    assert_eq!(field("webhook-id"), key, "the signature is over the idempotency key");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Pushed { id, key, body })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
