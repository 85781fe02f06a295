//! A target that plays a script to everybody who connects, and counts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};
use tokio_rustls::TlsAcceptor;

/// How long what must happen may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// One thing that a target does.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Reads one request to its end.
    Read,
    /// Reads the first bytes of a request.
    Glance,
    /// Says something.
    Say(Vec<u8>),
    /// Says something again and again, until nobody listens.
    SayForever(Vec<u8>),
    /// Says something byte by byte, one in 20 ms, for ever from the start.
    Drip(Vec<u8>),
    /// Says nothing more, and reads and counts whatever comes until the other side closes.
    Hang,
    /// Says and reads nothing until it is told to go on.
    Pause,
    /// Resets the connection.
    Reset,
}

pub(super) fn say(text: impl AsRef<[u8]>) -> Step {
    Step::Say(text.as_ref().to_vec())
}

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) line: String,
    /// In their order, the names in lower case.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

impl Seen {
    /// Every value of a field.
    pub(super) fn values(&self, name: &str) -> Vec<&[u8]> {
        self.headers.iter().filter(|(field, _)| field == name).map(|(_, value)| value.as_slice()).collect()
    }

    /// The one value of a field.
    pub(super) fn value(&self, name: &str) -> &str {
        let [value] = self.values(name)[..] else { panic!("not one `{name}` in {:?}", self.headers) };
        std::str::from_utf8(value).unwrap()
    }
}

#[derive(Default)]
struct Counts {
    connected: AtomicUsize,
    ended: AtomicUsize,
    said_bytes: AtomicUsize,
    heard_bytes: AtomicUsize,
    go_on: Notify,
    seen: Mutex<Vec<Seen>>,
}

/// A scripted target on the loopback address; it ends when it is dropped.
pub(super) struct Target {
    address: SocketAddr,
    counts: Arc<Counts>,
    _serving: JoinSet<()>,
}

impl Target {
    /// Starts one that plays `script` on each connection, then closes it.
    pub(super) async fn start(script: Vec<Step>) -> Self {
        Self::serve(script, None).await
    }

    /// The same behind TLS.
    pub(super) async fn start_tls(script: Vec<Step>, tls: TlsAcceptor) -> Self {
        Self::serve(script, Some(tls)).await
    }

    async fn serve(script: Vec<Step>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let (script, shared) = (Arc::new(script), Arc::clone(&counts));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut playing = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                shared.connected.fetch_add(1, Ordering::SeqCst);
                let (script, counts, tls) = (Arc::clone(&script), Arc::clone(&shared), tls.clone());
                playing.spawn(async move {
                    play_on(stream, tls, &script, &counts).await;
                    counts.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, counts, _serving: serving }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hooks?to=app", self.address)
    }

    /// How many connections were made to it.
    pub(super) fn connections(&self) -> usize {
        self.counts.connected.load(Ordering::SeqCst)
    }

    /// How many bytes of the script it could say.
    pub(super) fn said_bytes(&self) -> usize {
        self.counts.said_bytes.load(Ordering::SeqCst)
    }

    /// How many bytes it heard while it hung.
    pub(super) fn heard_bytes(&self) -> usize {
        self.counts.heard_bytes.load(Ordering::SeqCst)
    }

    /// Ends a pause.
    pub(super) fn go_on(&self) {
        self.counts.go_on.notify_one();
    }

    /// The requests that it read.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.counts.seen.lock().unwrap().clone()
    }

    /// Waits until it has read that many requests.
    pub(super) async fn wait_for_requests(&self, count: usize) {
        eventually("a request", || self.seen().len() >= count).await;
    }

    /// Waits until somebody has connected: a connection is there before its target knows of it.
    pub(super) async fn wait_for_a_connection(&self) {
        eventually("a connection", || self.connections() > 0).await;
    }

