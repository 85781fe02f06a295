//! The admin API as the verbs use it. The types of the answers are the server's own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hookstead_core::RunName;
use hookstead_server::api::view::{EventView, EventsView, ReceiptView, RunView};
use hookstead_server::transfer::ExportPage;
use hookstead_server::{LocalApi, tokens};
use http::Method;
use reqwest::{StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Exit, Failure};
use crate::post::{http_client, not_reached};
use crate::reader::{EventQuery, ExportQuery};
use crate::refusal::{Refused, Refuser};

/// A check of a large store takes long; everything else is answered at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The variable with the token of a server elsewhere.
const TOKEN_VARIABLE: &str = "HOOKSTEAD_TOKEN";

/// A client of one server, or of the API over a store that no server has open.
pub(crate) struct Client {
    base: Url,
    way: Way,
}

enum Way {
    Server { token: Option<String>, http: reqwest::Client },
    Here(Box<LocalApi>),
}

/// A request.
pub(crate) struct Call<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'a str, String)>,
    body: Option<Content>,
    subject: &'a str,
    wait: Duration,
}

/// What is sent along.
struct Content {
    kind: &'static str,
    bytes: Bytes,
}

impl<'a> Call<'a> {
    /// Looks at something. `path` in parts, which may hold any character.
    pub(crate) fn get(path: &[&'a str]) -> Self {
        let subject = path.last().copied().unwrap_or_default();
        Self {
            method: Method::GET,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            subject,
            wait: Duration::ZERO,
        }
    }

    /// Changes something.
    pub(crate) fn post(path: &[&'a str], body: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(body)?.into();
        Ok(Self::post_bytes(path, "application/json", bytes))
    }

    /// Sends something that is no JSON document.
    pub(crate) fn post_bytes(path: &[&'a str], kind: &'static str, bytes: Bytes) -> Self {
        Self { method: Method::POST, body: Some(Content { kind, bytes }), ..Self::get(path) }
    }

    /// What the request is about, for the words of a refusal; else it is the last part of the path.
    #[must_use]
    pub(crate) fn about(mut self, subject: &'a str) -> Self {
        self.subject = subject;
        self
    }

    /// Adds a parameter if there is one.
    #[must_use]
    pub(crate) fn with(mut self, name: &'a str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// The server may wait so long before it answers.
    #[must_use]
    pub(crate) fn waiting(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

impl Client {
    /// A client of the server at this address. Its token is that of the environment, else that of the data
    /// folder, if there is one.
    pub(crate) fn at(address: &str, data: &Path) -> Result<Self> {
        let base = Url::parse(address).map_err(|error| {
            Failure::new(
                Exit::Usage,
                "bad-url",
                format!("`{address}` is not the address of a server: {error}"),
            )
            .fix("write it as http://HOST:PORT")
        })?;
        let way = Way::Server { token: token(data)?, http: http_client(address, ANSWER_WITHIN)? };
        Ok(Self { base, way })
    }

    /// A client of the API over a store that no server has open.
    pub(crate) fn here(api: LocalApi) -> Result<Self> {
        let base = Url::parse("http://localhost").context("a plain URL")?;
        Ok(Self { base, way: Way::Here(Box::new(api)) })
    }

    /// Lets go of a store that was opened.
    pub(crate) async fn close(self) -> Result<()> {
        match self.way {
            Way::Server { .. } => Ok(()),
            Way::Here(api) => Ok(api.close().await?),
        }
    }

    /// The answer to a request, read as what it is.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T> {
        let answer = self.bytes(call).await?;
        serde_json::from_slice(&answer).context("read the server's answer")
    }

    /// A page of events.
    pub(crate) async fn events(&self, query: &EventQuery) -> Result<EventsView> {
        let call = Call::get(&["v1", "events"])
            .with("source", query.source.as_deref())
            .with("type", query.event_type.as_deref())
            .with("limit", Some(query.limit))
            .with("after", query.after.as_deref());
        self.ask(call.about("these events")).await
    }

    /// An event, by any of its names.
    pub(crate) async fn event(&self, selector: &str) -> Result<EventView> {
        self.ask(Call::get(&["v1", "events", selector])).await
    }

    /// The receipt of an event's acceptance.
    pub(crate) async fn receipt(&self, selector: &str) -> Result<ReceiptView> {
        self.ask(Call::get(&["v1", "events", selector, "receipt"]).about(selector)).await
    }

    /// Processes an event under a name.
    pub(crate) async fn replay(&self, selector: &str, run: &RunName) -> Result<RunView> {
        let asked = serde_json::json!({ "run": run.as_str() });
        self.ask(Call::post(&["v1", "events", selector, "runs"], &asked)?.about(selector)).await
    }

    /// The body of an event.
    pub(crate) async fn body(&self, selector: &str) -> Result<Bytes> {
        self.bytes(Call::get(&["v1", "events", selector, "body"]).about(selector)).await
    }

    /// A page of an export: the lines of its events, and how it ended.
    pub(crate) async fn export_page(&self, query: &ExportQuery) -> Result<ExportPage> {
        let call = Call::get(&["v1", "export"])
            .with("source", query.source.as_deref())
            .with("type", query.event_type.as_deref())
            .with("from", query.from.map(|from| from.to_string()))
            .with("before", query.before.map(|before| before.to_string()))
            .with("after", query.after.as_deref())
            .with("until", query.until);
        let answer = self.bytes(call.about("these events")).await?;
        let text = answer.strip_suffix(b"\n").unwrap_or(&answer);
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = text.get(..end).unwrap_or_default().to_vec();
        let end = text.get(end..).unwrap_or_default();
        Ok(ExportPage { lines, end: serde_json::from_slice(end).context("read the end of a page")? })
    }

    /// The line of one event in an export.
    pub(crate) async fn export_event(&self, selector: &str) -> Result<Bytes> {
        self.bytes(Call::get(&["v1", "events", selector, "export"]).about(selector)).await
    }

    /// How many events there are, as far as one page shows.
    pub(crate) async fn events_counted(&self) -> Result<usize> {
        let query = EventQuery { source: None, event_type: None, limit: 100, after: None };
        Ok(self.events(&query).await?.events.len())
    }

    /// The answer to a request, as it came.
    pub(crate) async fn bytes(&self, call: Call<'_>) -> Result<Bytes> {
        let mut url = self.url(&call.path)?;
        for (name, value) in &call.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let (status, body) = match &self.way {
            Way::Server { token, http } => ask_server(http, token.as_deref(), &url, &call).await?,
            Way::Here(api) => ask_here(api, &url, &call).await?,
        };
        if status.is_success() {
            return Ok(body);
        }
        // Whatever stands between us and the server may answer without our JSON; the status is enough then.
        let refused: Refused = serde_json::from_slice(&body).unwrap_or_default();
        let with_token = !matches!(&self.way, Way::Server { token: None, .. });
        let refuser = Refuser { base: self.base.origin().ascii_serialization(), with_token };
        Err(refuser.failure(status, &refused, call.subject).into())
    }

    /// The address of a path whose parts may hold any character.
    fn url(&self, parts: &[&str]) -> Result<Url> {
        let mut url = self.base.clone();
        let segments = url.path_segments_mut();
        segments.ok().context("the server's address takes no path")?.pop_if_empty().extend(parts);
        Ok(url)
    }
}

async fn ask_server(
    http: &reqwest::Client,
    token: Option<&str>,
    url: &Url,
    call: &Call<'_>,
) -> Result<(StatusCode, Bytes)> {
    let mut request = http.request(call.method.clone(), url.clone()).timeout(ANSWER_WITHIN + call.wait);
    if let Some(body) = &call.body {
        request = request.header("content-type", body.kind).body(body.bytes.clone());
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let failed = |error| not_reached(url.as_str(), &error);
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    Ok((status, response.bytes().await.map_err(failed)?))
}

async fn ask_here(api: &LocalApi, url: &Url, call: &Call<'_>) -> Result<(StatusCode, Bytes)> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let body = call.body.as_ref().map_or_else(Bytes::new, |body| body.bytes.clone());
    Ok(api.answer(call.method.clone(), &target, body).await?)
}

/// The token of the environment, else of the data folder, if there is one.
pub(crate) fn token(data: &Path) -> Result<Option<String>> {
    match std::env::var(TOKEN_VARIABLE) {
        Ok(token) if !token.is_empty() => return Ok(Some(token)),
        _ => {}
    }
    if !data.join(tokens::ADMIN_TOKEN_FILE).exists() {
        return Ok(None);
    }
    Ok(Some(tokens::admin_token(data)?))
}
