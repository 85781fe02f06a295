//! What the tests share: a project on disk, the server as a process, and a client that sends exact bytes.

mod acknowledged;
mod admin;
mod clock;
mod consumer;
mod descriptors;
mod disk;
mod evidence;
mod http;
mod port;
mod process;
mod project;
mod random;
mod request;
mod server;
mod target;
mod time;
mod tmpfs;

pub(crate) use acknowledged::{Events, Losses, check_all, fill_index};
pub(crate) use admin::Admin;
pub(crate) use clock::{CLOCK_LIBRARY, WallClock};
pub(crate) use consumer::{Act, Consumer, PULLED};
pub(crate) use descriptors::descriptors_allowed;
pub(crate) use disk::{Disk, Fault, Kind};
pub(crate) use evidence::{Evidence, size_from};
pub(crate) use http::{Connection, Reply};
pub(crate) use port::{ClosedPort, KeptAddress};
pub(crate) use process::{PATIENCE, wait_until};
pub(crate) use project::{Project, StoreKind};
pub(crate) use random::Random;
pub(crate) use request::{Request, SECRET, SOURCE, signature, unix_time};
pub(crate) use server::{Ended, Server, send_signal};
pub(crate) use target::Target;
pub(crate) use time::{instant, median};
pub(crate) use tmpfs::Tmpfs;
