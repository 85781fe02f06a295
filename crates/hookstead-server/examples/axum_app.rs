//! An axum application with an inbox in it: `cargo run -p hookstead-server --example axum_app`.
//!
//! It has a page of its own and takes webhooks below `/hooks`. To be a whole story it also plays the provider: it
//! signs a request, posts it to itself over loopback, twice, and a forged one; then it ends in order.
#![expect(clippy::print_stdout, reason = "what an example prints is its result")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use hookstead::core::EventSelector;
use hookstead::verify::{Registry, Secret, SignRequest, SignedRequest};
use hookstead::{Inbox, Source, SourceOptions};
use hookstead_server::{IntakeOptions, intake};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Whatever goes wrong; it may come from another thread.
type AnyError = Box<dyn Error + Send + Sync>;

/// Made up; a real one comes from the environment or a secret store.
const SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let inbox = open(format!("sqlite:{}", folder.path().join("inbox.db").display()))?;

    let app = Router::new()
        .route("/", get(async || "the application's own page"))
        .nest("/hooks", intake(&inbox, IntakeOptions::default()))
        // With this, every event keeps the address that it came from.
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move { drop(stopped.await) });
    let serving = tokio::spawn(serving.into_future());

    play_the_provider(address).await?;

    // Nothing new first, then the inbox: what is queued is committed before the store is let go.
    stop.send(()).map_err(|()| "the application ended early")?;
    serving.await??;
    println!("{}", tokio::task::spawn_blocking(move || close(&inbox)).await??);
    Ok(())
}

/// Looks what is in the inbox and closes it. Both block, so they have a thread of their own.
fn close(inbox: &Inbox) -> Result<String, AnyError> {
    let event = inbox.store().event(&EventSelector::Newest)?.ok_or("nothing was stored")?;
    assert_eq!((inbox.store().stats()?.events, event.duplicates.count), (1, 1));
    inbox.close()?;
    Ok(format!("{} is durable, and came {} times", event.seq, event.duplicates.count + 1))
}

fn open(store: String) -> Result<Inbox, AnyError> {
    let stripe = Registry::builtin().get("stripe").ok_or("stripe is built in")?.clone();
    let secrets = [Secret::new(SECRET)?];
    let source = Source::new("stripe".parse()?, stripe, &secrets, SourceOptions::default())?;
    Ok(Inbox::builder().store(store).source(source).open()?)
}

async fn play_the_provider(address: SocketAddr) -> Result<(), AnyError> {
    let signed = sign(&format!("http://{address}/hooks/stripe"))?;
    for (request, expected) in [(&signed, 202), (&signed, 200), (&forged(&signed), 401)] {
        let (status, answer) = post(address, request).await?;
        println!("{status}  {}", answer.trim_end());
        assert_eq!(status, expected);
    }
    Ok(())
}

fn sign(url: &str) -> Result<SignedRequest, AnyError> {
    let stripe = Registry::builtin().get("stripe").ok_or("stripe is built in")?;
    let sample = stripe.sample(Some("invoice.paid")).ok_or("a sample of that name")?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
    let body = sample.render("evt_1", now);
    let signed = stripe.sign(&SignRequest {
        method: "POST",
        url,
        body: &body,
        content_type: &sample.content_type,
        event_id: "evt_1",
        event_type: Some(&sample.event),
        secret: Some(&Secret::new(SECRET)?),
        now_unix_micros: now,
    })?;
    Ok(signed)
}

/// The same signature over another body.
fn forged(signed: &SignedRequest) -> SignedRequest {
    let mut forged = signed.clone();
    forged.body.push(b' ');
    forged
}

/// Posts a request and gives status and body of the answer.
async fn post(address: SocketAddr, signed: &SignedRequest) -> Result<(u16, String), AnyError> {
    let mut request =
        format!("POST {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n", signed.target());
    for (name, value) in &signed.headers {
        request += &format!("{name}: {}\r\n", std::str::from_utf8(value)?);
    }
    request += &format!("content-length: {}\r\n\r\n", signed.body.len());
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[request.as_bytes(), &signed.body].concat()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
