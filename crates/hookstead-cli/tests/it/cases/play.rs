//! A case on the real server: its requests in order, each answer, and what is stored at the end.

use serde_json::Value;

use super::case::{Case, CaseRequest, text};
use super::overrides;
use super::stage::Stage;
use crate::harness::{Admin, Reply, Server};

/// What a request must lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A new event.
    Stored,
    /// The same event again.
    Duplicate,
    /// Other bytes under an id that is taken; kept for review.
    Conflict,
    /// Nothing.
    Refused,
}

/// A case that was played, and the server that it left behind.
pub(crate) struct Played {
    pub(crate) case: Case,
    pub(crate) stage: Stage,
    pub(crate) server: Server,
    /// One a request.
    pub(crate) replies: Vec<Reply>,
    /// What is stored, in the order of commits.
    pub(crate) events: Vec<Value>,
}

/// Plays a case whose requests, sources and statuses are all data.
pub(crate) fn play(id: &str) -> Played {
    play_with(id, &[])
}

/// As [`play`], with the sketches of sources that the case names and does not sketch.
pub(crate) fn play_with(id: &str, more_sources: &[Value]) -> Played {
    let play = |store: &str| {
        let case = Case::get(id);
        let sketches: Vec<_> = case.sources().into_iter().chain(more_sources.iter().cloned()).collect();
        let stage = sketches.iter().fold(Stage::at(case.now()), Stage::source);
        play_on(case, stage.store(&format!("url = \"{store}\"\n")))
    };
    // Each store must say and hold the same; what a case looks at beside that, it looks at in one of them.
    let [first, second] = ["files:records", "sqlite:hookstead.db"].map(play);
    let ids = |played: &Played| {
        played.events.iter().map(|event| event["provider_event_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&second), "{id}");
    second
}

/// As [`play`], on a stage that is set already.
pub(crate) fn play_on(case: Case, stage: Stage) -> Played {
    let server = stage.serve();
    let requests = case.requests();
    let replies: Vec<Reply> = requests.iter().map(|request| send(&stage, &server, request)).collect();
    let expected = expected(&case);
    let statuses = |replies: &[Reply]| replies.iter().map(|reply| reply.status).collect::<Vec<_>>();
    let wanted: Vec<u16> = expected.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses(&replies), wanted, "{}: {replies:#?}\n{:#?}", case.id(), stage.log());
    let mut admin = server.admin();
    let events = events(&mut admin);
    check_stored(&case, &requests, &expected, &events, &mut admin);
    check_conflicts(&case, &expected, &mut admin);
    Played { case, stage, server, replies, events }
}

/// All events, in the order of commits.
pub(crate) fn events(admin: &mut Admin) -> Vec<Value> {
    let mut events = admin.events();
    events.sort_by_key(|event| event["seq"].as_u64());
    events
}

/// What a source has refused, as its operator finds it later: the code, and how many in a row.
pub(crate) fn refused(server: &Server, source: &str) -> Vec<(String, u64)> {
    let reply = server.admin().get(&format!("/v1/sources/{source}/refusals"));
    assert_eq!(reply.status, 200, "{reply}");
    let refusals = reply.json()["refusals"].as_array().expect("a list").clone();
    let noted =
        |refusal: &Value| (text(&refusal["code"]).to_owned(), refusal["count"].as_u64().expect("a count"));
    refusals.iter().map(noted).collect()
}

/// The stored bytes of an event of a list.
pub(crate) fn body(admin: &mut Admin, event: &Value) -> Vec<u8> {
    let reply = admin.get(&format!("/v1/events/{}/body", text(&event["id"])));
    assert_eq!(reply.status, 200, "{reply}");
    reply.body
}

fn send(stage: &Stage, server: &Server, request: &CaseRequest) -> Reply {
    if let Some(at) = request.at {
        stage.set_clock(at);
    }
    server.connect().exchange(&request.bytes).expect("an answer")
}

/// The status and the outcome of every request: those of the case, unless our specification says otherwise.
fn expected(case: &Case) -> Vec<(u16, Outcome)> {
    let requests = case.requests().len();
    let expected: Vec<_> = match overrides::answers(case.id()) {
        Some(answers) => answers.to_vec(),
        None => case.statuses().iter().map(|status| read(case, status)).collect(),
    };
    assert_eq!(expected.len(), requests, "{}: one status a request", case.id());
    expected
}

fn read(case: &Case, status: &Value) -> (u16, Outcome) {
    match (status.as_u64(), status.as_str()) {
        (Some(202), _) => (202, Outcome::Stored),
        (Some(409), _) => (409, Outcome::Conflict),
        (Some(status @ 400..), _) => (u16::try_from(status).expect("a status"), Outcome::Refused),
        (_, Some("2xx, duplicate")) => (200, Outcome::Duplicate),
        _ => panic!("{}: `{status}` is no one status; say in overrides.rs which", case.id()),
    }
}

/// Exactly the stored requests are there, in order, each byte for byte at its source.
fn check_stored(
    case: &Case,
    requests: &[CaseRequest],
    expected: &[(u16, Outcome)],
    events: &[Value],
    admin: &mut Admin,
) {
    let accepted: Vec<_> =
        requests.iter().zip(expected).filter(|(_, (_, outcome))| *outcome == Outcome::Stored).collect();
    assert_eq!(events.len(), accepted.len(), "{}: {events:#?}", case.id());
    for ((request, _), event) in accepted.iter().zip(events) {
        assert_eq!(text(&event["source"]), request.source, "{}: {event}", case.id());
        if let Some(sent) = &request.body {
            assert_eq!(&body(admin, event), sent, "{}: {event}", case.id());
            assert_eq!(event["bytes"], sent.len(), "{}: {event}", case.id());
        }
    }
}

/// Every conflict is kept for review.
fn check_conflicts(case: &Case, expected: &[(u16, Outcome)], admin: &mut Admin) {
    let conflicts = admin.get("/v1/conflicts").json()["conflicts"].as_array().map_or(0, Vec::len);
    let wanted = expected.iter().filter(|(_, outcome)| *outcome == Outcome::Conflict).count();
    assert_eq!(conflicts, wanted, "{}: conflicts", case.id());
}

impl Played {
    /// The provider event ids of what is stored, in order.
    pub(crate) fn ids(&self, expected: &[&str]) -> &Self {
        let ids: Vec<_> = self.events.iter().map(|event| text(&event["provider_event_id"])).collect();
        assert_eq!(ids, expected, "{}", self.case.id());
        self
    }

    /// The codes of the refusals that the operator sees in the log, in order.
    pub(crate) fn refusals(&self, expected: &[&str]) -> &Self {
        let log = self.stage.log();
        let codes: Vec<_> = log.iter().filter_map(|line| find(line, "refusal.code")).map(text).collect();
        assert_eq!(codes, expected, "{}: {log:#?}", self.case.id());
        self
    }

    /// The header fields of the first event, as they are kept.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let event = text(&self.events[0]["id"]);
        let event = self.server.admin().get(&format!("/v1/events/{event}")).json();
        let headers = event["headers"].as_array().expect("the header fields").clone();
        let pair = |header: &Value| (text(&header["name"]).to_owned(), text(&header["value"]).to_owned());
        headers.iter().map(pair).collect()
    }
}

/// A field of a log line, wherever the log's format puts fields.
pub(crate) fn find<'v>(line: &'v Value, key: &str) -> Option<&'v Value> {
    line.get(key).or_else(|| line.get("fields")?.get(key))
}
