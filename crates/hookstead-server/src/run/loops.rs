//! The threads of the intake: one accept loop each, in a runtime of its own, on a clone of one listener. A request is
//! read, checked and answered on one thread, and no other core's cache hears of it before its event is handed over.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{oneshot, watch};
use tokio::time::{Duration, Instant};

use crate::listen::{Connections, HalfClosed, Listening, Share, Stop, Times};

/// The most loops. What one core accepts is more than any disk here commits; past these, more threads only wait.
const LOOPS_MAX: usize = 32;

/// Accept loops on threads of their own. When this is dropped without [`Loops::end`], they end at once.
pub(super) struct Loops {
    pub(super) stop: watch::Sender<Stop>,
    threads: Vec<JoinHandle<()>>,
}

/// What all loops of a listener have in common.
pub(super) struct Common {
    pub(super) listener: TcpListener,
    pub(super) connections: Arc<Connections>,
    pub(super) times: Times,
}

impl Loops {
    /// Starts a loop a core. `serve` is run on each thread, inside its runtime. When this returns, all of them have
    /// their runtime.
    pub(super) async fn start<S, F>(common: Common, stop: watch::Sender<Stop>, serve: S) -> io::Result<Self>
    where
        S: Fn(Listening) -> F + Clone + Send + 'static,
        F: Future<Output = ()>,
    {
        let count = std::thread::available_parallelism()?.get().min(LOOPS_MAX);
        let mut loops = Self { stop, threads: Vec::with_capacity(count) };
        for (number, share) in Share::among(count).into_iter().enumerate() {
            let listener = common.listener.try_clone()?;
            let (connections, times, serve) = (common.connections.clone(), common.times, serve.clone());
            let (tell, told) = oneshot::channel();
            let work = move || {
                run(tell, async move {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    Ok(serve(Listening {
                        listener,
                        connections,
                        share,
                        times,
                        half_closed: HalfClosed::Answered,
                    }))
                });
            };
            let thread = std::thread::Builder::new().name(format!("hookstead-intake-{number}"));
            loops.threads.push(thread.spawn(work)?);
            told.await.map_err(|_| io::Error::other("a thread of the intake ended at its start"))??;
        }
        Ok(loops)
    }

    /// Ends the loops and waits until they have ended: in order within `time`, else by force.
    pub(super) async fn end(self, time: Duration) {
        self.stop.send_replace(Stop::Until(Instant::now() + time));
        let threads = self.threads;
        let joined = tokio::task::spawn_blocking(move || {
            threads.into_iter().map(JoinHandle::join).all(|end| end.is_ok())
        });
        if !matches!(joined.await, Ok(true)) {
            tracing::error!("a thread of the intake did not end in order");
        }
    }
}

/// One thread: makes the runtime, says whether that worked, and runs the loop to its end.
fn run<F: Future<Output = ()>>(
    tell: oneshot::Sender<io::Result<()>>,
    begin: impl Future<Output = io::Result<F>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return say(tell, Err(error)),
    };
    runtime.block_on(async move {
        match begin.await {
            Ok(serve) => {
                // In this runtime, so on this thread; it ends with the runtime.
                tokio::spawn(hookstead::gather_answers());
                say(tell, Ok(()));
                serve.await;
            }
            Err(error) => say(tell, Err(error)),
        }
    });
}

/// Nobody listens if the start was given up; then the loop ends with its switch.
fn say(tell: oneshot::Sender<io::Result<()>>, result: io::Result<()>) {
    drop(tell.send(result));
}
