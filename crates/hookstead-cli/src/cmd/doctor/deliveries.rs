//! How the destinations stand, as the running server says.

use std::time::Duration;

use hookstead_core::Timestamp;
use hookstead_server::api::view::{DestinationView, StatsView};
use hookstead_store::Finding;

use crate::output;

const DESTINATION: &str = "destination";
const DEAD: &str = "dead-letters";
const CONFLICTS: &str = "conflicts";

/// A delivery that is due for longer than this is behind.
const LATE_AFTER: Duration = Duration::from_secs(300);

/// One check a destination that is configured.
pub(super) fn look(destinations: &[DestinationView], now: Timestamp) -> Vec<Finding> {
    destinations.iter().filter(|known| known.kind.is_some()).map(|known| judge(known, now)).collect()
}

fn judge(destination: &DestinationView, now: Timestamp) -> Finding {
    let name = &destination.name;
    if let Some(problem) = &destination.problem {
        let fix = format!("look at it: hookstead destinations show {name}");
        return Finding::failed(DESTINATION, format!("`{name}` is not worked: {problem}"), fix);
    }
    let behind = destination.next_due.as_deref().and_then(output::instant).map(|due| now.since(due));
    let behind = behind.filter(|behind| *behind > LATE_AFTER);
    let waits = behind.map(|behind| format!(", and its oldest delivery is due for {}", output::age(behind)));
    let waits = waits.unwrap_or_default();
    if destination.paused {
        let fix = format!("let it go on: hookstead destinations resume {name}");
        return Finding::warning(DESTINATION, format!("`{name}` is paused{waits}"), fix);
    }
    match destination.circuit.as_deref() {
        Some(state @ ("open" | "half-open")) => {
            let until = destination.rests_until.as_deref().map(|until| format!(", and rests until {until}"));
            let words =
                format!("`{name}` is not reached (circuit {state}){}{waits}", until.unwrap_or_default());
            Finding::warning(
                DESTINATION,
                words,
                format!("look at what it answers: hookstead deliveries list --destination {name}"),
            )
        }
        _ if behind.is_some() => Finding::warning(
            DESTINATION,
            format!("`{name}` is behind{waits}"),
            format!("see what waits: hookstead deliveries list --destination {name}"),
        ),
        _ => Finding::good(DESTINATION, format!("`{name}` is worked, and nothing is late")),
    }
}

/// What waits for a person.
pub(super) fn waiting_for_people(stats: &StatsView) -> Vec<Finding> {
    let dead = match stats.deliveries.dead {
        0 => Finding::good(DEAD, "none"),
        count => Finding::warning(
            DEAD,
            output::counted(count, "dead delivery", "dead deliveries"),
            "see why: hookstead deliveries list --state dead; after the fix: hookstead deliveries redeliver ID",
        ),
    };
    let conflicts = match stats.conflicts_open {
        0 => Finding::good(CONFLICTS, "none"),
        count => Finding::warning(
            CONFLICTS,
            output::counted(count, "undecided conflict", "undecided conflicts"),
            "the first event of each stands; look at them: GET /v1/conflicts of the admin listener",
        ),
    };
    vec![dead, conflicts]
}
