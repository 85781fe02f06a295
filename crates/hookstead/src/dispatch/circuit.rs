//! The circuit of a destination: whether its target is there. Pure: it is told what attempts found, and when.

use std::time::Duration;

use hookstead_core::{DeliveryId, Timestamp};

use crate::sink::TargetHealth;

/// After so many deliveries in a row found the target down, it rests. They must be different ones: one event that
/// the target cannot stomach is no reason to keep the others waiting.
pub const CIRCUIT_FAILURES_MAX: usize = 5;

/// How long a target rests at first.
pub const CIRCUIT_REST_MIN: Duration = Duration::from_secs(5);

/// The longest rest: it doubles with each probe in vain up to this. What becomes due waits at most so long after the
/// target is back.
pub const CIRCUIT_REST_MAX: Duration = Duration::from_secs(60);

/// The state of a circuit.
///
/// ```text
///   closed -- 5 deliveries in a row found it down --> open <-- the probe found it down --+
///     ^                                                |   (rest twice as long)          |
///     |                                                | rest is over                    |
///     +------------- an attempt found it up ---------- half open: one delivery ----------+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// The target is there, as far as is known.
    Closed,
    /// The target is down: nothing is claimed for it.
    Open {
        /// When it is probed.
        until: Timestamp,
    },
    /// One delivery finds out whether the target is back.
    HalfOpen,
}

/// A circuit.
#[derive(Debug)]
pub(super) struct Circuit {
    state: State,
}

#[derive(Debug)]
enum State {
    Closed { down: Vec<DeliveryId> },
    Open { until: Timestamp, rest: Duration },
    HalfOpen { probe: Option<DeliveryId>, rest: Duration },
}

/// What may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Whatever there is.
    All,
    /// One delivery, of which [`Circuit::probing`] is told.
    Probe,
    /// Nothing before this.
    WaitUntil(Timestamp),
    /// Nothing before the probe has ended.
    WaitForProbe,
}

impl Circuit {
    pub(super) fn new() -> Self {
        Self { state: State::Closed { down: Vec::new() } }
    }

    pub(super) fn state(&self) -> CircuitState {
        match self.state {
            State::Closed { .. } => CircuitState::Closed,
            State::Open { until, .. } => CircuitState::Open { until },
            State::HalfOpen { .. } => CircuitState::HalfOpen,
        }
    }

    /// What may be claimed now.
    pub(super) fn allowance(&mut self, now: Timestamp) -> Allowance {
        match self.state {
            State::Closed { .. } => Allowance::All,
            State::Open { until, .. } if until > now => Allowance::WaitUntil(until),
            State::Open { rest, .. } => {
                self.state = State::HalfOpen { probe: None, rest };
                Allowance::Probe
            }
            State::HalfOpen { probe: None, .. } => Allowance::Probe,
            State::HalfOpen { probe: Some(_), .. } => Allowance::WaitForProbe,
        }
    }

    /// This delivery was claimed as the probe.
    pub(super) fn probing(&mut self, delivery: DeliveryId) {
        if let State::HalfOpen { probe, .. } = &mut self.state {
            *probe = Some(delivery);
        }
    }

    /// Whether an attempt of a delivery that was claimed may begin: only the probe while the circuit is not closed.
    pub(super) fn lets(&self, delivery: &DeliveryId) -> bool {
        match &self.state {
            State::Closed { .. } => true,
            State::Open { .. } => false,
            State::HalfOpen { probe, .. } => probe.as_ref() == Some(delivery),
        }
    }

    /// The delivery was given back without an attempt: if it was the probe, another one may be.
    pub(super) fn given_back(&mut self, delivery: &DeliveryId) {
        if let State::HalfOpen { probe, .. } = &mut self.state
            && probe.as_ref() == Some(delivery)
        {
            *probe = None;
        }
    }

