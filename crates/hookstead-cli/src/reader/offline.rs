//! Reading the store itself, through the same queries that the server uses. A `sqlite:` store is read beside
//! whoever has it open; of another kind the lock is taken for as long as the verb takes.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use hookstead_core::{
    Body, BodySelector, Event, EventFilter, List, Order, Page, SourceNumber, Store, StoreError,
};
use hookstead_server::api::view::{EventView, EventsView, ReceiptView};
use hookstead_server::config::store_path;
use hookstead_server::lookup::{self, EventName, LookupError};
use hookstead_server::problem::Choice;
use hookstead_server::transfer::{ExportEnd, ExportPage, ExportRequest, event_line, export_page};
use hookstead_server::{Config, answers, owed};
use hookstead_store::{OpenError, OpenOptions};

use super::{EventQuery, ExportQuery};
use crate::failure::{Exit, Failure};
use crate::refusal::{ambiguous, damaged, erased, no_event, no_source};
use crate::sample::now;

/// An open store; `None` where none was made yet, which reads like an empty one.
pub(crate) struct Offline {
    store: Option<Arc<dyn Store>>,
    config: Box<Config>,
}

impl Offline {
    /// Opens the store of a configuration. A store is never made by looking at it.
    pub(crate) fn open(config: &Config, options: &OpenOptions) -> Result<Self> {
        let store = open(config, options).map_err(|error| refused(&error))?;
        Ok(Self { store, config: Box::new(config.clone()) })
    }

    pub(super) fn events(&self, query: &EventQuery) -> Result<EventsView> {
        let Some(store) = &self.store else { return Ok(EventsView::from(&nothing())) };
        let filter = filter_of(store.as_ref(), query.source.as_deref(), query.event_type.as_deref())?;
        let mut page = Page::first(query.limit, Order::NewestFirst);
        if let Some(after) = &query.after {
            page = page.after(after.parse().map_err(|error| usage("--after", &error))?);
        }
        Ok(EventsView::from(&store.list_events(&filter, &page)?))
    }

    pub(super) fn event(&self, selector: &str) -> Result<EventView> {
        let (event, store) = self.find(selector)?;
        let view = EventView::detailed(&event, answers(&self.config, event.source.as_str()));
        Ok(EventView { owed: Some(owed(store, &event)?), ..view })
    }

    pub(super) fn body(&self, selector: &str) -> Result<Bytes> {
        let (event, store) = self.find(selector)?;
        match store.body(BodySelector::Event(event.id))? {
            Some(Body::Kept(bytes)) => Ok(bytes),
            Some(Body::Erased) => Err(erased(selector).into()),
            None => Err(no_event(selector, None).into()),
        }
    }

    pub(super) fn export_page(&self, query: &ExportQuery) -> Result<ExportPage> {
        let Some(store) = self.store.as_deref() else {
            return Ok(ExportPage { lines: Vec::new(), end: ExportEnd::default() });
        };
        let filter = filter_of(store, query.source.as_deref(), query.event_type.as_deref())?;
        let filter = EventFilter { committed_from: query.from, committed_before: query.before, ..filter };
        let after = query.after.as_deref().map(str::parse).transpose()?;
        Ok(export_page(store, &ExportRequest { filter, after, until: query.until })?)
    }

    pub(super) fn export_event(&self, selector: &str) -> Result<Bytes> {
        let (event, store) = self.find(selector)?;
        let line = event_line(store, &event).map_err(|error| match error {
            StoreError::Corrupt { .. } => damaged(selector).into(),
            other => anyhow::Error::from(other),
        })?;
        let mut out = Vec::new();
        line.write_to(&mut out)?;
        Ok(out.into())
    }

    fn find(&self, text: &str) -> Result<(Event, &dyn Store)> {
        let store = self.store.as_deref().ok_or_else(|| no_event(text, None))?;
        Ok((find(store, text)?, store))
    }
}

/// The receipt of an event from a store that was opened, and so proved, as a server opens it.
pub(super) fn receipt(config: &Config, selector: &str) -> Result<ReceiptView> {
    if !exists(config) {
        return Err(no_event(selector, None).into());
    }
    let opened = hookstead_store::open(&config.store.url, &OpenOptions::default(), now());
    let opened = opened.map_err(|error| refused(&error))?;
    let receipt = ReceiptView::of(&find(&*opened.store, selector)?, opened.store.facts());
    opened.store.close(now())?;
    Ok(receipt)
}

fn find(store: &dyn Store, text: &str) -> Result<Event> {
    let name = EventName::parse(text.as_bytes()).ok_or_else(|| no_event(text, None))?;
    lookup::find(store, &name).map_err(|error| not_found(text, error))
}

/// Why a name leads to no event.
pub(super) fn not_found(text: &str, error: LookupError) -> anyhow::Error {
    match error {
        LookupError::NotFound { searched } => {
            no_event(text, searched.map(|searched| searched.to_string()).as_deref()).into()
        }
        LookupError::Ambiguous(events) => {
            let choices: Vec<Choice> = events.iter().map(Choice::from).collect();
            ambiguous(text, &choices).into()
        }
        LookupError::Store(error) => error.into(),
    }
}

/// Opens the store of a configuration to read it, if it is there.
pub(crate) fn open(config: &Config, options: &OpenOptions) -> Result<Option<Arc<dyn Store>>, OpenError> {
    let url = &config.store.url;
    if !exists(config) {
        return Ok(None);
    }
    if reads_beside_owner(config) {
        return hookstead_store::open_read_only(url, options).map(Some);
    }
    hookstead_store::open(url, options, now()).map(|opened| Some(opened.store))
}

/// Whether the store of a configuration can be read while another process has it open.
pub(crate) fn reads_beside_owner(config: &Config) -> bool {
    config.store.url.starts_with("sqlite:")
}

/// Whether the store of a configuration was ever made.
pub(crate) fn exists(config: &Config) -> bool {
    store_path(&config.store.url).is_some_and(Path::exists)
}

/// Why a store cannot be opened.
pub(crate) fn refused(error: &OpenError) -> Failure {
    let (code, fix) = match error {
        OpenError::Locked { .. } => ("in-use", "ask the process that has it: --server URL"),
        OpenError::Damaged { .. } => ("damaged", "find everything that is damaged: hookstead store check"),
        _ => return failed("store", error, &error.fix()),
    };
    failed(code, error, fix)
}

fn failed(code: &'static str, error: &OpenError, fix: &str) -> Failure {
    let failure = Failure::new(Exit::Failed, code, error.reason()).because(error);
    if fix.is_empty() { failure } else { failure.fix(fix) }
}

fn nothing() -> List<Event> {
    List { items: Vec::new(), next: None, more: false }
}

fn filter_of(store: &dyn Store, name: Option<&str>, event_type: Option<&str>) -> Result<EventFilter> {
    let source = match name {
        Some(name) => Some(source(store, name)?.ok_or_else(no_source)?),
        None => None,
    };
    let event_type = event_type.map(str::parse).transpose();
    let event_type = event_type.map_err(|error| usage("--type", &error))?;
    Ok(EventFilter { source, event_type, ..EventFilter::default() })
}

fn source(store: &dyn Store, name: &str) -> Result<Option<SourceNumber>> {
    let registry = store.registry()?;
    Ok(registry.sources.iter().find(|row| row.name.as_str() == name).map(|row| row.number))
}

fn usage(option: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, "usage", format!("{option}: {error}"))
}
