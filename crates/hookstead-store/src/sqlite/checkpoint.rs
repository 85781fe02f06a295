//! Moving the write-ahead log into the database. A thread of its own does it, passively, while the writer
//! goes on; the writer itself resets the log when it comes near its cap, so that the log is written from its
//! beginning again and never grows. Nothing here ever cuts the log: a commit then overwrites blocks that
//! the disk has written before.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hookstead_core::StoreError;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use super::connect::Target;
use super::failure::writing;
use crate::poison::Poison;

/// So many frames make a checkpoint worth its sync of the database, or a quarter of a log that is smaller.
const FRAMES_WORTH: u32 = 500;

/// The least time between two checkpoints by the thread.
const PAUSE: Duration = Duration::from_millis(20);

/// What writer and thread share.
#[derive(Debug)]
pub(super) struct Log {
    /// Frames in the log at the newest commit.
    frames: AtomicU32,
    /// Something may have been moved into the database since somebody asked: the next commit may begin the log anew.
    moved: AtomicBool,
    /// So many make a checkpoint worth it.
    frames_worth: u32,
    /// One checkpoint at a time: SQLite would answer the second one that it is busy, without waiting.
    running: Mutex<()>,
    wanted: Mutex<Wanted>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Wanted {
    checkpoint: bool,
    stop: bool,
}

/// Whether the log was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// The next commit begins at its start.
    Done,
    /// A reader still needs it.
    InUse,
}

impl Log {
    /// A log that may have `frames_max` frames.
    pub(super) fn new(frames_max: u32) -> Self {
        Self {
            frames: AtomicU32::new(0),
            moved: AtomicBool::new(true),
            frames_worth: FRAMES_WORTH.min(frames_max / 4),
            running: Mutex::new(()),
            wanted: Mutex::default(),
            woken: Condvar::new(),
        }
    }

    /// Frames in the log.
    pub(super) fn frames(&self) -> u32 {
        self.frames.load(Ordering::Acquire)
    }

    /// Whether something may have been moved into the database since the last time that this was asked.
    pub(super) fn take_moved(&self) -> bool {
        self.moved.swap(false, Ordering::AcqRel)
    }

    /// Has the next who asks told that something may have been moved: whoever asked last made nothing of the answer.
    pub(super) fn note_moved(&self) {
        self.moved.store(true, Ordering::Release);
    }

    /// Has the number of frames kept up to date by the commits of `connection`.
    pub(super) fn follow(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let log = Arc::clone(self);
        connection.wal_hook(Some(move |_: &mut _, frames| {
            log.frames.store(u32::try_from(frames).unwrap_or(0), Ordering::Release);
            Ok(())
        }))
    }

    /// Wakes the thread if there is enough to do.
    pub(super) fn committed(&self) {
        if self.frames() >= self.frames_worth {
            lock(&self.wanted).checkpoint = true;
            self.woken.notify_one();
        }
    }

    /// Checkpoints everything and resets the log, if no reader needs it within the connection's time limit.
    pub(super) fn reset(&self, connection: &Connection) -> Result<Reset, StoreError> {
        let _running = lock(&self.running);
        let reset = connection.wal_checkpoint_v2(Some(c"main"), CheckpointMode::RESTART);
        // SQLite answers that it is busy also where everything was moved, and only a reader was in the way of the rest.
        self.note_moved();
        match reset {
            Ok(_) => {
                self.frames.store(0, Ordering::Release);
                Ok(Reset::Done)
            }
            Err(error) => match writing("reset the write-ahead log")(error) {
                StoreError::Busy { .. } => Ok(Reset::InUse),
                error => Err(error),
            },
        }
    }

    /// Moves what can be moved without keeping anybody waiting: nothing, where a commit is just then writing down where
    /// the log ends. The next commit asks again.
    pub(super) fn checkpoint(&self, connection: &Connection) -> Result<(), StoreError> {
        let _running = lock(&self.running);
        // Before, for a commit that begins when SQLite is through and has not returned; after, for the ones that follow.
        self.note_moved();
        let moved = connection.wal_checkpoint_v2(Some(c"main"), CheckpointMode::PASSIVE);
        self.note_moved();
        match moved.map(drop).map_err(writing("checkpoint")) {
            Err(StoreError::Busy { .. }) => Ok(()),
            result => result,
        }
    }
}

