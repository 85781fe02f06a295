//! What the failed tests said, picked out of the output of a whole run, so that it can be told again at its end: a log of
//! which only the last page is kept still says what went wrong.

use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::run::shown;

/// How many lines of what failed are told again at most: the last ones.
const MAX_LINES: usize = 150;

/// Runs a test program to its end with its output passed on; where tests failed, the error says again what they said.
pub(crate) fn check_tests(command: &mut Command) -> Result<()> {
    check_into(&mut stdout(), command)
}

fn check_into(out: &mut impl Write, command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let mut failures = Failures::default();
    for line in BufReader::new(child.stdout.take().context("the output is piped")?).split(b'\n') {
        let line = line.with_context(|| format!("cannot read what `{shown}` writes"))?;
        pass_on(out, &line).context("cannot write to stdout")?;
        failures.read(&String::from_utf8_lossy(&line));
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})\n{}", failures.told());
    }
    Ok(())
}

fn pass_on(out: &mut impl Write, line: &[u8]) -> std::io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}

/// The parts of test output that stand between `failures:` and the result of a program that failed.
#[derive(Default)]
struct Failures {
    lines: Vec<String>,
    inside: bool,
}

impl Failures {
    fn read(&mut self, line: &str) {
        self.inside |= line.trim_end() == "failures:";
        if self.inside {
            self.lines.push(line.to_owned());
        }
        self.inside &= !line.starts_with("test result:");
    }

    fn told(&self) -> String {
        let left_out = self.lines.len().saturating_sub(MAX_LINES);
        self.lines[left_out..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::io::sink;

    use super::*;

    fn of(output: &str) -> Failures {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        failures
    }

    const FAILED: &str = "\
test one ... ok
test two ... FAILED

failures:

---- two stdout ----
left 1, right 2

failures:
    two

test result: FAILED. 1 passed; 1 failed";

    #[test]
    fn what_failed_is_told_again_and_nothing_else() {
        let told =
            of(&format!("{FAILED}\n\nrunning 1 test\ntest three ... ok\n\ntest result: ok. 1 passed\n"))
                .told();
        assert!(told.starts_with("failures:\n\n---- two stdout ----\nleft 1, right 2\n"), "{told}");
        assert!(told.ends_with("test result: FAILED. 1 passed; 1 failed"), "{told}");
    }

    #[test]
    fn of_very_many_failures_the_last_are_told() {
        let told = of(&format!("{FAILED}\n").repeat(100)).told();
        assert_eq!(told.lines().count(), MAX_LINES);
    }

    #[test]
    fn the_error_of_a_failed_run_says_what_failed() {
        let mut run = Command::new("printf");
        run.arg(format!("{FAILED}\n"));
        let mut passed_on = Vec::new();
        check_into(&mut passed_on, &mut run).expect("it ends with 0");
        assert_eq!(String::from_utf8(passed_on).unwrap(), format!("{FAILED}\n"));
        let mut run = Command::new("sh");
        run.args(["-c", "printf '%s\\n' \"$1\"; exit 101", "sh", FAILED]);
        let error = check_into(&mut sink(), &mut run).unwrap_err().to_string();
        assert!(error.contains("left 1, right 2"), "{error}");
    }
}
