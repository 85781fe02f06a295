//! What a test found out, as numbers: printed for whoever runs the test, and written down for `cargo xtask evidence`,
//! which makes its table of them.
//!
//! `HOOKSTEAD_EVIDENCE` names the folder to write into; without it nothing is written.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::StoreKind;

/// The size of a test where its short form is not enough: a variable of the environment, or the number given.
pub(crate) fn size_from(variable: &str, short: usize) -> usize {
    let Ok(value) = std::env::var(variable) else { return short };
    value.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{value}`"))
}

/// The figures of one run on one store.
pub(crate) struct Evidence {
    name: &'static str,
    store: StoreKind,
    begun: Instant,
    figures: Map<String, Value>,
}

impl Evidence {
    /// Of the check of this name, which begins now.
    pub(crate) fn begin(name: &'static str, store: StoreKind) -> Self {
        Self { name, store, begun: Instant::now(), figures: Map::new() }
    }

    /// Adds a number.
    pub(crate) fn count(&mut self, what: &str, count: usize) {
        self.set(what, count.into());
    }

    /// Adds a time in milliseconds; its name ends with `_ms`.
    pub(crate) fn time(&mut self, what: &str, time: Duration) {
        self.set(what, milliseconds(time).into());
    }

    fn set(&mut self, what: &str, value: Value) {
        self.figures.insert(what.to_owned(), value);
    }

    /// Says it, and writes it down. `folder` lies on the file system that the store was on.
    pub(crate) fn finish(self, folder: &Path) {
        let Self { name, store, begun, ref figures } = self;
        let seconds = begun.elapsed().as_secs_f64();
        println!("{name} on {}, {seconds:.1} s: {}", store.name(), Value::Object(figures.clone()));
        let Some(into) = std::env::var_os("HOOKSTEAD_EVIDENCE") else { return };
        let record = json!({
            "check": name, "store": store.name(), "ms": milliseconds(begun.elapsed()), "file_system": file_system(folder),
            "figures": figures,
        });
        let file = Path::new(&into).join(format!("{name}-{}.json", store.name()));
        fs::write(&file, record.to_string()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

impl Drop for Evidence {
    /// A test that fails says how it is repeated alone.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again with: {}", again());
        }
    }
}

/// The command that runs this test once more, at the same size.
fn again() -> String {
    let sizes = std::env::vars().filter(|(name, _)| {
        name.starts_with("HOOKSTEAD_") && name != "HOOKSTEAD_EVIDENCE" && name != "HOOKSTEAD_SENDERS"
    });
    let sizes: String = sizes.map(|(name, value)| format!("{name}={value} ")).collect();
    // One test at a time runs in the thread of the whole program, which bears no test's name.
    let thread = std::thread::current();
    let test = thread.name().filter(|name| name.contains("::"));
    test.map_or_else(
        || "the command that ran it".to_owned(),
        |test| format!("{sizes}cargo xtask test {test}"),
    )
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("no test takes that long")
}

fn file_system(folder: &Path) -> String {
    let stat = Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output().expect("stat starts");
    String::from_utf8_lossy(&stat.stdout).trim().to_owned()
}
