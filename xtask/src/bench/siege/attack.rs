//! The attacks, as data: what a connection begins with, how it goes on, and how many there are.

use serde::Serialize;

use super::super::template::TARGET;

/// A kind of attack. All of them are cheap for who makes them; that is what the limits are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Attack {
    /// Heads that trickle and never end
    SlowHeads,
    /// Bodies that trickle and never end
    SlowBodies,
    /// Chunked bodies without end
    EndlessBodies,
    /// Heads with too many fields
    HeaderFloods,
    /// Connections that do nothing after their first answer
    Idle,
    /// Clients that are gone in the middle of their request
    Vanishing,
    /// Clients that send many requests and read no answer
    Deaf,
}

/// How one connection goes on after its first bytes; it is visited once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Waits for its end.
    Wait,
    /// Sends these bytes each time.
    Send(&'static [u8]),
    /// Closes at the first visit, whatever was answered.
    Vanish,
    /// Never reads; given up when there are enough younger ones.
    Ignore,
}

/// An attack in figures.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) first: Vec<u8>,
    pub(super) then: Then,
    /// Connections at once.
    pub(super) held_max: usize,
    /// New connections a second while it lasts.
    pub(super) opened_per_second: u32,
}

/// A kibibyte for a body that never ends.
const CHUNK: &[u8; 1031] = &{
    let mut chunk = [b'x'; 1031];
    let (head, end) = (b"400\r\n", chunk.len() - 2);
    let mut at = 0;
    while at < head.len() {
        chunk[at] = head[at];
        at += 1;
    }
    chunk[end] = b'\r';
    chunk[end + 1] = b'\n';
    chunk
};

impl Attack {
    /// Every attack.
    pub(super) const ALL: [Self; 7] = [
        Self::SlowHeads,
        Self::SlowBodies,
        Self::EndlessBodies,
        Self::HeaderFloods,
        Self::Idle,
        Self::Vanishing,
        Self::Deaf,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SlowHeads => "slow heads",
            Self::SlowBodies => "slow bodies",
            Self::EndlessBodies => "endless bodies",
            Self::HeaderFloods => "header floods",
            Self::Idle => "idle connections",
            Self::Vanishing => "vanishing clients",
            Self::Deaf => "deaf clients",
        }
    }

    pub(super) fn shape(self) -> Shape {
        let line = format!("POST {TARGET} HTTP/1.1\r\nHost: localhost\r\n");
        let with = |rest: &str| format!("{line}{rest}").into_bytes();
        let shape =
            |first, then, held_max, opened_per_second| Shape { first, then, held_max, opened_per_second };
        match self {
            Self::SlowHeads => shape(with("X-Slow: "), Then::Send(b"x"), 500, 100),
            Self::SlowBodies => shape(
                with(&format!("Content-Length: 2000\r\n\r\n{}", "x".repeat(1000))),
                Then::Send(b"x"),
                300,
                50,
            ),
            Self::EndlessBodies => {
                shape(with("Transfer-Encoding: chunked\r\n\r\n"), Then::Send(CHUNK), 300, 50)
            }
            Self::HeaderFloods => {
                let fields: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
                shape(with(&format!("{fields}\r\n")), Then::Wait, 200, 100)
            }
            Self::Idle => shape(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), Then::Wait, 5000, 100),
            Self::Vanishing => shape(with("Content-Length: 60000\r\n\r\nhalf"), Then::Vanish, 200, 100),
            Self::Deaf => {
                shape(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200), Then::Ignore, 50, 2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_one() {
        assert!(CHUNK.starts_with(b"400\r\nxxx") && CHUNK.ends_with(b"x\r\n"));
        assert_eq!(CHUNK.len(), "400\r\n".len() + 0x400 + "\r\n".len());
    }

    #[test]
    fn no_attack_needs_more_than_its_rate() {
        for attack in Attack::ALL {
            let Shape { first, held_max, opened_per_second, .. } = attack.shape();
            assert!(first.len() < 16 * 1024 && held_max <= 5000 && opened_per_second <= 100, "{attack:?}");
        }
    }
}
