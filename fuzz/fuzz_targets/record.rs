//! The record of a provider.
#![no_main]

use hookstead_fuzz::Target::Record;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Record), |input: &[u8]| hookstead_fuzz::run(Record, input));
