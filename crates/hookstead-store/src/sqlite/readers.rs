//! The connections that read: a bounded number, opened when first needed and kept.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use hookstead_core::StoreError;
use rusqlite::Connection;

use super::connect::Target;
use super::failure::reading;

#[derive(Debug)]
pub(super) struct Readers {
    target: Target,
    connections_max: usize,
    wait_max: Duration,
    pool: Mutex<Pool>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Connection>,
    open: usize,
}

impl Readers {
    pub(super) fn new(target: Target, connections_max: usize) -> Self {
        let wait_max = target.busy_timeout;
        Self {
            target,
            connections_max: connections_max.max(1),
            wait_max,
            pool: Mutex::default(),
            given_back: Condvar::new(),
        }
    }

    /// Runs `read` on one state of the database, however many statements it has.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut reader = self.take()?;
        let connection = reader.connection()?;
        begin(connection)?;
        // A connection that met an error is closed and not used again; that also ends its read.
        let answer = read(connection)?;
        run(connection, "COMMIT").map_err(reading("end a read"))?;
        reader.sound = true;
        Ok(answer)
    }

    /// Closes what is idle. Reads that are running end by themselves.
    pub(super) fn close_idle(&self) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.open -= pool.idle.len();
        pool.idle.clear();
    }

    fn take(&self) -> Result<Reader<'_>, StoreError> {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let all_taken = |pool: &mut Pool| pool.idle.is_empty() && pool.open >= self.connections_max;
        let (mut pool, waited) = self
            .given_back
            .wait_timeout_while(pool, self.wait_max, all_taken)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && all_taken(&mut pool) {
            let what = format!("all {} connections that read are taken", self.connections_max);
            return Err(StoreError::Busy { what });
        }
        let idle = pool.idle.pop();
        if idle.is_none() {
            pool.open += 1;
        }
        drop(pool);
        // The place is taken before the connection is opened, and given back by `Reader` if that fails.
        let mut reader = Reader { readers: self, connection: idle, sound: false };
        if reader.connection.is_none() {
            reader.connection = Some(self.target.reader().map_err(reading("open a connection to read"))?);
        }
        Ok(reader)
    }
}

fn begin(connection: &Connection) -> Result<(), StoreError> {
    run(connection, "BEGIN").map_err(reading("begin a read"))
}

/// Runs a statement that is kept: a dispatcher reads twice for each delivery.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// A connection that is taken. Dropped, it is idle again if its last read went well, and closed if not.
struct Reader<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
    sound: bool,
}

impl Reader<'_> {
    fn connection(&self) -> Result<&Connection, StoreError> {
        let gone = || StoreError::Busy { what: "a connection to read could not be opened".to_owned() };
        self.connection.as_ref().ok_or_else(gone)
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let sound = self.connection.take().filter(|_| self.sound);
        let mut pool = self.readers.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match sound {
            Some(connection) => pool.idle.push(connection),
            None => pool.open -= 1,
        }
        drop(pool);
        self.readers.given_back.notify_one();
    }
}
