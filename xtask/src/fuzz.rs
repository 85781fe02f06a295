//! `cargo xtask fuzz`: builds the fuzz targets of `fuzz/` with the stable compiler, runs each for some seconds, and says
//! what was found and how to see it again. It knows libFuzzer's options and what it prints; what must hold is said in
//! the crates.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::install::{Tool, ensure};
use crate::run::{cargo, check, root, step, target_dir};

/// libFuzzer itself is C++.
const TOOLS: &[Tool] =
    &[Tool { program: "c++", package: "g++", needed_for: "the fuzz targets, whose engine is C++" }];

/// How long each target runs where nobody says: all of them together stay a small part of a run of `ci`.
const SECONDS: u32 = 20;

/// An input that takes longer is a finding: its work has no bound.
const INPUT_SECONDS_MAX: u32 = 10;

/// The same in `ci`, whose machine may have little time for it: as long as the whole run of a target.
const CI_INPUT_SECONDS_MAX: u32 = SECONDS;

/// What the inputs of `ci` are made from, so that they are the same each time as far as it gets.
const CI_SEED: u32 = 1;

/// How many inputs `ci` tries of each target, so that a faster machine tries no others. The slowest of them, `config`,
/// came to 173,000 in its 20 seconds on two cores, and no input of any took a second: a machine three times slower still
/// tries them all.
const CI_INPUTS_MAX: u32 = 50_000;

/// So is one that needs more memory.
const MEMORY_MIB_MAX: u32 = 1_024;

/// Longer inputs reach nothing that shorter ones do not.
const INPUT_BYTES_MAX: u32 = 64 * 1024;

/// The targets read this folder's name from the environment and write the inputs that they begin with there.
const SEEDS: &str = "HOOKSTEAD_FUZZ_SEEDS";

/// Give whatever reads strangers' bytes inputs that nobody thought of
///
/// Each target is a function of the product with what must hold whatever the bytes are: requests, signatures and templates
/// of every provider, records, keys, ids, cursors, configuration, and the files of both stores. They begin with inputs that
/// are made of the repository's vectors, records and fixtures, and go on from what earlier runs found in target/fuzz/.
///
/// A finding ends with the input's file and the command that runs it again. Kept in fuzz/regressions/TARGET/, it is a test.
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask fuzz\n  cargo xtask fuzz --only request --seconds 600\n  \
                        cargo xtask fuzz --only wal --input target/fuzz/found/wal-crash-0123")]
pub(crate) struct Fuzz {
    /// How long each target runs
    #[arg(long, default_value_t = SECONDS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Only this target
    #[arg(long, value_name = "TARGET")]
    only: Option<String>,
    /// Only this input, once
    #[arg(long, value_name = "FILE", requires = "only")]
    input: Option<PathBuf>,
}

/// How the targets are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    seconds: u32,
    input_seconds_max: u32,
    /// Where the inputs come from, and how many there are at most; `None`: others each time, as many as there is time for.
    fixed: Option<Fixed>,
    /// The folder of the inputs that are found, which the next run goes on from.
    corpus: &'static str,
}

/// Inputs that are the same each time, where the target itself does not go by chance (a key, the name of a file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixed {
    seed: u32,
    inputs_max: u32,
}

impl Plan {
    const fn by_hand(seconds: u32) -> Self {
        Self { seconds, input_seconds_max: INPUT_SECONDS_MAX, fixed: None, corpus: "corpus" }
    }

    /// From the same inputs each time, whatever other runs have found; how many of them there is time for depends on the
    /// machine.
    const CI: Self = Self {
        seconds: SECONDS,
        input_seconds_max: CI_INPUT_SECONDS_MAX,
        fixed: Some(Fixed { seed: CI_SEED, inputs_max: CI_INPUTS_MAX }),
        corpus: "ci-corpus",
    };

    fn options(self) -> Vec<String> {
        let mut options = vec![
            format!("-timeout={}", self.input_seconds_max),
            format!("-max_total_time={}", self.seconds),
            format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
            "-print_final_stats=1".to_owned(),
        ];
        if let Some(Fixed { seed, inputs_max }) = self.fixed {
            // What is compared includes numbers that are others each time, such as a map's hashes.
            let own_values_only = "-use_cmp=0".to_owned();
            options.extend([format!("-seed={seed}"), format!("-runs={inputs_max}"), own_values_only]);
        }
        options
    }
}

/// As `ci` runs it: a lock that is not of the product's is a failure as well.
pub(crate) fn run_all() -> Result<()> {
    let targets = targets()?;
    let lock = provide(&targets)?;
    let corpus = target_dir().join("fuzz").join(Plan::CI.corpus);
    if corpus.exists() {
        fs::remove_dir_all(&corpus).with_context(|| format!("cannot remove {}", corpus.display()))?;
    }
    run_and_report(targets, Plan::CI)?;
    match lock {
        Lock::Kept => Ok(()),
        Lock::Renewed => bail!(STALE),
    }
}

