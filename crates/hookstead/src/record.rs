//! Recording an event without any server: the caller has the bytes and answers for where they come from.

use std::sync::Arc;

use bytes::Bytes;
use hookstead_core::{AcceptReceipt, AcceptanceFacts, Identity, ProviderEventId, RawHeaders, Scope};

use crate::error::RecordError;
use crate::inbox::Inbox;
use crate::receive::{accepted, kept};
use crate::source::Source;

impl Inbox {
    /// Records an event. When it returns, the event is durable, or was before.
    ///
    /// The identity is (source, event id), both compared as bytes, and so is the body: the same identity with
    /// the same bytes is a [`Duplicate`](hookstead_core::Outcome::Duplicate), with others a
    /// [`Conflict`](hookstead_core::Outcome::Conflict), which leaves the first event as it is.
    ///
    /// # Errors
    ///
    /// [`RecordError`]; nothing is acknowledged then. An unknown source or a blank id store nothing.
    ///
    /// ```
    /// use hookstead::{Inbox, Outcome, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let inbox = Inbox::builder().source(Source::recorded("reports".parse()?)).open()?;
    /// let first = inbox.record("reports", "export-1", r#"{"ready":true}"#).await?;
    /// let again = inbox.record("reports", "export-1", r#"{"ready":true}"#).await?;
    /// assert_eq!((first.outcome, again.outcome), (Outcome::Stored, Outcome::Duplicate));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn record(
        &self,
        source: &str,
        event_id: impl AsRef<[u8]>,
        body: impl Into<Bytes>,
    ) -> Result<AcceptReceipt, RecordError> {
        self.record_with(source, event_id, body, RecordOptions::default()).await
    }

    /// [`record`](Self::record) with what else is known of the event. Header fields and query parts that are secrets
    /// wherever they stand (`authorization`, `cookie`, `token` ...) are not kept.
    ///
    /// # Errors
    ///
    /// As for [`record`](Self::record).
    ///
    /// ```
    /// use hookstead::core::{RawHeaders, RawQuery};
    /// use hookstead::{Inbox, RecordOptions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let inbox = Inbox::builder().source(Source::recorded("orders".parse()?)).open()?;
    /// // What your own router has checked, with the query that came with it.
    /// let query = RawQuery::new(b"data.id=ORD01ABC&type=order")?;
    /// let headers = RawHeaders::from_request(Some(query), [("content-type", &b"application/json"[..])]);
    /// let options = RecordOptions { headers, event_type: Some("order.paid".to_owned()) };
    /// inbox.record_with("orders", "ord-1", "{}", options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn record_with(
        &self,
        source: &str,
        event_id: impl AsRef<[u8]>,
        body: impl Into<Bytes>,
        options: RecordOptions,
    ) -> Result<AcceptReceipt, RecordError> {
        let (source, id) = self.parts(source, event_id.as_ref())?;
        let number = self.number_of(&source).await?;
        let identity = Identity { source: number, scope: Scope::default(), id };
        let facts = self.facts(&source, options);
        Ok(accepted(self.accept(&source, identity, body.into(), facts)?.await)?)
    }

    /// The inbox for code that waits on its own thread.
    pub fn blocking(&self) -> BlockingInbox {
        BlockingInbox(self.clone())
    }

    fn parts(&self, source: &str, id: &[u8]) -> Result<(Arc<Source>, ProviderEventId), RecordError> {
        let unknown = || RecordError::UnknownSource(source.to_owned());
        Ok((self.source(source).ok_or_else(unknown)?, ProviderEventId::new(id)?))
    }

    fn facts(&self, source: &Source, options: RecordOptions) -> AcceptanceFacts {
        let RecordOptions { headers, event_type } = options;
        let fields = headers.fields().map(|(name, value)| (name.as_bytes(), value));
        AcceptanceFacts {
            received_at: self.clock().now(),
            headers: kept(source, headers.query(), fields),
            event_type,
            ..AcceptanceFacts::default()
        }
    }
}

/// What is known of a recorded event beside its identity and its body. All of it may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordOptions {
    /// The header fields that it came with, and its query.
    pub headers: RawHeaders,
    /// Its type, by which destinations may choose it.
    pub event_type: Option<String>,
}

/// An [`Inbox`] whose calls wait on the thread that makes them. That thread must not run asynchronous tasks.
#[derive(Clone)]
pub struct BlockingInbox(Inbox);

impl BlockingInbox {
    /// The inbox itself.
    pub fn inbox(&self) -> &Inbox {
        &self.0
    }

    /// [`Inbox::record`], waiting on this thread for the commit.
    ///
    /// # Errors
    ///
    /// As for [`Inbox::record`].
    ///
    /// ```
    /// use hookstead::{Inbox, Outcome, Source};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let inbox = Inbox::builder().source(Source::recorded("reports".parse()?)).open()?.blocking();
    /// inbox.record("reports", "export-1", "first")?;
    /// let conflict = inbox.record("reports", "export-1", "other")?;
    /// assert_eq!(conflict.outcome, Outcome::Conflict { variant: Some(1) });
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(
        &self,
        source: &str,
        event_id: impl AsRef<[u8]>,
        body: impl Into<Bytes>,
    ) -> Result<AcceptReceipt, RecordError> {
        self.record_with(source, event_id, body, RecordOptions::default())
    }

    /// [`Inbox::record_with`], waiting on this thread for the commit.
    ///
    /// # Errors
    ///
    /// As for [`Inbox::record`].
    pub fn record_with(
        &self,
        source: &str,
        event_id: impl AsRef<[u8]>,
        body: impl Into<Bytes>,
        options: RecordOptions,
    ) -> Result<AcceptReceipt, RecordError> {
        let inbox = self.inbox();
        let (source, id) = inbox.parts(source, event_id.as_ref())?;
        let number = inbox.number_of_blocking(&source)?;
        let identity = Identity { source: number, scope: Scope::default(), id };
        let facts = inbox.facts(&source, options);
        Ok(accepted(inbox.accept(&source, identity, body.into(), facts)?.wait())?)
    }
}
