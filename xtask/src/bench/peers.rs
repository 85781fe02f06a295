//! What a good developer writes in forty lines of another language, as a server to compare with. The code is ours, in
//! `benches/peers/`; the packages come from their registries, at exact versions, into `target/peers/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::child::Server;
use super::contestant::Place;
use super::template::{SECRET, SECRET_VARIABLE};
use crate::install::{Tool, ensure};
use crate::run::{check, output, program, root, step};

/// Written last: when it equals the committed files, the installation is complete and current.
const STAMP: &str = "installed";

const NEEDED_FOR: &str = "a peer of the bench";

/// A server of another kind.
pub(super) struct Peer {
    name: &'static str,
    /// In `benches/peers/NAME/`.
    files: &'static [&'static str],
    tools: &'static [Tool],
    install: fn(&Path) -> Result<()>,
    command: fn(&Path) -> Command,
}

/// Fastify and better-sqlite3.
pub(super) static FASTIFY: Peer = Peer {
    name: "fastify",
    files: &["server.js", "package.json", "package-lock.json", ".npmrc"],
    tools: &[
        Tool { program: "node", package: "nodejs", needed_for: NEEDED_FOR },
        Tool { program: "npm", package: "npm", needed_for: NEEDED_FOR },
    ],
    install: install_with_npm,
    command: |folder| {
        let mut command = Command::new("node");
        command.arg(folder.join("server.js"));
        command
    },
};

/// FastAPI and the standard library's sqlite3.
pub(super) static FASTAPI: Peer = Peer {
    name: "fastapi",
    files: &["server.py", "requirements.txt"],
    tools: &[
        Tool { program: "python3", package: "python3", needed_for: NEEDED_FOR },
        Tool { program: "pip3", package: "python3-pip", needed_for: NEEDED_FOR },
    ],
    install: install_with_pip,
    command: |folder| {
        let mut command = Command::new("python3");
        command.arg(folder.join("server.py")).env("PYTHONPATH", folder.join("python"));
        command
    },
};

impl Peer {
    /// Installs it unless exactly this is there.
    pub(super) fn install(&self) -> Result<()> {
        let wanted = self.wanted()?;
        let folder = self.folder();
        if fs::read(folder.join(STAMP)).is_ok_and(|installed| installed == wanted.concat()) {
            return Ok(());
        }
        step(&format!("install the peer {}", self.name), || {
            ensure(self.tools)?;
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            for (name, content) in self.files.iter().zip(&wanted) {
                write(&folder.join(name), content)?;
            }
            (self.install)(&folder)?;
            write(&folder.join(STAMP), &wanted.concat())
        })
    }

    /// Starts it on an empty store.
    pub(super) fn start(&self, place: &Place) -> Result<Server> {
        let mut command = (self.command)(&self.folder());
        command.arg(place.data().join("events.db")).env(SECRET_VARIABLE, SECRET);
        Server::start(self.name, &mut command, &place.log())
    }

    /// Always below the repository: the packages are the same for every target folder.
    fn folder(&self) -> PathBuf {
        root().join("target/peers").join(self.name)
    }

    fn wanted(&self) -> Result<Vec<Vec<u8>>> {
        let folder = root().join("benches/peers").join(self.name);
        let read =
            |name| fs::read(folder.join(name)).with_context(|| format!("cannot read the peer's {name}"));
        self.files.iter().map(read).collect()
    }
}

/// better-sqlite3 is compiled here, so that the registry's digests cover all that is run.
fn install_with_npm(folder: &Path) -> Result<()> {
    let mut npm = program("npm", &["ci", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"]);
    if let Some(headers) = node_headers()? {
        npm.env("npm_config_nodedir", headers);
    }
    check(npm.current_dir(folder)).context("npm cannot install the packages; does it reach its registry?")
}

/// Where Node's headers are, if the system has them: without them npm downloads them.
fn node_headers() -> Result<Option<PathBuf>> {
    let node = output(&mut program("node", &["--print", "process.execPath"]))?;
    let prefix = Path::new(node.trim()).parent().and_then(Path::parent);
    Ok(prefix.filter(|prefix| prefix.join("include/node/node_version.h").exists()).map(Path::to_owned))
}

fn install_with_pip(folder: &Path) -> Result<()> {
    let packages = folder.join("python");
    if packages.exists() {
        // pip would leave what an earlier list had beside the new packages.
        fs::remove_dir_all(&packages).with_context(|| format!("cannot remove {}", packages.display()))?;
    }
    let arguments = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--root-user-action=ignore",
        "--no-deps",
        "--only-binary=:all:",
        "--requirement",
        "requirements.txt",
        "--target",
        "python",
    ];
    check(program("python3", &arguments).current_dir(folder))
        .context("pip cannot install the packages; does it reach its registry?")
}

fn write(file: &Path, content: &[u8]) -> Result<()> {
    fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
