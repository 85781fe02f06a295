//! The answer to a write that is on its way into the store: a slot that the committer fills once and one waiter
//! empties.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hookstead_core::Written;

use super::wake::{Sleeper, Wakes};
use crate::error::Unavailable;

/// A write that was queued. Dropping this does not take the write back: it is committed all the same.
#[derive(Debug)]
pub(crate) struct Pending(Arc<Slot>);

/// The committer's side of a [`Pending`]. Dropped without an answer, it says that there will be none.
#[derive(Debug)]
pub(super) struct Promise(Option<Arc<Slot>>);

/// What a write came to, or why it could not be done.
pub(super) type Answer = Result<Written, Unavailable>;

#[derive(Debug)]
struct Slot(Mutex<State>);

#[derive(Debug)]
enum State {
    /// No answer yet; who waits for it, if anybody does.
    Open(Option<Sleeper>),
    Answered(Answer),
    /// The answer was taken.
    Taken,
}

pub(super) fn pending() -> (Promise, Pending) {
    let slot = Arc::new(Slot(Mutex::new(State::Open(None))));
    (Promise(Some(slot.clone())), Pending(slot))
}

impl Slot {
    /// The state is replaced whole, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, answer: Answer) -> Option<Sleeper> {
        match std::mem::replace(&mut *self.state(), State::Answered(answer)) {
            State::Open(sleeper) => sleeper,
            State::Answered(_) | State::Taken => None,
        }
    }
}

impl Promise {
    /// Gives the answer; whoever waits for it is woken with the others in `wakes`. There may be nobody: the sender of
    /// a request hung up. The commit stands all the same.
    pub(super) fn give(mut self, answer: Answer, wakes: &mut Wakes) {
        if let Some(slot) = self.0.take()
            && let Some(sleeper) = slot.fill(answer)
        {
            wakes.add(sleeper);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            let mut wakes = Wakes::default();
            slot.fill(Err(unanswered())).into_iter().for_each(|sleeper| wakes.add(sleeper));
        }
    }
}

impl Pending {
    /// Waits on this thread. It must not be a thread that runs asynchronous tasks.
    pub(crate) fn wait(mut self) -> Answer {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(answer) = Pin::new(&mut self).poll(&mut context) {
                return answer;
            }
            std::thread::park();
        }
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.0.state();
        match &mut *state {
            State::Open(Some(sleeper)) if sleeper.is_woken_by(context.waker()) => Poll::Pending,
            State::Open(sleeper) => {
                *sleeper = Some(Sleeper::here(context.waker()));
                Poll::Pending
            }
            State::Answered(_) | State::Taken => match std::mem::replace(&mut *state, State::Taken) {
                State::Answered(answer) => Poll::Ready(answer),
                // Polled after it was ready: what it said then stands, and there is nothing to add to it.
                State::Open(_) | State::Taken => Poll::Ready(Err(unanswered())),
            },
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The committer is gone without an answer: it panicked, and whether the write is durable is unknown.
fn unanswered() -> Unavailable {
    Unavailable::Poisoned(Arc::from("the committer stopped without an answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reaches_a_thread_that_waits() {
        let (promise, pending) = pending();
        let waiter = std::thread::spawn(|| pending.wait());
        promise.give(Err(Unavailable::Closing), &mut Wakes::default());
        assert_eq!(waiter.join().unwrap().unwrap_err(), Unavailable::Closing);
    }

    #[test]
    fn a_broken_promise_is_an_answer() {
        let (promise, pending) = pending();
        let waiter = std::thread::spawn(|| pending.wait());
        drop(promise);
        assert!(matches!(waiter.join().unwrap(), Err(Unavailable::Poisoned(_))));
    }
}
