//! What is said of a server: its facts when it is ready, why it did not start, how it ended.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use hookstead::OpenError;
use hookstead::store::{OwnerRecord, StartStep};
use hookstead::verify::VerifierError;

use crate::config::Mode;
use crate::folder::FolderError;

/// What is true of a server for as long as it runs, for the line that says that it is ready.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The program's version.
    pub version: &'static str,
    /// Where the intake listens.
    pub intake: SocketAddr,
    /// Where the admin listener listens.
    pub admin: SocketAddr,
    /// Where its sources come from.
    pub mode: Mode,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// The data folder.
    pub data: PathBuf,
    /// The store's URL.
    pub store: String,
    /// What a success rests on.
    pub durability: String,
    /// The sources' names, sorted.
    pub sources: Vec<String>,
}

/// Why a server did not start. Nothing of it is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken.
    #[error("{address} is taken")]
    PortInUse {
        /// Which listener wanted it.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// The process that has our store open, if that may be who it is.
        owner: Option<OwnerRecord>,
    },
    /// An address cannot be used for another reason.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which listener wanted it.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The data folder or a file in it.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A source cannot be used after all.
    #[error("source `{name}`: {error}")]
    Source {
        /// Its name.
        name: String,
        /// Why.
        error: VerifierError,
    },
    /// The store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The address could not be written beside the store, where other commands look for it.
    #[error("cannot write down where the server listens")]
    OwnerRecord(#[source] io::Error),
    /// The system gave no signals.
    #[error("cannot listen for SIGHUP")]
    Signals(#[source] io::Error),
    /// The thread that opened the store did not end.
    #[error("the store could not be opened: {0}")]
    Thread(String),
}

impl StartError {
    /// A stable name, for people who look it up.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PortInUse { .. } => "port-in-use",
            Self::Listen { .. } => "listen",
            Self::Folder(_) | Self::OwnerRecord(_) => "data-folder",
            Self::Source { .. } => "config",
            Self::Open(OpenError::Store(hookstead::store::OpenError::Locked { .. })) => "store-in-use",
            Self::Signals(_) => "signals",
            Self::Open(_) | Self::Thread(_) => "store",
        }
    }

    /// The step of the start that it ended, by its stable name: those of the store's own steps (see
    /// [`StartStep`](hookstead::store::StartStep)), and `data-folder`, `sources`, `listen`, `owner-record` and `signals`
    /// around them.
    pub fn step(&self) -> &'static str {
        match self {
            Self::PortInUse { .. } | Self::Listen { .. } => "listen",
            Self::Folder(_) => "data-folder",
            Self::Source { .. } => "sources",
            Self::OwnerRecord(_) => "owner-record",
            Self::Signals(_) => "signals",
            Self::Open(OpenError::Store(error)) => error.step().map_or("store", StartStep::as_str),
            Self::Open(_) | Self::Thread(_) => "store",
        }
    }

    /// Why, without what to do about it.
    pub fn reason(&self) -> String {
        match self {
            Self::Open(OpenError::Store(error)) => error.reason(),
            _ => self.to_string(),
        }
    }

    /// What to do about it; empty if the reason says so itself.
    pub fn fix(&self) -> String {
        match self {
            Self::Open(OpenError::Store(error)) => error.fix(),
            Self::Folder(FolderError::Io { .. }) => {
                "name a folder that is yours and can be written to: --data DIR".to_owned()
            }
            Self::PortInUse { listener, owner: Some(owner), .. } => {
                format!(
                    "stop process {}, or choose another address: hookstead serve --{listener} 127.0.0.1:PORT",
                    owner.pid
                )
            }
            Self::PortInUse { listener, .. } => {
                format!("choose another address: hookstead serve --{listener} 127.0.0.1:PORT")
            }
            Self::Listen { listener, .. } => {
                format!("choose an address of this machine: --{listener} IP:PORT")
            }
            Self::OwnerRecord(_) | Self::Open(OpenError::Register { .. }) => {
                "look at the disk (dmesg, free space, whose folder it is), then start again".to_owned()
            }
            _ => String::new(),
        }
    }
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It was asked to, answered what it had, and let the store go.
    Stopped,
    /// It was asked to, and the store could not be closed in order. Nothing acknowledged is lost.
    Unclean(String),
    /// The store was poisoned: exit code 70.
    FailStop(String),
}

impl RunOutcome {
    /// The exit code that belongs to it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Unclean(_) => 1,
            Self::FailStop(_) => 70,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_exit_codes() {
        assert_eq!(RunOutcome::Stopped.exit_code(), 0);
        assert_eq!(RunOutcome::Unclean(String::new()).exit_code(), 1);
        assert_eq!(RunOutcome::FailStop(String::new()).exit_code(), 70);
    }
}
