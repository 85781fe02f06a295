//! A configuration file.
#![no_main]

use hookstead_fuzz::Target::Config;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Config), |input: &[u8]| hookstead_fuzz::run(Config, input));
