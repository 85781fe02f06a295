//! `cargo xtask setup`: everything that the tests need and cargo does not bring.

use anyhow::Result;

use crate::install::{Tool, ensure};
use crate::senders;

const TOOLS: &[Tool] = &[
    Tool {
        program: "strace",
        package: "strace",
        needed_for: "the test that traces the server's system calls",
    },
    Tool {
        program: "faketime",
        package: "faketime",
        needed_for: "the cases that were signed at another time",
    },
    Tool { program: "openssl", package: "openssl", needed_for: "the cases of targets with certificates" },
    Tool { program: "ip", package: "iproute2", needed_for: "the tests in a network of their own" },
    Tool { program: "python3", package: "python3", needed_for: "the conformance script" },
    Tool { program: "pip3", package: "python3-pip", needed_for: "the tests with the providers' own SDKs" },
    Tool { program: "node", package: "nodejs", needed_for: "the tests with the providers' own SDKs" },
    Tool { program: "npm", package: "npm", needed_for: "the tests with the providers' own SDKs" },
];

/// Installs it all; what is there already costs nothing.
pub(crate) fn run() -> Result<()> {
    packages()?;
    senders::install()
}

/// Installs the packages of the system among it.
pub(crate) fn packages() -> Result<()> {
    ensure(TOOLS)
}
