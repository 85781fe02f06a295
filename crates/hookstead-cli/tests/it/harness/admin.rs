//! The admin listener as a client with a token sees it.

use serde_json::Value;

use super::{Connection, Reply, Request};

/// A connection to the admin listener.
pub(crate) struct Admin {
    connection: Connection,
    address: String,
    token: String,
}

impl Admin {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        let connection = Connection::open(address).expect("the admin listener accepts connections");
        Self { connection, address: address.to_owned(), token: token.to_owned() }
    }

    /// The answer to a `GET`, whatever it is.
    pub(crate) fn get(&mut self, target: &str) -> Reply {
        let request = Request::new("GET", target, &self.address);
        let request = request.with("Authorization", &format!("Bearer {}", self.token));
        let reply = self.connection.exchange(&request.bytes()).expect("an answer");
        if reply.closes() {
            self.connection =
                Connection::open(&self.address).expect("the admin listener accepts connections");
        }
        reply
    }

    /// The answer to a `GET` on the connection that is open; `None` if it ended instead.
    pub(crate) fn try_get(&mut self, target: &str) -> Option<Reply> {
        let request = Request::new("GET", target, &self.address);
        let request = request.with("Authorization", &format!("Bearer {}", self.token));
        self.connection.exchange(&request.bytes()).ok()
    }

    /// What an event is owed to a destination, with its attempts.
    pub(crate) fn delivery(&mut self, source: &str, provider_event_id: &str, destination: &str) -> Value {
        let event = self.get(&format!("/v1/events/{source}:{provider_event_id}"));
        assert_eq!(event.status, 200, "{provider_event_id}: {event}");
        let event = event.json()["short_id"].as_str().expect("a short id").to_owned();
        let delivery = self.get(&format!("/v1/deliveries/{event}:{destination}"));
        assert_eq!(delivery.status, 200, "{provider_event_id}: {delivery}");
        delivery.json()
    }

    /// The answer to a `POST`, whatever it is; the body as JSON unless it is null.
    pub(crate) fn post(&mut self, target: &str, body: &Value) -> Reply {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::new("POST", target, &self.address)
            .with("Authorization", &format!("Bearer {}", self.token))
            .with_body(&body);
        let reply = self.connection.exchange(&request.bytes()).expect("an answer");
        if reply.closes() {
            self.connection =
                Connection::open(&self.address).expect("the admin listener accepts connections");
        }
        reply
    }

    /// All events, over as many pages as it takes.
    pub(crate) fn events(&mut self) -> Vec<Value> {
        self.list("events")
    }

    /// All conflicts that nobody has decided.
    pub(crate) fn conflicts(&mut self) -> Vec<Value> {
        self.list("conflicts")
    }

    fn list(&mut self, name: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut target = format!("/v1/{name}");
        loop {
            let page = self.get(&target);
            assert_eq!(page.status, 200, "{target}: {page}");
            let page = page.json();
            items.extend(page[name].as_array().expect("a list").iter().cloned());
            match page["next"].as_str() {
                Some(next) => target = format!("/v1/{name}?after={next}"),
                None => return items,
            }
        }
    }

    /// The stored bytes of an event.
    pub(crate) fn body(&mut self, source: &str, provider_event_id: &str) -> Result<Vec<u8>, String> {
        let reply = self.get(&format!("/v1/events/{source}:{provider_event_id}/body"));
        if reply.status == 200 { Ok(reply.body) } else { Err(reply.to_string()) }
    }
}
