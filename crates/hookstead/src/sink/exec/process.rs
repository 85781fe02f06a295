//! A running program with its process group: fed, listened to, and killed with all that it started if it
//! takes too long or its attempt is called off.

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::output::{Heard, Output};

/// How long output is waited for after the program has ended, if children that it left hold its pipes open.
const OUTPUT_GRACE: Duration = Duration::from_millis(250);

/// How long the end of a killed program is waited for. The kernel may take its time; the runtime reaps it
/// later.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// How a program ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself, or by somebody else's signal.
    Exited(ExitStatus),
    /// It was killed after its timeout.
    TimedOut,
    /// It was killed since it wrote too much.
    OutputTooLong,
}

/// A program in a process group of its own. Dropped before its end, the whole group is killed.
pub(super) struct Process {
    // In this order: the group is killed before the child is let go, while the number is still the child's.
    group: Group,
    child: Child,
}

impl Process {
    /// Starts a command.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        Ok(Self { group: Group::of(&child), child })
    }

    /// Feeds the program and listens to it until it ends or `limit` is over. What it left running in the
    /// background is left alone if it ended by itself.
    pub(super) async fn run(&mut self, body: Bytes, output: &mut Output, limit: Duration) -> io::Result<End> {
        let end = timeout(limit, attend(&mut self.child, body, output)).await;
        if let Ok(Ok(End::Exited(_))) = end {
            self.group.0 = None;
        } else {
            self.kill().await;
        }
        end.unwrap_or(Ok(End::TimedOut))
    }

    async fn kill(&mut self) {
        self.group.kill();
        if let Ok(Err(error)) = timeout(KILL_GRACE, self.child.wait()).await {
            tracing::warn!(%error, "the end of a killed program cannot be awaited");
        }
    }
}

async fn attend(child: &mut Child, body: Bytes, output: &mut Output) -> io::Result<End> {
    let mut feeding = pin!(feed(child.stdin.take(), body));
    let mut listening = pin!(output.listen(child.stdout.take(), child.stderr.take()));
    let (mut is_fed, mut is_heard) = (false, false);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = &mut feeding, if !is_fed => is_fed = true,
            heard = &mut listening, if !is_heard => match heard {
                Heard::All => is_heard = true,
                Heard::TooMuch => return Ok(End::OutputTooLong),
            },
        }
    };
    if !is_heard && timeout(OUTPUT_GRACE, listening).await.is_err() {
        tracing::debug!("a program left children that hold its output open");
    }
    Ok(End::Exited(status))
}

/// Writes the body and closes stdin. A program that reads only the beginning, or nothing, is free to: its
/// exit code decides.
async fn feed(stdin: Option<ChildStdin>, body: Bytes) {
    if let Some(mut stdin) = stdin
        && let Err(error) = stdin.write_all(&body).await
    {
        tracing::debug!(%error, "a program did not read the whole event");
    }
}

/// The process group that a child leads, until the child is reaped and its number may be given to another.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self(number.and_then(Pid::from_raw))
    }

    fn kill(&mut self) {
        let Some(group) = self.0.take() else { return };
        match kill_process_group(group, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {} // no such group: all of it has ended
            Err(error) => tracing::warn!(%error, "the process group of a program cannot be killed"),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
