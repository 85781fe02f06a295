//! One attempt from the event to the exit code and what it means.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::facts::{INHERITED, facts};
use super::options::{ExecOptions, ExecSetupError};
use super::output::{EXEC_OUTPUT_BYTES_MAX, Output};
use super::process::{End, Process};
use crate::sink::contract::{Delivering, Outgoing, Sink, Tried};

/// The exit code that says "try again later": `EX_TEMPFAIL` of sysexits.h.
const EXIT_AGAIN: i32 = 75;

/// Runs a program for each event of one destination.
///
/// Exit code 0 is done, 75 is "try again later" and counts against the target's health, any other code and
/// any signal is a failure of this event; the schedule says when it is tried again and when it is dead.
#[derive(Debug)]
pub struct ExecSink {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
    environment: Vec<(OsString, OsString)>,
}

impl ExecSink {
    /// Makes a sink; reads the variables to pass on from hookstead's own environment.
    ///
    /// # Errors
    ///
    /// [`ExecSetupError`] if an option is out of its range.
    pub fn new(options: ExecOptions) -> Result<Self, ExecSetupError> {
        options.check()?;
        let ExecOptions { command, timeout, environment } = options;
        let mut command = command.into_iter();
        let program = command.next().ok_or(ExecSetupError::Empty)?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let configured = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
        let environment = inherited.chain(configured).collect();
        Ok(Self { program, arguments: command.collect(), timeout, environment })
    }

    async fn attempt(&self, outgoing: &Outgoing) -> Tried {
        let mut process = match Process::start(&mut self.command(outgoing)) {
            Ok(process) => process,
            Err(error) => {
                return Tried::down("not-started", format!("cannot start `{}`: {error}", self.program));
            }
        };
        let mut output = Output::default();
        let end = process.run(outgoing.body.clone(), &mut output, self.timeout).await;
        Tried { excerpt: output.into_excerpt(), ..self.judge(end) }
    }

    fn judge(&self, end: io::Result<End>) -> Tried {
        match end {
            Ok(End::Exited(status)) => judge(status),
            Ok(End::TimedOut) => {
                Tried::down("timeout", format!("killed after its timeout of {:?}", self.timeout))
            }
            Ok(End::OutputTooLong) => {
                let limit = format!("killed: it wrote more than {EXEC_OUTPUT_BYTES_MAX} bytes of output");
                Tried::retry("output-too-long", limit)
            }
            Err(error) => Tried::down("not-run", format!("`{}` cannot be run: {error}", self.program)),
        }
    }

    fn command(&self, outgoing: &Outgoing) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).envs(facts(outgoing));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

impl Sink for ExecSink {
    fn deliver<'a>(&'a self, outgoing: &'a Outgoing) -> Delivering<'a> {
        Box::pin(self.attempt(outgoing))
    }
}

fn judge(status: ExitStatus) -> Tried {
    let code = status.code();
    let tried = match (code, status.signal()) {
        (Some(0), _) => Tried::done("exit-0"),
        (Some(EXIT_AGAIN), _) => Tried::down("exit-75", "exit code 75: it asks to be run again later"),
        (Some(code), _) => Tried::retry("exit-code", format!("exit code {code}")),
        (None, Some(signal)) => Tried::retry("signal", format!("ended by signal {signal}")),
        (None, None) => Tried::retry("signal", format!("it ended without an exit code: {status}")),
    };
    Tried { status: code.and_then(|code| u16::try_from(code).ok()), ..tried }
}
