//! Which events have which body: how a store that keeps its indexes in memory tells that a body came before under
//! another identity. It knows no events, only their numbers.

use std::collections::BTreeSet;

use crate::event::Digest;
use crate::id::{Seq, SourceNumber};

/// The bodies that are looked out for, by source and digest. It holds what was [remembered](Self::remember) and not
/// [forgotten](Self::forget) since, an entry for each event.
#[derive(Clone, Debug, Default)]
pub struct Bodies(BTreeSet<(SourceNumber, Digest, Seq)>);

/// How many events with a body are read, the oldest first, to find one that has it unharmed. More than one is read only
/// where the first is damaged.
pub const REUSED_BODIES_READ_MAX: u32 = 8;

impl Bodies {
    /// Adds an event's body. Adding it again changes nothing.
    pub fn remember(&mut self, source: SourceNumber, digest: Digest, seq: Seq) {
        self.0.insert((source, digest, seq));
    }

    /// Takes an event's body away. One that was never added is no mistake.
    pub fn forget(&mut self, source: SourceNumber, digest: Digest, seq: Seq) {
        self.0.remove(&(source, digest, seq));
    }

    /// The oldest event of the source with a body of this digest.
    pub fn first_of(&self, source: SourceNumber, digest: Digest) -> Option<Seq> {
        self.all_of(source, digest).next()
    }

    /// The events of the source with a body of this digest, the oldest first.
    pub fn all_of(&self, source: SourceNumber, digest: Digest) -> impl Iterator<Item = Seq> {
        let all = (source, digest, Seq(0))..=(source, digest, Seq(u64::MAX));
        self.0.range(all).map(|(.., seq)| *seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_event_that_is_not_forgotten_is_found() {
        let (shop, bank) = (SourceNumber(1), SourceNumber(2));
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let mut bodies = Bodies::default();
        for (source, digest, seq) in [(shop, one, 7), (shop, one, 3), (bank, one, 1), (shop, two, 2)] {
            bodies.remember(source, digest, Seq(seq));
        }
        assert_eq!(bodies.first_of(shop, one), Some(Seq(3)));
        assert_eq!(bodies.all_of(shop, one).collect::<Vec<_>>(), [Seq(3), Seq(7)]);
        bodies.forget(shop, one, Seq(3));
        bodies.forget(shop, one, Seq(4));
        assert_eq!(bodies.first_of(shop, one), Some(Seq(7)));
        assert_eq!((bodies.first_of(bank, one), bodies.first_of(bank, two)), (Some(Seq(1)), None));
    }
}
