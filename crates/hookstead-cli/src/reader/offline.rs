//! Reading the store itself, through the same queries that the server uses. Only for when no server runs: the
//! store's lock is taken for as long as the verb takes.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use hookstead_core::{
    Body, BodySelector, Event, EventFilter, EventSelector, Identity, List, Order, Page, ProviderEventId,
    Scope, SourceNumber, Store,
};
use hookstead_server::Config;
use hookstead_server::api::view::{EventView, EventsView};
use hookstead_store::{OpenError, OpenOptions};

use super::EventQuery;
use crate::client::{erased, no_event, no_source};
use crate::failure::{Exit, Failure};
use crate::sample::now;

/// An open store; `None` where none was made yet, which reads like an empty one.
pub(crate) struct Offline {
    store: Option<Arc<dyn Store>>,
}

impl Offline {
    /// Opens the store of a configuration. A store is never made by looking at it.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        Ok(Self { store: open(config, &OpenOptions::default())? })
    }

    pub(super) fn events(&self, query: &EventQuery) -> Result<EventsView> {
        let Some(store) = &self.store else { return Ok(EventsView::from(&nothing())) };
        let filter = filter(store.as_ref(), query)?;
        let mut page = Page::first(query.limit, Order::NewestFirst);
        if let Some(after) = &query.after {
            page = page.after(after.parse().map_err(|error| usage("--after", &error))?);
        }
        Ok(EventsView::from(&store.list_events(&filter, &page)?))
    }

    pub(super) fn event(&self, selector: &str) -> Result<EventView> {
        Ok(EventView::detailed(&self.find(selector)?))
    }

    pub(super) fn body(&self, selector: &str) -> Result<Bytes> {
        let event = self.find(selector)?;
        let store = self.store.as_ref().ok_or_else(|| no_event(selector))?;
        match store.body(BodySelector::Event(event.id))? {
            Some(Body::Kept(bytes)) => Ok(bytes),
            Some(Body::Erased) => Err(erased(selector).into()),
            None => Err(no_event(selector).into()),
        }
    }

    fn find(&self, text: &str) -> Result<Event> {
        let found = match &self.store {
            Some(store) => match selector(text, store.as_ref())? {
                Some(selector) => store.event(&selector)?,
                None => None,
            },
            None => None,
        };
        found.ok_or_else(|| no_event(text).into())
    }
}

/// Opens the store of a configuration if it is there.
pub(crate) fn open(config: &Config, options: &OpenOptions) -> Result<Option<Arc<dyn Store>>> {
    let url = &config.store.url;
    let file = url.strip_prefix("sqlite:").map(Path::new);
    if !file.is_some_and(Path::exists) {
        return Ok(None);
    }
    let opened = hookstead_store::open(url, options, now()).map_err(|error| refused(&error))?;
    Ok(Some(opened.store))
}

/// Why a store cannot be read.
fn refused(error: &OpenError) -> Failure {
    let (code, fix) = match error {
        OpenError::Locked { .. } => ("in-use", "ask the process that has it: --server URL"),
        OpenError::Damaged { .. } => ("damaged", "find everything that is damaged: hookstead store check"),
        // The others say in their message what to do.
        _ => ("store", ""),
    };
    let failure = Failure::new(Exit::Failed, code, error.to_string()).because(error);
    if fix.is_empty() { failure } else { failure.fix(fix) }
}

fn nothing() -> List<Event> {
    List { items: Vec::new(), next: None, more: false }
}

fn filter(store: &dyn Store, query: &EventQuery) -> Result<EventFilter> {
    let source = match &query.source {
        Some(name) => Some(source(store, name)?.ok_or_else(no_source)?),
        None => None,
    };
    let event_type = query.event_type.as_deref().map(str::parse).transpose();
    let event_type = event_type.map_err(|error| usage("--type", &error))?;
    Ok(EventFilter { source, event_type, ..EventFilter::default() })
}

fn source(store: &dyn Store, name: &str) -> Result<Option<SourceNumber>> {
    let registry = store.registry()?;
    Ok(registry.sources.iter().find(|row| row.name.as_str() == name).map(|row| row.number))
}

/// From a name of an event to its selector; `None` if it can name none.
fn selector(text: &str, store: &dyn Store) -> Result<Option<EventSelector>> {
    if text == "@" {
        return Ok(Some(EventSelector::Newest));
    }
    if let Some((name, id)) = text.split_once(':') {
        let (Some(source), Ok(id)) = (source(store, name)?, ProviderEventId::new(id.as_bytes())) else {
            return Ok(None);
        };
        return Ok(Some(EventSelector::Identity(Identity { source, scope: Scope::default(), id })));
    }
    if let Ok(id) = text.parse() {
        return Ok(Some(EventSelector::Id(id)));
    }
    Ok(text.parse().ok().map(EventSelector::Seq))
}

fn usage(option: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, "usage", format!("{option}: {error}"))
}
