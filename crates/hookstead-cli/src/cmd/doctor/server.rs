//! The running server: that both listeners answer, that it is ready, that it is the same version, and what it says of
//! itself. Without one: that a server could listen.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use hookstead_server::Config;
use hookstead_server::api::view::{DestinationsView, DoctorView, FindingView, ReadyView, StatsView};
use hookstead_store::Finding;
use reqwest::StatusCode;
use serde::de::DeserializeOwned;

use super::{clock, deliveries, machine};
use crate::client::token;
use crate::cmd::runtime;
use crate::post::{http_client, not_reached};
use crate::running::Running;
use crate::sample::now;

const SERVER: &str = "server";
const INTAKE: &str = "intake";
const ADMIN: &str = "admin";
const READY: &str = "ready";
const VERSION: &str = "version";
const LISTEN: &str = "listen";

/// Both listeners answer such questions in milliseconds. It is longer than the server itself lets a request wait: what it
/// says in the end, also that it is too busy, tells a person more than that it said nothing.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// What was found.
pub(super) struct Look {
    /// The admin address of the server; `None` if none runs.
    pub(super) server: Option<String>,
    /// How the steps of its start came out, if it says so.
    pub(super) start: Vec<FindingView>,
    pub(super) findings: Vec<Finding>,
}

/// Looks at the server that has the store open.
pub(super) fn look(config: &Config) -> Result<Look> {
    match Running::find(config) {
        Ok(Some(running)) => runtime()?.block_on(ask(config, &running)),
        Ok(None) => Ok(without(config)),
        Err(error) => {
            let fix = "wait until it has started or ended, and look again";
            let findings = vec![Finding::warning(SERVER, error.to_string(), fix)];
            Ok(Look { server: None, start: Vec::new(), findings })
        }
    }
}

/// Whether a server could listen.
fn without(config: &Config) -> Look {
    let none = format!("none runs on {}", config.store.url);
    let mut findings = vec![Finding::warning(SERVER, none, "start one: hookstead serve")];
    findings.extend([(INTAKE, config.server.intake), (ADMIN, config.server.admin)].map(listen));
    Look { server: None, start: Vec::new(), findings }
}

/// The address is taken for a moment, as a start would take it.
fn listen((listener, address): (&str, SocketAddr)) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::good(LISTEN, format!("{listener}: {address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Finding::failed(
            LISTEN,
            format!("{listener}: {address} is taken by another program"),
            format!("stop it (`ss -ltnp` names it), or set {listener} in [server]"),
        ),
        Err(error) => Finding::failed(
            LISTEN,
            format!("{listener}: cannot listen on {address}: {error}"),
            format!("choose an address of this machine: {listener} in [server]"),
        ),
    }
}

async fn ask(config: &Config, running: &Running) -> Result<Look> {
    let mut findings =
        vec![Finding::good(SERVER, format!("process {}, admin {}", running.pid, running.admin))];
    let token = token(&config.data)?;
    let intake =
        Asked { http: http_client(&running.intake, ANSWER_WITHIN)?, base: &running.intake, token: None };
    let admin = Asked { http: http_client(&running.admin, ANSWER_WITHIN)?, base: &running.admin, token };
    // Both at once, so that a server that does not answer is waited for once.
    let mut of_admin = Vec::new();
    let (of_intake, goes_on) = tokio::join!(intake_answers(&intake), admin_answers(&admin, &mut of_admin));
    findings.push(of_intake);
    findings.extend(of_admin);
    let start = if goes_on { its_own_word(&admin, &mut findings).await } else { Vec::new() };
    Ok(Look { server: Some(running.admin.clone()), start, findings })
}

async fn intake_answers(intake: &Asked<'_>) -> Finding {
    let base = intake.base;
    match intake.get("readyz").await {
        Ok((StatusCode::OK, _)) => Finding::good(INTAKE, format!("{base} answers")),
        Ok((status, _)) => Finding::failed(
            INTAKE,
            format!("{base} takes nothing at the moment ({status})"),
            "see `ready`: the admin listener knows why",
        ),
        Err(why) => unreached(INTAKE, why),
    }
}

