//! What an effect may not do: the rules, and the hooks of a connection by which SQLite asks for them. The hooks are set
//! once, when a connection is opened: to set them later would have every prepared statement prepared again. Outside of
//! an effect they allow everything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// After how many of SQLite's own steps it is looked at the time: some microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// The rule of an effect that has used up its time.
pub(super) const TIMEOUT: &str = "effect-timeout";

/// Every table of this store. Their indexes are known by them.
pub(super) const OWN_TABLES: [&str; 18] = [
    "attempts",
    "destinations",
    "done",
    "duplicates",
    "event_ids",
    "events",
    "identities",
    "identity_ranges",
    "migrations",
    "pending_identities",
    "redeliveries",
    "reused_bodies",
    "runs",
    "sources",
    "store",
    "variants",
    "watched_bodies",
    "work",
];

/// Watches over the effects of a connection.
#[derive(Debug)]
pub(super) struct Guard {
    time_max: Duration,
    /// Whether an effect is running: what is asked most is answered without the lock.
    running: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: Option<Instant>,
    /// What it was refused first.
    refused: Option<String>,
}

/// Why an effect was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) rule: &'static str,
    pub(super) error: String,
}

impl Guard {
    /// Lets no effect run for longer than `time_max`.
    pub(super) fn new(time_max: Duration) -> Self {
        Self { time_max, running: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Has the statements of a connection watched.
    pub(super) fn watch(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let (asked, looking) = (Arc::clone(self), Arc::clone(self));
        connection.authorizer(Some(move |context: AuthContext<'_>| asked.answer(&context)))?;
        connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || looking.must_interrupt()))
    }

    /// An effect begins.
    pub(super) fn begin(&self) {
        *self.state() = State { begun: Some(Instant::now()), refused: None };
        self.running.store(true, Ordering::Release);
    }

    /// The effect has ended; why it was to be stopped, if it was.
    pub(super) fn end(&self) -> Option<Stop> {
        let stop = self.stop();
        self.running.store(false, Ordering::Release);
        *self.state() = State::default();
        stop
    }

    /// Why the running effect is to be stopped, if it is.
    pub(super) fn stop(&self) -> Option<Stop> {
        let refused = self.state().refused.clone();
        let refused = refused.map(|error| Stop { rule: "effect-refused", error });
        refused.or_else(|| self.is_late().then(|| self.lateness()))
    }

    /// Refuses an effect that has used up its time.
    pub(super) fn check_time(&self) -> Result<(), Stop> {
        if self.is_late() { Err(self.lateness()) } else { Ok(()) }
    }

    fn must_interrupt(&self) -> bool {
        self.running.load(Ordering::Acquire) && self.is_late()
    }

    fn is_late(&self) -> bool {
        self.state().begun.is_some_and(|begun| begun.elapsed() > self.time_max)
    }

    fn lateness(&self) -> Stop {
        let error =
            format!("it took longer than the {} ms that an effect may take", self.time_max.as_millis());
        Stop { rule: TIMEOUT, error }
    }

    fn answer(&self, context: &AuthContext<'_>) -> Authorization {
        if !self.running.load(Ordering::Acquire) {
            return Authorization::Allow;
        }
        let Some(what) = forbidden(&context.action) else { return Authorization::Allow };
        self.state().refused.get_or_insert_with(|| format!("an effect may not {what}"));
        Authorization::Deny
    }

    /// Two options, right at every step, so a panic elsewhere does not spoil them.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an action would do that an effect may not.
fn forbidden(action: &AuthAction<'_>) -> Option<String> {
    use AuthAction as A;
    match action {
        // SQLite asks for a reindex also when an index is made.
        A::Select | A::Read { .. } | A::Recursive | A::Reindex { .. } => None,
        A::Function { function_name } => {
            is(function_name, "load_extension").then(|| "load extensions".into())
        }
        A::Insert { table_name }
        | A::Delete { table_name }
        | A::Update { table_name, .. }
        | A::CreateTable { table_name }
        | A::DropTable { table_name }
        | A::AlterTable { table_name, .. }
        | A::CreateIndex { table_name, .. }
        | A::DropIndex { table_name, .. }
        | A::CreateTrigger { table_name, .. }
        | A::DropTrigger { table_name, .. } => {
            is_own(table_name).then(|| format!("change hookstead's own table `{table_name}`"))
        }
        A::CreateView { .. } | A::DropView { .. } => None,
        A::CreateTempIndex { .. }
        | A::CreateTempTable { .. }
        | A::CreateTempTrigger { .. }
        | A::CreateTempView { .. }
        | A::DropTempIndex { .. }
        | A::DropTempTable { .. }
        | A::DropTempTrigger { .. }
        | A::DropTempView { .. } => Some("use the temporary schema, which outlives its transaction".into()),
        // Their code may work and fail at the commit, where it would fail the whole batch.
        A::CreateVtable { .. } | A::DropVtable { .. } => Some("make or drop virtual tables".into()),
        A::Transaction { .. } => Some("begin or end transactions: it is in one".into()),
        A::Savepoint { .. } => Some("use savepoints: it is in one".into()),
        A::Attach { .. } | A::Detach { .. } => Some("attach or detach databases".into()),
        // It only reads, and SQLite itself uses it to add a column with a check.
        A::Pragma { pragma_name, .. } if is(pragma_name, "quick_check") => None,
        A::Pragma { pragma_name, .. } => Some(format!("use PRAGMA {pragma_name}")),
        A::Analyze { .. } => Some("analyze".into()),
        _ => Some("do what this version does not know".into()),
    }
}

fn is_own(table: &str) -> bool {
    OWN_TABLES.iter().any(|own| is(own, table))
}

fn is(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::super::migrations::MIGRATIONS;
    use super::*;
    use crate::schema;

    #[test]
    fn the_own_tables_are_those_of_the_schema() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, MIGRATIONS, hookstead_core::Timestamp::from_secs(1)).unwrap();
        let sql =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut statement = connection.prepare(sql).unwrap();
        let tables: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(tables, OWN_TABLES);
    }
}
