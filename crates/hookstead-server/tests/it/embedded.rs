//! The intake within an application's router: the same answers as on the server's own listener.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use hookstead::core::EventSelector;
use hookstead::verify::{IdentityRule, Registry, Secret, SignRequest, SignedRequest, VerifyOptions};
use hookstead::{Inbox, Source, SourceOptions};
use hookstead_server::{IntakeOptions, intake};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{Client, Reply, SECRET, Signed, start, unix_time, within};

/// An application with a page of its own and the intake below `/hooks`.
struct App {
    address: SocketAddr,
    inbox: Inbox,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl App {
    async fn start(options: IntakeOptions) -> Self {
        let inbox = Inbox::builder().source(source("signed-inbox", "conf", SECRET, None));
        let url = "https://hooks.example.com/hooks/twilio";
        let inbox = inbox.source(source("twilio", "twilio", TWILIO, Some(url)));
        let inbox = inbox.source(awaiting_secret("asana")).open().unwrap();
        let app = Router::new()
            .route("/", get(async || "my own page"))
            .nest("/hooks", intake(&inbox, options))
            .into_make_service_with_connect_info::<SocketAddr>();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            stopped.await.unwrap();
        };
        let served = tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stopped).into_future());
        Self { address, inbox, stop, served }
    }

    async fn send(&self, request: &[u8]) -> Reply {
        Client::connect(self.address).await.exchange(request).await
    }

    fn events(&self) -> u64 {
        self.inbox.store().stats().unwrap().events
    }
}

const TWILIO: &str = "0123456789abcdef0123456789abcdef";

fn source(provider: &str, name: &str, secret: &str, url: Option<&str>) -> Source {
    let provider = Registry::builtin().get(provider).unwrap().clone();
    let verify = VerifyOptions { url: url.map(str::to_owned), ..VerifyOptions::default() };
    let options = SourceOptions { verify, ..SourceOptions::default() };
    Source::new(name.parse().unwrap(), provider, &[Secret::new(secret).unwrap()], options).unwrap()
}

fn awaiting_secret(provider: &str) -> Source {
    let verify = VerifyOptions { identity: IdentityRule::Body, ..VerifyOptions::default() };
    let options = SourceOptions { verify, ..SourceOptions::default() };
    let record = Registry::builtin().get(provider).unwrap().clone();
    Source::awaiting_secret(provider.parse().unwrap(), record, options).unwrap()
}

/// What a sender sees of an answer, apart from its date.
fn seen(reply: Reply) -> (u16, Vec<String>, String) {
    let mut headers: Vec<String> = reply
        .head
        .lines()
        .skip(1)
        .filter(|line| !line.to_lowercase().starts_with("date"))
        .map(str::to_owned)
        .collect();
    headers.sort_unstable();
    (reply.status, headers, String::from_utf8(reply.body).unwrap())
}

#[tokio::test]
async fn it_answers_as_the_server_does() {
    let (running, app) = (start("").await, App::start(IntakeOptions::default()).await);
    let good = || Signed::new("a", b"x");
    let requests = [
        (good(), "POST /in/conf", 202),
        (good(), "POST /in/conf", 200),
        (good(), "POST /in/conf/", 200),
        (good().chunked(), "POST /in/conf", 200),
        (Signed::new("a", b"other"), "POST /in/conf", 409),
        (good().replacing("X-Signature", "v1=00"), "POST /in/conf", 401),
        (Signed::at(unix_time() - 4000, "a", b"x"), "POST /in/conf", 401),
        (good().without("X-Delivery-ID"), "POST /in/conf", 400),
        (good().with("X-Delivery-ID", "b"), "POST /in/conf", 400),
        (good().with("Host", "localhost"), "POST /in/conf", 400),
        (good().without("Host"), "POST /in/conf", 400),
        (Signed::new("a", b""), "POST /in/conf", 400),
        (Signed::new("b", &[b'x'; 65_536]), "POST /in/conf", 202),
        (Signed::new("c", &[b'x'; 65_537]), "POST /in/conf", 413),
        (Signed::new("c", &[b'x'; 65_537]).chunked(), "POST /in/conf", 413),
        (Signed::at(1, "c", &[b'x'; 65_537]), "POST /in/conf", 400),
        (good(), "POST /in/nobody", 404),
        (good(), "POST /in/%63onf", 404),
        (good(), "PUT /in/conf", 405),
        (good(), "DELETE /in/conf", 405),
    ];
    for (request, line, status) in requests {
        let own = seen(running.send(&request.clone().line(&format!("{line} HTTP/1.1")).bytes()).await);
        let line = line.replace("/in/", "/hooks/");
        let embedded = seen(app.send(&request.line(&format!("{line} HTTP/1.1")).bytes()).await);
        assert_eq!(own.0, status, "{line}: {own:?}");
        assert_eq!(embedded, own, "{line}");
    }
    assert_eq!(app.events(), 2);
    let event = app.inbox.store().event(&EventSelector::Newest).unwrap().unwrap();
    assert_eq!(event.received_from.as_deref(), Some("127.0.0.1"));
}

