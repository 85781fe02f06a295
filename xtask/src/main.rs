//! The project's automation: `cargo xtask --help`.
//!
//! One file or folder a command; `run.rs` starts programs and says how long they took, `install.rs` gets what a
//! machine lacks. It knows cargo, apt, npm and pip, and must not know anything of what the product does.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people: its output is its product"
)]

mod bench;
mod ci;
mod deny;
mod docs;
mod evidence;
mod failures;
mod fixture;
mod fuzz;
mod install;
mod kills;
mod longer;
mod overload;
mod run;
mod senders;
mod setup;
mod storms;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks, tests and measurements of this repository.
///
/// Progress goes to stderr: what is done, and how long it took. What a machine lacks is installed with apt
/// (Debian), npm and pip; where that fails, the message names the package and what to do.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check and every test, as the continuous integration does
    ///
    /// Formatting, clippy, licences and bans, the API documentation, the code blocks of the documents, then
    /// `test`. All of them run even when one fails; a table of the steps with their seconds comes last.
    Ci,
    /// Run every test of the workspace; install what they need first
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test framing\n  \
                            cargo xtask test kill_loop -- --nocapture")]
    Test {
        /// Only the tests with this in their name
        filter: Option<String>,
        /// Options for the test programs, after `--`
        #[arg(last = true)]
        options: Vec<String>,
    },
    /// Install what the tests need: strace, openssl, Python, Node, and the senders' packages
    Setup,
    /// Kill the server under load many times, and show what became of what it had acknowledged
    ///
    /// A release build of the server gets signed deliveries from several senders, is killed with SIGKILL in the
    /// middle, and is started again. Each time, every event that was acknowledged in that round and a sample of
    /// the older ones must still be there, byte for byte.
    ///
    /// With `--deliveries`, what it accepts is also pushed to a target that succeeds, refuses, hangs up or says nothing
    /// at random. Every accepted event must end done or dead, nothing may be sent after it was recorded as done, and
    /// what comes twice must have the same idempotency key.
    #[command(
        after_help = "Examples:\n  cargo xtask kills --count 300\n  cargo xtask kills --deliveries --count 300"
    )]
    Kills {
        /// Kill it while it delivers what it accepts
        #[arg(long)]
        deliveries: bool,
        /// How many kills
        #[arg(long, default_value_t = 300, value_name = "N")]
        count: u32,
        /// Seed of the random choices, as a failing run prints it
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Send more than a slow disk can take, and show what became of each request
    ///
    /// A release build of the server gets requests at a steady rate from senders who do not wait for one another. For
    /// some time every sync of the disk takes two seconds. Each answer must be 202 in bounded time or 503 with
    /// Retry-After; every 202 must be true, also after SIGKILL; memory must stay bounded, and two seconds after the
    /// disk is fast again nothing may be refused any more.
    #[command(
        after_help = "Examples:\n  cargo xtask overload\n  cargo xtask overload --seconds 60 --rate 4000 --json"
    )]
    Overload {
        /// How long the disk is slow
        #[arg(long, default_value_t = 40, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3_600))]
        seconds: u32,
        /// Requests a second
        #[arg(long, default_value_t = 3_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=20_000))]
        rate: u32,
        /// Print the figures as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send thousands of retries and conflicts at once, and show what became of each id
    ///
    /// A release build of the server gets so many retries of one id that are all under way at once, then as many
    /// requests under ten ids that are taken, each with one byte changed. One event an id, every conflict 409, the
    /// other bytes kept once a digest, nothing altered; also after SIGKILL.
    #[command(after_help = "Example:\n  cargo xtask storms")]
    Storms {
        /// How many retries, and how many conflicts
        #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=100_000))]
        count: u32,
    },
    Evidence(evidence::Evidence),
    Bench(bench::Bench),
    Siege(bench::Siege),
    /// Run the code blocks of README.md, CONTRIBUTING.md, the crates' README.md and docs/
    ///
    /// `console` and `sh` blocks run in a shell with the built binary, `toml` blocks are checked as
    /// configuration, `rust` blocks are compiled and run. A block with the word `ignore` after its language does
    /// not run; those are counted and listed.
    #[command(after_help = "Example:\n  cargo xtask docs README.md")]
    Docs {
        /// Only these files
        files: Vec<PathBuf>,
    },
    /// Make a small store of each kind, as this program writes it
    ///
    /// Before a format changes, the stores of the old one become fixtures in crates/hookstead-store/tests/it/fixtures/:
    /// the tests open a copy of each with the present program. What is there is not written over.
    #[command(after_help = "Examples:\n  cargo xtask fixture\n  cargo xtask fixture /tmp/fixtures")]
    Fixture {
        /// A folder for them; without one, those of the tests
        to: Option<PathBuf>,
    },
    Fuzz(fuzz::Fuzz),
    /// Write docs/providers/ anew: a page for each provider, as the binary prints it
    ///
    /// `docs` and `ci` fail while a page is not what the binary prints.
    #[command(after_help = "Example:\n  cargo xtask providers-docs")]
    ProvidersDocs,
}

fn main() -> ExitCode {
    let result = match Xtask::parse().command {
        Command::Ci => ci::run(),
        Command::Test { filter, options } => test::run(filter.as_deref(), &options),
        Command::Setup => setup::run(),
        Command::Kills { deliveries, count, seed } => {
            let work = if deliveries { kills::Work::Deliveries } else { kills::Work::Accepts };
            kills::run(work, count, seed)
        }
        Command::Overload { seconds, rate, json } => overload::run(seconds, rate, json),
        Command::Storms { count } => storms::run(count),
        Command::Evidence(arguments) => evidence::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Siege(arguments) => bench::run_siege(arguments),
        Command::Docs { files } => docs::run(&files),
        Command::Fixture { to } => fixture::run(to.as_deref()),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::ProvidersDocs => docs::write_providers(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
