//! Waking those who wait for a batch. A wake across threads costs a system call when the other thread sleeps, so a
//! thread that runs the tasks of many waiters can gather: it is woken once a batch, and wakes its own tasks itself.
//! Answers lie in their slots already; only the wakes take this way, so a lost gatherer delays nobody.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

thread_local! {
    /// Where wakes for tasks of this thread are gathered.
    static DESK: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
}

/// Where one thread's wakes wait for it.
#[derive(Debug, Default)]
struct Desk(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    due: Vec<Waker>,
    /// The task that wakes the others; `None` before it was first polled.
    gatherer: Option<Waker>,
    /// Nobody comes any more.
    closed: bool,
}

/// Wakes the tasks of this thread that wait for commits, all of a batch together. Made by [`gather_answers`]; it does
/// its work for as long as it is polled, and is never ready.
///
/// When it is dropped, everything is as without it.
#[derive(Debug)]
#[must_use = "it does nothing unless it is polled"]
pub struct GatherAnswers {
    desk: Arc<Desk>,
    /// What is being woken; kept for its memory.
    due: Vec<Waker>,
}

/// Has the tasks of the calling thread woken by one wake for each commit, instead of one for each event.
///
/// For a thread that takes in many events at once: a single-threaded runtime. Spawn what is returned in that runtime,
/// on this thread. **It must be polled for as long as it lives**: until it is, nobody on this thread hears of a commit.
pub fn gather_answers() -> GatherAnswers {
    let desk = Arc::<Desk>::default();
    DESK.with_borrow_mut(|here| *here = Some(Arc::clone(&desk)));
    GatherAnswers { desk, due: Vec::new() }
}

impl Desk {
    /// A list and two flags, right at every step, so a panic elsewhere does not spoil them.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves wakers for the gatherer, or wakes them where there is none.
    fn leave(&self, wakers: &mut Vec<Waker>) {
        let gatherer = {
            let mut state = self.state();
            if state.closed {
                None
            } else {
                state.due.append(wakers);
                state.gatherer.clone()
            }
        };
        gatherer.into_iter().chain(wakers.drain(..)).for_each(Waker::wake);
    }
}

impl Future for GatherAnswers {
    type Output = Infallible;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Infallible> {
        let this = self.get_mut();
        {
            let mut state = this.desk.state();
            if !state.gatherer.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                state.gatherer = Some(context.waker().clone());
            }
            std::mem::swap(&mut state.due, &mut this.due);
        }
        this.due.drain(..).for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for GatherAnswers {
    fn drop(&mut self) {
        let left = {
            let mut state = self.desk.state();
            state.closed = true;
            state.gatherer = None;
            std::mem::take(&mut state.due)
        };
        left.into_iter().for_each(Waker::wake);
        // At the end of a thread its variables may be gone already, and with them what is cleared here. A desk of
        // another gatherer stays.
        let _gone = DESK.try_with(|here| {
            here.borrow_mut().take_if(|desk| Arc::ptr_eq(desk, &self.desk));
        });
    }
}

/// A task that waits, and where it is woken.
#[derive(Debug)]
pub(super) struct Sleeper {
    waker: Waker,
    desk: Option<Arc<Desk>>,
}

impl Sleeper {
    /// A task that is being polled on this thread.
    pub(super) fn here(waker: &Waker) -> Self {
        Self { waker: waker.clone(), desk: DESK.try_with(|here| here.borrow().clone()).ok().flatten() }
    }

    /// Whether it is the task of this waker.
    pub(super) fn is_woken_by(&self, waker: &Waker) -> bool {
        self.waker.will_wake(waker)
    }
}

/// The wakes of a batch, sorted by where they go. They are sent when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<(Arc<Desk>, Vec<Waker>)>);

impl Wakes {
    /// Adds a task; one that no thread gathers for is woken at once.
    pub(super) fn add(&mut self, sleeper: Sleeper) {
        let Sleeper { waker, desk } = sleeper;
        let Some(desk) = desk else { return waker.wake() };
        match self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &desk)) {
            Some((_, wakers)) => wakers.push(waker),
            None => self.0.push((desk, vec![waker])),
        }
    }

    /// Wakes everybody who was added.
    pub(super) fn send(&mut self) {
        self.0.iter_mut().for_each(|(desk, wakers)| desk.leave(wakers));
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.send();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Count {
        fn get(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn poll(gatherer: &mut GatherAnswers, task: &Arc<Count>) {
        let waker = Waker::from(task.clone());
        assert!(Pin::new(gatherer).poll(&mut Context::from_waker(&waker)).is_pending());
    }

    fn batch(waiter: &Arc<Count>, size: usize) -> Wakes {
        let mut wakes = Wakes::default();
        (0..size).for_each(|_| wakes.add(Sleeper::here(&Waker::from(waiter.clone()))));
        wakes
    }

    #[test]
    fn a_batch_is_one_wake_of_the_gatherer_which_wakes_the_rest() {
        let (task, waiter) = (Arc::<Count>::default(), Arc::<Count>::default());
        let mut gatherer = gather_answers();
        poll(&mut gatherer, &task);
        let wakes = batch(&waiter, 64);
        assert_eq!((task.get(), waiter.get()), (0, 0));
        drop(wakes);
        assert_eq!((task.get(), waiter.get()), (1, 0));
        poll(&mut gatherer, &task);
        assert_eq!((task.get(), waiter.get()), (1, 64));
    }

    #[test]
    fn what_came_before_the_first_poll_is_woken_by_it() {
        let (task, waiter) = (Arc::<Count>::default(), Arc::<Count>::default());
        let mut gatherer = gather_answers();
        drop(batch(&waiter, 2));
        poll(&mut gatherer, &task);
        assert_eq!(waiter.get(), 2);
    }

    #[test]
    fn without_a_gatherer_everybody_is_woken_directly() {
        let waiter = Arc::<Count>::default();
        let _kept = batch(&waiter, 1);
        assert_eq!(waiter.get(), 1);
        let gatherer = gather_answers();
        let before_its_end = batch(&waiter, 2);
        drop(batch(&waiter, 3));
        drop(gatherer);
        assert_eq!(waiter.get(), 1 + 3, "what it had left");
        drop(before_its_end);
        assert_eq!(waiter.get(), 1 + 3 + 2, "what was on its way to it");
        let _kept = batch(&waiter, 1);
        assert_eq!(waiter.get(), 1 + 3 + 2 + 1, "what came after it");
    }
}
