//! What is measured: a server and a way of putting it under load. Each run starts a fresh process on a fresh store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use tempfile::TempDir;

use super::child::Server;
use super::delivered::{self, Delivered};
use super::hookstead;
use super::load::{self, Load, Mode, Plan};
use super::peers::{FASTAPI, FASTIFY, Peer};
use super::settings::Settings;
use super::usage::Meter;

/// How many events a retry storm and a storm of conflicts are about.
const STORM_EVENTS: u64 = 1024;

/// Above what any server here can do, so that time is what ends a run.
const REQUESTS_PER_SECOND_MAX: f64 = 1e6;

/// A server and a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contestant {
    Noop64,
    Noop256,
    Log64,
    Hookstead64,
    Hookstead256,
    Duplicates64,
    Conflicts64,
    Delivered64,
    Files64,
    Seed64,
    Fastify64,
    Fastapi64,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ran {
    #[serde(flatten)]
    pub(super) load: Load,
    /// The size of what the server had stored when it had ended, without SQLite's log.
    pub(super) data_bytes: u64,
    /// Where what it took was also pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delivered: Option<Delivered>,
}

impl Contestant {
    pub(super) const ALL: [Self; 12] = [
        Self::Noop64,
        Self::Noop256,
        Self::Log64,
        Self::Hookstead64,
        Self::Hookstead256,
        Self::Duplicates64,
        Self::Conflicts64,
        Self::Delivered64,
        Self::Files64,
        Self::Seed64,
        Self::Fastify64,
        Self::Fastapi64,
    ];

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Noop64 => "no-op axum, 64",
            Self::Noop256 => "no-op axum, 256",
            Self::Log64 => "append-only log, 64",
            Self::Hookstead64 => "hookstead, 64",
            Self::Hookstead256 => "hookstead, 256",
            Self::Duplicates64 => "hookstead, duplicates, 64",
            Self::Conflicts64 => "hookstead, conflicts, 64",
            Self::Delivered64 => "hookstead, pushed and done, 64",
            Self::Files64 => "hookstead on files, 64",
            Self::Seed64 => "the seed's protocol, 64",
            Self::Fastify64 => "Fastify + better-sqlite3, 64",
            Self::Fastapi64 => "FastAPI + sqlite3, 64",
        }
    }

    /// The peer that has to be installed for it.
    pub(super) fn peer(self) -> Option<&'static Peer> {
        match self {
            Self::Fastify64 => Some(&FASTIFY),
            Self::Fastapi64 => Some(&FASTAPI),
            _ => None,
        }
    }

    fn connections(self) -> usize {
        match self {
            Self::Noop256 | Self::Hookstead256 => 256,
            _ => 64,
        }
    }

    fn mode(self) -> Mode {
        match self {
            Self::Duplicates64 => Mode::Duplicate { events: STORM_EVENTS },
            Self::Conflicts64 => Mode::Conflict { events: STORM_EVENTS },
            _ => Mode::Unique,
        }
    }

    /// Starts the server, puts it under load, and stops it.
    pub(super) fn run(self, binary: &Path, settings: &Settings, seed: u64) -> Result<Ran> {
        let place = Place::new(&settings.folder)?;
        if self == Self::Delivered64 {
            return delivered::run(binary, &place, &self.plan(settings, seed));
        }
        let server = self.start(binary, &place)?;
        let meter = Meter::new(server.pid, &place.data())?;
        let plan = self.plan(settings, seed);
        if plan.mode != Mode::Unique {
            load::run(server.address, &first_of_a_storm(&plan), &|| meter.read())
                .context("before the storm")?;
        }
        let load = load::run(server.address, &plan, &|| meter.read())?;
        server.stop()?;
        let data_bytes = place.data_bytes()?;
        if matches!(self, Self::Files64 | Self::Seed64) {
            place.keep();
        }
        Ok(Ran { load, data_bytes, delivered: None })
    }

    fn start(self, binary: &Path, place: &Place) -> Result<Server> {
        match self {
            Self::Noop64 | Self::Noop256 => {
                Server::start("no-op axum", &mut own("serve-noop")?, &place.log())
            }
            Self::Log64 => {
                let file = place.data().join("log");
                Server::start("the append-only log", own("serve-log")?.arg(file), &place.log())
            }
            Self::Hookstead64
            | Self::Hookstead256
            | Self::Duplicates64
            | Self::Conflicts64
            | Self::Delivered64 => hookstead::start(binary, place, &hookstead::sqlite(place)),
            Self::Files64 => hookstead::start(binary, place, &hookstead::files(place)),
            Self::Seed64 => {
                Server::start("the seed's protocol", own("serve-seed")?.arg(place.data()), &place.log())
            }
            Self::Fastify64 => FASTIFY.start(place),
            Self::Fastapi64 => FASTAPI.start(place),
        }
    }

    fn plan(self, settings: &Settings, seed: u64) -> Plan {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the command line bounds both"
        )]
        let requests_max =
            ((settings.seconds + settings.warm_up_seconds) * REQUESTS_PER_SECOND_MAX).ceil() as u64;
        Plan {
            connections: self.connections(),
            mode: self.mode(),
            body_bytes: settings.body_bytes,
            warm_up: settings.warm_up(),
            measured: settings.measured(),
            requests_max,
            seed,
        }
    }
}

/// Stores the events that come again afterwards.
fn first_of_a_storm(storm: &Plan) -> Plan {
    Plan {
        mode: Mode::Unique,
        warm_up: std::time::Duration::ZERO,
        measured: std::time::Duration::from_secs(60),
        requests_max: STORM_EVENTS,
        ..*storm
    }
}

/// This program as a server.
fn own(part: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("where this program is")?);
    command.args(["bench", part]);
    Ok(command)
}

/// The folder of one run. It vanishes with it.
pub(super) struct Place(TempDir);

impl Place {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let place =
            tempfile::tempdir_in(folder).with_context(|| format!("no room in {}", folder.display()))?;
        fs::create_dir(place.path().join("data")).context("cannot make a folder")?;
        Ok(Self(place))
    }

    /// Leaves the folder to the end of the bench. For a minute after thousands of files were deleted, ext4 searches
    /// long for the inode of each new one: the next run would measure that.
    fn keep(self) {
        let _kept = self.0.keep();
    }

    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Where a server keeps what it stores, and nothing else.
    pub(super) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Where its stderr goes.
    pub(super) fn log(&self) -> PathBuf {
        self.0.path().join("server.log")
    }

    /// The size of what is stored. SQLite's log is of a fixed size, whatever is stored, and does not count.
    pub(super) fn data_bytes(&self) -> Result<u64> {
        let mut sum = 0;
        for entry in fs::read_dir(self.data()).context("cannot list what the server stored")? {
            let entry = entry.context("cannot list what the server stored")?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.ends_with("-wal") && !name.ends_with("-shm") {
                sum += entry.metadata().context("cannot look at what the server stored")?.len();
            }
        }
        Ok(sum)
    }
}

/// The contestants that cannot be measured, and why.
pub(super) type Missing = BTreeMap<Contestant, String>;
