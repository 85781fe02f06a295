//! A configuration and a data folder that vanish with the test.

use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{Ended, SECRET, SOURCE, Server};

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_hookstead");

/// What a test says nothing of, as `[store]` and `[limits]` have it: little has to stay free, since the temporary folder
/// may be small; and a connection may be silent for as long as a slow machine needs before the test goes on with it.
const MIN_FREE: &str = "min_free = \"16 MiB\"\n";
const HEADER_TIME: &str = "header_time = \"1m\"\n";

/// What a command printed, and how it ended.
pub(crate) struct Printed {
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Debug for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exit_code, stdout, stderr } = self;
        write!(f, "exit code {exit_code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

/// The kinds of stores that keep their promise over a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Files,
}

impl StoreKind {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Files];

    /// As a configuration begins its URL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Files => "files",
        }
    }
}

/// A folder with a configuration, and the environment that goes with it.
pub(crate) struct Project {
    folder: TempDir,
    store: StoreKind,
    /// Where the store is, if not in `folder`.
    store_folder: Option<PathBuf>,
    store_keys: String,
    sources: String,
    limits: String,
    server: String,
    intake: String,
    secrets: Vec<(String, String)>,
}

impl Project {
    /// A project with the source [`SOURCE`], and listeners on any free port.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let empty = Self {
            folder,
            store: StoreKind::Sqlite,
            store_folder: None,
            store_keys: String::new(),
            sources: String::new(),
            limits: String::new(),
            server: String::new(),
            intake: "127.0.0.1:0".to_owned(),
            secrets: Vec::new(),
        };
        empty.source(SOURCE, "signed-inbox", SECRET)
    }

    /// Chooses the store.
    pub(crate) fn on(mut self, store: StoreKind) -> Self {
        self.store = store;
        self
    }

    /// Puts the store into another folder than everything else.
    pub(crate) fn store_in(mut self, folder: &Path) -> Self {
        self.store_folder = Some(folder.to_owned());
        self
    }

    /// Sets a key of `[store]`; the value as TOML.
    pub(crate) fn store_key(mut self, key: &str, value: &str) -> Self {
        writeln!(self.store_keys, "{key} = {value}").expect("a string takes all");
        self
    }

    /// Adds a source whose secret stands in the environment.
    pub(crate) fn source(mut self, name: &str, provider: &str, secret: &str) -> Self {
        let variable = format!("TEST_SECRET_{}", name.to_uppercase());
        let section =
            format!("[sources.{name}]\nprovider = \"{provider}\"\nsecret = {{ env = \"{variable}\" }}\n\n");
        self.sources += &section;
        self.secrets.push((variable, secret.to_owned()));
        self
    }

    /// Adds a table to the configuration, as TOML.
    pub(crate) fn section(mut self, toml: &str) -> Self {
        self.sources += &format!("{toml}\n");
        self
    }

    /// Sets a key of the source that was added last; the value as TOML.
    pub(crate) fn source_key(mut self, key: &str, value: &str) -> Self {
        self.sources.truncate(self.sources.trim_end().len());
        writeln!(self.sources, "\n{key} = {value}\n").expect("a string takes all");
        self
    }

    /// Sets a key of `[limits]`; the value as TOML.
    pub(crate) fn limit(mut self, key: &str, value: &str) -> Self {
        writeln!(self.limits, "{key} = {value}").expect("a string takes all");
        self
    }

    /// Sets a key of `[server]`; the value as TOML.
    pub(crate) fn server(mut self, key: &str, value: &str) -> Self {
        writeln!(self.server, "{key} = {value}").expect("a string takes all");
        self
    }

    /// From the next start on, the intake listens at this address.
    pub(crate) fn listen_at(&mut self, intake: &str) {
        intake.clone_into(&mut self.intake);
    }

    /// The folder of the database.
    pub(crate) fn data(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        Server::start(self.serve_command(Command::new(BINARY)), &self.log_file())
    }

    /// Starts the server as the last arguments of another program's command, which runs it.
    pub(crate) fn serve_under(&self, mut tracer: Command) -> Server {
        tracer.arg(BINARY);
        Server::start(self.serve_command(tracer), &self.log_file())
    }

    /// The same, where it may end instead of being ready.
    pub(crate) fn try_serve_under(&self, mut tracer: Command) -> Result<Server, Ended> {
        tracer.arg(BINARY);
        Server::try_start(self.serve_command(tracer), &self.log_file())
    }

    /// Runs a verb of the binary to its end, with this project's configuration.
    pub(crate) fn run(&self, arguments: &[&str]) -> Printed {
        self.run_under(Command::new("env"), arguments)
    }

    /// The same as the last arguments of another program's command, which runs it.
    pub(crate) fn run_under(&self, mut command: Command, arguments: &[&str]) -> Printed {
        command.arg(BINARY).args(arguments).arg("--config").arg(self.write_config());
        self.set_environment(&mut command);
        let output = command.stdin(Stdio::null()).output().expect("the binary starts");
        Printed {
            exit_code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a verb of the binary that reads what the test writes.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(BINARY);
        command.args(arguments).arg("--config").arg(self.write_config());
        self.set_environment(&mut command);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the binary starts")
    }

    fn serve_command(&self, mut command: Command) -> Command {
        command.args(["serve", "--json", "--config"]).arg(self.write_config());
        self.set_environment(&mut command);
        command
    }

    fn set_environment(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.envs(self.secrets.iter().map(|(name, secret)| (name, secret)));
    }

    /// What all servers of this project logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn write_config(&self) -> PathBuf {
        let Self { sources, limits, server, intake, store_keys, .. } = self;
        let folder = self.store_folder.as_deref().unwrap_or(self.data());
        let store = match self.store {
            StoreKind::Sqlite => format!("sqlite:{}", folder.join("hookstead.db").display()),
            StoreKind::Files => format!("files:{}", folder.join("inbox").display()),
        };
        let (min_free, header_time) = (unless_set(MIN_FREE, store_keys), unless_set(HEADER_TIME, limits));
        let config = format!(
            "[server]\nintake = \"{intake}\"\nadmin = \"127.0.0.1:0\"\n{server}\n\
             [store]\nurl = \"{store}\"\n{min_free}{store_keys}\n[limits]\n{header_time}{limits}\n{sources}"
        );
        let file = self.folder.path().join("test.toml");
        fs::write(&file, config).expect("the configuration can be written");
        file
    }
}

/// This line of a table, unless a line that a test added sets the same key.
fn unless_set<'a>(line: &'a str, table: &str) -> &'a str {
    let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.to_owned());
    if table.lines().any(|set| key(set) == key(line)) { "" } else { line }
}
