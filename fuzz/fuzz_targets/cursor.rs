//! A cursor that nobody gave out.
#![no_main]

use hookstead_fuzz::Target::Cursor;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Cursor), |input: &[u8]| hookstead_fuzz::run(Cursor, input));
