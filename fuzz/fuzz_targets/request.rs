//! A request to a source of each provider: a verdict, and nothing else.
#![no_main]

use hookstead_fuzz::Target::Request;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Request), |input: &[u8]| hookstead_fuzz::run(Request, input));
