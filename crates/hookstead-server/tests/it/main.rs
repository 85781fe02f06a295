//! The server from outside: its configuration, its intake over real sockets, its admin API.

mod admin;
mod config;
mod dev_mode;
mod harness;
mod intake;
mod limits;
mod stop;
