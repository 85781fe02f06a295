//! One shell in an empty home, to which commands are given one after the other.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};
use tempfile::TempDir;

use super::COMMAND_TIME_MAX;
use super::orphans::Adoption;

/// A line of the shell that no command prints.
const MARKER: &str = "\u{1}hookstead-docs-exit";

/// What a command did.
pub(super) struct Ran {
    /// Its stdout and stderr, as they came.
    pub(super) output: String,
    pub(super) exit_code: i32,
}

/// A running shell. Dropping it ends the shell and all that it started.
pub(super) struct Session {
    shell: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    home: TempDir,
    scripts: usize,
    /// Until the end has been waited for.
    _orphans: Adoption,
}

impl Session {
    /// Starts a shell whose `PATH` begins with `binary_dir`.
    pub(super) fn start(binary_dir: &Path) -> Result<Self> {
        let home = tempfile::tempdir().context("cannot make a temporary folder")?;
        fs::create_dir(home.path().join("work"))?;
        let orphans = Adoption::begin()?;
        let mut shell = shell(home.path(), binary_dir).spawn().context("cannot start `bash`")?;
        let input = shell.stdin.take().context("the shell has no input")?;
        let output = shell.stdout.take().context("the shell has no output")?;
        let mut session = Self { shell, input, lines: lines_of(output), home, scripts: 0, _orphans: orphans };
        session.tell("exec 2>&1")?;
        Ok(session)
    }

    /// The folder that the session began in.
    pub(super) fn folder(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Runs one command to its end.
    pub(super) fn run(&mut self, command: &str) -> Result<Ran> {
        let script = self.script(command)?;
        self.tell(&format!(". '{}' </dev/null; printf '\\n%s %d\\n' '{MARKER}' $?", script.display()))?;
        self.result(command)
    }

    /// Runs a script that ends the whole session at the first command that fails.
    pub(super) fn run_strictly(&mut self, script: &str) -> Result<Ran> {
        self.run(&format!("set -e\n{script}\nset +e"))
    }

    /// Starts a command that goes on beside the others, and waits for its first line.
    pub(super) fn run_beside(&mut self, command: &str) -> Result<Ran> {
        let log = self.home.path().join(format!("{}.log", self.scripts));
        let log = log.display();
        // Its own descriptor stays open in the shell, so that it can go on writing.
        self.run(&format!(
            "exec {{beside}}< <({command} 2>'{log}')\nread -r -u \"$beside\" || {{ cat '{log}'; false; }}"
        ))
    }

    /// The commands go through a file, so that none of them can read the ones after it from the shell's input.
    fn script(&mut self, text: &str) -> Result<PathBuf> {
        self.scripts += 1;
        let path = self.home.path().join(format!("{}.sh", self.scripts));
        fs::write(&path, format!("{text}\n")).context("cannot write a script")?;
        Ok(path)
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}").context("the shell has ended")
    }

