//! The fastest that axum can be here: it reads the body and answers. Nothing is checked, nothing is kept. It runs in
//! a process of its own, `cargo xtask bench serve-noop`.

use std::io::Read;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::serve::ListenerExt;
use serde_json::json;
use tokio::net::TcpListener;

/// Serves until stdin ends.
pub(super) fn serve() -> Result<()> {
    serve_router(Router::new().fallback(answer))
}

/// Serves a router on any free port of this machine, says where, and goes on until stdin ends.
pub(super) fn serve_router(router: Router) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_io().build().context("start the runtime")?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).context("listen")?;
    let address = listener.local_addr().context("where it listens")?;
    // An answer that waits for the acknowledgement of the one before would measure the kernel's timer.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("cannot set TCP_NODELAY: {error}");
        }
    });
    let server = runtime.spawn(async move { axum::serve(listener, router).await });
    println!("{}", json!({ "ready": true, "address": address.to_string(), "pid": std::process::id() }));
    let mut ignored = Vec::new();
    std::io::stdin().lock().read_to_end(&mut ignored).context("read stdin")?;
    server.abort();
    Ok(())
}

async fn answer(body: Bytes) -> impl IntoResponse {
    debug_assert!(!body.is_empty(), "every delivery has a body");
    accepted()
}

/// An answer about as long as that of a server which has something to say.
pub(super) fn accepted() -> impl IntoResponse {
    let body = "{\"outcome\":\"stored\",\"event\":\"00000000-0000-7000-8000-000000000000\"}";
    (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], body)
}
