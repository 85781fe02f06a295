//! An entry, a receipt or the marker of a `files:` store.
#![no_main]

use hookstead_fuzz::Target::Entry;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Entry), |input: &[u8]| hookstead_fuzz::run(Entry, input));