/// Whether it can be asked more.
async fn admin_answers(admin: &Asked<'_>, findings: &mut Vec<Finding>) -> bool {
    let base = admin.base;
    let (status, body) = match admin.get("readyz").await {
        Ok(answer) => answer,
        Err(why) => {
            findings.push(unreached(ADMIN, why));
            return false;
        }
    };
    let Ok(view) = serde_json::from_slice::<ReadyView>(&body) else {
        let words = format!("{base} answers {status}, and not as a server of hookstead does");
        findings.push(Finding::failed(ADMIN, words, "see who listens there: ss -ltnp"));
        return false;
    };
    findings.push(Finding::good(ADMIN, format!("{base} answers")));
    findings.push(ready(&view));
    findings.extend(view.version.as_deref().map(version));
    true
}

fn ready(view: &ReadyView) -> Finding {
    if view.ready {
        return Finding::good(READY, "events are accepted");
    }
    let why = view.reason.as_deref().unwrap_or("it does not say why without a token");
    Finding::failed(
        READY,
        format!("no event is accepted: {why}"),
        "the server's log says more; where the disk failed, look at it (dmesg, free space) and start the server again",
    )
}

fn version(server: &str) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    match server == own {
        true => Finding::good(VERSION, format!("{own}, server and program")),
        false => Finding::warning(
            VERSION,
            format!("the server is {server}, and this program {own}"),
            "start the server again with this program, or run the doctor of the other one",
        ),
    }
}

/// What only the server knows of itself; gives how the steps of its start came out.
async fn its_own_word(admin: &Asked<'_>, findings: &mut Vec<Finding>) -> Vec<FindingView> {
    // At once as well.
    let (doctor, destinations, stats) = tokio::join!(
        admin.read::<DoctorView>("v1/doctor"),
        admin.read::<DestinationsView>("v1/destinations"),
        admin.read::<StatsView>("v1/stats"),
    );
    let mut start = Vec::new();
    match doctor {
        Ok(view) => {
            findings.push(machine::open_files_of(&view.open_files));
            findings.extend(clock::look(&view.sources));
            start = view.start;
        }
        Err(unread) => findings.push(unread.finding("clock")),
    }
    match destinations {
        Ok(view) => findings.extend(deliveries::look(&view.destinations, now())),
        Err(unread) => findings.push(unread.finding("destination")),
    }
    match stats {
        Ok(stats) => findings.extend(deliveries::waiting_for_people(&stats)),
        Err(unread) => findings.push(unread.finding("dead-letters")),
    }
    start
}

fn unreached(name: &str, why: String) -> Finding {
    let fix = "the process lives and does not answer: look at its log, and whether it was stopped (`ps -o stat= PID`)";
    Finding::failed(name, why, fix)
}

/// A listener that is asked.
struct Asked<'a> {
    http: reqwest::Client,
    base: &'a str,
    token: Option<String>,
}

/// Why an answer could not be read.
enum Unread {
    NotAllowed(StatusCode),
    Other(String),
}

impl Unread {
    fn finding(self, name: &str) -> Finding {
        match self {
            Self::NotAllowed(status) => Finding::skipped(
                name,
                format!(
                    "the server tells it only with a token ({status}): name its data folder, or set HOOKSTEAD_TOKEN"
                ),
            ),
            Self::Other(why) => Finding::skipped(name, why),
        }
    }
}

impl Asked<'_> {
    /// Status and body, or why there is no answer.
    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), String> {
        let url = format!("{}/{path}", self.base);
        let failed = |error| not_reached(&url, &error).to_string();
        let mut request = self.http.get(&url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        Ok((status, response.bytes().await.map_err(failed)?))
    }

    /// The answer as what it is.
    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Unread> {
        let (status, body) = self.get(path).await.map_err(Unread::Other)?;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Unread::NotAllowed(status)),
            StatusCode::OK => serde_json::from_slice(&body)
                .map_err(|error| Unread::Other(format!("{}/{path} was not understood: {error}", self.base))),
            _ => Err(Unread::Other(format!("{}/{path} answered {status}", self.base))),
        }
    }
}
