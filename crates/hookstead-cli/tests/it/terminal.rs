//! A person at a terminal: an empty home, an empty environment, commands that run to their end.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{SECRET, SOURCE, Server};

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_hookstead");

/// A configuration with one source, [`SOURCE`]. The temporary folder may be small, and a slow machine may take its time
/// between a connection and its first request.
const CONFIG: &str = "[server]\nintake = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
    [store]\nmin_free = \"16 MiB\"\n\n[limits]\nheader_time = \"1m\"\n\n\
    [sources.SOURCE]\nprovider = \"signed-inbox\"\nsecret = { file = \"secret\" }\n";

/// What a command printed, and how it ended.
pub(crate) struct Ran {
    pub(crate) exit_code: Option<i32>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exit_code, stdout, stderr, .. } = self;
        write!(f, "exit code {exit_code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

impl Ran {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The documents on stdout, one a line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let document =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {self:?}"));
        self.stdout.lines().map(document).collect()
    }
}

/// A home folder, which is also the current one.
pub(crate) struct Terminal {
    home: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Terminal {
    /// With nothing in it: servers are in dev mode.
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary folder"), variables: Vec::new() }
    }

    /// With a `hookstead.toml` that has the source of the harness.
    pub(crate) fn configured() -> Self {
        let terminal = Self::new();
        terminal.write("hookstead.toml", &CONFIG.replace("SOURCE", SOURCE));
        terminal.write("secret", SECRET);
        terminal
    }

    /// Sets a variable for the commands that follow.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(self.path(name), text).expect("the home can be written to");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path(name), private).expect("a mode can be set");
    }

    /// A command with this home and nothing else.
    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Help is as wide as the terminal, so that its width is part of what is compared.
        command.env("COLUMNS", "100").stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        let output = self.command(arguments).output().expect("the binary starts");
        Ran {
            exit_code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }

    /// Runs a command that must end with 0.
    pub(crate) fn ok(&self, arguments: &[&str]) -> Ran {
        self.ends(arguments, 0)
    }

    /// Runs a command that must end with this code.
    pub(crate) fn ends(&self, arguments: &[&str], exit_code: i32) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.exit_code, Some(exit_code), "{arguments:?}: {ran:#?}");
        ran
    }

    /// Starts a server on free ports and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        let ports = ["--intake", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let command = self.command(["serve", "--json"].iter().chain(&ports));
        Server::start(command, &self.path("server.log"))
    }

    /// The data folder of a server that was started.
    pub(crate) fn data(server: &Server) -> &Path {
        Path::new(server.ready()["data"].as_str().expect("the data folder is told"))
    }
}
