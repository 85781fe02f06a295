//! Reading what is stored, and processing it: by the running server where one lives, else on the store itself.
//! Verbs do not notice which.

mod offline;
mod replay;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use hookstead_core::{RunName, Timestamp};
use hookstead_server::Config;
use hookstead_server::api::view::{EventView, EventsView, ReceiptView, RunView};
use hookstead_server::transfer::ExportPage;
use hookstead_store::OpenOptions;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::cmd::runtime;
use crate::place::PlaceArgs;
use crate::running::Running;
use offline::Offline;
pub(crate) use offline::{exists as store_exists, open as open_store, reads_beside_owner, refused};

/// Which inbox is read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Where")]
pub(crate) struct WhereArgs {
    /// A server's admin address, token in HOOKSTEAD_TOKEN [default: who runs on the data folder].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Which events are listed.
pub(crate) struct EventQuery {
    pub(crate) source: Option<String>,
    pub(crate) event_type: Option<String>,
    pub(crate) limit: u16,
    pub(crate) after: Option<String>,
}

/// Which page of which events is exported.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportQuery {
    pub(crate) source: Option<String>,
    pub(crate) event_type: Option<String>,
    /// Committed at or after.
    pub(crate) from: Option<Timestamp>,
    /// Committed before.
    pub(crate) before: Option<Timestamp>,
    /// Where the page before ended.
    pub(crate) after: Option<String>,
    /// The last event of this export, once it is known.
    pub(crate) until: Option<u64>,
}

/// A way to read.
pub(crate) enum Reader {
    /// By asking a server.
    Server(Client, Runtime),
    /// By opening the store.
    Store(Offline),
}

/// Processes an event under a name: the running server does it, or we open the inbox ourselves.
pub(crate) fn replay(args: &WhereArgs, selector: &str, run: &RunName) -> Result<RunView> {
    let config = args.place.load()?;
    match server(args, &config)? {
        Some(address) => runtime()?.block_on(Client::at(&address, &config.data)?.replay(selector, run)),
        None => replay::offline(&config, selector, run),
    }
}

/// The receipt of an event's acceptance. It says what it rests on, so it is not enough to read: the running server
/// gives it, or we open the store as a server does, which proves that what is seen is on the disk.
pub(crate) fn receipt(args: &WhereArgs, selector: &str) -> Result<ReceiptView> {
    let config = args.place.load()?;
    match server(args, &config)? {
        Some(address) => runtime()?.block_on(Client::at(&address, &config.data)?.receipt(selector)),
        None => offline::receipt(&config, selector),
    }
}

/// The server that is to be asked, if there is one.
pub(crate) fn server(args: &WhereArgs, config: &Config) -> Result<Option<String>> {
    match &args.server {
        Some(server) => Ok(Some(server.clone())),
        None => Ok(Running::find(config)?.map(|running| running.admin)),
    }
}

impl Reader {
    /// Finds the server, or opens the store if none runs.
    pub(crate) fn open(args: &WhereArgs) -> Result<Self> {
        Self::open_with(args, &OpenOptions::default())
    }

    /// The same for a verb that names what is damaged by itself: some of it keeps nobody from reading the rest.
    pub(crate) fn open_damaged_too(args: &WhereArgs) -> Result<Self> {
        Self::open_with(args, &OpenOptions { spot_check_events: 0, ..OpenOptions::default() })
    }

    fn open_with(args: &WhereArgs, options: &OpenOptions) -> Result<Self> {
        let config = args.place.load()?;
        if let Some(server) = &args.server {
            return Ok(Self::Server(Client::at(server, &config.data)?, runtime()?));
        }
        match Running::find(&config) {
            Ok(Some(running)) => Ok(Self::Server(Client::at(&running.admin, &config.data)?, runtime()?)),
            Ok(None) => Ok(Self::Store(Offline::open(&config, options)?)),
            // Who has it does not listen: an application of its own, or a server that starts.
            Err(_) if reads_beside_owner(&config) => Ok(Self::Store(Offline::open(&config, options)?)),
            Err(error) => Err(error),
        }
    }

    /// A page of events, the newest first.
    pub(crate) fn events(&self, query: &EventQuery) -> Result<EventsView> {
        match self {
            Self::Server(client, runtime) => runtime.block_on(client.events(query)),
            Self::Store(store) => store.events(query),
        }
    }

    /// An event, by any of its names.
    pub(crate) fn event(&self, selector: &str) -> Result<EventView> {
        match self {
            Self::Server(client, runtime) => runtime.block_on(client.event(selector)),
            Self::Store(store) => store.event(selector),
        }
    }

    /// A page of an export, the oldest event first.
    pub(crate) fn export_page(&self, query: &ExportQuery) -> Result<ExportPage> {
        match self {
            Self::Server(client, runtime) => runtime.block_on(client.export_page(query)),
            Self::Store(store) => store.export_page(query),
        }
    }

    /// The line of one event in an export.
    pub(crate) fn export_event(&self, selector: &str) -> Result<Bytes> {
        match self {
            Self::Server(client, runtime) => runtime.block_on(client.export_event(selector)),
            Self::Store(store) => store.export_event(selector),
        }
    }

    /// The body of an event.
    pub(crate) fn body(&self, selector: &str) -> Result<Bytes> {
        match self {
            Self::Server(client, runtime) => runtime.block_on(client.body(selector)),
            Self::Store(store) => store.body(selector),
        }
    }
}
