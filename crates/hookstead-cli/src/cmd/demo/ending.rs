//! How the tour ends: an application is added, fails, is fixed, and gets what it could not take.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hookstead_server::api::view::{DeliveryView, NewDecision, ReloadView};
use hookstead_server::destination_secrets::DestinationSecrets;
use serde_json::Value;

use super::application::Application;
use super::child::{DESTINATION, Server, Stage};
use super::telling::{Step, Telling};
use crate::client::{Call, Client};
use crate::output;

/// An attempt on loopback takes milliseconds; a machine that is busy may need seconds.
const DELIVERED_WITHIN: Duration = Duration::from_secs(30);

/// How often the delivery is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How many attempts the destination's schedule has.
const ATTEMPTS: u64 = 2;

/// An application that is there for what comes from now on.
pub(super) struct Ending<'a> {
    telling: &'a Telling,
    client: Client,
    application: Application,
}

impl<'a> Ending<'a> {
    /// Starts the application and adds it to the running server.
    pub(super) async fn begin(telling: &'a Telling, stage: &Stage, server: &Server) -> Result<Self> {
        let begun = Instant::now();
        let application = Application::start().await?;
        let client = Client::at(&server.ready.admin, &server.ready.data)?;
        stage.add_destination(&application.url())?;
        let reloaded: ReloadView = client.ask(Call::post(&["v1", "reload"], &Value::Null)?).await?;
        let secrets = DestinationSecrets::open(&server.ready.data, &[])?;
        let secret = secrets.get(DESTINATION).context("the server makes a secret for the application")?;
        application.trust(secret.expose().to_string());
        telling.step(&Step {
            step: "application",
            title: "an application is to get the events",
            ok: reloaded.destinations == [DESTINATION],
            took: begun.elapsed(),
            status: None,
            expected: None,
            detail: format!("push to {}", application.url()),
        })?;
        Ok(Self { telling, client, application })
    }

    /// The event that arrived meets the bug until its attempts are used up.
    pub(super) async fn fail(&self, event: &str) -> Result<()> {
        let begun = Instant::now();
        let delivery = self.ended(event, "dead").await?;
        let failed = self.application.failed();
        let ok = delivery.state == "dead" && failed as u64 == ATTEMPTS;
        let last = delivery.log.iter().flatten().last();
        let detail = if ok {
            format!("{failed} attempts, then a dead letter that keeps what it said")
        } else {
            format!("{} after {failed} attempts", delivery.state)
        };
        self.telling.step(&Step {
            step: "dead",
            title: "the application gets it, and has a bug",
            ok,
            took: begun.elapsed(),
            status: last.and_then(|attempt| attempt.status),
            expected: Some(500),
            detail,
        })
    }

    /// It is fixed, and the dead letter delivered again.
    pub(super) async fn redeliver(&self, event: &str, body: &[u8]) -> Result<()> {
        let begun = Instant::now();
        self.application.fix();
        let name = format!("{event}:{DESTINATION}");
        let again = Call::post(&["v1", "deliveries", &name, "redeliver"], &NewDecision::default())?;
        let _again: DeliveryView = self.client.ask(again).await?;
        let delivery = self.ended(event, "done").await?;
        let ok = delivery.state == "done" && self.application.done().as_deref() == Some(body);
        let last = delivery.log.iter().flatten().last();
        let length = output::grouped(body.len() as u64);
        self.telling.step(&Step {
            step: "redelivered",
            title: "it is fixed, and the event delivered again",
            ok,
            took: begun.elapsed(),
            status: last.and_then(|attempt| attempt.status),
            expected: Some(200),
            detail: format!("{}: all {length} bytes, with a signature that it checked", delivery.state),
        })
    }

    /// The event's newest delivery when it has come to that end, or as it is when that takes too long.
    async fn ended(&self, event: &str, state: &str) -> Result<DeliveryView> {
        let begin = Instant::now();
        let name = format!("{event}:{DESTINATION}");
        loop {
            let delivery: DeliveryView = self.client.ask(Call::get(&["v1", "deliveries", &name])).await?;
            if delivery.state == state || begin.elapsed() > DELIVERED_WITHIN {
                return Ok(delivery);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
