//! What the tests share: a project on disk, the server as a process, and a client that sends exact bytes.

mod admin;
mod http;
mod project;
mod random;
mod request;
mod server;

pub(crate) use admin::Admin;
pub(crate) use http::{Connection, Reply};
pub(crate) use project::{Project, StoreKind};
pub(crate) use random::Random;
pub(crate) use request::{Request, SECRET, SOURCE, signature, unix_time};
pub(crate) use server::{Server, send_signal};