/// Builds and runs them.
pub(crate) fn run(arguments: &Fuzz) -> Result<()> {
    let targets = chosen(arguments.only.as_deref())?;
    provide(&targets)?;
    let plan = Plan::by_hand(arguments.seconds);
    if let (Some(input), [target]) = (&arguments.input, targets.as_slice()) {
        let input = std::path::absolute(input).context("cannot find the current folder")?;
        return check(Command::new(program(target)).args(plan.options()).arg(input));
    }
    run_and_report(targets, plan)
}

fn provide(targets: &[String]) -> Result<Lock> {
    ensure(TOOLS)?;
    let lock = step("build the fuzz targets", || build(targets))?;
    if lock == Lock::Renewed {
        eprintln!("fuzz/Cargo.lock was not of this Cargo.lock and is renewed: commit it");
    }
    Ok(lock)
}

fn run_and_report(targets: Vec<String>, plan: Plan) -> Result<()> {
    let results = step(&format!("run {} fuzz targets", targets.len()), || Ok(run_each(targets, plan)))?;
    let failed: Vec<_> =
        results.iter().filter_map(|(target, result)| Some((target, result.as_ref().err()?))).collect();
    for (target, result) in &results {
        match result {
            Ok(figures) => println!("{target:<10} {figures}"),
            Err(error) => println!("{target:<10} FOUND  {error:#}"),
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        bail!("{} of {} fuzz targets found something", failed.len(), results.len())
    }
}

fn chosen(only: Option<&str>) -> Result<Vec<String>> {
    let all = targets()?;
    match only {
        None => Ok(all),
        Some(name) if all.iter().any(|target| target == name) => Ok(vec![name.to_owned()]),
        Some(name) => bail!("there is no fuzz target `{name}`; there are {}", all.join(", ")),
    }
}

/// The names of the targets: their files.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for file in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = file.with_context(|| format!("cannot list {}", folder.display()))?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    Ok(names)
}

/// What a build made of `fuzz/Cargo.lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Kept,
    Renewed,
}

/// The one thing to do where the locks differ.
const STALE: &str = "fuzz/Cargo.lock is not of this Cargo.lock\n  fix    run `cargo xtask fuzz --seconds 1`, which renews it, and commit it";

/// Into the folder that the tests are built into: the dependencies are the same, and are not built again.
///
/// The lock is made of the product's first, and of its own for libFuzzer. Cargo then drops what is not needed of it and
/// adds what is missing, which leaves the committed file as it is unless a dependency has changed.
fn build(targets: &[String]) -> Result<Lock> {
    let (product, before) = (lock("Cargo.lock")?, lock(LOCK)?);
    fs::write(root().join(LOCK), merged(&product, &before))
        .with_context(|| format!("cannot write {LOCK}"))?;
    let mut build = cargo(&["build", "--manifest-path", "fuzz/Cargo.toml"]);
    build.args(targets.iter().flat_map(|target| ["--bin", target]));
    build.env("CARGO_TARGET_DIR", target_dir()).env("RUSTC_WRAPPER", root().join("fuzz/instrument.sh"));
    check(&mut build)?;
    Ok(if lock(LOCK)? == before { Lock::Kept } else { Lock::Renewed })
}

const LOCK: &str = "fuzz/Cargo.lock";

fn lock(name: &str) -> Result<String> {
    fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))
}

/// How an entry of a lock begins.
const ENTRY: &str = "[[package]]\n";

/// All entries of the first lock, and those of the second that it says nothing about.
fn merged(product: &str, fuzz: &str) -> String {
    let own = fuzz.split(ENTRY).skip(1).filter(|entry| !decides(product, entry));
    own.fold(product.to_owned(), |text, entry| format!("{}\n\n{ENTRY}{entry}", text.trim_end()))
}

/// Whether the lock has an entry that stands for this one too: of the same name, and compatible with it.
fn decides(lock: &str, entry: &str) -> bool {
    lock.split(ENTRY).skip(1).any(|other| name(other) == name(entry) && line(other) == line(entry))
}

fn name(entry: &str) -> &str {
    value(entry, "name")
}

/// Compatible versions share what stands before the dot behind their first number that is not zero.
fn line(entry: &str) -> &str {
    let version = value(entry, "version");
    let first = version.find(|digit| matches!(digit, '1'..='9')).unwrap_or(0);
    let end = version[first..].find('.').map_or(version.len(), |dot| first + dot);
    &version[..end]
}

fn value<'a>(entry: &'a str, key: &str) -> &'a str {
    let of = |line: &'a str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
    entry.lines().find_map(of).unwrap_or_default()
}

fn program(target: &str) -> PathBuf {
    target_dir().join("debug").join(target)
}

type Outcome = (String, Result<String>);

