//! The admin API as the verbs use it. The types of the answers are the server's own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hookstead_server::api::view::{EventView, EventsView};
use hookstead_server::tokens;
use reqwest::{StatusCode, Url};
use serde::Deserialize;

use crate::failure::{Exit, Failure};
use crate::post::{http_client, not_reached};
use crate::reader::EventQuery;

/// A check of a large store takes long; everything else is answered at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The variable with the token of a server elsewhere.
const TOKEN_VARIABLE: &str = "HOOKSTEAD_TOKEN";

/// A client of one server.
pub(crate) struct Client {
    base: Url,
    token: Option<String>,
    http: reqwest::Client,
}

/// What a refusal says of itself.
#[derive(Default, Deserialize)]
struct Refused {
    #[serde(default)]
    code: String,
    #[serde(default)]
    title: String,
    detail: Option<String>,
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
        let http = http_client(address, ANSWER_WITHIN)?;
        Ok(Self { base, token: token(data)?, http })
    }

    /// A page of events.
    pub(crate) async fn events(&self, query: &EventQuery) -> Result<EventsView> {
        let mut url = self.url(&["v1", "events"])?;
        let limit = query.limit.to_string();
        let parameters = [
            ("source", query.source.as_deref()),
            ("type", query.event_type.as_deref()),
            ("limit", Some(limit.as_str())),
            ("after", query.after.as_deref()),
        ];
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let list = self.get(url, "these events").await?;
        serde_json::from_slice(&list).context("read the server's list of events")
    }

    /// An event, by any of its names.
    pub(crate) async fn event(&self, selector: &str) -> Result<EventView> {
        let url = self.url(&["v1", "events", selector])?;
        let event = self.get(url, selector).await?;
        serde_json::from_slice(&event).context("read the server's answer about the event")
    }

    /// The body of an event.
    pub(crate) async fn body(&self, selector: &str) -> Result<Bytes> {
        let url = self.url(&["v1", "events", selector, "body"])?;
        self.get(url, selector).await
    }

    /// How many events there are, as far as one page shows.
    pub(crate) async fn events_counted(&self) -> Result<usize> {
        let query = EventQuery { source: None, event_type: None, limit: 100, after: None };
        Ok(self.events(&query).await?.events.len())
    }

    /// The address of a path whose parts may hold any character.
    fn url(&self, parts: &[&str]) -> Result<Url> {
        let mut url = self.base.clone();
        let segments = url.path_segments_mut();
        segments.ok().context("the server's address takes no path")?.pop_if_empty().extend(parts);
        Ok(url)
    }

    async fn get(&self, url: Url, subject: &str) -> Result<Bytes> {
        let mut request = self.http.get(url.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let failed = |error| not_reached(url.as_str(), &error);
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let body = response.bytes().await.map_err(failed)?;
        if status.is_success() {
            return Ok(body);
        }
        // Whatever stands between us and the server may answer without our JSON; the status is enough then.
        let refused = serde_json::from_slice(&body).unwrap_or_default();
        Err(self.failure(status, &refused, subject).into())
    }

    fn failure(&self, status: StatusCode, refused: &Refused, subject: &str) -> Failure {
        let base = self.base.origin().ascii_serialization();
        match status {
            StatusCode::UNAUTHORIZED if self.token.is_none() => {
                Failure::new(Exit::NotAllowed, "unauthorized", format!("{base} wants a token (401)")).fix(
                    "name the server's data folder:  --data DIR\nor set HOOKSTEAD_TOKEN         (hookstead token create)",
                )
            }
            StatusCode::UNAUTHORIZED => {
                Failure::new(Exit::NotAllowed, "unauthorized", format!("{base} does not take this token (401)"))
                    .fix("make one on the server's machine: hookstead token create")
            }
            StatusCode::FORBIDDEN => {
                Failure::new(Exit::NotAllowed, "forbidden", "the token does not allow this (403)")
                    .fix("make one with a larger role: hookstead token create --role operate")
            }
            StatusCode::NOT_FOUND if refused.code == "unknown-source" => no_source(),
            StatusCode::NOT_FOUND => no_event(subject),
            StatusCode::GONE => erased(subject),
            _ if refused.code == "damaged" => damaged(subject),
            _ => {
                let code = if refused.code.is_empty() { "no code" } else { &refused.code };
                let title = refused.detail.as_deref().unwrap_or(&refused.title);
                Failure::new(Exit::Failed, "server", format!("{base} answered {status}: {title} ({code})"))
                    .fix("the server's log says more")
            }
        }
    }
}

/// The store has never seen the source.
pub(crate) fn no_source() -> Failure {
    Failure::new(Exit::NotFound, "unknown-source", "no event of this source was ever stored")
        .fix("see which sources there are:   hookstead events")
}

/// There is no such event.
pub(crate) fn no_event(selector: &str) -> Failure {
    Failure::new(Exit::NotFound, "no-event", format!("there is no event `{selector}`")).fix(
        "see which there are:   hookstead events\n\
         an event is named by its short id, its id, @ for the newest, or SOURCE:PROVIDER-ID",
    )
}

/// Its body was erased.
pub(crate) fn erased(selector: &str) -> Failure {
    Failure::new(Exit::NotFound, "erased", format!("the body of `{selector}` was erased by retention"))
        .fix(format!("what remains of it:   hookstead events show {selector}"))
}

/// The stored bytes do not fit their digest.
fn damaged(selector: &str) -> Failure {
    Failure::new(Exit::Failed, "damaged", format!("what is stored of `{selector}` does not fit its digest"))
        .fix("find everything that is damaged:   hookstead store check")
}

fn token(data: &Path) -> Result<Option<String>> {
    match std::env::var(TOKEN_VARIABLE) {
        Ok(token) if !token.is_empty() => return Ok(Some(token)),
        _ => {}
    }
    if !data.join(tokens::ADMIN_TOKEN_FILE).exists() {
        return Ok(None);
    }
    Ok(Some(tokens::admin_token(data)?))
}
