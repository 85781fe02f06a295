//! A secret that somebody enters: typed or pasted at a terminal that does not show it, or read from stdin.
//!
//! Knows nothing of sources and files: whether the bytes can be a secret is for others to say.

use std::io::{self, BufRead, IsTerminal, Read};
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use hookstead_verify::SECRET_BYTES_MAX;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::{Exit, Failure};
use crate::output;

/// One byte more than a secret has at most, so that one that is too long is seen to be so, and a line end.
const BYTES_MAX: usize = SECRET_BYTES_MAX + 3;

const END_OF_TEXT: u8 = 0x03; // Ctrl-C
const END_OF_INPUT: u8 = 0x04; // Ctrl-D
const BACKSPACE: u8 = 0x08;
const ERASE_LINE: u8 = 0x15; // Ctrl-U
const DELETE: u8 = 0x7f;

/// All of stdin, without the one line end that `echo` and editors put behind a text.
pub(super) fn from_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    io::stdin()
        .lock()
        .take(BYTES_MAX as u64)
        .read_to_end(&mut bytes)
        .context("read the secret from stdin")?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

/// What is typed at the terminal until the end of the line. Nothing of it is shown.
pub(super) fn at_terminal(question: &str) -> Result<Vec<u8>> {
    if !io::stdin().is_terminal() {
        return Err(Failure::new(
            Exit::Usage,
            "no-terminal",
            "there is no terminal to ask at for the secret",
        )
        .fix("give it by --stdin, or have one made with --generate")
        .into());
    }
    let hidden = Hidden::begin()?;
    // Only now: what is typed before the question is seen would be shown.
    output::ask(question)?;
    let typed = line(io::stdin().lock());
    drop(hidden);
    output::talk("")?;
    let typed = typed?;
    if typed.starts_with(b"-----BEGIN ") {
        return Err(Failure::new(
            Exit::Usage,
            "several-lines",
            "this key has several lines, and one was read",
        )
        .fix("give it by --stdin < FILE")
        .into());
    }
    Ok(typed)
}

/// A terminal that shows nothing of what is typed and hands it over byte by byte, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> Result<Self> {
        let doing = "keep the terminal from showing the secret";
        let before = tcgetattr(io::stdin().as_fd()).context(doing)?;
        let mut hidden = before.clone();
        // Without ISIG Ctrl-C is a byte like others: no signal can end us while the terminal is as we left it.
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &hidden).context(doing)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing given back.
        tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0).unwrap_or_default();
    }
}

/// The bytes of a line as a person types it. What is too long is cut at [`BYTES_MAX`], and refused as too long later.
///
/// Only the end of a line says that nothing typed is meant: at Ctrl-D without a text, and where the terminal goes away,
/// somebody gave up.
fn line(input: impl BufRead) -> Result<Vec<u8>> {
    let mut typed = Vec::with_capacity(BYTES_MAX);
    for byte in input.bytes() {
        match byte.context("read the secret from the terminal")? {
            b'\r' | b'\n' => return Ok(typed),
            END_OF_INPUT if !typed.is_empty() => return Ok(typed),
            END_OF_INPUT | END_OF_TEXT => return Err(given_up().into()),
            DELETE | BACKSPACE => drop(typed.pop()),
            ERASE_LINE => typed.clear(),
            byte if typed.len() < BYTES_MAX => typed.push(byte),
            _ => {}
        }
    }
    Err(given_up().into())
}

fn given_up() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted", "nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &[u8], expect: Option<&[u8]>) {
        assert_eq!(line(typed).ok().as_deref(), expect, "{typed:?}");
    }

    #[test]
    fn a_line_is_typed_corrected_and_given_up() {
        check(b"whsec_ab\nmore", Some(b"whsec_ab"));
        check(b"whsec_ab\r", Some(b"whsec_ab"));
        check(b"whsec_ax\x7fb\n", Some(b"whsec_ab"));
        check(b"wrong\x15right\x04", Some(b"right"));
        check(b"\x7f\n", Some(b""));
        check(b"half\x03", None);
        check(&[&[b'x'; BYTES_MAX + 9][..], b"\n"].concat(), Some(&[b'x'; BYTES_MAX]));
    }

    #[test]
    fn nothing_is_meant_by_an_end_without_a_line() {
        check(b"\x04", None);
        check(b"wrong\x15\x04", None);
        check(b"", None);
        check(b"half", None);
    }
}
