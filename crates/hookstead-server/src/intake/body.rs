//! Reads a body to its end, bounded in size, memory and time. The bytes are kept as they came: no content
//! coding is undone.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::time::{Duration, Instant, timeout_at};

use super::budget::{BodyBudget, Reservation};
use crate::limits::BODY_BYTES_PER_SECOND_MIN;

/// The limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Most bytes.
    pub(crate) bytes_max: u64,
    /// Time for any body; more for its length.
    pub(crate) time: Duration,
}

/// A complete body and the memory that is reserved for it until it is answered.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) reservation: Reservation,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// More bytes than allowed.
    TooLarge,
    /// No memory left in the budget.
    Busy,
    /// Too slow.
    Timeout,
    /// Broken framing, or an end in its middle.
    Broken,
}

/// How many bytes the framing announces; `None` if it is chunked.
pub(crate) fn announced(body: &impl Body) -> Option<u64> {
    body.size_hint().exact()
}

/// Reads the whole body.
pub(crate) async fn read(
    mut body: impl Body<Data = Bytes> + Unpin,
    limits: BodyLimits,
    budget: &Arc<BodyBudget>,
) -> Result<ReadBody, BodyFault> {
    let announced = announced(&body);
    if announced.is_some_and(|announced| announced > limits.bytes_max) {
        return Err(BodyFault::TooLarge);
    }
    let most = usize::try_from(announced.unwrap_or(limits.bytes_max)).map_err(|_| BodyFault::TooLarge)?;
    let mut clock = BodyClock { time: limits.time, waits_since: None };
    let mut reservation = budget.reservation();
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let frame = clock.next_frame(&mut body, announced.unwrap_or(bytes.len() as u64)).await?;
        let Some(frame) = frame else { break };
        // Trailers are not signed by anybody and not kept.
        let Ok(data) = frame.map_err(|_broken| BodyFault::Broken)?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(BodyFault::TooLarge);
        }
        let room = reservation.grow(length, most).ok_or(BodyFault::Busy)?;
        bytes.reserve_exact(room - bytes.len());
        bytes.extend_from_slice(&data);
        if body.is_end_stream() {
            break;
        }
    }
    Ok(ReadBody { bytes: bytes.into(), reservation })
}

/// The time of one body. It runs from the first wait for the sender: most bodies are there with their head, and for
/// those neither clock nor timer is asked.
struct BodyClock {
    time: Duration,
    waits_since: Option<Instant>,
}

impl BodyClock {
    /// The next frame of a body of so many bytes; `None` at its end.
    async fn next_frame<B: Body<Data = Bytes> + Unpin>(
        &mut self,
        body: &mut B,
        bytes: u64,
    ) -> Result<Option<Result<Frame<Bytes>, B::Error>>, BodyFault> {
        let here = poll_fn(|cx| Poll::Ready(Pin::new(&mut *body).poll_frame(cx))).await;
        if let Poll::Ready(frame) = here {
            return Ok(frame);
        }
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let deadline = since + time_for(bytes, self.time);
        timeout_at(deadline, body.frame()).await.map_err(|_elapsed| BodyFault::Timeout)
    }
}

/// Reads what is left of a small body and throws it away, so that the connection can go on.
pub(crate) async fn skip(mut body: impl Body<Data = Bytes> + Unpin, time: Duration) -> Result<(), BodyFault> {
    let deadline = Instant::now() + time;
    while let Some(frame) = timeout_at(deadline, body.frame()).await.map_err(|_elapsed| BodyFault::Timeout)? {
        frame.map_err(|_broken| BodyFault::Broken)?;
    }
    Ok(())
}

/// The time for a body of so many bytes.
fn time_for(bytes: u64, time: Duration) -> Duration {
    time + Duration::from_millis(bytes.saturating_mul(1000) / BODY_BYTES_PER_SECOND_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_get_more_time() {
        let ten = Duration::from_secs(10);
        assert_eq!(time_for(0, ten), ten);
        assert_eq!(time_for(64 * 1024, ten), Duration::from_secs(11));
        assert_eq!(time_for(25 * 1024 * 1024, ten), Duration::from_secs(410));
    }
}
