//! What the server acknowledged, and whether all of it is there: looked at byte for byte through the admin listener,
//! and by a retry of each event.

use std::collections::BTreeMap;

use super::{Connection, Request, SOURCE, Server};

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

impl Losses {
    /// Looks at each event. Before its retry, which could store anew what was lost.
    pub(crate) fn look<'e>(
        &mut self,
        server: &Server,
        events: impl IntoIterator<Item = (&'e String, &'e Vec<u8>)>,
    ) {
        let (mut admin, mut intake) = (server.admin(), server.connect());
        for (id, body) in events {
            self.checked += 1;
            match admin.body(SOURCE, id) {
                Ok(stored) if stored == *body => {}
                Ok(_) => self.note(id, "other bytes"),
                Err(answer) => self.note(id, &answer),
            }
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

/// The status of one more delivery of an event.
fn retry(intake: &mut Connection, id: &str, body: &[u8]) -> u16 {
    intake.exchange(&Request::signed(id, body).bytes()).expect("an answer").status
}
