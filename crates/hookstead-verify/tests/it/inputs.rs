//! Reads the vectors of the crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use hookstead_verify::vector::{self, Vector as Case};
use hookstead_verify::{Provider, Registry, Request, Secret, Verifier};

/// The crate's folder, also when the tests were built elsewhere.
pub(crate) fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Every vector of the crate.
pub(crate) fn cases() -> Vec<Case> {
    files().iter().flat_map(|file| read(file)).collect()
}

/// The same as they are written.
pub(crate) fn raw() -> Vec<serde_json::Value> {
    let read = |file: &PathBuf| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let list = |file: serde_json::Value| match file {
        serde_json::Value::Array(vectors) => vectors,
        mut wrapped => std::mem::take(wrapped["vectors"].as_array_mut().unwrap()),
    };
    files().iter().map(read).flat_map(list).collect()
}

fn files() -> Vec<PathBuf> {
    let folder = root().join("vectors");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|found| found == "json")).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Vec<Case> {
    let text = fs::read_to_string(file).unwrap();
    vector::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A vector whose parts a test changes.
pub(crate) struct Vector {
    case: Case,
    pub(crate) secrets: Vec<String>,
    pub(crate) url: Option<String>,
    pub(crate) request: Message,
}

pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// The vector of that id.
pub(crate) fn one(id: &str) -> Vector {
    let (provider, _) = id.split_once('/').unwrap();
    let cases = read(&root().join("vectors").join(format!("{provider}.json")));
    let case = cases.into_iter().find(|case| case.id == id).unwrap_or_else(|| panic!("no vector `{id}`"));
    Vector::from(case)
}

impl From<Case> for Vector {
    fn from(case: Case) -> Self {
        let (method, path, headers) = case.head();
        let request = Message { method: method.to_owned(), path: path.to_owned(), headers: headers.to_vec() };
        let (secrets, url) = (case.secrets().to_vec(), case.url().map(str::to_owned));
        Self { case, secrets, url, request }
    }
}

impl Vector {
    pub(crate) fn provider(&self) -> Arc<Provider> {
        Arc::clone(self.verifier().provider())
    }

    pub(crate) fn verifier(&self) -> Verifier {
        self.case.verifier(Registry::builtin()).unwrap()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        self.case.body().unwrap()
    }

    /// The request with this body.
    pub(crate) fn with_body<'v>(&'v self, body: &'v [u8]) -> Request<'v> {
        let Message { method, path, headers } = &self.request;
        Request { method, target: path, url: None, headers, body }
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.case.now_micros()
    }
}

/// A secret of a form that the provider takes, always the same one.
pub(crate) fn secret_for(provider: &Provider) -> Option<Secret> {
    let prefix = &provider.secret().prefix;
    let forms = [
        format!("{prefix}0123456789abcdef0123456789abcdef"),
        format!("{prefix}MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
        "hookstead:0123456789abcdef".to_owned(),
    ];
    let secrets = forms.into_iter().filter_map(|form| Secret::new(form).ok());
    secrets.into_iter().find(|secret| provider.shares_secret() && provider.check_secret(secret).is_ok())
}

/// Values for everything that a provider asks a source for.
pub(crate) fn conf_for(provider: &Provider) -> std::collections::BTreeMap<String, String> {
    let value = |name: &str| match name {
        "domain" => "example.kinde.com".to_owned(),
        // Of the vectors, which no other topic would pass.
        "topic_arn" => "topica_c7b528bbb2bf".to_owned(),
        other => format!("{other}_1"),
    };
    provider.conf().map(|(name, _, _)| (name.to_owned(), value(name))).collect()
}
