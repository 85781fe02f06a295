//! Which page of a list a verb shows, and how: the options that all lists share.

use clap::Args;

/// A page of a list.
#[derive(Clone, Debug, Args)]
pub(crate) struct PageArgs {
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Continue after a page: what its `next` said.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}
