//! exec: one event as one run of a program, its bytes on stdin, the facts in its environment.
//!
//! No shell is involved and nothing is inherited but what is listed. The program is a stranger as well: it
//! may hang, write without end, read nothing or leave children, and costs one attempt for at most its
//! timeout.

mod facts;
mod options;
mod output;
mod process;
mod program;

pub use options::{EXEC_TIMEOUT_DEFAULT, EXEC_TIMEOUT_MAX, ExecOptions, ExecSetupError};
pub use output::EXEC_OUTPUT_BYTES_MAX;
pub use program::ExecSink;
