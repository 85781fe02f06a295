//! A template over a request.
#![no_main]

use hookstead_fuzz::Target::Template;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Template), |input: &[u8]| hookstead_fuzz::run(Template, input));
