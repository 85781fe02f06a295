//! Black-box tests: the real binary, real sockets, real signals.
//!
//! Each module is one concern; `harness/` starts the server and speaks HTTP to it byte by byte. Nothing here may use
//! the product's own crates: a rule that the product gets wrong must not be wrong here in the same way.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a test prints is part of its report")]

mod backup;
mod canary;
mod cases;
mod clocks;
mod conformance;
mod deliveries;
mod delivery_kills;
mod demo;
mod destinations;
mod disk_faults;
mod disk_limits;
mod doctor;
mod failstop;
mod framing;
mod full_disk;
mod handshakes;
mod harness;
mod help;
mod kill_loop;
mod kill_points;
mod lifecycle;
mod limits;
mod lookup;
mod overload;
mod providers;
mod pull;
mod readme;
mod replay;
mod send;
mod senders;
mod sources;
mod storms;
mod subscription;
mod tail;
mod terminal;
mod traced;
mod transfer;
mod verbs;
