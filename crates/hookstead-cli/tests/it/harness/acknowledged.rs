//! What the server acknowledged, and whether all of it is there: looked at byte for byte through the admin listener,
//! and by a retry of each event.

use std::collections::BTreeMap;

use super::{Connection, Evidence, Project, Request, SOURCE, Server};

/// Bodies by the ids of their events.
pub(crate) type Events = BTreeMap<String, Vec<u8>>;

/// What a look at acknowledged events found.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Looked at.
    pub(crate) checked: usize,
    /// What is wrong, by the ids of the events; all of them absent or of other bytes.
    pub(crate) faults: BTreeMap<String, String>,
}

/// A look retries no more events than this, evenly spread: in a folder of records the first retry after a start costs
/// a sync of its own.
const RETRIES_MAX: usize = 200;

impl Losses {
    /// Looks at the bytes of each event, then retries some: a retry could store anew what was lost.
    pub(crate) fn look(&mut self, server: &Server, events: &Events) {
        let mut admin = server.admin();
        for (id, body) in events {
            self.checked += 1;
            match admin.body(SOURCE, id) {
                Ok(stored) if stored == *body => {}
                Ok(_) => self.note(id, "other bytes"),
                Err(answer) => self.note(id, &answer),
            }
        }
        let mut intake = server.connect();
        for (id, body) in events.iter().step_by(events.len().div_ceil(RETRIES_MAX).max(1)) {
            let status = retry(&mut intake, id, body);
            if status != 200 {
                self.note(id, &format!("its retry got {status}"));
            }
        }
    }

    fn note(&mut self, id: &str, what: &str) {
        self.faults.entry(id.to_owned()).or_insert_with(|| what.to_owned());
    }

    /// Fails if anything is wrong.
    pub(crate) fn judge(&self) {
        assert!(self.faults.is_empty(), "lost or altered: {:#?}", self.faults);
    }
}

/// After so many events the SQLite store writes a part of its index of identities with the newest one's commit
/// (`IDENTITY_FLUSH_EVENTS`).
const INDEX_EVENTS: usize = 256;

/// Answers are read after so many requests at the latest, which is fewer than one connection may have under way.
const PIPELINED: usize = 50;

/// Stores small events, until only `short` are missing before the next commit writes to the index of identities.
pub(crate) fn fill_index(server: &Server, events: &mut Events, short: usize) {
    let mut connection = server.connect();
    let missing = (2 * INDEX_EVENTS - short - events.len() % INDEX_EVENTS) % INDEX_EVENTS;
    let first = events.len();
    let ids: Vec<String> = (first..first + missing).map(|number| format!("filler-{number}")).collect();
    for some in ids.chunks(PIPELINED) {
        let requests: Vec<u8> =
            some.iter().flat_map(|id| Request::signed(id, id.as_bytes()).bytes()).collect();
        connection.send(&requests).expect("they are taken");
        for id in some {
            let reply = connection.receive().expect("an answer").expect("an answer");
            assert_eq!(reply.status, 202, "{id}: {reply}");
            events.insert(id.clone(), id.clone().into_bytes());
        }
    }
}

/// The status of one more delivery of an event.
fn retry(intake: &mut Connection, id: &str, body: &[u8]) -> u16 {
    intake.exchange(&Request::signed(id, body).bytes()).expect("an answer").status
}

/// The end of a run: every event is there, and nothing but them and so many conflicts; the store finds no damage.
pub(crate) fn check_all(
    project: &Project,
    server: Server,
    events: &Events,
    conflicts: usize,
    mut evidence: Evidence,
) {
    let mut losses = Losses::default();
    losses.look(&server, events);
    let listed = server.admin().events().len();
    let kept = server.admin().conflicts();
    server.kill9();
    let check = project.run(&["store", "check"]);
    evidence.count("checked", losses.checked);
    evidence.count("lost", losses.faults.len());
    evidence.count("doubled", listed.saturating_sub(events.len()));
    evidence.finish(project.data());
    losses.judge();
    assert_eq!(listed, events.len(), "one row an event");
    assert_eq!(kept.len(), conflicts, "the other bytes once a digest: {kept:#?}");
    assert_eq!(check.exit_code, Some(0), "{check:?}");
}