/// A router keeps no secrets: whoever hands one over is asked to come again, and the operator is told.
#[tokio::test]
async fn a_handshake_that_asks_for_more_than_an_answer_is_refused_and_told() {
    let app = App::start(IntakeOptions::default()).await;
    let request = b"POST /hooks/asana HTTP/1.1\r\nHost: a\r\nX-Hook-Secret: 0123456789abcdef\r\nContent-Length: 0\r\n\r\n";
    let refused = app.send(request).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "not-durable"));
    let told = app.inbox.source("asana").unwrap().refusals().after(0);
    let codes: Vec<_> = told.iter().map(|one| one.request.code).collect();
    assert_eq!(codes, ["not-durable"]);
}

#[tokio::test]
async fn the_application_keeps_its_own_addresses() {
    let app = App::start(IntakeOptions::default()).await;
    let get = async |path: &str| app.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await;
    let page = get("/").await;
    assert_eq!((page.status, page.body.as_slice()), (200, b"my own page".as_slice()));
    assert_eq!(get("/hooks/conf/more").await.status, 404);
    assert_eq!(get("/elsewhere").await.status, 404);
    let refused = get("/hooks/conf").await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn a_signed_address_is_the_one_that_is_registered() {
    let app = App::start(IntakeOptions::default()).await;
    let signed = twilio("https://hooks.example.com/hooks/twilio");
    assert_eq!(app.send(&bytes(&signed, "/hooks/twilio")).await.status / 100, 2);
    let elsewhere = twilio("https://hooks.example.com/twilio");
    assert_eq!(app.send(&bytes(&elsewhere, "/hooks/twilio")).await.status, 401);
    assert_eq!(app.events(), 1);
}

fn twilio(url: &str) -> SignedRequest {
    let twilio = Registry::builtin().get("twilio").unwrap();
    let sample = twilio.sample(None).unwrap();
    let id = sample.event_id(1);
    let now_unix_micros = unix_time() * 1_000_000;
    let body = sample.render(&id, now_unix_micros);
    let secret = Secret::new(TWILIO).unwrap();
    let request = SignRequest {
        method: "POST",
        url,
        body: &body,
        content_type: &sample.content_type,
        event_id: &id,
        event_type: None,
        secret: Some(&secret),
        now_unix_micros,
    };
    twilio.sign(&request).unwrap()
}

/// A signed request as it goes over the wire, to another path than was signed.
fn bytes(signed: &SignedRequest, path: &str) -> Vec<u8> {
    let query = signed.url.split_once('?').map_or_else(String::new, |(_, query)| format!("?{query}"));
    let mut head =
        format!("POST {path}{query} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n", signed.body.len());
    for (name, value) in &signed.headers {
        head += &format!("{name}: {}\r\n", String::from_utf8_lossy(value));
    }
    [head.as_bytes(), b"\r\n", &signed.body].concat()
}

#[tokio::test]
async fn bodies_have_their_own_limits_of_memory_and_time() {
    let app = App::start(IntakeOptions { body_memory_bytes: 1000, ..IntakeOptions::default() }).await;
    let refused = app.send(&Signed::new("a", &[b'x'; 2000]).line("POST /hooks/conf HTTP/1.1").bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "busy"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let small = Signed::new("a", b"x").line("POST /hooks/conf HTTP/1.1").bytes();
    assert_eq!(app.send(&small).await.status, 202, "what was refused gave its memory back");

    let no_time = IntakeOptions { body_time: std::time::Duration::ZERO, ..IntakeOptions::default() };
    let app = App::start(no_time).await;
    let mut client = Client::connect(app.address).await;
    client.write(&Signed::new("a", b"x").line("POST /hooks/conf HTTP/1.1").head()).await;
    let late = client.reply().await;
    assert_eq!((late.status, late.code().as_str()), (408, "timeout"));
    assert_eq!(app.events(), 0);
}

#[tokio::test]
async fn the_application_ends_it_in_order() {
    let app = App::start(IntakeOptions::default()).await;
    let request = |id| Signed::new(id, b"x").line("POST /hooks/conf HTTP/1.1").bytes();
    assert_eq!(app.send(&request("a")).await.status, 202);
    let inbox = app.inbox.clone();
    tokio::task::spawn_blocking(move || inbox.close()).await.unwrap().unwrap();
    let refused = app.send(&request("b")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(app.events(), 1);
    app.stop.send(()).unwrap();
    within(app.served).await.unwrap().unwrap();
}
