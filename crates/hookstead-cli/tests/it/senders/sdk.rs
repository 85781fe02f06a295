//! An SDK's script as a process: it signs, sends, or receives. What it says is JSON.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

/// Loading an SDK takes a second or two, on a busy machine much longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One SDK, or one kind of its requests.
pub(super) struct Sdk {
    /// The name of the script, without its suffix.
    pub(super) script: &'static str,
    pub(super) provider: &'static str,
    pub(super) runtime: Runtime,
    pub(super) signed_time: SignedTime,
}

pub(super) enum Runtime {
    Node,
    Python,
}

/// Whether the SDK's verifier checks how old a request is.
#[derive(PartialEq, Eq)]
pub(super) enum SignedTime {
    Checked,
    Absent,
}

impl Sdk {
    /// The request that the SDK would send to an address: `id`, `type`, `url`, `headers`, `body`.
    pub(super) fn sign(&self, secret: &str, signed_url: &str) -> Value {
        self.run(&["sign", secret, signed_url])
    }

    /// The same after it was posted to `url`, with the statuses `first`, `again` and `flipped`.
    pub(super) fn send(&self, secret: &str, signed_url: &str, url: &str) -> Value {
        self.run(&["send", secret, signed_url, url])
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).stdin(Stdio::null()).output();
        let output = output.expect("the script starts; if its runtime is missing, run `cargo xtask setup`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("the script prints JSON")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (program, file) = match self.runtime {
            Runtime::Node => ("node", "sdk.mjs"),
            Runtime::Python => ("python3", "sdk.py"),
        };
        let mut command = Command::new(program);
        command.arg(folder().join(file)).arg(self.script).args(arguments);
        // Compiled Python would be left in the source tree, and no answer of the tests goes through a proxy.
        command.env("HOOKSTEAD_SENDERS", packages()).env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "*");
        command
    }
}

/// An HTTP server that answers with the verdict of an SDK's verifier: 200 or 401.
pub(super) struct Receiver {
    child: Child,
    address: String,
}

impl Receiver {
    /// Starts the script and waits for the line that says where it listens.
    pub(super) fn start(sdk: &Sdk, secret: &str) -> Self {
        let mut command = sdk.command(&["receive", secret]);
        // The pipe to its stdin stays open until this end is dropped, whatever becomes of the test.
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = spawned.expect("the script starts; if its runtime is missing, run `cargo xtask setup`");
        let mut receiver = Self { child, address: String::new() };
        let stdout = receiver.child.stdout.take().expect("stdout is a pipe");
        let (sender, ready) = channel();
        std::thread::spawn(move || sender.send(BufReader::new(stdout).lines().next()));
        let line = ready.recv_timeout(PATIENCE).expect("a line from the script");
        let port = line.expect("the script listens").expect("a text");
        receiver.address = format!("127.0.0.1:{port}");
        receiver
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Where it takes requests.
    pub(super) fn url(&self) -> String {
        format!("http://{}/in/here", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.child.kill().expect("an own child can be killed");
        self.child.wait().expect("an own child can be awaited");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/senders")
}

fn packages() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/senders");
    let packages = std::env::var_os("HOOKSTEAD_SENDERS").map_or_else(default, PathBuf::from);
    for installed in ["node_modules", "python"] {
        let found = packages.join(installed).is_dir();
        assert!(found, "no {installed} in {}: run `cargo xtask setup`", packages.display());
    }
    packages
}
