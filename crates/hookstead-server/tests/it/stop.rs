//! Starting and ending.

use std::future::ready;

use hookstead_server::{RunOutcome, Server, StartError};
use tokio::net::TcpStream;

use crate::harness::{Signed, config, start, start_in, within};

#[tokio::test]
async fn what_is_in_flight_is_answered() {
    let running = start("").await;
    let request = Signed::new("a", b"in flight");
    let mut client = running.connect().await;
    client.write(&request.clone().with("Expect", "100-continue").head()).await;
    assert_eq!(client.reply().await.status, 100, "the server has the request");
    let mut idle = running.connect().await;
    assert_eq!(idle.exchange(&Signed::new("b", b"x").bytes()).await.status, 202);
    let mut fresh = running.connect().await;
    let address = running.server.facts().intake;
    let folder = running.folder;
    let stopping = tokio::spawn(running.server.shutdown());
    idle.ended().await;
    fresh.ended().await;
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    within(refused).await;

    let reply = client.exchange(&request.body).await;
    assert_eq!((reply.status, reply.closes()), (202, true), "{reply:?}");
    assert_eq!(within(stopping).await.unwrap(), RunOutcome::Stopped);
    let running = start_in(folder, "").await;
    assert_eq!(running.send(&request.bytes()).await.status, 200);
}

#[tokio::test]
async fn what_does_not_arrive_before_the_end_of_a_stop_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), "[limits]\nbody_time = \"1h\"\n");
    config.server.drain = std::time::Duration::from_millis(600);
    let server = Server::start(config).await.unwrap();
    let mut client = crate::harness::Client::connect(server.facts().intake).await;
    client.write(&Signed::new("a", b"never sent").with("Expect", "100-continue").head()).await;
    assert_eq!(client.reply().await.status, 100);
    let stopping = tokio::spawn(server.run(ready(())));
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.code().as_str(), reply.closes()), (503, "stopping", true));
    assert_eq!(reply.header("retry-after"), Some("5"));
    client.ended().await;
    assert_eq!(within(stopping).await.unwrap(), RunOutcome::Stopped);
}

#[tokio::test]
async fn a_taken_address_and_a_taken_store_are_named() {
    let running = start("").await;
    let mut second = config(running.folder.path(), "");
    let locked = Server::start(second.clone()).await.err().unwrap();
    assert_eq!(locked.code(), "store-in-use");
    assert!(locked.to_string().contains(&std::process::id().to_string()), "{locked}");

    second.server.intake = running.server.facts().intake;
    let taken = Server::start(second).await.err().unwrap();
    assert_eq!(taken.code(), "port-in-use");
    let StartError::PortInUse { listener, address, owner } = &taken else { panic!("{taken}") };
    assert_eq!((*listener, *address), ("intake", running.server.facts().intake));
    assert_eq!(owner.as_ref().map(|owner| owner.pid), Some(std::process::id()), "{taken:?}");
    assert!(taken.fix().contains("--intake"), "{}", taken.fix());
}
