//! The server as a process: started, killed, stopped, and never outliving its test.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Admin, Connection};

/// Starting and stopping must be over by then, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// Its stdout; closed when the process ends.
    lines: Receiver<String>,
    log: PathBuf,
    ready: Value,
    /// From the start of the process to its word that it listens.
    pub(crate) ready_after: Duration,
}

/// How a process ended that did not become a server, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
}

impl Server {
    /// Runs the command and waits for the line that says where it listens. Its stderr is added to `log`.
    pub(crate) fn start(command: Command, log: &Path) -> Self {
        Self::try_start(command, log).unwrap_or_else(|ended| panic!("no server: {ended:?}"))
    }

    /// The same, where the process may end instead.
    pub(crate) fn try_start(mut command: Command, log: &Path) -> Result<Self, Ended> {
        let mut stderr = File::options().create(true).append(true).open(log).expect("the log can be written");
        let said_before = stderr.seek(SeekFrom::End(0)).expect("the log is a file");
        let begin = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let lines = lines_of(child.stdout.take().expect("stdout is a pipe"));
        let mut server =
            Self { child, lines, log: log.to_owned(), ready: Value::Null, ready_after: Duration::ZERO };
        let line = match server.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("neither ready nor over after {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = server.child.wait().expect("an own child can be awaited");
                let said = fs::read(log).expect("the log can be read");
                let said = said.get(usize::try_from(said_before).expect("a small log")..).unwrap_or_default();
                return Err(Ended { status, said: String::from_utf8_lossy(said).into_owned() });
            }
        };
        server.ready_after = begin.elapsed();
        server.ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        assert_eq!(server.ready["ready"], true, "{line}");
        Ok(server)
    }

    /// What the server said about itself when it was ready.
    pub(crate) fn ready(&self) -> &Value {
        &self.ready
    }

    /// Host and port of the intake.
    pub(crate) fn intake(&self) -> &str {
        self.address("intake")
    }

    /// A new connection to the intake.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.intake()).expect("the intake accepts connections")
    }

    /// A client of the admin listener with the token from the data folder.
    pub(crate) fn admin(&self) -> Admin {
        let data = self.ready["data"].as_str().expect("the data folder is told");
        // As the server sees it, which may have file systems of its own.
        let data = format!("/proc/{}/root{data}", self.pid());
        let token = fs::read_to_string(Path::new(&data).join("admin.token")).expect("the token can be read");
        Admin::new(self.address("admin"), token.trim())
    }

    /// The admin listener's host and port.
    pub(crate) fn admin_address(&self) -> &str {
        self.address("admin")
    }

    /// The server's own process, also when another program runs it.
    pub(crate) fn pid(&self) -> u32 {
        let pid = self.ready["pid"].as_u64().expect("the process id is told");
        u32::try_from(pid).expect("a process id")
    }

    /// Ends the process in the middle of whatever it does, and waits until it is gone.
    pub(crate) fn kill9(mut self) {
        send_signal("KILL", self.pid());
        self.wait_for_end();
    }

    /// Asks the process to end and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        send_signal("TERM", self.pid());
        self.wait_for_end()
    }

    /// Waits for an end that was asked for elsewhere, or that the process comes to by itself.
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return self.child.wait().expect("the process can be awaited");
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("still running {PATIENCE:?} after its end was to be expected")
                }
            }
        }
    }

    fn address(&self, listener: &str) -> &str {
        let url = self.ready[listener].as_str().and_then(|url| url.strip_prefix("http://"));
        url.unwrap_or_else(|| panic!("no address of {listener} in {}", self.ready))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("--- the server's log\n{log}---");
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            // Under a tracer, killing the tracer alone would leave the server behind.
            if self.ready["pid"].is_u64() {
                send_signal("KILL", self.pid());
            }
            self.child.kill().expect("an own child can be killed");
            self.child.wait().expect("an own child can be awaited");
        }
    }
}

/// Sends a signal, by its name without `SIG`.
pub(crate) fn send_signal(name: &str, pid: u32) {
    let kill = format!("kill -s {name} {pid}");
    let status = Command::new("sh").args(["-c", &kill]).status().expect("a shell starts");
    assert!(status.success(), "`{kill}` failed");
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
