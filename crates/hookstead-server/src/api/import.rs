//! `POST /v1/import`: events of another store, as the JSON lines that an export wrote. Each line is answered for by
//! itself; a request that cannot be committed as a whole is refused as a whole, and can be sent again: what of it was
//! stored is a duplicate then.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::to_bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use bytes::Bytes;
use hookstead::core::{AcceptReceipt, Outcome};
use hookstead::{Import, ImportDeliveries, Inbox, Unavailable};
use serde::Deserialize;

use super::error::ApiError;
use super::import_view::{ImportLimits, ImportView, ImportedLine};
use super::query::parameters;
use super::router::Api;
use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_TIME, IMPORT_BYTES_MAX, IMPORT_LINES_MAX, READ_WAIT};
use crate::problem::Problem;
use crate::transfer::{LineProblem, ParsedLine, line_bytes_max, parse_line};

/// `?deliver=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportQuery {
    #[serde(default)]
    deliver: bool,
}

/// Imports the lines of a request. Nothing is owed to anybody for them, unless `deliver` says so.
pub(crate) async fn import(
    State(api): State<Arc<Api>>,
    query: Result<Query<ImportQuery>, QueryRejection>,
    request: Request,
) -> Result<Json<ImportView>, ApiError> {
    let deliveries = match parameters(query)?.deliver {
        true => ImportDeliveries::AsIfReceived,
        false => ImportDeliveries::None,
    };
    let _place = match tokio::time::timeout(READ_WAIT, api.imports.acquire()).await {
        Ok(Ok(place)) => place,
        Ok(Err(_)) | Err(_) => return Err(Problem::Busy.into()),
    };
    let text = read(&api, request).await?;
    let inbox = api.inbox.clone();
    let parse = move || {
        let lines = lines_of(&text)?;
        Ok::<_, ApiError>(lines.map(|(number, line)| (number, parse_line(line, &inbox))).collect())
    };
    let parsed: Vec<(u64, Result<ParsedLine, LineProblem>)> = api.changes.run(parse).await?;
    committed(&api.inbox, parsed, deliveries).await.map(Json)
}

/// How much a request may bring, by the sources of this moment.
pub(crate) async fn limits(State(api): State<Arc<Api>>) -> Json<ImportLimits> {
    Json(limits_of(&api))
}

fn limits_of(api: &Api) -> ImportLimits {
    let largest = api.inbox.sources().iter().map(|source| source.body_bytes_max()).max().unwrap_or_default();
    let (lines_max, bytes_max) = (IMPORT_LINES_MAX, IMPORT_BYTES_MAX);
    ImportLimits { lines_max, bytes_max, line_bytes_max: line_bytes_max(largest) }
}

async fn read(api: &Api, request: Request) -> Result<Bytes, ApiError> {
    let ImportLimits { bytes_max, line_bytes_max, .. } = limits_of(api);
    // With the LF of the one long line.
    let bytes_max = line_bytes_max.max(bytes_max).saturating_add(1);
    let time = BODY_TIME + Duration::from_secs(bytes_max / BODY_BYTES_PER_SECOND_MIN);
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let read = tokio::time::timeout(time, to_bytes(request.into_body(), bytes_max));
    read.await.map_err(|_elapsed| Problem::Timeout)?.map_err(|_cut| {
        let detail =
            format!("the request has more than {bytes_max} bytes, or broke off; send fewer lines at once");
        ApiError::new(Problem::TooLarge, detail)
    })
}

/// The lines that are not blank, each with its number.
fn lines_of(text: &[u8]) -> Result<impl Iterator<Item = (u64, &[u8])>, ApiError> {
    let lines =
        || (1..).zip(text.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
    if lines().nth(IMPORT_LINES_MAX).is_some() {
        let detail = format!("a request imports at most {IMPORT_LINES_MAX} lines");
        return Err(ApiError::new(Problem::Malformed, detail));
    }
    Ok(lines())
}

/// Commits what can be, together, and answers for every line.
async fn committed(
    inbox: &Inbox,
    parsed: Vec<(u64, Result<ParsedLine, LineProblem>)>,
    deliveries: ImportDeliveries,
) -> Result<ImportView, ApiError> {
    let mut view = ImportView::default();
    let (mut events, mut places): (Vec<Import>, Vec<usize>) = (Vec::new(), Vec::new());
    for (line, parsed) in parsed {
        let mut answer = ImportedLine { line, ..ImportedLine::default() };
        match parsed {
            Ok(ParsedLine::Event(event)) => {
                places.push(view.lines.len());
                events.push(*event);
            }
            Ok(ParsedLine::Erased) => "erased".clone_into(&mut answer.outcome),
            Err(LineProblem { code, reason, fix }) => refuse(&mut answer, code, reason, fix),
        }
        view.lines.push(answer);
    }
    let receipts = inbox.import(events, deliveries).await;
    for (place, receipt) in places.into_iter().zip(receipts) {
        if let Some(answer) = view.lines.get_mut(place) {
            fill(answer, receipt)?;
        }
    }
    Ok(view)
}

fn fill(answer: &mut ImportedLine, receipt: Result<AcceptReceipt, Unavailable>) -> Result<(), ApiError> {
    let receipt = match receipt {
        // What is damaged is one record of this store. It keeps no other line from being imported.
        Err(error @ Unavailable::Damaged(_)) => {
            let fix = "find everything that is damaged: hookstead store check";
            refuse(answer, "damaged", error.to_string(), fix);
            return Ok(());
        }
        receipt => receipt?,
    };
    answer.event = Some(receipt.event.to_string());
    answer.short_id = Some(receipt.seq.to_string());
    match receipt.outcome {
        Outcome::Stored => "stored".clone_into(&mut answer.outcome),
        Outcome::Duplicate => "duplicate".clone_into(&mut answer.outcome),
        Outcome::Conflict { .. } => "conflict".clone_into(&mut answer.outcome),
        Outcome::BodyReused => {
            let reason = format!("the same body came before under another id, as {}", receipt.seq);
            let fix = "the source refuses that; take body_reuse = \"refuse\" away to import it";
            refuse(answer, "body-reused", reason, fix);
        }
    }
    Ok(())
}

fn refuse(answer: &mut ImportedLine, code: &str, reason: String, fix: &str) {
    "refused".clone_into(&mut answer.outcome);
    answer.code = Some(code.to_owned());
    answer.reason = Some(reason);
    answer.fix = Some(fix.to_owned());
}
