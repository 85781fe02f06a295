//! The attackers: one thread that holds the connections of an attack, gives each of them a turn every second, and
//! sleeps in between.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::attack::{Shape, Then};

/// How often it does something.
const TICKS_PER_SECOND: usize = 50;

/// New connections a tick while the attack builds up, which is not measured.
const BUILD_UP_PER_TICK: usize = 100;

/// A connection that is not made by then never will be.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// What became of an attack's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    /// How many were opened.
    pub(super) opened: u64,
    /// How many the server ended.
    pub(super) ended: u64,
    /// How many there were at the end.
    pub(super) held: usize,
}

/// An attack that is under way.
pub(super) struct Attacker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Tally>>,
}

impl Attacker {
    /// Begins an attack, and returns when all its connections stand.
    pub(super) fn start(shape: Shape, address: SocketAddr) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (built_up, standing) = channel();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut crowd = Crowd { shape, address, held: VecDeque::new(), tally: Tally::default() };
            crowd.build_up()?;
            // Nobody waits for it any more only if the siege has failed elsewhere.
            built_up.send(()).ok();
            crowd.attack(&stopped)
        });
        let attacker = Self { stop, thread };
        match standing.recv() {
            Ok(()) => Ok(attacker),
            // It ended before; why, it says itself.
            Err(_) => Err(attacker.end().err().unwrap_or_else(|| anyhow!("the attack did not begin"))),
        }
    }

    /// Ends it, and closes what is left.
    pub(super) fn end(self) -> Result<Tally> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the attacker panicked"))?
    }
}

/// The connections of an attack, the one whose turn was longest ago first.
struct Crowd {
    shape: Shape,
    address: SocketAddr,
    held: VecDeque<TcpStream>,
    tally: Tally,
}

impl Crowd {
    fn build_up(&mut self) -> Result<()> {
        let standing = match self.shape.then {
            // These would be gone before they are measured.
            Then::Vanish => 0,
            Then::Ignore => self.shape.held_max / 2,
            Then::Wait | Then::Send(_) => self.shape.held_max,
        };
        while self.held.len() < standing {
            for _ in 0..BUILD_UP_PER_TICK.min(standing - self.held.len()) {
                self.open()?;
            }
            tick();
        }
        Ok(())
    }

    fn attack(mut self, stop: &AtomicBool) -> Result<Tally> {
        let mut opened_in_second = 0;
        for number in 0_usize.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let turns = self.held.len().div_ceil(TICKS_PER_SECOND);
            for _ in 0..turns {
                self.turn();
            }
            // The share of the second that is over, in connections.
            let place = number % TICKS_PER_SECOND + 1;
            let due = self.shape.opened_per_second as usize * place / TICKS_PER_SECOND;
            while opened_in_second < due {
                opened_in_second += 1;
                self.replace()?;
            }
            if place == TICKS_PER_SECOND {
                opened_in_second = 0;
            }
            tick();
        }
        self.tally.held = self.held.len();
        Ok(self.tally)
    }

    fn replace(&mut self) -> Result<()> {
        if self.held.len() < self.shape.held_max {
            return self.open();
        }
        if self.shape.then == Then::Ignore {
            self.held.pop_front();
            return self.open();
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let connected = TcpStream::connect_timeout(&self.address, CONNECT_TIME_MAX);
        let mut stream =
            connected.context("the attackers cannot connect: the server takes nobody any more")?;
        stream.set_nonblocking(true).context("a socket of ours")?;
        self.tally.opened += 1;
        // A full socket or a closed one is part of the attack: the next turn finds out.
        stream.write_all(&self.shape.first).ok();
        self.held.push_back(stream);
        Ok(())
    }

    /// Gives one connection its turn.
    fn turn(&mut self) {
        let Some(mut stream) = self.held.pop_front() else { return };
        let goes_on = match self.shape.then {
            Then::Vanish => return,
            Then::Ignore => true,
            Then::Wait => is_open(&mut stream),
            Then::Send(bytes) => {
                let sent = stream.write(bytes);
                let sent = !sent.is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
                sent && is_open(&mut stream)
            }
        };
        if goes_on {
            self.held.push_back(stream);
        } else {
            self.tally.ended += 1;
        }
    }
}

/// Reads what is there; false at the end.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut scratch = [0; 1024];
    match stream.read(&mut scratch) {
        Ok(bytes) => bytes > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

fn tick() {
    std::thread::sleep(Duration::from_secs(1) / u32::try_from(TICKS_PER_SECOND).unwrap_or(1));
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::net::TcpSocket;

    use super::super::attack::Attack;
    use super::*;

    /// Few: both ends of every connection are in this process, whose tests share a thousand descriptors.
    const HELD: usize = 50;

    fn slow_heads() -> Shape {
        Shape { held_max: HELD, ..Attack::SlowHeads.shape() }
    }

    #[test]
    fn an_attack_stands_when_it_has_begun_and_is_replaced_when_it_is_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, taken) = channel();
        std::thread::spawn(move || {
            let streams: Vec<TcpStream> = listener.incoming().take(HELD).map(Result::unwrap).collect();
            drop(streams);
            // Those that come instead.
            for stream in listener.incoming() {
                if accepted.send(stream.unwrap()).is_err() {
                    return;
                }
            }
        });
        let attacker = Attacker::start(slow_heads(), address).unwrap();
        let mut replacement = taken.recv().unwrap();
        let mut begun = [0; 4];
        replacement.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"POST");
        let tally = attacker.end().unwrap();
        assert!(tally.opened > HELD as u64 && tally.ended > 0, "{tally:?}");
    }

    #[test]
    fn an_attack_on_nobody_fails() {
        // It does not listen, and nobody else can have its port meanwhile.
        let bound = TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(Attacker::start(slow_heads(), bound.local_addr().unwrap()).is_err());
    }
}
