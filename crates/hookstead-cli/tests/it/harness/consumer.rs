//! A pull consumer as it works from outside: it claims and settles through the admin listener, with a token that may do
//! nothing else; and how a delivery looks when what it asked for was recorded, and when it was not.

use serde_json::{Value, json};

use super::{Connection, Project, Reply, Request, Server};

/// The destination that [`Consumer`] works, as a section of a configuration. Without retries that wait, so that an
/// expired lease is given out again at once.
pub(crate) const PULLED: &str = "[destinations.app]\npull = true\nretry = [\"0s\", \"0s\", \"0s\", \"0s\"]\n";

/// What a consumer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Claim,
    Done,
    Retry,
    Dead,
    Release,
}

impl Act {
    /// All ways to end a lease.
    pub(crate) const SETTLES: [Self; 4] = [Self::Done, Self::Retry, Self::Dead, Self::Release];

    /// The status of a success.
    pub(crate) fn success(self) -> u16 {
        if self == Self::Claim { 200 } else { 204 }
    }

    /// Whether this is the delivery, as the admin listener shows it, after this was the first that anybody did with it.
    pub(crate) fn is_recorded_in(self, delivery: &Value) -> bool {
        let (state, attempts, logged) = match self {
            // On a busy machine a short lease may have ended since.
            Self::Claim => return stands(delivery, "leased", 1, 0) || stands(delivery, "waiting", 1, 0),
            Self::Done => ("done", 1, 1),
            Self::Retry => ("waiting", 1, 1),
            Self::Dead => ("dead", 1, 1),
            Self::Release => ("waiting", 0, 0),
        };
        stands(delivery, state, attempts, logged)
    }

    /// Whether it has not happened to the delivery.
    pub(crate) fn is_absent_from(self, delivery: &Value) -> bool {
        match self {
            Self::Claim => stands(delivery, "waiting", 0, 0),
            _ => stands(delivery, "leased", 1, 0),
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Dead => "dead",
            Self::Release => "release",
        }
    }

    /// A retry lies far ahead, so that nobody gets the delivery by chance.
    fn details(self) -> Value {
        match self {
            Self::Retry => json!({"after": "1h"}),
            Self::Dead => json!({"reason": "no use"}),
            _ => Value::Null,
        }
    }
}

fn stands(delivery: &Value, state: &str, attempts: u64, logged: usize) -> bool {
    let log = delivery["log"].as_array().map_or(0, Vec::len);
    delivery["state"] == state && delivery["attempts"] == attempts && log == logged
}

/// A consumer with a connection to one server.
pub(crate) struct Consumer {
    connection: Connection,
    address: String,
    token: String,
}

impl Consumer {
    /// Makes a token for consumers of [`PULLED`].
    pub(crate) fn token(project: &Project) -> String {
        let made = project.run(&["token", "create", "--scope", "consume:app"]);
        assert_eq!(made.exit_code, Some(0), "{made:?}");
        made.stdout.trim().to_owned()
    }

    /// Connects.
    pub(crate) fn of(server: &Server, token: &str) -> Self {
        let address = server.admin_address().to_owned();
        let connection = Connection::open(&address).expect("the admin listener accepts connections");
        Self { connection, address, token: token.to_owned() }
    }

    /// Asks for it; `None` if the connection ended instead of an answer. `lease` is the lease to end, or how long the
    /// claimed one is to last.
    pub(crate) fn ask(&mut self, act: Act, lease: &str) -> Option<Reply> {
        match act {
            Act::Claim => self.post(&format!("/v1/destinations/app/claim?max=1&lease={lease}"), &Value::Null),
            _ => self.post(&format!("/v1/leases/{lease}/{}", act.path()), &act.details()),
        }
    }

    /// Claims what is due now or soon, which must be there; for so long.
    pub(crate) fn claimed(&mut self, lease: &str) -> Value {
        let target = format!("/v1/destinations/app/claim?max=1&wait=30s&lease={lease}");
        let reply = self.post(&target, &Value::Null).expect("an answer");
        assert_eq!(reply.status, 200, "{reply}");
        let lease = reply.json()["leases"][0].clone();
        assert!(lease["lease"].is_string(), "nothing was due within the wait: {reply}");
        lease
    }

    /// Claims up to so many that are due, for an hour, without waiting.
    pub(crate) fn claimed_now(&mut self, max: usize) -> Vec<Value> {
        let target = format!("/v1/destinations/app/claim?max={max}&lease=1h");
        let reply = self.post(&target, &Value::Null).expect("an answer");
        assert_eq!(reply.status, 200, "{reply}");
        reply.json()["leases"].as_array().expect("a list").clone()
    }

    /// Ends a lease; the status.
    pub(crate) fn settle(&mut self, act: Act, lease: &Value) -> u16 {
        self.ask(act, lease["lease"].as_str().expect("a lease")).expect("an answer").status
    }

    fn post(&mut self, target: &str, body: &Value) -> Option<Reply> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::new("POST", target, &self.address)
            .with("authorization", &format!("Bearer {}", self.token))
            .with_body(&body);
        self.connection.send(&request.bytes()).ok()?;
        let reply = self.connection.receive().ok()??;
        if reply.closes() {
            self.connection = Connection::open(&self.address).ok()?;
        }
        Some(reply)
    }
}
