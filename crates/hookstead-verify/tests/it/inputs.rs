//! Reads the vectors and turns each into a verifier and a request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookstead_verify::{
    IdentityRule, Provider, Registry, Request, SchemeSpec, Secret, Verifier, VerifyOptions,
};
use serde::Deserialize;

/// The crate's folder, also when the tests were built elsewhere.
pub(crate) fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// One entry of `vectors/*.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    /// `<provider>/<case>`.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Unix seconds at which the request is judged.
    pub(crate) now: i64,
    pub(crate) secrets: Vec<String>,
    /// The public address as the provider called it.
    pub(crate) url: Option<String>,
    /// A scheme in a source's own words, instead of a record.
    pub(crate) scheme: Option<SchemeSpec>,
    pub(crate) identity: Option<String>,
    /// Published examples have secrets that a source would refuse as too short.
    pub(crate) secret_bytes_min: Option<usize>,
    pub(crate) request: Message,
    pub(crate) expect: Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Verify,
    Handshake,
    Ack,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) body_b64: String,
    pub(crate) body_fill: Option<Fill>,
}

/// A long body: a text so many times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fill {
    text: String,
    times: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) verdict: Option<String>,
    #[serde(default)]
    pub(crate) also_ok: Vec<String>,
    pub(crate) event_id: Option<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) secret_index: Option<usize>,
    pub(crate) class: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) response: Option<Response>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Response {
    pub(crate) status: u16,
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    pub(crate) body: Option<String>,
}

/// Every vector of the crate.
pub(crate) fn all() -> Vec<Vector> {
    let folder = root().join("vectors");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

/// The vector of that id.
pub(crate) fn one(id: &str) -> Vector {
    let (provider, _) = id.split_once('/').unwrap();
    let vectors = read(&root().join("vectors").join(format!("{provider}.json")));
    vectors.into_iter().find(|vector| vector.id == id).unwrap_or_else(|| panic!("no vector `{id}`"))
}

fn read(file: &Path) -> Vec<Vector> {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

impl Vector {
    /// The part of the id before the slash.
    pub(crate) fn provider_name(&self) -> &str {
        self.id.split_once('/').unwrap().0
    }

    pub(crate) fn provider(&self) -> Arc<Provider> {
        let name = self.provider_name();
        if let Some(spec) = &self.scheme {
            return Arc::new(spec.provider(name).unwrap());
        }
        match self.secret_bytes_min {
            None => Arc::clone(Registry::builtin().get(name).unwrap()),
            Some(bytes_min) => Arc::new(with_shorter_secrets(name, bytes_min)),
        }
    }

    pub(crate) fn verifier(&self) -> Verifier {
        let secrets: Vec<_> =
            self.secrets.iter().map(|secret| Secret::new(secret.as_str()).unwrap()).collect();
        let identity: IdentityRule = self.identity.as_deref().unwrap_or("provider").parse().unwrap();
        let options = VerifyOptions { url: self.url.clone(), identity, ..VerifyOptions::default() };
        Verifier::new(self.provider(), &secrets, options).unwrap()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        match &self.request.body_fill {
            Some(fill) => fill.text.repeat(fill.times).into_bytes(),
            None => STANDARD.decode(&self.request.body_b64).unwrap(),
        }
    }

    /// The request with this body.
    pub(crate) fn with_body<'v>(&'v self, body: &'v [u8]) -> Request<'v> {
        let Message { method, path, headers, .. } = &self.request;
        Request { method, target: path, url: None, headers, body }
    }

    pub(crate) fn now_micros(&self) -> i64 {
        self.now * 1_000_000
    }
}

fn with_shorter_secrets(name: &str, bytes_min: usize) -> Provider {
    let file = root().join("providers").join(format!("{name}.toml"));
    let toml = fs::read_to_string(file).unwrap();
    let line = toml.lines().find(|line| line.starts_with("bytes_min")).unwrap();
    Provider::parse(name, &toml.replace(line, &format!("bytes_min = {bytes_min}"))).unwrap()
}
