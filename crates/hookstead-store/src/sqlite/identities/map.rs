//! Maps by hash. A hash is keyed, so that its bits are random and nobody outside can choose them: it needs no hashing of
//! its own, and to look one up is to look at one place.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use hookstead_core::{IdentityHash, Seq};

/// Which event has a hash, in no order.
pub(super) type SeqByHash = HashMap<IdentityHash, Seq, BuildHasherDefault<LastBytes>>;

/// Takes the last eight bytes for what is asked for: the first one is the same in a whole range.
#[derive(Default)]
pub(super) struct LastBytes(u64);

impl Hasher for LastBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            self.0 = u64::from_be_bytes(*last);
        }
    }

    /// The length of the hash, which comes before it.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn a_hash_is_its_last_bytes() {
        let hash = IdentityHash(0x0102_0304_0506_0708_1112_1314_1516_1718_u128.to_be_bytes());
        assert_eq!(BuildHasherDefault::<LastBytes>::default().hash_one(hash), 0x1112_1314_1516_1718);
    }
}
