//! Group commit without a timer: the only caller of [`Store::apply`](hookstead_core::Store::apply).
//!
//! A committer thread takes what is queued, commits it once, answers all of it, and takes what has queued up
//! meanwhile. Idle, it costs nothing; a single write waits for one fsync; load makes the batches. The queue
//! is bounded in entries, bytes and time, and what does not fit is refused at once. This module knows neither
//! sources nor signatures nor HTTP.

mod health;
mod news;
mod pace;
mod pending;
mod queue;
#[cfg(test)]
mod tests;
mod thread;
mod wake;

pub use health::Health;
pub use news::News;
pub use queue::CommitLimits;
pub use wake::{GatherAnswers, gather_answers};

pub(crate) use pending::Pending;
pub(crate) use queue::LaneName;
pub(crate) use thread::{Committer, commit_first};
