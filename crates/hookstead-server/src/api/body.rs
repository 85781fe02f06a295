//! Bodies of requests to the API: bounded in size and time, and one JSON document.

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::limits::BODY_TIME;
use crate::problem::Problem;

/// Reads a body of at most `bytes_max` bytes.
pub(super) async fn read(body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, bytes_max));
    Ok(read.await.map_err(|_elapsed| Problem::Timeout)?.map_err(|_cut| Problem::TooLarge)?)
}

/// Reads a JSON document; `form` shows how one looks.
pub(super) async fn json<T: DeserializeOwned>(
    body: Body,
    bytes_max: usize,
    form: &str,
) -> Result<T, ApiError> {
    parse(&read(body, bytes_max).await?, form)
}

/// As [`json`], with the default where there is no body.
pub(super) async fn json_or_default<T: DeserializeOwned + Default>(
    body: Body,
    bytes_max: usize,
    form: &str,
) -> Result<T, ApiError> {
    let bytes = read(body, bytes_max).await?;
    if bytes.trim_ascii().is_empty() { Ok(T::default()) } else { parse(&bytes, form) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8], form: &str) -> Result<T, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::new(Problem::Malformed, format!("the body must be {form}: {error}")))
}
