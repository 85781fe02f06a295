//! The threads that deliveries are made on, in a runtime of their own: what pushes wait for wakes no thread of the
//! intake, and the other way round. With one thread nothing is handed from core to core, and a commit wakes it once for
//! all that it settled. It knows nothing of what runs on it.

use std::convert::Infallible;
use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// The most threads. One makes more pushes than a store here records; past these, more of them only wait.
const THREADS_MAX: usize = 8;

/// So many cores for each thread: the others take events in and commit.
const CORES_PER_THREAD: usize = 2;

/// The threads of the deliveries. When this is dropped without [`DeliveryThreads::end`], what runs on them ends at once.
pub(super) struct DeliveryThreads {
    handle: Handle,
    end: oneshot::Sender<Infallible>,
    thread: JoinHandle<()>,
}

impl DeliveryThreads {
    /// Starts the threads.
    pub(super) fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let threads = (cores / CORES_PER_THREAD).clamp(1, THREADS_MAX);
        let runtime = runtime(threads)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("hookstead-deliver".to_owned());
        let thread = thread.spawn(move || run(runtime, threads, ended))?;
        Ok(Self { handle, end, thread })
    }

    /// Runs `start` as if on these threads: the tasks that it spawns run there.
    pub(super) fn enter<T>(&self, start: impl FnOnce() -> T) -> T {
        let _entered = self.handle.enter();
        start()
    }

    /// Ends the threads and waits until they have ended; what still runs on them is dropped.
    pub(super) async fn end(self) {
        drop(self.end);
        let thread = self.thread;
        if !matches!(tokio::task::spawn_blocking(move || thread.join()).await, Ok(Ok(()))) {
            tracing::error!("a thread of the deliveries did not end in order");
        }
    }
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    if threads == 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    Builder::new_multi_thread().worker_threads(threads).thread_name("hookstead-deliver").enable_all().build()
}

/// Keeps the runtime until the end.
fn run(runtime: Runtime, threads: usize, ended: oneshot::Receiver<Infallible>) {
    runtime.block_on(async move {
        if threads == 1 {
            // Tasks that wait for commits are all on this thread.
            tokio::spawn(hookstead::gather_answers());
        }
        // Nothing is sent: the end is that the sender is dropped.
        drop(ended.await);
    });
    // A look-up of a name that hangs is not waited for.
    runtime.shutdown_background();
}
