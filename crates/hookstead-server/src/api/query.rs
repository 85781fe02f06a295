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
        let Query(query) = query.map_err(|rejection| ApiError::new(Problem::Query, rejection.body_text()))?;
        if query.limit == Some(0) {
            return Err(ApiError::new(Problem::Query, "`limit` is 1 or more"));
        }
        Ok(query)
    }

    /// The page that is asked for.
    pub(crate) fn page(&self) -> Result<Page, ApiError> {
        let order = match self.order {
            Some(ListOrder::Oldest) => Order::OldestFirst,
            Some(ListOrder::Newest) | None => Order::NewestFirst,
        };
        let after = self.after.as_deref().map(str::parse).transpose().map_err(refused)?;
        Ok(Page { items_max: self.limit.unwrap_or(PAGE_DEFAULT), after, order })
    }
}

/// What cannot be read, as a refusal.
pub(crate) fn refused(error: QueryError) -> ApiError {
    ApiError::new(Problem::Query, error.to_string())
}
