//! Effects: statements of the caller's own, run in the batch's transaction within a savepoint, so that they and the
//! settle that carries them are committed together or not at all. Here is how one is run and undone; what it may not do
//! stands in `guard.rs`. It knows nothing of deliveries.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hookstead_core::{Effect, EffectFailure, StoreError};
use rusqlite::{Connection, Params, Row};

use super::failure::{of_an_effect, writing};
use super::guard::{Guard, Stop};

/// The kind of store that these effects are for.
pub(super) const KIND: &str = "sqlite";

/// The longest error of an effect that is recorded, in bytes.
const ERROR_BYTES_MAX: usize = 1024;

/// What an effect fails with: anything that `?` makes of an error, or a text by `.into()`.
pub type EffectError = Box<dyn Error + Send + Sync>;

/// An effect for `sqlite:` stores: `run` is called in the transaction that settles the delivery, on the thread that
/// commits, and what it writes is committed together with `done` or not at all.
///
/// See [`SqliteTransaction`] for what it may do. It runs only while the lease is the settler's, and for at most
/// [`OpenOptions::effect_time_max`](crate::OpenOptions::effect_time_max). If it fails, panics, or takes longer, all of it
/// is undone, and the delivery is tried again later; nothing else of the batch is touched.
///
/// It may run more than once before it is committed: a batch that fails is run again. So it must be a function of the
/// transaction and of what it captured, and change nothing else. It must not wait for anything, least of all for the
/// inbox itself: nothing is committed while it runs.
pub fn sqlite_effect<F>(run: F) -> Effect
where
    F: Fn(&SqliteTransaction<'_>) -> Result<(), EffectError> + Send + Sync + 'static,
{
    Effect::new(KIND, SqliteEffect(Box::new(run)))
}

type Run = dyn Fn(&SqliteTransaction<'_>) -> Result<(), EffectError> + Send + Sync;

struct SqliteEffect(Box<Run>);

/// The transaction of a batch, as an effect may use it.
///
/// Tables, indexes, views and triggers of the caller's own are free, and their making is part of the transaction.
/// Everything in the database can be read, as of this moment in the batch. Refused are writes to hookstead's own tables
/// and to the temporary schema, virtual tables, and statements that begin or end transactions or savepoints, attach or
/// detach databases, analyze, vacuum, or are a `PRAGMA`. A refused statement fails the effect, also if its error is ignored.
///
/// Foreign keys are not enforced in this database.
pub struct SqliteTransaction<'a> {
    connection: &'a Connection,
    guard: &'a Guard,
    /// A failure that is the store's and not the effect's.
    harm: RefCell<Option<StoreError>>,
}

impl SqliteTransaction<'_> {
    /// Runs one statement; how many rows it changed.
    ///
    /// # Errors
    ///
    /// As SQLite says, or if the statement is refused or the effect has used up its time.
    pub fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.run(|connection| connection.execute(sql, params))
    }

    /// Runs statements without parameters, one after the other, until one fails.
    ///
    /// # Errors
    ///
    /// As for [`SqliteTransaction::execute`].
    pub fn execute_batch(&self, sql: &str) -> rusqlite::Result<()> {
        self.run(|connection| connection.execute_batch(sql))
    }

    /// The first row of a query.
    ///
    /// # Errors
    ///
    /// [`rusqlite::Error::QueryReturnedNoRows`] if there is none; else as for [`SqliteTransaction::execute`].
    pub fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.run(|connection| connection.query_row(sql, params, read))
    }

    /// All rows of a query.
    ///
    /// # Errors
    ///
    /// As for [`SqliteTransaction::execute`].
    pub fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.run(|connection| connection.prepare(sql)?.query_map(params, read)?.collect())
    }

    /// The row id of the row that was inserted last.
    pub fn last_insert_rowid(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    /// Every statement of an effect goes through here. None is taken from the connection's cache: what lies there was
    /// prepared without the guard.
    fn run<T>(&self, statement: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        // Without its transaction a statement would be committed by itself.
        if self.connection.is_autocommit() {
            return Err(refusal("the effect has undone its transaction: nothing more can be done in it"));
        }
        self.guard.check_time().map_err(|stop| refusal(&stop.error))?;
        statement(self.connection).map_err(|error| {
            if let Some(harm) = of_an_effect(&error) {
                self.harm.borrow_mut().get_or_insert(harm);
            }
            self.guard.stop().map_or(error, |stop| refusal(&stop.error))
        })
    }
}

/// What became of an effect.
pub(super) enum Ran {
    /// It stands, as far as the batch does.
    Kept,
    /// It was undone; the batch goes on.
    Undone(EffectFailure),
    /// It took the whole batch with it, which must be run again without it.
    BatchUndone(EffectFailure),
}

/// Whether this store can run an effect; says so before anything is written.
pub(super) fn check(effect: &Effect) -> Result<(), StoreError> {
    effect.made_for::<SqliteEffect>(KIND).map(drop).ok_or_else(|| effect.refused_by(KIND))
}

/// Runs an effect within a savepoint of its own.
pub(super) fn run(connection: &Connection, guard: &Guard, effect: &Effect) -> Result<Ran, StoreError> {
    let effect: &SqliteEffect = effect.made_for(KIND).ok_or_else(|| effect.refused_by(KIND))?;
    savepoint(connection, "SAVEPOINT hookstead_effect")?;
    let transaction = SqliteTransaction { connection, guard, harm: RefCell::new(None) };
    guard.begin();
    let result = catch_unwind(AssertUnwindSafe(|| (effect.0)(&transaction)));
    let stop = guard.end();
    if let Some(harm) = transaction.harm.into_inner() {
        return Err(harm);
    }
    let failure = failure(stop, result);
    if connection.is_autocommit() {
        return Ok(Ran::BatchUndone(failure.unwrap_or_else(|| {
            failed("effect-rollback", "the effect undid its transaction and said that all was well")
        })));
    }
    let Some(failure) = failure else {
        savepoint(connection, "RELEASE hookstead_effect")?;
        return Ok(Ran::Kept);
    };
    savepoint(connection, "ROLLBACK TO hookstead_effect")?;
    savepoint(connection, "RELEASE hookstead_effect")?;
    Ok(Ran::Undone(failure))
}

fn savepoint(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map(drop)
        .map_err(writing("keep an effect apart"))
}

type Caught = std::thread::Result<Result<(), EffectError>>;

/// Why it failed, if it did: what it was stopped for comes before what it says itself.
fn failure(stop: Option<Stop>, result: Caught) -> Option<EffectFailure> {
    match (result, stop) {
        (Err(panic), _) => Some(failed("effect-panic", &panicked(panic.as_ref()))),
        (_, Some(stop)) => Some(failed(stop.rule, &stop.error)),
        (Ok(Err(error)), None) => Some(failed("effect-error", &error.to_string())),
        (Ok(Ok(())), None) => None,
    }
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}

fn failed(rule: &'static str, error: &str) -> EffectFailure {
    let end = error.floor_char_boundary(ERROR_BYTES_MAX);
    EffectFailure { rule, error: error[..end].to_owned() }
}

fn refusal(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_AUTH);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}
