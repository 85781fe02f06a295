//! Limits in time, number and memory, each with a value that is reached soon, and that a busy machine does not reach where
//! the test is about another one.

use crate::harness::{Client, Signed, start};

/// Good requests are under them as well.
const SHORT: &str = "[limits]\nheader_time = \"2s\"\nbody_time = \"2s\"\nidle_time = \"2s\"\n";

#[tokio::test]
async fn a_slow_head_is_cut() {
    let running = start(SHORT).await;
    let mut silent = running.connect().await;
    let mut slow = running.connect().await;
    slow.write(b"POST /in/conf HTTP/1.1\r\nHost: a\r\nX-Sl").await;
    assert_eq!(running.send(&Signed::new("a", b"x").bytes()).await.status, 202, "others are served");
    silent.ended().await;
    slow.ended().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_own_time() {
    let running = start("[limits]\nheader_time = \"2s\"\nidle_time = \"1h\"\n").await;
    let mut idle = running.connect().await;
    assert_eq!(idle.exchange(&Signed::new("a", b"x").bytes()).await.status, 202);
    // Longer than `header_time`, as the end of another connection shows.
    running.connect().await.ended().await;
    assert_eq!(idle.exchange(&Signed::new("a", b"x").bytes()).await.status, 200, "still open");
    // The first byte of a next request begins the time for its head.
    idle.write(b"P").await;
    idle.ended().await;

    let running = start(SHORT).await;
    let mut idle = running.connect().await;
    assert_eq!(idle.exchange(&Signed::new("a", b"x").bytes()).await.status, 202);
    idle.ended().await;
}

#[tokio::test]
async fn a_slow_body_is_408_and_its_memory_comes_back() {
    let running = start(SHORT).await;
    for request in [Signed::new("a", b"0123456789"), Signed::new("a", b"0123456789").chunked()] {
        let bytes = request.bytes();
        let mut slow = running.connect().await;
        slow.write(&bytes[..bytes.len() - 8]).await;
        let reply = slow.reply().await;
        assert_eq!((reply.status, reply.code().as_str(), reply.closes()), (408, "timeout", true));
        slow.ended().await;
    }
    assert_eq!(running.server.body_memory_in_use(), 0);
    assert_eq!(running.send(&Signed::new("a", b"0123456789").bytes()).await.status, 202, "the id is free");
}

#[tokio::test]
async fn a_body_cut_short_is_400_and_not_stored() {
    let running = start("").await;
    for request in [Signed::new("a", b"0123456789"), Signed::new("a", b"0123456789").chunked()] {
        let bytes = request.bytes();
        let mut cut = running.connect().await;
        cut.write(&bytes[..bytes.len() - 8]).await;
        cut.finish_writing().await;
        let reply = cut.reply().await;
        assert_eq!((reply.status, reply.code().as_str()), (400, "malformed"));
    }
    assert_eq!(running.send(&Signed::new("a", b"0123456789").bytes()).await.status, 202, "the id is free");
}

#[tokio::test]
async fn bodies_share_one_budget_that_is_taken_as_they_arrive() {
    let running = start("[limits]\nbody = \"64 KiB\"\nbody_memory = \"64 KiB\"\n").await;
    let large = Signed::new("large", &[b'x'; 60_000]);
    let mut announcing = running.connect().await;
    announcing.write(&Signed::new("announced", &[b'y'; 60_000]).head()).await;
    let mut sending = running.connect().await;
    sending.write(&large.head()).await;
    sending.write(&large.body[..50_000]).await;
    running.body_memory(|bytes| bytes >= 50_000).await;
    assert!(running.server.body_memory_in_use() < 60_000, "announced bytes take nothing");

    let refused = running.send(&Signed::new("b", &[b'z'; 20_000]).bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "busy"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(running.send(&Signed::new("c", b"small").bytes()).await.status, 202, "what fits is taken");

    assert_eq!(sending.exchange(&large.body[50_000..]).await.status, 202);
    assert_eq!(running.server.body_memory_in_use(), 0);
    assert_eq!(running.send(&Signed::new("b", &[b'z'; 20_000]).bytes()).await.status, 202);
}

#[tokio::test]
async fn a_client_that_vanishes_gives_its_memory_back() {
    let running = start("").await;
    let request = Signed::new("a", &[b'x'; 60_000]);
    let mut client = running.connect().await;
    client.write(&request.bytes()[..40_000]).await;
    running.body_memory(|bytes| bytes > 0).await;
    client.vanish();
    running.body_memory(|bytes| bytes == 0).await;
    assert_eq!(running.send(&request.bytes()).await.status, 202, "nothing was stored");
}

#[tokio::test]
async fn a_client_that_does_not_wait_does_not_undo_its_event() {
    let running = start("").await;
    for round in 0..20 {
        let id = format!("gone-{round}");
        let mut client = running.connect().await;
        client.write(&Signed::new(&id, b"x").bytes()).await;
        client.finish_writing().await;
        drop(client);
    }
    // An orderly stop answers what is in flight, so after it every one of them is stored.
    let folder = running.folder;
    running.server.shutdown().await;
    let running = crate::harness::start_in(folder, "").await;
    for round in 0..20 {
        let again = running.send(&Signed::new(&format!("gone-{round}"), b"x").bytes()).await;
        assert_eq!(again.status, 200, "round {round}");
    }
}

#[tokio::test]
async fn connections_over_the_limit_are_told_so() {
    let running = start("[limits]\nconnections = 2\n").await;
    let mut first = running.connect().await;
    let mut second = running.connect().await;
    assert_eq!(first.exchange(&Signed::new("a", b"x").bytes()).await.status, 202);
    assert_eq!(second.exchange(&Signed::new("a", b"x").bytes()).await.status, 200);
    let mut third = running.connect().await;
    let reply = third.reply().await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "busy"));
    third.ended().await;
    assert_eq!(first.exchange(&Signed::new("a", b"x").bytes()).await.status, 200);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut() {
    let running = start("[limits]\nwrite_time = \"2s\"\n").await;
    let mut deaf = Client::connect(running.server.facts().intake).await;
    // Far more answers than the sockets' buffers hold; the server must give up at some point.
    let request = Signed::new("a", b"x").line("PUT /in/conf HTTP/1.1").bytes();
    let many = request.repeat(200);
    let cut = async { while deaf.try_write(&many).await {} };
    crate::harness::within(cut).await;
    assert_eq!(running.send(&Signed::new("a", b"x").bytes()).await.status, 202);
}
