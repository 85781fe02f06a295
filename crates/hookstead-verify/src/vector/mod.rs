//! Requests with the verdict that they must get: the files of `vectors/`, and those of whoever writes a record.
//!
//! A vector is data. Here it is read, turned into a verifier and a request, and compared with what comes out; what
//! is done with the result (a test, a line of a report) is the caller's.

mod check;
mod file;

pub use check::Mismatch;
pub use file::{Vector, VectorError, parse};
