//! The demo's server: this same executable, in a folder of its own, as a child process that never outlives
//! the demo.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hookstead_server::config::VARIABLES;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::time::timeout;
use toml::Value;

use crate::config_text::with_table;
use crate::failure::{Exit, Failure};
use crate::output;

/// A server on loopback is ready within tens of milliseconds; a disk that is busy may need seconds.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How much of the server's log a failure shows.
const LOG_LINES_SHOWN: usize = 12;

/// Where the demo's files are, and the secret that its server and its sender share.
pub(super) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    /// Makes the folder and writes the configuration of a server with one source, `stripe`.
    pub(super) fn set(secret: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("hookstead-demo-").tempdir().map_err(|error| {
            Failure::new(Exit::Failed, "no-folder", format!("cannot make a temporary folder: {error}"))
                .fix("point TMPDIR to a folder that you may write to")
        })?;
        let stage = Self { folder };
        stage.write("stripe.secret", secret)?;
        stage.write("hookstead.toml", CONFIG)?;
        Ok(stage)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder. Dropping does the same, but cannot say that it failed.
    pub(super) fn clear(self) -> Result<()> {
        self.folder.close().context("remove the demo's temporary folder")
    }

    /// Adds a destination to the configuration, for a server that takes it over.
    pub(super) fn add_destination(&self, url: &str) -> Result<()> {
        // Attempts without a wait between them: the tour is quick.
        let retry = Value::from(vec!["0s"; 2]);
        let keys = [("push", Value::from(url)), ("allow_private", Value::from(true)), ("retry", retry)];
        let text = with_table(CONFIG, DESTINATION, &keys);
        std::fs::write(self.config(), text).context("write the configuration")
    }

    fn config(&self) -> PathBuf {
        self.path().join("hookstead.toml")
    }

    fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path().join(name);
        let create = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        create().and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::new(Exit::Failed, "no-folder", message).fix("point TMPDIR to a folder with some space")
        })?;
        Ok(())
    }
}

/// The destination of the tour.
pub(super) const DESTINATION: &str = "app";

/// Port 0 lets the system choose, so that the demo never meets a server that is at work. It stores little, so
/// little room will do.
const CONFIG: &str = r#"[server]
intake = "127.0.0.1:0"
admin = "127.0.0.1:0"

[store]
min_free = "16 MiB"

[sources.stripe]
secret = { file = "stripe.secret" }
"#;

/// A running server. It ends when the demo does, however that ends: its stdin is the demo's to hold.
pub(super) struct Server {
    process: Process,
    /// What it said of itself when it was ready.
    pub(super) ready: Ready,
    /// How long it took from the start of the process until it was ready.
    pub(super) took: Duration,
}

/// The line that `hookstead serve --json` prints.
#[derive(Deserialize)]
pub(super) struct Ready {
    pub(super) intake: String,
    pub(super) admin: String,
    pub(super) data: PathBuf,
    pub(super) pid: u32,
}

impl Server {
    /// Starts a server on the stage and waits until it listens.
    pub(super) async fn start(stage: &Stage) -> Result<Self> {
        let begun = Instant::now();
        let mut process = Process(command(stage)?.spawn().context("start the server")?);
        let stdout = process.0.stdout.take().context("the server's stdout is not piped")?;
        let stdout = ChildStdout::from_std(stdout).context("read the server's stdout")?;
        let mut line = String::new();
        let read = timeout(READY_WITHIN, BufReader::new(stdout).read_line(&mut line)).await;
        match read {
            Ok(Ok(length)) if length > 0 => {
                let ready = serde_json::from_str(&line).context("read the server's first line")?;
                Ok(Self { process, ready, took: begun.elapsed() })
            }
            _ => Err(not_ready(stage).into()),
        }
    }

    /// SIGKILL: the process gets no chance to write anything down. When this returns it is gone.
    pub(super) fn kill(mut self) -> Result<()> {
        self.process.end().context("kill the server")
    }
}

/// The server's process. Dropped, it is gone: only then can its folder be removed, since nobody writes into it any more.
struct Process(Child);

impl Process {
    fn end(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            // Where stderr is gone too there is nobody left to tell.
            drop(output::talk(format_args!("the demo's server could not be ended: {error}")));
        }
    }
}

fn command(stage: &Stage) -> Result<Command> {
    let executable = std::env::current_exe().context("find the demo's own executable")?;
    let log = File::options().create(true).append(true).open(stage.log()).context("open the server's log")?;
    let mut command = Command::new(executable);
    command
        .args(["serve", "--json", "--while-stdin", "--config"])
        .arg(stage.config())
        .arg("--data")
        .arg(stage.path().join("data"))
        .current_dir(stage.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    // What the person has set is for their own server: the demo must not touch its store.
    for (variable, _) in VARIABLES {
        command.env_remove(variable);
    }
    Ok(command)
}

fn not_ready(stage: &Stage) -> Failure {
    let failure = Failure::new(Exit::Failed, "demo-server", "the demo's server did not start");
    let log = std::fs::read_to_string(stage.log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let shown = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
    let failure = if shown.is_empty() { failure } else { failure.line("log", shown) };
    failure.fix("the demo needs to listen on 127.0.0.1 and to write to the temporary folder (TMPDIR)")
}
