//! How connections are spread over accept loops that have clones of one listener and a thread each. A connection
//! stays on the loop that took it, unless another loop has so many fewer that it would idle beside a busy one: the
//! kernel wakes whichever loop it likes, and a burst of connections would all end on the first.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::connections::Place;

/// A loop keeps a connection while no other has so many fewer. Fewer than this would pass connections on for
/// nothing where each carries one request; many more would leave a core idle with 64 connections.
const LEAD_MAX: usize = 2;

/// Connections that may be on their way to a loop. When so many wait, the loop that took one keeps it.
const GIVEN_MAX: usize = 256;

/// One loop's part of the connections.
#[derive(Debug)]
pub(crate) struct Share {
    own: usize,
    members: Arc<[Member]>,
    given: mpsc::Receiver<Given>,
}

#[derive(Debug)]
struct Member {
    open: Arc<AtomicUsize>,
    give: mpsc::Sender<Given>,
}

/// A connection on its way to the loop that will serve it.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) held: Held,
}

/// What a connection holds until it ends.
#[derive(Debug)]
pub(super) struct Held {
    _place: Place,
    seat: Seat,
}

/// One of a loop's connections; counted out when it is dropped.
#[derive(Debug)]
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        // A count that guards no other memory needs no order, here and below.
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Share {
    /// The shares of `loops` loops.
    pub(crate) fn among(loops: usize) -> Vec<Self> {
        let (members, given): (Vec<_>, Vec<_>) = (0..loops)
            .map(|_| {
                let (give, given) = mpsc::channel(GIVEN_MAX);
                (Member { open: Arc::default(), give }, given)
            })
            .unzip();
        let members: Arc<[Member]> = members.into();
        let share = |(own, given)| Self { own, members: members.clone(), given };
        given.into_iter().enumerate().map(share).collect()
    }

    /// The share of a loop that is the only one.
    pub(crate) fn alone() -> Self {
        let (give, given) = mpsc::channel(GIVEN_MAX);
        let members = Arc::new([Member { open: Arc::default(), give }]);
        Self { own: 0, members, given }
    }

    /// Counts a connection that this loop serves.
    pub(super) fn keep(&self, place: Place) -> Held {
        Held { _place: place, seat: Seat::take(&self.members[self.own].open) }
    }

    /// Whether another loop should have the next connection.
    pub(super) fn leads(&self) -> bool {
        self.lightest().is_some()
    }

    /// Gives a connection to the loop with the fewest. It comes back if there is none with so many fewer any more,
    /// or if that one takes nothing more.
    pub(super) fn give(&self, mut given: Given) -> Result<(), Given> {
        let Some(member) = self.lightest() else { return Err(given) };
        // Counted at once: else a burst would all be given to the same loop.
        let own_seat = std::mem::replace(&mut given.held.seat, Seat::take(&member.open));
        match member.give.try_send(given) {
            Ok(()) => Ok(()),
            Err(
                mpsc::error::TrySendError::Full(mut given) | mpsc::error::TrySendError::Closed(mut given),
            ) => {
                given.held.seat = own_seat;
                Err(given)
            }
        }
    }

    /// The next connection that another loop gives to this one. Never ready while there is none.
    pub(super) async fn given(&mut self) -> Given {
        match self.given.recv().await {
            Some(given) => given,
            // Cannot be: this share holds a sender of its own channel.
            None => std::future::pending().await,
        }
    }

    /// Takes nothing more from other loops. What they have given already is returned.
    pub(super) fn close(&mut self) -> Vec<Given> {
        self.given.close();
        std::iter::from_fn(|| self.given.try_recv().ok()).collect()
    }

    fn lightest(&self) -> Option<&Member> {
        let open = |member: &Member| member.open.load(Ordering::Relaxed);
        let own = open(&self.members[self.own]);
        let lightest = self.members.iter().min_by_key(|member| open(member))?;
        (open(lightest) + LEAD_MAX <= own).then_some(lightest)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::listen::Connections;
    use crate::network::Networks;

    fn connection(connections: &Arc<Connections>, share: &Share) -> Given {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = stream.local_addr().unwrap();
        Given { stream, peer, held: share.keep(connections.take(peer.ip()).unwrap()) }
    }

    fn counts(share: &Share) -> Vec<usize> {
        share.members.iter().map(|member| member.open.load(Ordering::Relaxed)).collect()
    }

    #[tokio::test]
    async fn a_burst_on_one_loop_ends_on_both() {
        let connections = Connections::new(100, None, Networks::default());
        let mut shares = Share::among(2);
        let mut kept = Vec::new();
        for _ in 0..10 {
            let given = connection(&connections, &shares[0]);
            kept.extend(shares[0].give(given).err());
        }
        assert_eq!(counts(&shares[0]), [5, 5]);
        assert_eq!(connections.count(), 10);
        let taken = [shares[1].given().await, shares[1].given().await];
        drop((kept, taken));
        assert_eq!((counts(&shares[0]), connections.count()), (vec![0, 3], 3));
        assert_eq!(shares[1].close().len(), 3);
        assert_eq!((counts(&shares[0]), connections.count()), (vec![0, 0], 0));
    }

    #[test]
    fn a_loop_that_has_ended_is_given_nothing() {
        let connections = Connections::new(100, None, Networks::default());
        let mut shares = Share::among(2);
        assert!(shares[1].close().is_empty());
        let given: Vec<_> = (0..4).map(|_| connection(&connections, &shares[0])).collect();
        assert!(given.into_iter().map(|given| shares[0].give(given)).all(|given| given.is_err()));
        assert_eq!((counts(&shares[0]), connections.count()), (vec![0, 0], 0));
    }

    #[test]
    fn the_only_loop_keeps_everything() {
        let connections = Connections::new(100, None, Networks::default());
        let share = Share::alone();
        let given: Vec<_> = (0..9).map(|_| connection(&connections, &share)).collect();
        assert!(!share.leads());
        assert_eq!(given.len(), 9);
    }
}
