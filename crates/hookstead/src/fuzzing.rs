//! What the fuzz targets of `fuzz/` call. Each function panics if something does not hold that must hold whatever the bytes
//! are. It is there only with the feature `fuzzing` and promises nothing to anybody else.

pub use crate::sink::push::fuzzing::answer;
