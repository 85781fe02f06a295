//! What happens in the tour, in order, and what each step must come to.

use std::time::Instant;

use anyhow::{Context, Result};
use hookstead_core::Timestamp;
use hookstead_verify::{Registry, Secret, SignedRequest};

use super::child::{Server, Stage};
use super::ending::Ending;
use super::telling::{Step, Telling};
use crate::client::Client;
use crate::output;
use crate::post::{Answer, Sender};
use crate::sample::{Sample, Signer, now, seconds_ago};
use crate::secrets;
use crate::variation::{STALE_BY_SECS, alter_one_byte, tamper};

/// The provider that most people know.
const PROVIDER: &str = "stripe";

/// Tells the whole story. Whatever way it ends, the server is gone (it is killed on drop) and so is the folder.
pub(super) async fn tell(telling: &Telling) -> Result<()> {
    let begun = Instant::now();
    let secret = secrets::made_up()?;
    let stage = Stage::set(&secret)?;
    telling.open()?;
    let server = start(telling, &stage, "start", "a server starts, in an empty folder").await?;
    let cast = Cast::new(&secret)?;
    let event = receive(telling, &server, &cast).await?;
    telling.pause()?;
    let server = crash(telling, &stage, server).await?;
    telling.pause()?;
    remember(telling, &server, &cast, &event).await?;
    telling.pause()?;
    deliver(telling, &stage, &server, &cast).await?;
    server.kill()?;
    stage.clear()?;
    telling.close(begun.elapsed())
}

/// Who sends, and what.
struct Cast {
    signer: Signer,
    first: Sample,
}

impl Cast {
    fn new(secret: &str) -> Result<Self> {
        let provider = Registry::builtin().get(PROVIDER).context("the demo's provider is built in")?.clone();
        let signer = Signer::new(provider, Some(Secret::new(secret.as_bytes())?));
        let first = signer.sample(None, None, now())?;
        Ok(Self { signer, first })
    }

    fn signed(&self, server: &Server, sample: &Sample, at: Timestamp) -> Result<SignedRequest> {
        self.signer.sign(sample, &format!("{}/in/{PROVIDER}", server.ready.intake), at)
    }
}

/// A request of the story.
struct Request {
    step: &'static str,
    title: &'static str,
    expected: u16,
    meaning: &'static str,
    signed: SignedRequest,
}

/// Before the crash: stored, repeated, forged, stale, conflicting. Gives the event's id.
async fn receive(telling: &Telling, server: &Server, cast: &Cast) -> Result<String> {
    let sender = Sender::new(&server.ready.intake)?;
    let other = cast.signer.sample(None, None, now())?;
    let conflicting = Sample { body: alter_one_byte(&cast.first.body, &cast.first.id), ..cast.first.clone() };
    let stored = Request {
        step: "stored",
        title: "a signed event arrives",
        expected: 202,
        meaning: "on disk before this answer was sent",
        signed: cast.signed(server, &cast.first, now())?,
    };
    let answer = send(telling, &sender, stored).await?;
    let event = answer.said.event.context("the answer names the event")?;
    let others = [
        Request {
            step: "retry",
            title: "the provider sends it again",
            expected: 200,
            meaning: "duplicate: same id, same bytes, stored once",
            signed: cast.signed(server, &cast.first, now())?,
        },
        Request {
            step: "altered",
            title: "one byte of an event changes on the way",
            expected: 401,
            meaning: "refused: the signature is for other bytes",
            signed: tamper(cast.signed(server, &other, now())?, &[]),
        },
        Request {
            step: "stale",
            title: "somebody sends an hour-old recording",
            expected: 401,
            meaning: "refused: signed rightly, but too long ago",
            signed: cast.signed(server, &other, seconds_ago(STALE_BY_SECS))?,
        },
        Request {
            step: "conflict",
            title: "the same id comes with other bytes, signed",
            expected: 409,
            meaning: "conflict: the first is untouched, these are kept as evidence",
            signed: cast.signed(server, &conflicting, now())?,
        },
    ];
    for request in others {
        send(telling, &sender, request).await?;
    }
    Ok(event)
}

/// SIGKILL and a new start on the same data.
async fn crash(telling: &Telling, stage: &Stage, server: Server) -> Result<Server> {
    let begun = Instant::now();
    let pid = server.ready.pid;
    server.kill()?;
    telling.step(&Step {
        step: "kill",
        title: "kill -9: no chance to save anything",
        ok: true,
        took: begun.elapsed(),
        status: None,
        expected: None,
        detail: format!("process {pid} is gone"),
    })?;
    start(telling, stage, "restart", "it starts again, on the same folder").await
}

/// After the crash: the event is there, and is still known.
async fn remember(telling: &Telling, server: &Server, cast: &Cast, event: &str) -> Result<()> {
    let begun = Instant::now();
    let client = Client::at(&server.ready.admin, &server.ready.data)?;
    let body = client.body(event).await?;
    let count = client.events_counted().await?;
    let ok = body == cast.first.body && count == 1;
    let length = output::grouped(body.len() as u64);
    let detail = if ok {
        format!("all {length} bytes of it, and nothing else")
    } else {
        format!("{count} events, {length} bytes of {}", cast.first.body.len())
    };
    let (step, title) = ("kept", "is the event still there?");
    telling.step(&Step { step, title, ok, took: begun.elapsed(), status: None, expected: None, detail })?;
    let retry = Request {
        step: "retry-after-kill",
        title: "the provider sends it once more",
        expected: 200,
        meaning: "still a duplicate: an answer outlives the process",
        signed: cast.signed(server, &cast.first, now())?,
    };
    send(telling, &Sender::new(&server.ready.intake)?, retry).await?;
    Ok(())
}

/// An application fails, is fixed, and gets its dead letter.
async fn deliver(telling: &Telling, stage: &Stage, server: &Server, cast: &Cast) -> Result<()> {
    let ending = Ending::begin(telling, stage, server).await?;
    let sample = cast.signer.sample(None, None, now())?;
    let arriving = Request {
        step: "event",
        title: "another event arrives",
        expected: 202,
        meaning: "on disk, and owed to the application in the same commit",
        signed: cast.signed(server, &sample, now())?,
    };
    let answer = send(telling, &Sender::new(&server.ready.intake)?, arriving).await?;
    let event = answer.said.event.context("the answer names the event")?;
    ending.fail(&event).await?;
    ending.redeliver(&event, &sample.body).await
}

async fn start(telling: &Telling, stage: &Stage, step: &'static str, title: &'static str) -> Result<Server> {
    let server = Server::start(stage).await?;
    let detail = format!("{}/in/{PROVIDER}", server.ready.intake);
    telling.step(&Step { step, title, ok: true, took: server.took, status: None, expected: None, detail })?;
    Ok(server)
}

async fn send(telling: &Telling, sender: &Sender, request: Request) -> Result<Answer> {
    let answer = sender.send(&request.signed).await?;
    let ok = answer.status == request.expected;
    telling.step(&Step {
        step: request.step,
        title: request.title,
        ok,
        took: answer.took,
        status: Some(answer.status),
        expected: Some(request.expected),
        detail: if ok { request.meaning.to_owned() } else { format!("expected {}", request.expected) },
    })?;
    Ok(answer)
}
