//! What a program writes: its beginning is kept, the rest is read and dropped, up to a cap.

use bytes::{Bytes, BytesMut};
use hookstead_core::attempt::ATTEMPT_EXCERPT_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most that a program may write to stdout and stderr together, in bytes; of more, it is killed.
pub const EXEC_OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes that are read at a time: a small part of what a pipe holds.
const READ_BYTES: usize = 8 * 1024;

/// The beginning of stdout and stderr, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Output {
    kept: BytesMut,
    seen: u64,
}

/// How listening to a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Both pipes are closed.
    All,
    /// There is more than [`EXEC_OUTPUT_BYTES_MAX`].
    TooMuch,
}

impl Output {
    /// Reads both pipes until they are closed or the cap is reached.
    pub(super) async fn listen<O, E>(&mut self, stdout: Option<O>, stderr: Option<E>) -> Heard
    where
        O: AsyncRead + Unpin,
        E: AsyncRead + Unpin,
    {
        let (mut stdout, mut stderr) = (Pipe::of(stdout), Pipe::of(stderr));
        while stdout.is_open() || stderr.is_open() {
            tokio::select! {
                read = stdout.read(), if stdout.is_open() => self.take(&stdout.buffer[..read]),
                read = stderr.read(), if stderr.is_open() => self.take(&stderr.buffer[..read]),
            }
            if self.seen > EXEC_OUTPUT_BYTES_MAX {
                return Heard::TooMuch;
            }
        }
        Heard::All
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = ATTEMPT_EXCERPT_BYTES_MAX - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.seen += bytes.len() as u64;
    }

    /// Its beginning, at most [`ATTEMPT_EXCERPT_BYTES_MAX`] bytes.
    pub(super) fn into_excerpt(self) -> Bytes {
        self.kept.freeze()
    }
}

struct Pipe<R> {
    end: Option<R>,
    buffer: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn of(end: Option<R>) -> Self {
        Self { end, buffer: vec![0; READ_BYTES].into() }
    }

    fn is_open(&self) -> bool {
        self.end.is_some()
    }

    /// How many bytes came. None, or an error: the pipe is closed.
    async fn read(&mut self) -> usize {
        let Some(end) = &mut self.end else { return 0 };
        let read = end.read(&mut self.buffer).await.unwrap_or(0);
        if read == 0 {
            self.end = None;
        }
        read
    }
}
