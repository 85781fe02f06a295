//! What cargo built: the binary, and the libraries that Rust examples may use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{cargo, output};

/// The crates that an example in a document may name.
const LIBRARIES: &[&str] = &[
    "anyhow",
    "axum",
    "bytes",
    "hookstead",
    "hookstead_core",
    "hookstead_server",
    "hookstead_store",
    "hookstead_verify",
    "http",
    "serde_json",
    "tempfile",
    "tokio",
];

/// Where things were built.
pub(super) struct Artifacts {
    /// The folder of the binary `hookstead`.
    pub(super) binary_dir: PathBuf,
    libraries: BTreeMap<String, PathBuf>,
}

/// Builds the binary, and with it the libraries.
pub(super) fn build() -> Result<Artifacts> {
    let arguments = ["build", "--package", "hookstead-cli", "--message-format", "json-render-diagnostics"];
    let messages = output(&mut cargo(&arguments))?;
    let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let binary = messages.iter().find_map(|message| message["executable"].as_str());
    let binary_dir =
        binary.map(Path::new).and_then(Path::parent).context("cargo built no binary")?.to_owned();
    let libraries = messages.iter().filter_map(library).collect();
    Ok(Artifacts { binary_dir, libraries })
}

fn library(message: &Value) -> Option<(String, PathBuf)> {
    let name = message["target"]["name"].as_str()?.replace('-', "_");
    let files = message["filenames"].as_array()?;
    let file = files.iter().filter_map(Value::as_str).find(|file| file.ends_with(".rlib"))?;
    LIBRARIES.contains(&name.as_str()).then(|| (name, file.into()))
}

impl Artifacts {
    /// Makes the libraries known to rustc or rustdoc.
    pub(super) fn add_externs(&self, compiler: &mut Command) {
        let dependencies = self.binary_dir.join("deps");
        compiler.arg("-L").arg(format!("dependency={}", dependencies.display()));
        for (name, file) in &self.libraries {
            compiler.arg("--extern").arg(format!("{name}={}", file.display()));
        }
    }
}
