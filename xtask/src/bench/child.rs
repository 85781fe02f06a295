//! A server as a process of its own, so that what it spends can be told from what the bench spends.
//!
//! Every server here keeps to the same habits: its first line on stdout is JSON with `ready`, `pid` and where it
//! listens (`address`, or `intake` as a URL), and it ends when its stdin does. So none outlives the bench.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A server that is not ready by then will not be.
const READY_TIME_MAX: Duration = Duration::from_secs(60);

/// Hookstead gives requests in flight ten seconds and checkpoints its log.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);

/// A running server.
pub(super) struct Server {
    name: String,
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) pid: u32,
    /// All that it said when it was ready.
    pub(super) ready: Value,
}

impl Server {
    /// Runs the command and waits for its first line. Its stderr goes to `log`.
    pub(super) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let stderr = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        match ready(&mut child) {
            Ok((address, pid, ready)) => Ok(Self { name: name.to_owned(), child, address, pid, ready }),
            Err(error) => {
                // It may have ended by itself, which is as good.
                child.kill().ok();
                child.wait().context("cannot wait for a server")?;
                let said = std::fs::read_to_string(log).unwrap_or_default();
                Err(error.context(format!("{name} did not start: {}", gist(&said))))
            }
        }
    }

    /// Asks it to end and waits until it has.
    pub(super) fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + STOP_TIME_MAX;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().context("cannot wait for a server")? {
                ensure!(status.success(), "{} ended with {status}", self.name);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} did not end within {STOP_TIME_MAX:?}", self.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` both fail, because it is gone; nothing is left to be done then.
        if self.child.kill().is_ok() {
            self.child.wait().ok();
        }
    }
}

fn ready(child: &mut Child) -> Result<(SocketAddr, u32, Value)> {
    let stdout = child.stdout.take().context("stdout is no pipe")?;
    let (sender, lines) = channel();
    // The thread goes on reading, so that a server which prints more is never stopped by a full pipe.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            sender.send(line).ok();
        }
    });
    let line = lines.recv_timeout(READY_TIME_MAX).ok().context("it printed no line that says it is ready")?;
    parse_ready(&line).with_context(|| format!("not a line that says it is ready: {line}"))
}

fn parse_ready(line: &str) -> Result<(SocketAddr, u32, Value)> {
    let line: Value = serde_json::from_str(line)?;
    ensure!(line["ready"] == true, "not ready");
    let address = line["address"].as_str().or_else(|| line["intake"].as_str()?.strip_prefix("http://"));
    let address: SocketAddr = address.context("no address")?.parse()?;
    ensure!(address.ip().is_loopback(), "only servers on this machine are put under load");
    let pid = line["pid"].as_u64().context("no process id")?;
    Ok((address, u32::try_from(pid)?, line))
}

/// The line of a log that says what went wrong: the first with an error in it, else the last.
fn gist(log: &str) -> &str {
    let is_error = |line: &&str| line.contains("rror");
    log.lines().find(is_error).or_else(|| log.lines().next_back()).unwrap_or("it said nothing").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_lines_of_both_forms_are_read() {
        let read = |line| parse_ready(line).map(|(address, pid, _)| (address, pid)).unwrap();
        let address: SocketAddr = "127.0.0.1:4665".parse().unwrap();
        assert_eq!(read(r#"{"ready":true,"address":"127.0.0.1:4665","pid":7}"#), (address, 7));
        assert_eq!(read(r#"{"ready":true,"intake":"http://127.0.0.1:4665","pid":7}"#), (address, 7));
    }

    #[test]
    fn a_server_elsewhere_is_left_alone() {
        let error = parse_ready(r#"{"ready":true,"address":"192.0.2.1:80","pid":7}"#).unwrap_err();
        assert_eq!(error.to_string(), "only servers on this machine are put under load");
    }

    #[test]
    fn a_log_has_a_gist() {
        assert_eq!(gist("start\nError: no module\n  at x\nnode 20\n"), "Error: no module");
        assert_eq!(gist("one\ntwo\n"), "two");
        assert_eq!(gist(""), "it said nothing");
    }

    #[test]
    fn what_is_no_ready_line_is_refused() {
        for line in ["", "listening", r#"{"ready":false}"#, r#"{"ready":true,"pid":7}"#] {
            assert!(parse_ready(line).is_err(), "{line}");
        }
    }
}
