//! The server of a case: its sources, its folder, and a wall clock that the case sets.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::sketch::{self, Table};
use crate::harness::{CLOCK_LIBRARY, Server};

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_hookstead");

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Printed {
    fn of(output: &Output) -> Self {
        Self {
            exit_code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A folder with a configuration, the environment that goes with it, and a clock.
pub(crate) struct Stage {
    folder: TempDir,
    tables: String,
    limits: String,
    server: String,
    store: String,
    environment: Vec<(String, String)>,
    /// The processes that were started.
    processes: RefCell<Vec<u32>>,
}

impl Stage {
    /// Nothing but a clock that stands at `now`, in Unix seconds.
    pub(crate) fn at(now: i64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (tables, limits, server) = (String::new(), String::new(), String::new());
        let store = "url = \"sqlite:hookstead.db\"\n".to_owned();
        let (environment, processes) = (Vec::new(), RefCell::default());
        let stage = Self { folder, tables, limits, server, store, environment, processes };
        stage.set_clock(now);
        stage
    }

    /// Adds a source as a case sketches it.
    pub(crate) fn source(mut self, sketch: &Value) -> Self {
        let Table { toml, secrets } = sketch::table(sketch);
        self.tables += &toml;
        self.environment.extend(secrets);
        self
    }

    /// Adds tables as they stand in the file.
    pub(crate) fn toml(mut self, tables: &str) -> Self {
        self.tables += tables;
        self
    }

    /// Sets a key of `[limits]`; the value as TOML.
    pub(crate) fn limit(mut self, key: &str, value: &str) -> Self {
        self.limits += &format!("{key} = {value}\n");
        self
    }

    /// Sets a key of `[server]`; the value as TOML.
    pub(crate) fn server(mut self, key: &str, value: &str) -> Self {
        self.server += &format!("{key} = {value}\n");
        self
    }

    /// Sets a variable of the environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The keys of `[store]`, in place of the default.
    pub(crate) fn store(mut self, keys: &str) -> Self {
        keys.clone_into(&mut self.store);
        self
    }

    /// Moves the wall clock, also of a server that runs. It stands still between two calls.
    pub(crate) fn set_clock(&self, unix_seconds: i64) {
        let (file, new) = (self.clock_file(), self.folder.path().join("clock.new"));
        fs::write(&new, unix_seconds.to_string()).expect("the clock can be set");
        // At once, so that the server never reads half a time.
        fs::rename(new, file).expect("the clock can be set");
    }

    /// Where the data is.
    pub(crate) fn data(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn serve(&self) -> Server {
        self.serve_by(self.binary())
    }

    /// Starts the server under strace, given as a command without a program to run.
    pub(crate) fn serve_traced(&self, strace: Command) -> Server {
        self.serve_by(self.traced(strace))
    }

    /// Starts the server with this file, which is there already, as its log.
    pub(crate) fn serve_logging_to(&self, log: &Path) -> Server {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 2>\"$LOG\"", "sh", BINARY]).envs(self.clock()).env("LOG", log);
        self.serve_by(shell)
    }

    fn serve_by(&self, mut command: Command) -> Server {
        command.args(["serve", "--json"]);
        self.configure(&mut command);
        let server = Server::start(command, &self.log_file());
        self.processes.borrow_mut().push(server.pid());
        server
    }

    /// Starts the server, which must refuse: it is a failure if it says that it is ready.
    pub(crate) fn refused_start(&self) -> Printed {
        self.refused_by(self.binary())
    }

    /// As [`Stage::refused_start`], under strace.
    pub(crate) fn refused_start_traced(&self, strace: Command) -> Printed {
        self.refused_by(self.traced(strace))
    }

    fn refused_by(&self, mut command: Command) -> Printed {
        command.args(["serve", "--json"]);
        self.configure(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut stdout = String::new();
        let pipe = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(pipe).read_line(&mut stdout).expect("text");
        if !stdout.is_empty() {
            child.kill().expect("an own child can be killed");
            child.wait().expect("an own child can be awaited");
            panic!("started: {stdout}");
        }
        Printed::of(&child.wait_with_output().expect("an own child can be awaited"))
    }

    /// Runs a verb of the binary to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Printed {
        let mut command = self.binary();
        command.args(arguments);
        self.finish(command)
    }

    fn finish(&self, mut command: Command) -> Printed {
        self.configure(&mut command);
        Printed::of(&command.stdin(Stdio::null()).output().expect("the binary starts"))
    }

    /// The server's log so far, one JSON object a line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        fs::metadata(self.log_file()).map_or(0, |metadata| metadata.len())
    }

    fn configure(&self, command: &mut Command) {
        command.arg("--config").arg(self.write_config());
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    fn binary(&self) -> Command {
        let mut command = Command::new(BINARY);
        command.envs(self.clock());
        command
    }

    /// The binary as the last arguments of strace, whose own clock stays as it is.
    fn traced(&self, mut strace: Command) -> Command {
        for (name, value) in self.clock() {
            strace.arg("-E").arg(format!("{name}={value}"));
        }
        strace.arg(BINARY);
        strace
    }

    /// The environment that gives a process our wall clock.
    fn clock(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", CLOCK_LIBRARY.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.clock_file().display().to_string()),
            // Unix seconds, read anew at every look at the clock; time limits go on as they are.
            ("FAKETIME_FMT", "%s".to_owned()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    fn write_config(&self) -> PathBuf {
        let Self { tables, limits, server, store, .. } = self;
        let config = format!(
            "[server]\nintake = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{server}\n\
             [observability]\nlog_format = \"json\"\n\n[store]\n{store}\n[limits]\n{limits}\n{tables}"
        );
        let file = self.folder.path().join("hookstead.toml");
        fs::write(&file, config).expect("the configuration can be written");
        file
    }

    fn clock_file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for Stage {
    /// The clock library leaves its shared memory behind when a process is killed.
    fn drop(&mut self) {
        for process in self.processes.borrow().iter() {
            for name in [format!("faketime_shm_{process}"), format!("sem.faketime_sem_{process}")] {
                fs::remove_file(Path::new("/dev/shm").join(name)).unwrap_or_default();
            }
        }
    }
}