    /// What an attempt found. Answers the new state if it is another one.
    pub(super) fn found(
        &mut self,
        delivery: DeliveryId,
        health: TargetHealth,
        now: Timestamp,
    ) -> Option<CircuitState> {
        let before = self.state();
        match (health, &mut self.state) {
            (TargetHealth::Up, _) => self.state = State::Closed { down: Vec::new() },
            (TargetHealth::Down, State::Closed { down }) => {
                if !down.contains(&delivery) {
                    down.push(delivery);
                }
                if down.len() >= CIRCUIT_FAILURES_MAX {
                    self.state = State::Open { until: now.plus(CIRCUIT_REST_MIN), rest: CIRCUIT_REST_MIN };
                }
            }
            (TargetHealth::Down, State::HalfOpen { probe, rest }) if probe.as_ref() == Some(&delivery) => {
                let rest = rest.saturating_mul(2).min(CIRCUIT_REST_MAX);
                self.state = State::Open { until: now.plus(rest), rest };
            }
            // An attempt from before: it says nothing that is not known.
            (TargetHealth::Down, State::Open { .. } | State::HalfOpen { .. }) => {}
        }
        let after = self.state();
        (before != after).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_core::{DestinationNumber, EventId};

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    fn delivery(number: u8) -> DeliveryId {
        let event = EventId::from_bytes([number; 16]);
        DeliveryId { event, destination: DestinationNumber(1), generation: 1 }
    }

    fn down(circuit: &mut Circuit, number: u8, now: Timestamp) -> Option<CircuitState> {
        circuit.found(delivery(number), TargetHealth::Down, now)
    }

    fn opened() -> Circuit {
        let mut circuit = Circuit::new();
        (0..4).for_each(|number| assert_eq!(down(&mut circuit, number, NOW), None));
        let until = NOW.plus(CIRCUIT_REST_MIN);
        assert_eq!(down(&mut circuit, 4, NOW), Some(CircuitState::Open { until }));
        circuit
    }

    #[test]
    fn five_in_a_row_open_it_and_one_success_in_between_does_not() {
        assert_eq!(opened().allowance(NOW), Allowance::WaitUntil(NOW.plus(CIRCUIT_REST_MIN)));
        let mut circuit = Circuit::new();
        (0..4).for_each(|number| assert_eq!(down(&mut circuit, number, NOW), None));
        assert_eq!(circuit.found(delivery(9), TargetHealth::Up, NOW), None);
        assert_eq!(down(&mut circuit, 5, NOW), None);
        assert_eq!(circuit.allowance(NOW), Allowance::All);
    }

    #[test]
    fn one_poison_event_never_opens_it() {
        let mut circuit = Circuit::new();
        (0..100).for_each(|_| assert_eq!(down(&mut circuit, 1, NOW), None));
        assert_eq!(circuit.state(), CircuitState::Closed);
    }

    #[test]
    fn a_probe_in_vain_rests_twice_as_long_up_to_the_maximum() {
        let mut circuit = opened();
        for rest in [10, 20, 40, 60, 60] {
            let CircuitState::Open { until } = circuit.state() else { panic!("{circuit:?}") };
            let now = until;
            assert_eq!(circuit.allowance(now), Allowance::Probe);
            circuit.probing(delivery(9));
            assert_eq!(circuit.allowance(now), Allowance::WaitForProbe);
            assert!(circuit.lets(&delivery(9)) && !circuit.lets(&delivery(1)));
            assert_eq!(down(&mut circuit, 1, now), None, "an attempt from before");
            let until = now.plus(Duration::from_secs(rest));
            assert_eq!(down(&mut circuit, 9, now), Some(CircuitState::Open { until }));
        }
    }

    #[test]
    fn a_probe_that_finds_it_closes_it() {
        let mut circuit = opened();
        let later = NOW.plus(CIRCUIT_REST_MIN);
        assert_eq!(circuit.allowance(later), Allowance::Probe);
        circuit.probing(delivery(9));
        assert_eq!(circuit.found(delivery(9), TargetHealth::Up, later), Some(CircuitState::Closed));
        assert_eq!(circuit.allowance(later), Allowance::All);
    }

    #[test]
    fn a_probe_that_was_given_back_is_followed_by_another() {
        let mut circuit = opened();
        let later = NOW.plus(CIRCUIT_REST_MIN);
        assert_eq!(circuit.allowance(later), Allowance::Probe);
        circuit.probing(delivery(9));
        circuit.given_back(&delivery(9));
        assert_eq!(circuit.allowance(later), Allowance::Probe);
    }
}
