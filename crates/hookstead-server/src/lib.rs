//! The server: intake, admin API, configuration and telemetry around an [`hookstead::Inbox`].
//!
//! Only this crate knows HTTP serving. It knows nothing of SQL, files of a store, or how a signature is
//! computed, and it prints nothing: what people read is returned as values.

pub mod api;
pub mod config;
mod descriptors;
pub mod destination_secrets;
pub mod dev;
pub mod explain;
pub mod folder;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod given_keys;
pub mod handed_secrets;
mod intake;
pub mod limits;
mod listen;
pub mod lookup;
mod network;
mod open;
mod owed;
pub mod problem;
mod ready_writer;
mod run;
pub mod runs;
pub mod telemetry;
pub mod tokens;
pub mod transfer;

pub use config::Config;
pub use descriptors::{OpenFiles, open_files};
pub use intake::{IntakeOptions, intake};
pub use open::{answers, open_inbox, store_options};
pub use owed::owed;
pub use problem::Problem;
pub use run::{LocalApi, RunOutcome, Server, ServerFacts, StartError, termination};
