//! A document with public keys.
#![no_main]

use hookstead_fuzz::Target::Keys;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Keys), |input: &[u8]| hookstead_fuzz::run(Keys, input));
