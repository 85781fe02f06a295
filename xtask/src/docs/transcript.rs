//! `console` blocks: commands and what they print.

use anyhow::{Result, bail, ensure};

use super::session::Ran;

/// Stands for anything on a line, and alone on a line for any lines.
const ANYTHING: char = '…';

/// A command, and what is shown of its output.
#[derive(Debug, PartialEq)]
pub(super) struct Exchange {
    pub(super) command: String,
    expected: Vec<String>,
    exit_code: i32,
}

/// The exchanges of a block. A command goes on over lines that end in a backslash.
pub(super) fn parse(text: &str) -> Result<Vec<Exchange>> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\')
                && let Some(more) = lines.next()
            {
                command = command + "\n" + more;
            }
            exchanges.push(Exchange { command, expected: Vec::new(), exit_code: 0 });
        } else if let Some(exchange) = exchanges.last_mut() {
            exchange.expected.push(line.trim_end().to_owned());
        } else {
            bail!("a console block starts with `$ `, not with `{line}`");
        }
    }
    exchanges.iter_mut().for_each(Exchange::take_exit_code);
    Ok(exchanges)
}

impl Exchange {
    /// Blank lines before the next command are for the eye; a last line `exit N` is the exit code.
    fn take_exit_code(&mut self) {
        while self.expected.last().is_some_and(String::is_empty) {
            self.expected.pop();
        }
        let code = self.expected.last().and_then(|line| line.strip_prefix("exit ")?.parse().ok());
        if let Some(code) = code {
            self.exit_code = code;
            self.expected.pop();
        }
    }

    /// Compares what happened with what is shown.
    pub(super) fn check(&self, ran: &Ran) -> Result<()> {
        let shown = &self.command;
        ensure!(
            ran.exit_code == self.exit_code,
            "`{shown}` ended with exit code {}, not {}\n{}",
            ran.exit_code,
            self.exit_code,
            ran.output
        );
        let actual: Vec<&str> = ran.output.trim_end().lines().map(str::trim_end).collect();
        let expected: Vec<&str> = self.expected.iter().map(String::as_str).collect();
        ensure!(
            expected.is_empty() || lines_match(&expected, &actual),
            "`{shown}` printed something else\n--- shown\n{}\n--- printed\n{}",
            expected.join("\n"),
            actual.join("\n")
        );
        Ok(())
    }
}

fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=actual.len()).any(|skipped| lines_match(rest, &actual[skipped..]))
        }
        Some((first, rest)) => match actual.split_first() {
            Some((line, others)) => line_matches(first, line) && lines_match(rest, others),
            None => false,
        },
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(ANYTHING) else { return pattern == line };
    let Some(mut line) = line.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split(ANYTHING).collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match line.split_once(part) {
            Some((_, after)) => line = after,
            None => return false,
        }
    }
    line.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, output: &str, exit_code: i32) -> bool {
        let exchanges = parse(block).expect("a good block");
        assert_eq!(exchanges.len(), 1);
        exchanges[0].check(&Ran { output: output.to_owned(), exit_code }).is_ok()
    }

    #[test]
    fn commands_and_outputs_are_told_apart() {
        let exchanges = parse("$ a \\\n  b\none\ntwo\n\n$ c\n$ d\nexit 4\n").expect("a good block");
        let seen: Vec<_> =
            exchanges.iter().map(|e| (e.command.as_str(), e.expected.len(), e.exit_code)).collect();
        assert_eq!(seen, [("a \\\n  b", 2, 0), ("c", 0, 0), ("d", 0, 4)]);
    }

    #[test]
    fn output_before_any_command_is_an_error() {
        assert!(parse("hello\n$ a\n").is_err());
    }

    #[test]
    fn equal_output_matches_and_other_output_does_not() {
        assert!(check("$ a\none\ntwo\n", "one\ntwo\n", 0));
        assert!(!check("$ a\none\ntwo\n", "one\n", 0));
        assert!(!check("$ a\none\n", "one\ntwo\n", 0));
        assert!(!check("$ a\none\n", "One\n", 0));
    }

    #[test]
    fn an_exit_code_that_is_not_shown_fails() {
        assert!(!check("$ a\n", "", 1));
        assert!(check("$ a\nexit 1\n", "anything\n", 1));
        assert!(!check("$ a\nexit 1\n", "", 0));
    }

    #[test]
    fn dots_stand_for_anything_on_a_line() {
        assert!(check("$ a\nin … ms, … bytes\n", "in 3.1 ms, 40 bytes\n", 0));
        assert!(!check("$ a\nin … ms, … bytes\n", "in 3.1 ms, 40 bits\n", 0));
        assert!(!check("$ a\nab…ba\n", "aba\n", 0));
    }

    #[test]
    fn a_line_of_dots_stands_for_any_lines() {
        assert!(check("$ a\none\n…\nlast\n", "one\nlast\n", 0));
        assert!(check("$ a\none\n…\nlast\n", "one\n2\n3\nlast\n", 0));
        assert!(!check("$ a\none\n…\nlast\n", "one\n2\n", 0));
    }
}
