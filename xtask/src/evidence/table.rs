//! The records as a table in Markdown, which reads in a terminal as well.

use std::fmt::Write;

use crate::longer::Record;

/// Figures that must be 0.
const LOSSES: [&str; 4] = ["lost", "altered", "doubled", "served_damaged"];

/// Whether a figure of this name must be 0.
pub(super) fn is_loss(what: &str) -> bool {
    LOSSES.contains(&what)
}

/// A row for each check and store.
pub(super) fn of(records: &[Record], machine: &str, command: &str) -> String {
    let mut table = format!("Made by `{command}` on {machine}.\n\n");
    table += "| check | store | on | seconds | what was done | lost, altered, doubled, served damaged |\n";
    table += "|---|---|---|---:|---|---|\n";
    for record in records {
        let Record { check, store, ms, file_system, figures } = record;
        let listed = |loss: bool| {
            let chosen = figures.iter().filter(|(what, _)| is_loss(what) == loss);
            chosen
                .map(|(what, count)| format!("{} {count}", what.replace('_', " ")))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let seconds = ms.div_ceil(1_000);
        writeln!(
            table,
            "| {check} | {store} | {file_system} | {seconds} | {} | {} |",
            listed(false),
            listed(true)
        )
        .expect("a string takes all");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_and_what_was_lost_stand_apart() {
        let record = Record {
            check: "kill-points".into(),
            store: "sqlite".into(),
            ms: 1_200,
            file_system: "ext2/ext3".into(),
            figures: [("lost".to_owned(), 0), ("kills".to_owned(), 78), ("before_the_answer".to_owned(), 70)]
                .into(),
        };
        let table = of(&[record], "Linux 6", "cargo xtask evidence");
        let row = "| kill-points | sqlite | ext2/ext3 | 2 | before the answer 70, kills 78 | lost 0 |";
        assert_eq!(table.lines().last(), Some(row));
        assert!(table.starts_with("Made by `cargo xtask evidence` on Linux 6."));
    }
}
