//! `hookstead send`: sign a sample as a provider would and post it, rightly or with something wrong on purpose.

mod many;
mod report;
mod target;

use anyhow::{Context, Result};
use clap::Args;
use hookstead_core::Timestamp;

use crate::cmd::{providers, runtime};
use crate::failure::{Exit, Failure};
use crate::last_sent::LastSent;
use crate::output;
use crate::place::PlaceArgs;
use crate::post::Sender;
use crate::sample::{Sample, now, seconds_ago};
use crate::variation::{STALE_BY_SECS, Variation, alter_one_byte, tamper};
use report::Sent;
pub(crate) use target::{SecretArgs, Target};

const EXAMPLES: &str = "\
Examples:
  hookstead send stripe                   a new event, rightly signed: 202, stored
  hookstead send stripe --duplicate       the same again: 200, not stored twice
  hookstead send stripe --conflict        the same id, one byte changed: 409, the first is untouched
  hookstead send github --tamper          changed after it was signed: 401
  hookstead send stripe --count 1000      and how fast it is
  hookstead send --list                   every provider and its sample events";

const JSON: &str = "\
JSON: {\"provider\", \"source\", \"url\", \"event_type\", \"id\", \"bytes\", \"sent\", \"status\", \"outcome\", \"event\", \
\"code\", \"ms\", \"as_asked\"}; sent is fresh, duplicate, conflict, tamper or stale. With --count: {\"sent\", \"as_asked\", \
\"statuses\", \"ms\", \"per_second\", \"p50_ms\", \"p99_ms\"}. With --list: [{\"provider\", \"title\", \"events\", \"timestamp\"}].

Exit codes: 0 if the answer is the one that was asked for (a refusal too, where the option asks for it), 5 if the \
server refused otherwise, 3 for an unknown provider or source, 6 if no server answers.";

/// Sign a sample event of a provider and post it to the running server
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Send {
    /// The provider, such as stripe or github.
    #[arg(required_unless_present = "list")]
    provider: Option<String>,
    /// The type of the sample event [default: the provider's first].
    #[arg(long, value_name = "TYPE")]
    event: Option<String>,
    /// Send so many and say how fast they were answered.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: Option<u32>,
    /// How many of them may be unanswered at once.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "count", value_parser = clap::value_parser!(u16).range(1..=512))]
    parallel: u16,
    /// List the providers and their sample events.
    #[arg(long, conflicts_with_all = ["provider", "count"])]
    list: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    variation: VariationArgs,
    #[command(flatten)]
    secret: SecretArgs,
    /// Post to this address [default: the running server's /in/SOURCE].
    #[arg(long, value_name = "URL", help_heading = "Where")]
    to: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What is done to the sample.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "With something different")]
struct VariationArgs {
    /// The last event again: same id, same bytes, signed anew.
    #[arg(long)]
    duplicate: bool,
    /// The last event's id with one byte of the body changed, rightly signed.
    #[arg(long)]
    conflict: bool,
    /// A new event with one byte changed after it was signed.
    #[arg(long)]
    tamper: bool,
    /// A new event that was signed an hour ago.
    #[arg(long)]
    stale: bool,
}

impl VariationArgs {
    fn variation(&self) -> Variation {
        match self {
            Self { duplicate: true, .. } => Variation::Duplicate,
            Self { conflict: true, .. } => Variation::Conflict,
            Self { tamper: true, .. } => Variation::Tamper,
            Self { stale: true, .. } => Variation::Stale,
            _ => Variation::Fresh,
        }
    }
}

pub(crate) fn run(args: &Send) -> Result<()> {
    let Some(provider) = args.provider.as_deref().filter(|_| !args.list) else {
        return providers::samples(args.json);
    };
    let config = args.place.load()?;
    let target = Target::find(provider, &args.secret, args.to.as_deref(), &config)?;
    let sender = Sender::new(&target.url)?;
    let (variation, event_type) = (args.variation.variation(), args.event.clone());
    let posting = Posting { variation, event_type, json: args.json, target, sender };
    let mut last = LastSent::of(&config.data)?;
    runtime()?.block_on(async {
        let first = posting.first(&mut last).await?;
        match args.count {
            None => posting.one(first.as_ref(), &mut last).await,
            Some(count) => many::send(posting, first, count, args.parallel).await,
        }
    })
}

/// What one call of the verb sends, and where to.
struct Posting {
    variation: Variation,
    event_type: Option<String>,
    json: bool,
    target: Target,
    sender: Sender,
}

impl Posting {
    /// The event that a repetition repeats; `None` where every event is a new one. If nothing was sent to this
    /// address yet, a first event goes before it.
    async fn first(&self, last: &mut LastSent) -> Result<Option<Sample>> {
        if !self.variation.repeats() {
            return Ok(None);
        }
        if let Some(sample) = last.get(&self.target.url)? {
            return Ok(Some(sample));
        }
        output::talk_labelled("first", "nothing was sent there yet, so a new event goes before it")?;
        let sent = self.post(Variation::Fresh, self.new_sample(now())?).await?;
        if !self.json {
            sent.print(&self.target)?;
        }
        sent.check(&self.target)?;
        last.put(&self.target.url, &sent.sample)?;
        Ok(Some(sent.sample))
    }

    async fn one(&self, first: Option<&Sample>, last: &mut LastSent) -> Result<()> {
        let sent = self.post(self.variation, self.sample(first)?).await?;
        if self.variation == Variation::Fresh && sent.as_asked() {
            last.put(&self.target.url, &sent.sample)?;
        }
        if self.json {
            output::json(&sent.document(&self.target))?;
        } else {
            sent.print(&self.target)?;
        }
        sent.check(&self.target)
    }

    /// The next sample; `first` is what a repetition repeats.
    fn sample(&self, first: Option<&Sample>) -> Result<Sample> {
        let first = || first.cloned().context("a repetition has something to repeat");
        match self.variation {
            Variation::Fresh | Variation::Tamper => self.new_sample(now()),
            Variation::Stale => self.new_sample(seconds_ago(STALE_BY_SECS)),
            Variation::Duplicate => first(),
            Variation::Conflict => {
                let first = first()?;
                Ok(Sample { body: alter_one_byte(&first.body, &first.id), ..first })
            }
        }
    }

    fn new_sample(&self, at: Timestamp) -> Result<Sample> {
        self.target.signer.sample(self.event_type.as_deref(), None, at)
    }

    async fn post(&self, variation: Variation, sample: Sample) -> Result<Sent> {
        let signer = &self.target.signer;
        let at = if variation == Variation::Stale { seconds_ago(STALE_BY_SECS) } else { now() };
        let mut signed = signer.sign(&sample, &self.target.signed_url, at)?;
        if variation == Variation::Stale && signer.passes(&signed)? {
            return Err(self.never_stale().into());
        }
        if variation == Variation::Tamper {
            signed = tamper(signed, &signer.provider().sensitive_headers());
        }
        signed.url = self.target.posted_url(&signed.url);
        let answer = self.sender.send(&signed).await?;
        // Where the signed time stands in the body, no event can be repeated for long.
        let expired = variation.repeats() && answer.status == 401 && !signer.passes(&signed)?;
        Ok(Sent { variation, sample, answer, expired })
    }

    fn never_stale(&self) -> Failure {
        let name = self.target.signer.provider().name();
        let message = format!("`{name}` signs no time with this secret, so nothing of it can be stale");
        Failure::new(Exit::Usage, "never-stale", message)
            .fix("try --tamper, or a provider that signs the time: stripe")
    }
}
