//! The crate's integration tests. Vectors are data: every entry of `vectors/*.json` is a test of its own, named
//! `<provider>/<case>`. The rest are checks that hold for every provider.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

mod bits;
mod fuzzing;
mod hostile;
mod inputs;
mod keys;
mod loading;
mod round_trip;
mod setup;
mod vectors;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vectors::trials();
    trials.extend(bits::trials());
    trials.extend(round_trip::trials());
    trials.extend(hostile::trials());
    trials.extend(fuzzing::trials());
    trials.extend(keys::trials());
    trials.extend(loading::trials());
    trials.extend(setup::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test that passes unless it panics.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}
