//! The steps of the schema. A new one is a file in `migrations/` and a line here; an old one never changes.

use crate::schema::Migration;

/// The first schema with pending identities.
pub(super) const PENDING_IDENTITIES_SINCE: usize = 2;

pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "first", sql: include_str!("migrations/0001_first.sql") },
    Migration {
        number: 2,
        name: "deferred identities",
        sql: include_str!("migrations/0002_deferred_identities.sql"),
    },
    Migration { number: 3, name: "body reuse", sql: include_str!("migrations/0003_body_reuse.sql") },
];
