//! The admin API as the verbs use it. The types of the answers are the server's own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hookstead_core::RunName;
use hookstead_server::api::view::{EventView, EventsView, ReceiptView, RunView};
use hookstead_server::problem::{Case, Choice};
use hookstead_server::tokens;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Deserialize;

use crate::failure::{Exit, Failure};
use crate::output::printable;
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
    #[serde(flatten)]
    case: Case,
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

    /// The receipt of an event's acceptance.
    pub(crate) async fn receipt(&self, selector: &str) -> Result<ReceiptView> {
        let url = self.url(&["v1", "events", selector, "receipt"])?;
        let receipt = self.get(url, selector).await?;
        serde_json::from_slice(&receipt).context("read the server's receipt")
    }

    /// Processes an event under a name.
    pub(crate) async fn replay(&self, selector: &str, run: &RunName) -> Result<RunView> {
        let url = self.url(&["v1", "events", selector, "runs"])?;
        let asked = serde_json::json!({ "run": run.as_str() }).to_string();
        let request = self.http.post(url.clone()).header("content-type", "application/json").body(asked);
        let receipt = self.send(request, &url, selector).await?;
        serde_json::from_slice(&receipt).context("read the server's receipt")
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
        self.send(self.http.get(url.clone()), &url, subject).await
    }

    async fn send(&self, mut request: RequestBuilder, url: &Url, subject: &str) -> Result<Bytes> {
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
            StatusCode::NOT_FOUND => no_event(subject, refused.case.searched.as_deref()),
            StatusCode::GONE => erased(subject),
            _ => self.failure_by_code(status, refused, subject),
        }
    }

    fn failure_by_code(&self, status: StatusCode, refused: &Refused, subject: &str) -> Failure {
        let said = refused.case.detail.as_deref().unwrap_or(&refused.title);
        match refused.code.as_str() {
            "damaged" => damaged(subject),
            "ambiguous" => ambiguous(subject, &refused.case.choices),
            "unreadable" => unreadable(subject, said),
            "receipt-damaged" => receipt_damaged(said),
            "source-not-configured" => not_configured(said),
            code => {
                let code = if code.is_empty() { "no code" } else { code };
                let base = self.base.origin().ascii_serialization();
                Failure::new(Exit::Failed, "server", format!("{base} answered {status}: {said} ({code})"))
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

/// There is no such event; what was searched for it, if that is more than one look.
pub(crate) fn no_event(selector: &str, searched: Option<&str>) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no-event", format!("there is no event `{selector}`"));
    let failure = match searched {
        Some(searched) => failure.line("why", searched),
        None => failure,
    };
    failure.fix(
        "see which there are:   hookstead events\n\
         an event is named by its short id, its id, @ for the newest, or SOURCE:PROVIDER-ID",
    )
}

/// Several events have this name.
pub(crate) fn ambiguous(selector: &str, choices: &[Choice]) -> Failure {
    let message = format!("`{selector}` names {} events, each under a scope of its own", choices.len());
    let line = |choice: &Choice| {
        let Choice { short_id, scope, received_at } = choice;
        format!("{short_id}   scope {}, received {received_at}", printable(scope))
    };
    let lines: Vec<String> = choices.iter().map(line).collect();
    let first = choices.first().map_or("0001", |choice| &choice.short_id);
    Failure::new(Exit::Usage, "ambiguous", message)
        .line("one of", lines.join("\n"))
        .fix(format!("name it by its short id:   hookstead events show {first}"))
}

/// The processor of its source cannot read it.
pub(crate) fn unreadable(selector: &str, why: &str) -> Failure {
    Failure::new(
        Exit::Refused,
        "unreadable",
        format!("`{selector}` cannot be processed, and no run was recorded"),
    )
    .line("why", why)
    .fix(format!("look at it:   hookstead events body {selector}"))
}

/// The receipt of an earlier run is damaged.
pub(crate) fn receipt_damaged(why: &str) -> Failure {
    Failure::new(Exit::Refused, "receipt-damaged", why).fix(
        "find everything that is damaged:   hookstead store check\nor process the event under another name",
    )
}

/// Nobody knows how the source's events are processed.
pub(crate) fn not_configured(why: &str) -> Failure {
    Failure::new(Exit::Refused, "source-not-configured", why)
        .fix("add the source to the configuration, or name the configuration with --config FILE")
}

/// Its body was erased.
pub(crate) fn erased(selector: &str) -> Failure {
    Failure::new(Exit::NotFound, "erased", format!("the body of `{selector}` was erased by retention"))
        .fix(format!("what remains of it:   hookstead events show {selector}"))
}

/// The stored bytes do not fit their digest.
pub(crate) fn damaged(selector: &str) -> Failure {
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
