//! What a person does with a delivery: deliver it again, mark it done, hold it, let it go.

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::{DeliveryView, NewDecision};

use super::{NAME, show};
use crate::client::Call;
use crate::output;
use crate::reader::WhereArgs;
use crate::refusal::no_delivery;
use crate::work;

const REDELIVER_EXAMPLES: &str = "\
Examples:
  hookstead deliveries redeliver 0001:app
  hookstead deliveries redeliver @:app --note fixed";

const DONE_EXAMPLES: &str = "\
Examples:
  hookstead deliveries done 0001:app --note by-hand
  hookstead deliveries done 0001:app:1 --note test --json";

const HOLD_EXAMPLES: &str = "\
Examples:
  hookstead deliveries hold 0001:app --note waiting-for-1.2
  hookstead deliveries hold @:app --json";

const RELEASE_EXAMPLES: &str = "\
Examples:
  hookstead deliveries release 0001:app
  hookstead deliveries release @:app --json";

const JSON: &str = "\
JSON: the delivery as in `hookstead deliveries show --json`. Exit codes: 3 no such delivery, 5 its state does not allow \
it; nothing was changed then.";

/// Make a new delivery of the same event to the same destination; the old one stays as it is
///
/// The new one has the same idempotency key, and begins with the first attempt again.
#[derive(Debug, Args)]
#[command(before_help = REDELIVER_EXAMPLES, after_help = [JSON, "\n\n", NAME].concat())]
pub(super) struct Redeliver {
    #[command(flatten)]
    act: Act,
}

/// Mark a delivery that is dead, held or waiting as done, without another attempt
#[derive(Debug, Args)]
#[command(before_help = DONE_EXAMPLES, after_help = [JSON, "\n\n", NAME].concat())]
pub(super) struct Done {
    #[command(flatten)]
    act: Act,
}

/// Hold a delivery that waits back until somebody lets it go
#[derive(Debug, Args)]
#[command(before_help = HOLD_EXAMPLES, after_help = [JSON, "\n\n", NAME].concat())]
pub(super) struct Hold {
    #[command(flatten)]
    act: Act,
}

/// Let a held delivery go: it is due at once
#[derive(Debug, Args)]
#[command(before_help = RELEASE_EXAMPLES, after_help = [JSON, "\n\n", NAME].concat())]
pub(super) struct Release {
    #[command(flatten)]
    act: Act,
}

#[derive(Debug, Args)]
struct Act {
    /// The delivery.
    delivery: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn redeliver(args: &Redeliver) -> Result<()> {
    args.act.run("redeliver", "again")
}

pub(super) fn done(args: &Done) -> Result<()> {
    args.act.run("done", "done")
}

pub(super) fn hold(args: &Hold) -> Result<()> {
    args.act.run("hold", "held")
}

pub(super) fn release(args: &Release) -> Result<()> {
    args.act.run("release", "released")
}

impl Act {
    fn run(&self, verb: &str, told: &str) -> Result<()> {
        let asked = NewDecision { note: self.note.clone() };
        let call = Call::post(&["v1", "deliveries", &self.delivery, verb], &asked)?.about(&self.delivery);
        let delivery = work::with(&self.place, async |client| client.ask(call).await)?;
        let delivery: DeliveryView = delivery.ok_or_else(|| no_delivery(&self.delivery))?;
        if self.json {
            return output::json(&delivery);
        }
        output::labelled(told, format_args!("{}   {}", delivery.id, show::state(&delivery)))
    }
}
