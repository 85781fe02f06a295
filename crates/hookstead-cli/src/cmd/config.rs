//! `hookstead config`: write a configuration to begin with, check one, show what is in force.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hookstead_server::Config;
use hookstead_server::config::{
    ConfigErrors, ConfigProblem, FILE_NAME, Mode, Overrides, Place, ShownKey, default_text,
};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{self, DIM};
use crate::place::{self, PlaceArgs};

const EXAMPLES: &str = "\
Examples:
  hookstead config init          write a commented hookstead.toml
  hookstead config check         find everything that is wrong with it
  hookstead config show          see every value that is in force, and where it comes from";

const INIT_EXAMPLES: &str = "\
Examples:
  hookstead config init
  hookstead config init /etc/hookstead/hookstead.toml
  hookstead config init - | less";

const CHECK_EXAMPLES: &str = "\
Examples:
  hookstead config check
  hookstead config check prod.toml && systemctl restart hookstead";

const CHECK_JSON: &str = "\
JSON: {\"ok\", \"file\", \"sources\", \"destinations\", \"problems\": [{\"key\", \"what\", \"fix\", \"place\", \"line\", \"column\"}]}; place says \
file, environment NAME, option NAME or nowhere. Exit code 5 if there is a problem, with and without --json.";

const SHOW_EXAMPLES: &str = "\
Examples:
  hookstead config show
  hookstead config show --json | jq -r '.values[] | select(.origin != \"default\") | .key'";

const SHOW_JSON: &str = "\
JSON: {\"file\", \"data\", \"values\": [{\"key\", \"value\", \"origin\"}]}; value is as in the file. Secrets are shown by where \
they are kept, never themselves.";

/// Write, check and show the configuration
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    Init(Init),
    Check(Check),
    Show(Show),
}

/// Write a commented configuration in which nothing is set yet
#[derive(Debug, Args)]
#[command(before_help = INIT_EXAMPLES)]
struct Init {
    /// Where to; `-` prints it.
    #[arg(default_value = FILE_NAME)]
    file: PathBuf,
    /// Overwrite a file that is there.
    #[arg(long)]
    force: bool,
}