/// The thread that checkpoints. It ends with [`Checkpointer::stop`].
#[derive(Debug)]
pub(super) struct Checkpointer {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread. Its failures poison as a write's do; the next commit reports them.
    pub(super) fn start(target: Target, log: Arc<Log>, poison: Arc<Poison>) -> std::io::Result<Self> {
        let seen = Arc::clone(&log);
        let work = move || run(&target, &seen, &poison);
        let thread = std::thread::Builder::new().name("hookstead-checkpoint".to_owned()).spawn(work)?;
        Ok(Self { log, thread: Some(thread) })
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(&mut self) {
        lock(&self.log.wanted).stop = true;
        self.log.woken.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(target: &Target, log: &Log, poison: &Poison) {
    let mut connection = None;
    while wait_for_work(log) && poison.check().is_ok() {
        if let Err(error) = work(target, log, &mut connection) {
            // No room to checkpoint is no loss: the log holds everything, up to its cap.
            poison.note(&error);
            tracing::warn!(%error, "a checkpoint failed");
            connection = None;
        }
        if pause(log) {
            return;
        }
    }
}

fn work(target: &Target, log: &Log, connection: &mut Option<Connection>) -> Result<(), StoreError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(target.writer().map_err(writing("open a connection to checkpoint"))?),
    };
    log.checkpoint(connection)
}

/// Waits until there is work. `false`: it is time to stop.
fn wait_for_work(log: &Log) -> bool {
    let wanted = lock(&log.wanted);
    let idle = |wanted: &mut Wanted| !wanted.stop && !wanted.checkpoint;
    let mut wanted = log.woken.wait_while(wanted, idle).unwrap_or_else(PoisonError::into_inner);
    wanted.checkpoint = false;
    !wanted.stop
}

/// Lets the writer be for a while. `true`: it is time to stop.
fn pause(log: &Log) -> bool {
    let wanted = lock(&log.wanted);
    let going_on = |wanted: &mut Wanted| !wanted.stop;
    let waited =
        log.woken.wait_timeout_while(wanted, PAUSE, going_on).unwrap_or_else(PoisonError::into_inner);
    waited.0.stop
}

/// The values behind these locks are whole at every moment, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_checkpoint_that_finds_the_log_busy_has_not_failed() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let connection = Connection::open(folder.path().join("x.db")).unwrap();
            connection.execute_batch("PRAGMA journal_mode = wal").unwrap();
            connection
        };
        let writer = open();
        writer.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        let reader = open();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        // Whoever waits for the reader has the lock that a checkpoint needs.
        let (mut other, ours, log) = (open(), open(), Log::new(1000));
        assert!(ours.wal_checkpoint_v2(Some(c"main"), CheckpointMode::PASSIVE).is_ok());
        let (found, seen) = mpsc::channel();
        let while_busy = move |_| {
            let without = ours.wal_checkpoint_v2(Some(c"main"), CheckpointMode::PASSIVE).is_err();
            log.take_moved();
            found.send((without, log.checkpoint(&ours).is_ok(), log.take_moved())).unwrap();
            false
        };
        other.busy_handler(Some(while_busy)).unwrap();
        other.wal_checkpoint_v2(Some(c"main"), CheckpointMode::RESTART).unwrap_err();
        assert_eq!(seen.recv(), Ok((true, true, true)));
    }

    /// The commit after it begins the log anew, once the reader is gone.
    #[test]
    fn a_reset_that_a_reader_is_in_the_way_of_may_have_moved_everything() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let connection = Connection::open(folder.path().join("x.db")).unwrap();
            connection.execute_batch("PRAGMA journal_mode = wal; PRAGMA busy_timeout = 0").unwrap();
            connection
        };
        let (writer, reader, log) = (open(), open(), Log::new(1000));
        writer.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)").unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        log.take_moved();
        assert_eq!(log.reset(&writer).unwrap(), Reset::InUse);
        assert!(log.take_moved());
        reader.execute_batch("COMMIT").unwrap();
        let frames =
            || -> u32 { writer.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).unwrap() };
        let before = frames();
        writer.execute_batch("INSERT INTO t VALUES (4)").unwrap();
        assert!(frames() < before, "{} of {before}", frames());
    }
}
