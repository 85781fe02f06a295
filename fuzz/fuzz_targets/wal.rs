//! The write-ahead log of SQLite.
#![no_main]

use hookstead_fuzz::Target::Wal;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Wal), |input: &[u8]| hookstead_fuzz::run(Wal, input));
