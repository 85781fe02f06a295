//! Where a case leaves the answer open, says it in words, or differs from our own specification, which wins.

use super::play::Outcome::{self, Conflict, Duplicate, Refused, Stored};

/// Other answers than those of the file.
struct Override {
    id: &'static str,
    answers: &'static [(u16, Outcome)],
    /// Read by people only.
    #[expect(dead_code, reason = "it stands here for whoever wonders at the answers")]
    why: &'static str,
}

const OVERRIDES: &[Override] = &[
    Override {
        id: "B016",
        answers: &[(401, Refused)],
        why: "a signature is checked over the bytes of the wire and nothing is decoded before it, so a signature over \
              the decoded body does not hold",
    },
    Override {
        id: "B018",
        answers: &[(400, Refused), (400, Refused)],
        why: "nothing is decoded, so that there is no id in either body; both are told so in the same way",
    },
    Override {
        id: "B040",
        answers: &[(401, Refused), (401, Refused), (400, Refused)],
        why: "the case leaves an any-of rule open; ours is that a header that must be there once is refused when it \
              is repeated, whichever line is right",
    },
    Override { id: "B041", answers: &[(400, Refused)], why: "said in words: 400 and close" },
    Override {
        id: "B053",
        answers: &[(202, Stored)],
        why: "said in words; the record strips both prefixes, since the secret is plain either way",
    },
    Override {
        id: "B069",
        answers: &[(202, Stored)],
        why: "said in words; the record of GitHub looks inside the form field `payload`",
    },
    Override {
        id: "B077",
        answers: &[(202, Stored), (202, Stored)],
        why: "left open; an id is bytes, so a lone surrogate is one in its three-byte form",
    },
    Override {
        id: "B078",
        answers: &[(202, Stored), (400, Refused), (202, Stored)],
        why: "left open; a raw NUL makes the body no JSON, so that there is no id in it, and an escaped one is a \
              byte of the id like any other",
    },
    Override {
        id: "B084",
        answers: &[(202, Stored), (202, Stored)],
        why: "said in words; ids have up to 8 KiB and are found by their hash",
    },
    Override {
        id: "B087",
        answers: &[(202, Stored), (202, Stored), (202, Stored)],
        why: "said in words; the record of GitHub has the hook's id as the scope",
    },
    Override {
        id: "B091",
        answers: &[(202, Stored), (400, Refused), (202, Stored)],
        why: "said in words; the third is a new event, with the mark of the first",
    },
    Override {
        id: "B093",
        answers: &[(202, Stored), (409, Conflict), (200, Duplicate)],
        why: "said in words: 409 by default",
    },
    Override { id: "B094", answers: &[(202, Stored), (409, Conflict)], why: "said in words: 409 by default" },
    Override {
        id: "B098",
        answers: &[(200, Stored), (200, Stored)],
        why: "the record of Slack says that it wants exactly 200",
    },
    Override {
        id: "B116",
        answers: &[(202, Stored), (202, Stored), (404, Refused)],
        why: "said in words: the slash at the end makes no difference, two at the start are another address",
    },
    Override {
        id: "B123",
        answers: &[(200, Stored), (200, Duplicate)],
        why: "both are 200, since the source says so; the second one is a duplicate",
    },
    Override { id: "B124", answers: &[(200, Stored)], why: "200 since the source says so" },
    Override {
        id: "B104",
        answers: &[(202, Stored), (202, Conflict)],
        why: "the second 202 is that of a held conflict",
    },
];

/// The answers of a case, one a request, if they do not stand in the file.
pub(crate) fn answers(id: &str) -> Option<&'static [(u16, Outcome)]> {
    OVERRIDES.iter().find(|found| found.id == id).map(|found| found.answers)
}
