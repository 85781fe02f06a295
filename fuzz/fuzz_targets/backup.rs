//! The files that describe a backup, and the record of who has a store open.
#![no_main]

use hookstead_fuzz::Target::Backup;

libfuzzer_sys::fuzz_target!(init: hookstead_fuzz::start(Backup), |input: &[u8]| hookstead_fuzz::run(Backup, input));
