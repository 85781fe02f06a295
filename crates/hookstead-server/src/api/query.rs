//! The parameters that lists share.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use hookstead::core::{Order, Page, QueryError};
use serde::Deserialize;

use super::error::ApiError;
use crate::limits::PAGE_DEFAULT;
use crate::problem::Problem;

/// `?limit=&after=&order=&source=&type=&open=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    limit: Option<u16>,
    after: Option<String>,
    order: Option<ListOrder>,
    pub(crate) source: Option<String>,
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    #[serde(default)]
    pub(crate) open: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ListOrder {
    Newest,
    Oldest,
}

impl ListQuery {
    /// The parameters, or why they cannot be read.
    pub(crate) fn of(query: Result<Query<Self>, QueryRejection>) -> Result<Self, ApiError> {
        let query = parameters(query)?;
        some(query.limit)?;
        Ok(query)
    }

    /// The page that is asked for.
    pub(crate) fn page(&self) -> Result<Page, ApiError> {
        let order = match self.order {
            Some(ListOrder::Oldest) => Order::OldestFirst,
            Some(ListOrder::Newest) | None => Order::NewestFirst,
        };
        page(self.limit, self.after.as_deref(), order)
    }
}

/// The parameters of a route, or why they cannot be read.
pub(crate) fn parameters<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, ApiError> {
    query.map(|Query(query)| query).map_err(|rejection| ApiError::new(Problem::Query, rejection.body_text()))
}

/// The page that a limit and a cursor ask for.
pub(crate) fn page(limit: Option<u16>, after: Option<&str>, order: Order) -> Result<Page, ApiError> {
    some(limit)?;
    let after = after.map(str::parse).transpose().map_err(refused)?;
    Ok(Page { items_max: limit.unwrap_or(PAGE_DEFAULT), after, order })
}

/// The state that a word names; `words` are all that there are.
pub(crate) fn state<S>(
    word: Option<&str>,
    from_word: impl Fn(&str) -> Option<S>,
    words: &[&str],
) -> Result<Option<S>, ApiError> {
    let Some(word) = word else { return Ok(None) };
    let unknown = || ApiError::new(Problem::Query, format!("`state` is one of {}", words.join(", ")));
    from_word(word).ok_or_else(unknown).map(Some)
}

fn some(limit: Option<u16>) -> Result<(), ApiError> {
    match limit {
        Some(0) => Err(ApiError::new(Problem::Query, "`limit` is 1 or more")),
        _ => Ok(()),
    }
}

/// What cannot be read, as a refusal.
pub(crate) fn refused(error: QueryError) -> ApiError {
    ApiError::new(Problem::Query, error.to_string())
}
