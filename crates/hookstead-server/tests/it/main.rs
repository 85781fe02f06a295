//! The server from outside: its configuration, its intake over real sockets, its admin API.

// `cfg(test)` holds for all of this; said again, clippy sees that the helpers are tests as well.
#[cfg(test)]
mod admin;
#[cfg(test)]
mod config;
#[cfg(test)]
mod destinations;
#[cfg(test)]
mod dev_mode;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod fuzzing;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod intake;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod long_lists;
#[cfg(test)]
mod pull;
#[cfg(test)]
mod stop;
mod transfer;
#[cfg(test)]
mod work;
