//! What a push goes to: a small HTTP server that answers as it is told and keeps what it got.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::wait_until;

/// A target on loopback. It runs until the test's process ends.
pub(crate) struct Target {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answer: Vec<u8>,
    got: Vec<Pushed>,
}

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Pushed {
    /// Method, path and version.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Pushed {
    /// The first header of this name, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Target {
    /// Listens, and answers everything with this status and body.
    pub(crate) fn answering(status: u16, body: &[u8]) -> Self {
        Self::answering_on(TcpListener::bind("127.0.0.1:0").expect("a port"), status, body)
    }

    /// The same on a listener that is there already.
    pub(crate) fn answering_on(listener: TcpListener, status: u16, body: &[u8]) -> Self {
        let address = listener.local_addr().expect("it has one");
        let target = Self { address, state: Arc::default() };
        target.answer(status, body);
        let state = target.state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        target
    }

    /// Its address as a URL without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on, this is the answer.
    pub(crate) fn answer(&self, status: u16, body: &[u8]) {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        self.answer_raw(&[head.as_bytes(), body].concat());
    }

    /// From now on, these bytes are the answer; the connection is closed behind them if they name no length.
    pub(crate) fn answer_raw(&self, bytes: &[u8]) {
        self.state.lock().expect("nobody panicked").answer = bytes.to_vec();
    }

    /// What came so far.
    pub(crate) fn got(&self) -> Vec<Pushed> {
        self.state.lock().expect("nobody panicked").got.clone()
    }

    /// Waits until so many requests came, and gives all.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Pushed> {
        wait_until(|| self.got().len() >= count, || format!("{count} pushes: {:?}", self.got()));
        self.got()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    while let Some(pushed) = read(&mut reader) {
        let answer = {
            let mut state = state.lock().expect("nobody panicked");
            state.got.push(pushed);
            state.answer.clone()
        };
        let has_length = answer.windows(15).any(|part| part.eq_ignore_ascii_case(b"content-length:"));
        // Whoever pushes may have gone meanwhile.
        if reader.get_mut().write_all(&answer).is_err() || !has_length {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Pushed> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let pair =
        |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines.iter().skip(1).filter_map(pair).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()];
    reader.read_exact(&mut body).ok()?;
    Some(Pushed { line: lines.first()?.clone(), headers, body })
}
