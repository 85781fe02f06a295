//! The JSON of refused requests: for whoever runs the source, never for a sender.

use hookstead::NotedRefusal;
use serde::{Deserialize, Serialize};

use crate::explain::explain;

/// A refused request, or several equal ones in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalView {
    /// The place in the order of the source's refusals: `after` of whoever asks for what came later.
    pub number: u64,
    /// When the last of them was refused.
    pub at: String,
    /// How many equal ones there were in a row.
    pub count: u64,
    /// A stable code.
    pub code: String,
    /// The name of the part that is meant, such as `header.x-signature`. Never a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// How long before its arrival the last of them was signed, in milliseconds; negative if that was in the future. Only
    /// where it is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<i64>,
    /// Who called last, if that is known.
    pub from: Option<String>,
    /// What the code means.
    pub meaning: String,
    /// What to do.
    pub fix: String,
}

/// The newest refusals of a source, the oldest first: at most [`REFUSALS_MAX`](hookstead::REFUSALS_MAX), since the
/// source was configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalsView {
    /// The source's name.
    pub source: String,
    /// The refusals.
    pub refusals: Vec<RefusalView>,
}

impl RefusalView {
    pub(super) fn new(noted: &NotedRefusal, source: &str) -> Self {
        let request = &noted.request;
        let explanation = explain(request.code);
        Self {
            number: noted.number,
            at: noted.at.to_string(),
            count: noted.count,
            code: request.code.to_owned(),
            part: Some(request.part.clone()).filter(|part| !part.is_empty()),
            age_ms: request.age_micros.map(|micros| micros / 1_000),
            from: request.from.map(|from| from.to_string()),
            meaning: explanation.meaning.to_owned(),
            fix: explanation.fix_for(source),
        }
    }
}
