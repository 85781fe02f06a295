//! What a target answers, and the URL that it is pushed to.
#![no_main]

use hookstead_fuzz::Target::Answer;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Answer), |input: &[u8]| hookstead_fuzz::run(Answer, input));
