//! Writes down how the steps of a start come out. A store says which step begins; everything up to the next one
//! belongs to it, so that no line of a start is outside of a step.

use super::finding::Finding;
use super::step::StartStep;
use crate::open::OpenError;

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    taken: Vec<(StartStep, Finding)>,
    current: Option<StartStep>,
}

impl Steps {
    /// Begins a step, which ends the one before: it went well, or it would have returned. A step that was begun
    /// before goes on.
    pub(crate) fn begin(&mut self, step: StartStep) {
        self.current = Some(step);
        if !self.taken.iter().any(|(taken, _)| *taken == step) {
            self.taken.push((step, Finding::good(step.as_str(), step.proves())));
        }
    }

    /// What the step saw, in place of what it proves in general.
    pub(crate) fn say(&mut self, words: impl Into<String>) {
        self.change(|finding| finding.words = words.into());
    }

    /// The step goes on, and a person should know this.
    pub(crate) fn warn(&mut self, words: impl Into<String>, fix: impl Into<String>) {
        self.change(|finding| {
            *finding = Finding::warning(std::mem::take(&mut finding.name), words, fix);
        });
    }

    /// Notes that a step is not taken, and why.
    pub(crate) fn skip(&mut self, step: StartStep, why: impl Into<String>) {
        self.begin(step);
        self.change(|finding| *finding = Finding::skipped(step.as_str(), why));
    }

    /// The error with the step in which it came up.
    pub(crate) fn place(&self, error: OpenError) -> OpenError {
        match self.current {
            Some(step) => error.at(step),
            None => error,
        }
    }

    /// Ends with an error: the last step has failed.
    pub(crate) fn fail(&mut self, error: &OpenError) {
        self.change(|finding| {
            let name = std::mem::take(&mut finding.name);
            *finding = Finding::failed(name, with_causes(error), error.fix());
        });
    }

    /// How each came out, in their order.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.taken.into_iter().map(|(_, finding)| finding).collect()
    }

    fn change(&mut self, change: impl FnOnce(&mut Finding)) {
        let current = self.current;
        if let Some((_, finding)) = self.taken.iter_mut().find(|(step, _)| Some(*step) == current) {
            change(finding);
        }
    }
}

/// Why, and what stands behind that.
fn with_causes(error: &OpenError) -> String {
    let mut said = error.reason();
    let mut cause = std::error::Error::source(error);
    while let Some(behind) = cause {
        let text = behind.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = behind.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_one_finding_also_if_it_is_begun_twice() {
        let mut steps = Steps::default();
        steps.say("nothing has begun");
        steps.begin(StartStep::Format);
        steps.begin(StartStep::Lock);
        steps.say("ours");
        steps.begin(StartStep::Format);
        steps.warn("odd", "look");
        steps.skip(StartStep::Log, "new");
        let error = steps.place(OpenError::Io {
            doing: "read `x`".to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
            step: None,
        });
        assert_eq!(error.step(), Some(StartStep::Log));
        steps.fail(&error);
        let findings = steps.into_findings();
        let short: Vec<_> = findings
            .iter()
            .map(|finding| format!("{} {} {}", finding.name, finding.verdict, finding.words))
            .collect();
        assert_eq!(short[..2], ["format warn odd", "lock ok ours"]);
        assert!(short[2].starts_with("log fail failed to read `x`"), "{}", short[2]);
    }
}
