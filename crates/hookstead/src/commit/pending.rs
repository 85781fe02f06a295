//! The answer to a write that is on its way into the store.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hookstead_core::Written;
use tokio::sync::oneshot;

use crate::error::Unavailable;

/// A write that was queued. Dropping this does not take the write back: it is committed all the same.
pub(crate) struct Pending(oneshot::Receiver<Answer>);

/// What a write came to, or why it could not be done.
pub(super) type Answer = Result<Written, Unavailable>;

pub(super) fn pending() -> (oneshot::Sender<Answer>, Pending) {
    let (sender, receiver) = oneshot::channel();
    (sender, Pending(receiver))
}

impl Pending {
    /// Waits on this thread. It must not be a thread that runs asynchronous tasks.
    pub(crate) fn wait(self) -> Answer {
        self.0.blocking_recv().unwrap_or_else(|_| Err(unanswered()))
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(unanswered())))
    }
}

/// The committer is gone without an answer: it panicked, and whether the write is durable is unknown.
fn unanswered() -> Unavailable {
    Unavailable::Poisoned(Arc::from("the committer stopped without an answer"))
}
