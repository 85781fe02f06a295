//! Ids, names, stored headers, leases: what people and programs type or hand back.
#![no_main]

use hookstead_fuzz::Target::Names;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Names), |input: &[u8]| hookstead_fuzz::run(Names, input));
