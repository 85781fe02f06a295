//! How a handler ends its work on an event: with [`Done`], or with statements of its own that are committed together
//! with `done`. It knows nothing of consumers and databases.

use std::fmt;

use hookstead_core::Effect;
use hookstead_store::{EffectError, SqliteTransaction, sqlite_effect};

use crate::sink::{Tried, TriedVerdict};

/// What a handler returns when it is done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done;

/// What a handler returns to have statements of its own committed together with `done`; made by [`settle_with`].
#[must_use = "it is run when the handler returns it"]
pub struct SettleWith(Effect);

/// What a handler can return: [`Done`] or [`SettleWith`].
pub trait Ending: sealed::Ended {}

impl Ending for Done {}
impl Ending for SettleWith {}

/// Has `run` do its work in the commit that records the event as done, in the inbox's own SQLite database: both are
/// there, or neither. There is no moment, not even a crash, between the effect and the record of it.
///
/// Returned by a handler of [`Inbox::consume`](crate::Inbox::consume); a consumer with such a handler starts only on a
/// `sqlite:` store.
///
/// ```
/// use hookstead::{Inbox, Source, settle_with};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let url = format!("sqlite:{}", folder.path().join("inbox.db").display());
/// let inbox = Inbox::builder().store(url).source(Source::recorded("shop".parse()?)).open()?;
/// let ledger = inbox.consume("ledger").run(|event| async move {
///     let order: serde_json::Value = event.json()?;
///     let (id, sum) = (order["id"].to_string(), order["sum"].as_i64());
///     Ok::<_, serde_json::Error>(settle_with(move |tx| {
///         tx.execute("CREATE TABLE IF NOT EXISTS app_ledger (id TEXT PRIMARY KEY, sum INTEGER)", ())?;
///         tx.execute("INSERT INTO app_ledger VALUES (?1, ?2)", (&id, sum))?;
///         Ok(())
///     }))
/// });
/// let ledger = ledger.await?;
/// inbox.record("shop", "order-1", r#"{"id":1,"sum":120}"#).await?;
/// # ledger.stop(std::time::Duration::from_secs(5)).await;
/// # Ok(())
/// # }
/// ```
///
/// **Its rules.** `run` is called on the thread that commits, under a lease that is still this attempt's, and everybody
/// who waits for a commit waits for it: a few statements, and nothing that waits. It may take
/// [`OpenOptions::effect_time_max`](hookstead_store::OpenOptions::effect_time_max). If it returns an error, panics, or takes
/// longer, all that it wrote is undone, the event is tried again by the schedule, and the attempt says why. It may be
/// called again before it is committed, from the same beginning, so it must be a function of the transaction alone:
/// a mail that it sends is sent again. What it may do in the database stands at [`SqliteTransaction`].
pub fn settle_with<F>(run: F) -> SettleWith
where
    F: Fn(&SqliteTransaction<'_>) -> Result<(), EffectError> + Send + Sync + 'static,
{
    SettleWith(sqlite_effect(run))
}

impl fmt::Debug for SettleWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SettleWith").field(&self.0).finish()
    }
}

pub(crate) mod sealed {
    use crate::sink::Tried;

    /// What the sink of a consumer asks of a handler's end.
    pub trait Ended: Send {
        /// The only kind of store on which a handler may end this way, if it matters.
        const STORE: Option<&'static str>;

        /// What it means for the delivery.
        fn tried(self) -> Tried;
    }
}

impl sealed::Ended for Done {
    const STORE: Option<&'static str> = None;

    fn tried(self) -> Tried {
        Tried::done("handler-done")
    }
}

impl sealed::Ended for SettleWith {
    const STORE: Option<&'static str> = Some("sqlite");

    fn tried(self) -> Tried {
        Tried::new(TriedVerdict::DoneWith(self.0), "effect-committed")
    }
}
