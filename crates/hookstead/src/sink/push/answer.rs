//! What the target says: its status decides, the beginning of its body is kept, and how much of the rest is
//! read is bounded in bytes and in time.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hookstead_core::attempt::ATTEMPT_EXCERPT_BYTES_MAX;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::{Instant, timeout_at};

/// How much of an answer's body is read, in bytes. What is longer ends the connection; what is shorter leaves
/// it to the next push.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How long an answer's body is waited for once its status is there. The status has decided by then; a body
/// that drips shall not hold the slot for the whole timeout.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// What was read of an answer's body.
#[derive(Debug, Default)]
pub(super) struct Excerpt {
    /// Its beginning, at most [`ATTEMPT_EXCERPT_BYTES_MAX`] bytes.
    pub(super) bytes: Bytes,
    /// How the reading ended.
    pub(super) end: ExcerptEnd,
}

/// How the reading of an answer's body ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum ExcerptEnd {
    /// The body was read to its end.
    #[default]
    Whole,
    /// The body is longer than [`ANSWER_BYTES_MAX`].
    Capped,
    /// The body broke off or was too slow, and how.
    Cut(String),
}

/// Reads the beginning of a body, until [`ANSWER_TIME_MAX`] from now or the attempt's deadline.
pub(super) async fn read<B>(body: B, deadline: Instant) -> Excerpt
where
    B: Body<Data = Bytes>,
    B::Error: std::error::Error,
{
    let mut body = pin!(body);
    let (mut kept, mut read) = (BytesMut::new(), 0);
    let until = deadline.min(Instant::now() + ANSWER_TIME_MAX);
    let end = loop {
        let frame = match timeout_at(until, body.frame()).await {
            Ok(None) => break ExcerptEnd::Whole,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => break ExcerptEnd::Cut(broken_off(read, &error)),
            Err(_) => {
                break ExcerptEnd::Cut(format!("the answer was too slow: {read} bytes of its body came"));
            }
        };
        let data = frame.into_data().unwrap_or_default(); // trailers are no data
        let room = ATTEMPT_EXCERPT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        read += data.len();
        if read > ANSWER_BYTES_MAX {
            break ExcerptEnd::Capped;
        }
    };
    Excerpt { bytes: kept.freeze(), end }
}

fn broken_off(read: usize, error: &dyn std::error::Error) -> String {
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    format!("the answer broke off after {read} bytes of its body: {cause}")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;

    /// A body of which one part comes, and then nothing any more.
    struct Hanging(Option<Bytes>);

    impl Body for Hanging {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.take().map_or(Poll::Pending, |part| Poll::Ready(Some(Ok(Frame::data(part)))))
        }
    }

    /// The runtime's time moves by itself, to the next moment that anybody waits for.
    #[tokio::test(start_paused = true)]
    async fn a_body_is_waited_for_no_longer_than_its_own_time_and_the_attempts() {
        const MINUTE: Duration = Duration::from_secs(60);
        const SECOND: Duration = Duration::from_secs(1);
        for (left, waited) in [(MINUTE, ANSWER_TIME_MAX), (SECOND, SECOND)] {
            let begun = Instant::now();
            let excerpt = read(Hanging(Some(Bytes::from_static(b"half"))), begun + left).await;
            assert_eq!(&excerpt.bytes[..], b"half");
            let cut = "the answer was too slow: 4 bytes of its body came";
            assert_eq!(excerpt.end, ExcerptEnd::Cut(cut.into()));
            let late = begun.elapsed() - waited;
            assert!(late <= Duration::from_millis(1), "{late:?} after {waited:?}");
        }
    }
}
