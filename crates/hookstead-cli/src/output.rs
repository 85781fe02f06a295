//! Everything that reaches the terminal goes through here: data to stdout, talk to stderr.
//!
//! Colour is decoration only and is left out by `anstream` where `NO_COLOR` or a pipe asks for it. Text that
//! came from strangers passes [`printable`], so that no event can move somebody's cursor.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use comfy_table::{ContentArrangement, Table, TableStyle};
use hookstead_core::Timestamp;
use hookstead_server::config::ConfigErrors;
use serde::Serialize;

use crate::failure::Failure;

/// For labels and everything that is read second.
pub(crate) const DIM: Style = Style::new().dimmed();
/// For what the eye looks for.
pub(crate) const BOLD: Style = Style::new().bold();
/// For what went as it should.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For what did not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// How wide the column of labels is.
const LABEL_WIDTH: usize = 9;

/// How wide the column of facts is.
const FACT_WIDTH: usize = 11;

/// One line of data on stdout.
pub(crate) fn line(text: impl fmt::Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// One line on stdout with a label before it. Further lines of the text are indented to stand below the first.
pub(crate) fn labelled(label: &str, text: impl fmt::Display) -> Result<()> {
    line(label_block(label, &text.to_string()))
}

/// An indented line on stdout with the name of a fact before it.
pub(crate) fn fact(name: &str, text: impl fmt::Display) -> Result<()> {
    line(format_args!("  {DIM}{name:<FACT_WIDTH$}{DIM:#}{text}"))
}

/// Bytes on stdout, exactly.
pub(crate) fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// One JSON document on stdout, on one line.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(serde_json::to_string(value)?)
}

/// One line of talk on stderr.
pub(crate) fn talk(text: impl fmt::Display) -> Result<()> {
    let mut err = anstream::stderr().lock();
    writeln!(err, "{text}")?;
    Ok(())
}

/// How a list goes on, if it does.
pub(crate) fn more(next: Option<&str>) -> Result<()> {
    next.map_or(Ok(()), |next| talk(format_args!("more: add --after {next}")))
}

/// The same where a page is empty: a store looks at so many rows for a page, and all of them were passed over.
pub(crate) fn none_yet(next: &str) -> Result<()> {
    talk(format_args!("none among those looked at so far. To look on: add --after {next}"))
}

/// Talk on a terminal in place of the line that is there.
pub(crate) fn talk_over(text: &str) -> Result<()> {
    let mut err = anstream::stderr().lock();
    write!(err, "\r\x1b[2K{text}")?;
    err.flush()?;
    Ok(())
}

/// A question on stderr; the answer is typed behind it.
pub(crate) fn ask(text: &str) -> Result<()> {
    let mut err = anstream::stderr().lock();
    write!(err, "{text} ")?;
    err.flush()?;
    Ok(())
}

/// Talk on stderr with a label before it.
pub(crate) fn talk_labelled(label: &str, text: impl fmt::Display) -> Result<()> {
    talk(label_block(label, &text.to_string()))
}

/// A table on stdout without lines between the cells.
pub(crate) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
) -> Result<()> {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    line(table.trim_fmt())
}

/// The block of an error on stderr: code, message, causes, and what to do.
pub(crate) fn print_error(error: &anyhow::Error) {
    // What is wrong with a configuration comes with its lines and carets.
    let block = match error.downcast_ref::<ConfigErrors>() {
        Some(errors) => config_block(errors),
        None => error_block(error),
    };
    // There is nowhere left to report that stderr is gone.
    drop(writeln!(anstream::stderr().lock(), "{}", block.trim_end()));
}

/// Whether the reader of our output went away, as `| head` does: no failure of ours.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn config_block(errors: &ConfigErrors) -> String {
    let again =
        errors.file().map(|file| format!("check again with: hookstead config check {}", file.display()));
    format!("{errors}{}", again.unwrap_or_default())
}

fn error_block(error: &anyhow::Error) -> String {
    let failure = error.downcast_ref::<Failure>();
    let code = failure.map_or("failed", Failure::code);
    let mut block = format!("{BAD}error[{code}]{BAD:#}: {error}");
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        if text != error.to_string() {
            block.push_str(&format!("\n{}", label_block("  why", &text)));
        }
    }
    for (label, text) in failure.map_or(&[][..], Failure::lines) {
        block.push_str(&format!("\n{}", label_block(&format!("  {label}"), text)));
    }
    block
}

fn label_block(label: &str, text: &str) -> String {
    let mut lines = text.lines();
    let mut block = format!("{DIM}{label:<LABEL_WIDTH$}{DIM:#}{}", lines.next().unwrap_or_default());
    for line in lines {
        block.push_str(&format!("\n{:LABEL_WIDTH$}{line}", ""));
    }
    block
}

/// A text from outside, with every control character and every mark that turns text around written as an
/// escape.
pub(crate) fn printable(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| if c.is_control() || turns(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// A count with its digits in groups of three: `1 842`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// So many of something, with its noun: `1 event`, `1 842 events`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A length for a narrow column: `812 B`, `1.8 kB`, `4.0 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

/// A short time: `0.9 ms`, `41 ms`, `2.4 s`.
pub(crate) fn took(time: Duration) -> String {
    match time.as_secs_f64() * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// A time for programs: milliseconds with three decimals.
pub(crate) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

/// How long ago: `12s`, `4m`, `2h`, `3d`.
pub(crate) fn age(time: Duration) -> String {
    match time.as_secs() {
        secs if secs < 60 => format!("{secs}s"),
        secs if secs < 3_600 => format!("{}m", secs / 60),
        secs if secs < 86_400 => format!("{}h", secs / 3_600),
        secs => format!("{}d", secs / 86_400),
    }
}

/// The instant that a server's answer names.
pub(crate) fn instant(rfc3339: &str) -> Option<Timestamp> {
    let instant: jiff::Timestamp = rfc3339.parse().ok()?;
    Some(Timestamp::from_micros(instant.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn numbers_read_well() {
        for (count, text) in [(0, "0"), (999, "999"), (1_842, "1 842"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(count), text);
        }
        for (bytes, text) in [(0, "0 B"), (999, "999 B"), (1_842, "1.8 kB"), (25 << 20, "26.2 MB")] {
            assert_eq!(size(bytes), text);
        }
        for (micros, text) in [(940, "0.9 ms"), (41_200, "41 ms"), (2_400_000, "2.4 s")] {
            assert_eq!(took(Duration::from_micros(micros)), text);
        }
        for (secs, text) in [(0, "0s"), (59, "59s"), (61, "1m"), (7_300, "2h"), (200_000, "2d")] {
            assert_eq!(age(Duration::from_secs(secs)), text);
        }
    }

    #[test]
    fn strangers_cannot_steer_the_terminal() {
        assert_eq!(printable("evt_é ✓"), "evt_é ✓");
        assert_eq!(printable("a\x1b[2Jb\n\u{202e}c\u{9b}"), "a\\u{1b}[2Jb\\n\\u{202e}c\\u{9b}");
    }

    #[test]
    fn an_error_names_code_cause_and_fix() {
        let failure = Failure::new(Exit::Failed, "port-in-use", "127.0.0.1:1 is taken").fix("one\ntwo");
        let block = anstream::adapter::strip_str(&error_block(&failure.into())).to_string();
        assert_eq!(block, "error[port-in-use]: 127.0.0.1:1 is taken\n  fix    one\n         two");
    }
}