/// Find everything that is wrong with a configuration; nothing is started
#[derive(Debug, Args)]
#[command(before_help = CHECK_EXAMPLES, after_help = CHECK_JSON)]
struct Check {
    /// The file [default: as for --config].
    file: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Show every value that is in force and where it comes from
#[derive(Debug, Args)]
#[command(before_help = SHOW_EXAMPLES, after_help = SHOW_JSON)]
struct Show {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &ConfigArgs) -> Result<()> {
    match &args.verb {
        ConfigVerb::Init(args) => init(args),
        ConfigVerb::Check(args) => check(args),
        ConfigVerb::Show(args) => show(args),
    }
}

fn init(args: &Init) -> Result<()> {
    let text = default_text();
    if args.file.as_os_str() == "-" {
        return output::bytes(text.as_bytes());
    }
    let file = args.file.display();
    let mut options = OpenOptions::new();
    let options = if args.force { options.create(true).truncate(true) } else { options.create_new(true) };
    let mut opened = options.write(true).open(&args.file).map_err(|error| not_written(args, &error))?;
    opened.write_all(text.as_bytes()).with_context(|| format!("cannot write {file}"))?;
    output::talk_labelled("wrote", format_args!("{file}"))?;
    output::talk_labelled(
        "next",
        format_args!("name your sources in it, then: hookstead config check {file}"),
    )
}

fn not_written(args: &Init, error: &std::io::Error) -> Failure {
    let file = args.file.display();
    if error.kind() == ErrorKind::AlreadyExists {
        return Failure::new(
            Exit::Failed,
            "file-exists",
            format!("{file} is there already, and was left alone"),
        )
        .fix("write to another file, or overwrite it with --force");
    }
    Failure::new(Exit::Failed, "not-written", format!("cannot write {file}: {error}"))
        .fix("choose a folder that exists and that you may write to")
}

fn check(args: &Check) -> Result<()> {
    let config = args.file.clone().or_else(|| args.place.config.clone());
    let loaded = place::load(Overrides { config, ..args.place.overrides() });
    if args.json {
        return check_json(loaded);
    }
    let config = loaded?;
    let file = config.file.as_deref().map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
    let sources: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
    output::labelled("ok", file)?;
    if !config.destinations.is_empty() {
        output::labelled("destinations", destinations(&config).join(", "))?;
    }
    match (config.mode, sources.is_empty()) {
        (Mode::Dev, _) => {
            output::labelled("sources", "every built-in provider, with a secret of its own (dev mode)")
        }
        (Mode::Configured, true) => output::labelled("sources", "none: nothing will be accepted"),
        (Mode::Configured, false) => output::labelled("sources", sources.join(", ")),
    }
}

fn destinations(config: &Config) -> Vec<&str> {
    config.destinations.iter().map(|destination| destination.name.as_str()).collect()
}

/// What a check found, for programs.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    file: Option<&'a Path>,
    sources: Vec<&'a str>,
    destinations: Vec<&'a str>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct Problem<'a> {
    key: &'a str,
    what: &'a str,
    fix: &'a str,
    place: String,
    line: Option<usize>,
    column: Option<usize>,
}

fn check_json(loaded: Result<Config>) -> Result<()> {
    let error = match loaded {
        Ok(config) => {
            let sources = config.sources.iter().map(|source| source.name.as_str()).collect();
            let file = config.file.as_deref();
            let destinations = destinations(&config);
            return output::json(&Document { ok: true, file, sources, destinations, problems: Vec::new() });
        }
        Err(error) => error,
    };
    let Some(errors) = error.downcast_ref::<ConfigErrors>() else { return Err(error) };
    let problems: Vec<_> = errors.problems().iter().map(Problem::from).collect();
    let count = problems.len();
    let (sources, destinations) = (Vec::new(), Vec::new());
    output::json(&Document { ok: false, file: errors.file(), sources, destinations, problems })?;
    Err(Failure::new(Exit::Refused, "config", output::counted(count as u64, "problem", "problems")).into())
}

impl<'a> From<&'a ConfigProblem> for Problem<'a> {
    fn from(problem: &'a ConfigProblem) -> Self {
        let (place, line, column) = match &problem.place {
            Place::File { line, column, .. } => ("file".to_owned(), Some(*line), Some(*column)),
            Place::Environment(name) => (format!("environment {name}"), None, None),
            Place::Flag(name) => (format!("option {name}"), None, None),
            Place::Nowhere => ("nowhere".to_owned(), None, None),
        };
        Self { key: &problem.key, what: &problem.what, fix: &problem.fix, place, line, column }
    }
}

/// What is in force, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    file: Option<&'a Path>,
    data: &'a Path,
    values: Vec<Value>,
}

#[derive(Serialize)]
struct Value {
    key: String,
    value: String,
    origin: String,
}

fn show(args: &Show) -> Result<()> {
    let config = args.place.load()?;
    let shown = config.show();
    if args.json {
        let value = |key: &ShownKey| Value {
            key: key.key.clone(),
            value: key.value.clone(),
            origin: key.origin.to_string(),
        };
        let values = shown.iter().map(value).collect();
        return output::json(&Shown { file: config.file.as_deref(), data: &config.data, values });
    }
    let width = shown.iter().map(|key| key.key.len() + key.value.len() + 3).max().unwrap_or_default().min(72);
    let file = config.file.as_deref().map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    output::line(format_args!("{DIM}# file: {file}\n# data: {}{DIM:#}", config.data.display()))?;
    for key in shown {
        let text = format!("{} = {}", key.key, key.value);
        output::line(format_args!("{text:<width$}  {DIM}# {}{DIM:#}", key.origin))?;
    }
    Ok(())
}