    fn result(&mut self, command: &str) -> Result<Ran> {
        let deadline = Instant::now() + COMMAND_TIME_MAX;
        let mut output = String::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.strip_prefix(MARKER) {
                    Some(code) => {
                        // The line end before the marker is the session's own.
                        output.pop();
                        let exit_code = code.trim().parse().with_context(|| format!("exit code `{code}`"))?;
                        return Ok(Ran { output, exit_code });
                    }
                    None => output += &line,
                },
                Err(RecvTimeoutError::Timeout) => {
                    bail!("still running after {COMMAND_TIME_MAX:?}: {command}\n{output}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(anyhow!("the shell ended at: {command}\n{output}"));
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Its process group has its id: that takes along what runs in the background. The next session wants the same
        // ports.
        let group = Pid::from_child(&self.shell);
        if let Err(error) = end(&mut self.shell, group) {
            eprintln!("the shell of a document (process {}) could not be ended: {error:#}", self.shell.id());
        }
    }
}

/// Ends a shell and what else is in its process group, and waits until all that is gone; also after a step has failed,
/// whose error is the one that it gives.
fn end(shell: &mut Child, group: Pid) -> Result<()> {
    let killed = kill_process_group(group, Signal::KILL).context("cannot kill its process group");
    let shell_ended = shell.kill().and_then(|()| shell.wait()).context("cannot wait for its end");
    // What could not be killed may go on for ever.
    let options = if killed.is_ok() { WaitOptions::empty() } else { WaitOptions::NOHANG };
    let group_ended = wait_for_group(group, options).context("cannot wait for what it started");
    killed.and(shell_ended.map(drop)).and(group_ended)
}

fn wait_for_group(group: Pid, options: WaitOptions) -> rustix::io::Result<()> {
    loop {
        match waitpgid(group, options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn shell(home: &Path, binary_dir: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--norc"]).current_dir(home.join("work")).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        // Nothing of the user's own settings may decide whether a document is right.
        let name = name.to_string_lossy();
        if name.starts_with("HOOKSTEAD") || name.starts_with("XDG_") || name == "CARGO_TARGET_DIR" {
            shell.env_remove(&*name);
        }
    }
    shell.env("HOME", home).env("PATH", format!("{}:{path}", binary_dir.display())).env("NO_COLOR", "1");
    shell
}

fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::process::test_kill_process;

    use super::*;

    fn session() -> Session {
        Session::start(Path::new("/nowhere")).expect("a shell")
    }

    #[test]
    fn a_command_gives_its_output_and_exit_code() {
        let mut session = session();
        let ran = session.run("echo one; echo two >&2; (exit 3)").expect("a result");
        assert_eq!((ran.output.as_str(), ran.exit_code), ("one\ntwo\n", 3));
    }

    #[test]
    fn commands_share_one_shell() {
        let mut session = session();
        session.run("cd /; export WORD=kept").expect("a result");
        let ran = session.run("printf '%s %s' \"$PWD\" $WORD").expect("a result");
        assert_eq!(ran.output, "/ kept");
    }

    #[test]
    fn a_command_cannot_read_the_next_one() {
        let mut session = session();
        assert_eq!(session.run("cat").expect("a result").output, "");
        assert_eq!(session.run("echo still here").expect("a result").output, "still here\n");
    }

    #[test]
    fn a_command_beside_is_awaited_and_ends_with_the_session() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let mut session = session();
        // A child of a child of the shell.
        let inner = "echo $BASHPID >pid; echo ready; exec tail -f /dev/null";
        let command = format!("exec 5<>/dev/tcp/127.0.0.1/{port}; ({inner}); true");
        assert_eq!(session.run_beside(&command).expect("a result").exit_code, 0);
        let pid = fs::read_to_string(session.folder().join("pid")).expect("its process id");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("not zero");
        test_kill_process(pid).expect("it runs");
        // The process holds this connection as long as it lives.
        let (mut connection, _) = listener.accept().expect("the command has connected");
        connection.set_read_timeout(Some(COMMAND_TIME_MAX)).expect("an open socket");
        drop(session);
        assert_eq!(test_kill_process(pid), Err(Errno::SRCH), "it is gone when the session is");
        assert_eq!(connection.read(&mut [0]).expect("the end, and no time-out"), 0);
    }

    #[test]
    fn a_shell_ends_also_when_its_group_cannot_be_killed() {
        let mut session = session();
        // Greater than any process id: there is no such group.
        let nobody = Pid::from_raw(i32::MAX).expect("not zero");
        let error = end(&mut session.shell, nobody).expect_err("that group cannot be killed");
        assert!(format!("{error:#}").starts_with("cannot kill its process group"), "{error:#}");
        let shell = Pid::from_child(&session.shell);
        assert_eq!(test_kill_process(shell), Err(Errno::SRCH), "it is gone all the same");
    }

    #[test]
    fn a_command_beside_that_ends_at_once_fails_and_shows_why() {
        let ran = session().run_beside("echo sorry >&2").expect("a result");
        assert_eq!((ran.output.as_str(), ran.exit_code), ("sorry\n", 1));
    }

    #[test]
    fn a_strict_script_stops_at_the_first_failure() {
        let mut session = session();
        assert_eq!(session.run_strictly("true\nX=1").expect("a result").exit_code, 0);
        assert!(session.run_strictly("false\necho not reached").is_err());
    }
}
