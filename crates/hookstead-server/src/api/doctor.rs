//! `/v1/doctor`: what only the process itself knows of how it does, for `hookstead doctor`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::doctor_view::{DoctorView, FindingView, OpenFilesView, SourceClockView};
use super::router::Api;
use crate::descriptors::open_files;

pub(crate) async fn show(State(api): State<Arc<Api>>) -> Json<DoctorView> {
    let mut sources: Vec<_> = api.inbox.sources().iter().filter_map(|source| clock(source)).collect();
    sources.sort_unstable_by(|a, b| a.source.cmp(&b.source));
    Json(DoctorView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        now: api.inbox.clock().wall().to_string(),
        start: api.inbox.opened().start.iter().map(FindingView::from).collect(),
        open_files: OpenFilesView::from(open_files(&api.limits)),
        sources,
    })
}

/// `None` for a source to which nothing with a time came yet.
fn clock(source: &hookstead::Source) -> Option<SourceClockView> {
    let facts = source.skew();
    let is_silent = facts.verified + facts.too_old + facts.too_new == 0;
    (!is_silent).then(|| SourceClockView::new(source.name().as_str(), &facts))
}
