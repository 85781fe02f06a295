//! The server, from outside.
