//! The log and the journal of a `files:` store.
#![no_main]

use hookstead_fuzz::Target::Journal;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Journal), |input: &[u8]| hookstead_fuzz::run(Journal, input));
