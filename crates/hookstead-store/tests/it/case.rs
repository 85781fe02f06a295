//! The list of a module's cases.

/// A case of this store alone.
pub(crate) type Case = (&'static str, fn());

/// Makes the list of a module's cases, named by the module and the functions.
macro_rules! cases {
    ($module:literal: $($case:ident),+ $(,)?) => {
        pub(crate) const CASES: &[$crate::case::Case] =
            &[$((concat!($module, "::", stringify!($case)), $case)),+];
    };
}

pub(crate) use cases;