    /// Waits until no connection is open any more.
    pub(super) async fn wait_for_silence(&self) {
        let ended = || self.counts.ended.load(Ordering::SeqCst);
        eventually("the end of every connection", || ended() == self.connections()).await;
    }
}

/// Polls until something holds.
pub(super) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut tick = interval(Duration::from_millis(5));
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tick.tick().await;
    }
}

async fn play_on(stream: TcpStream, tls: Option<TlsAcceptor>, script: &[Step], counts: &Counts) {
    let Some(tls) = tls else {
        let mut stream = stream;
        if play(&mut stream, script, counts).await.is_none() {
            stream.set_zero_linger().unwrap();
        }
        return;
    };
    if let Ok(mut stream) = tls.accept(stream).await {
        play(&mut stream, script, counts).await;
    }
}

/// Plays a script as far as the other side lets it. `None`: the connection is to be reset.
async fn play<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    script: &[Step],
    counts: &Counts,
) -> Option<()> {
    for step in script {
        let listened = match step {
            Step::Read => read(stream, counts).await,
            Step::Glance => read_some(stream, &mut vec![]).await,
            Step::Say(text) => write(stream, text, counts).await,
            Step::SayForever(text) => loop {
                if write(stream, text, counts).await.is_none() {
                    break None;
                }
            },
            Step::Drip(text) => drip(stream, text, counts).await,
            Step::Hang => hang(stream, counts).await,
            Step::Pause => {
                counts.go_on.notified().await;
                Some(())
            }
            Step::Reset => return None,
        };
        if listened.is_none() {
            break;
        }
    }
    Some(())
}

/// `None`: nobody listens any more.
async fn write<S: AsyncWrite + Unpin>(stream: &mut S, text: &[u8], counts: &Counts) -> Option<()> {
    stream.write_all(text).await.ok()?;
    counts.said_bytes.fetch_add(text.len(), Ordering::SeqCst);
    stream.flush().await.ok()
}

async fn drip<S: AsyncWrite + Unpin>(stream: &mut S, text: &[u8], counts: &Counts) -> Option<()> {
    let mut tick = interval(Duration::from_millis(20));
    for byte in text.iter().cycle() {
        tick.tick().await;
        write(stream, &[*byte], counts).await?;
    }
    None
}

async fn hang<S: AsyncRead + Unpin>(stream: &mut S, counts: &Counts) -> Option<()> {
    let mut ignored = vec![0; 64 * 1024];
    loop {
        let read = stream.read(&mut ignored).await.ok()?;
        counts.heard_bytes.fetch_add(read, Ordering::SeqCst);
        if read == 0 {
            return None;
        }
    }
}

/// Reads one request; what the client says about its length is believed.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, counts: &Counts) -> Option<()> {
    let mut bytes = vec![];
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        read_some(stream, &mut bytes).await?;
    };
    let mut seen = parse_head(&bytes[..head_end]);
    // A GET has no body; whatever is pushed says how long it is.
    let length: usize =
        if seen.line.starts_with("GET ") { 0 } else { seen.value("content-length").parse().unwrap() };
    bytes.drain(..head_end + 4);
    while bytes.len() < length {
        read_some(stream, &mut bytes).await?;
    }
    seen.body = bytes;
    counts.seen.lock().unwrap().push(seen);
    Some(())
}

async fn read_some<S: AsyncRead + Unpin>(stream: &mut S, bytes: &mut Vec<u8>) -> Option<()> {
    let read = timeout(PATIENCE, stream.read_buf(bytes)).await.ok()?.ok()?;
    (read > 0).then_some(())
}

fn parse_head(head: &[u8]) -> Seen {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = String::from_utf8(lines.next().unwrap().to_vec()).unwrap();
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':').unwrap();
        let name = String::from_utf8(line[..colon].to_ascii_lowercase()).unwrap();
        (name, line[colon + 1..].trim_ascii().to_vec())
    };
    Seen { line, headers: lines.map(field).collect(), body: vec![] }
}