/// As many at once as there are processors.
fn run_each(targets: Vec<String>, plan: Plan) -> Vec<Outcome> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let (queue, done) = (Mutex::new(VecDeque::from(targets)), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(target) = next() {
            let result = run_one(&target, plan);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((target, result));
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by(|(one, _), (other, _)| one.cmp(other));
    done
}

fn run_one(target: &str, plan: Plan) -> Result<String> {
    let folder = |kind: &str| target_dir().join("fuzz").join(kind).join(target);
    let (seeds, corpus, found) = (folder("seeds"), folder(plan.corpus), target_dir().join("fuzz/found"));
    for folder in [&seeds, &corpus, &found] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let log = target_dir().join("fuzz").join(format!("{target}.log"));
    let file = fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    let mut fuzz = Command::new(program(target));
    fuzz.args(plan.options()).arg(format!("-artifact_prefix={}/{target}-", found.display()));
    fuzz.args([&corpus, &seeds]);
    let regressions = root().join("fuzz/regressions").join(target);
    fuzz.args(regressions.is_dir().then_some(regressions));
    fuzz.env(SEEDS, &seeds).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let status = fuzz.status().with_context(|| format!("cannot start `{target}`"))?;
    let said = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let said = String::from_utf8_lossy(&said);
    if status.success() { Ok(figures(&said)) } else { bail!("{}", finding(target, &said, &log)) }
}

/// What a target came to: how many inputs, and how much of the code they reached.
fn figures(said: &str) -> String {
    let inputs = after(said, "stat::number_of_executed_units:").unwrap_or("an unknown number of");
    let reached = after(said, " cov:").unwrap_or("?");
    format!("{inputs:>10} inputs, {reached:>6} edges reached")
}

/// The word behind the last place where the text has `mark`.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.rsplit_once(mark)?.1.split_whitespace().next()
}

/// What was found, in its own words, and how to see it again.
fn finding(target: &str, said: &str, log: &Path) -> String {
    let panic = said.lines().skip_while(|line| !line.contains("panicked at")).take(3);
    let what: Vec<_> = panic.chain(said.lines().filter(|line| line.starts_with("SUMMARY"))).collect();
    let again = match after(said, "Test unit written to") {
        Some(input) => format!(
            "\n  input  {input}\n  again  cargo xtask fuzz --only {target} --input {input}\n  \
             keep   put it into fuzz/regressions/{target}/, where it is a test"
        ),
        None => String::new(),
    };
    format!("{}\n  log    {}{again}", what.join("\n  "), log.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_target_says_is_read() {
        let said =
            "#7\tNEW    cov: 12 ft: 3\n#9\tDONE   cov: 3583 ft: 9\nstat::number_of_executed_units: 56230\n";
        assert_eq!(figures(said), "     56230 inputs,   3583 edges reached");
        let crash = "thread 'x' panicked at a.rs:1:2:\nit is wrong\nSUMMARY: libFuzzer: deadly signal\n\
                     artifact_prefix='f/'; Test unit written to f/wal-crash-1\nBase64: AA==\n";
        let shown = finding("wal", crash, Path::new("wal.log"));
        assert!(
            shown.contains("it is wrong") && shown.contains("--only wal --input f/wal-crash-1"),
            "{shown}"
        );
    }

    #[test]
    fn the_targets_are_built_with_the_versions_of_the_product() {
        let (product, fuzz) = (lock("Cargo.lock").unwrap(), lock(LOCK).unwrap());
        let exact = |entry| (name(entry), value(entry, "version"));
        let versions: Vec<_> = product.split(ENTRY).skip(1).map(exact).collect();
        for entry in fuzz.split(ENTRY).skip(1).filter(|entry| decides(&product, entry)) {
            assert!(versions.contains(&exact(entry)), "{STALE}\n  entry  {:?}", exact(entry));
        }
    }

    #[test]
    fn a_lock_has_what_the_other_one_says_nothing_about() {
        let lock = |entries: &[(&str, &str)]| {
            let entry = |(name, version)| format!("\n{ENTRY}name = \"{name}\"\nversion = \"{version}\"\n");
            entries
                .iter()
                .fold("version = 4\n".to_owned(), |text, &(name, version)| text + &entry((name, version)))
        };
        let product = [("a", "1.2.0"), ("b", "0.3.1"), ("c", "2.0.0")];
        let fuzz = [("a", "1.3.0"), ("b", "0.3.0"), ("b", "0.2.7"), ("c", "1.9.0"), ("aa", "1.2.0")];
        assert_eq!(
            merged(&lock(&product), &lock(&fuzz)),
            lock(&[&product[..], &[("b", "0.2.7"), ("c", "1.9.0"), ("aa", "1.2.0")]].concat())
        );
        assert_eq!(merged(&lock(&product), &lock(&product)), lock(&product));
    }

    #[test]
    fn ci_goes_by_one_seed_and_leaves_what_people_found_alone() {
        let seed = |plan: Plan| {
            plan.options().into_iter().filter(|option| option.starts_with("-seed")).collect::<Vec<_>>()
        };
        assert_eq!(seed(Plan::CI), ["-seed=1"]);
        assert_eq!(seed(Plan::by_hand(5)), [""; 0]);
        assert_ne!(Plan::CI.corpus, Plan::by_hand(5).corpus);
    }

    #[test]
    fn every_target_is_a_program_of_the_workspace() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let names = targets().unwrap();
        assert!(names.len() >= 12, "{names:?}");
        for name in names {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        }
        assert!(chosen(Some("nothing")).is_err());
    }
}
