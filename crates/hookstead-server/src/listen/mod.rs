//! Connections: accepting them, bounding them in number and in time, and ending them without losing an
//! answer. Knows HTTP/1 framing through hyper, and nothing of sources, events or the API.

mod accept;
mod activity;
mod connections;
mod share;
mod timed;

pub(crate) use accept::{HalfClosed, Listening, Stop, bind, serve};
pub(crate) use activity::Unread;
pub(crate) use connections::{Connections, Place};
pub(crate) use share::Share;
pub(crate) use timed::Times;
