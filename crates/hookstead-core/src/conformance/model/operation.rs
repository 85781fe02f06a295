//! What a run is made of, and how it is drawn at random.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_oneof, sample};

use crate::delivery::StateName;
use crate::event::BodyReuse;
use crate::query::Order;

/// How many sources and destinations there are.
pub(super) const NAMES: u8 = 3;

/// How many provider event ids each source has.
pub(super) const IDS: u8 = 5;

/// How many retry policies a destination may be given.
pub(super) const POLICIES: u8 = 4;

/// How many redeliveries are asked for.
pub(super) const REDELIVERIES: u8 = 4;

/// One step of a run.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Apply these in one batch.
    Batch(Vec<Operation>),
    /// Move the clock.
    Wait(Duration),
    /// Close the store and open it again.
    Reopen,
    /// Read a list page by page.
    Look { list: Listed, items_max: u16, order: Order },
}

/// Which list is read. Numbers are places, as in [`Operation`].
#[derive(Clone, Debug)]
pub(super) enum Listed {
    Events(Events),
    Deliveries { event: Option<u8>, to: Option<u8>, state: Option<StateName> },
    Conflicts { event: Option<u8>, open_only: bool },
}

/// A filter over events.
#[derive(Clone, Debug)]
pub(super) struct Events {
    pub(super) source: Option<u8>,
    pub(super) event_type: Option<&'static str>,
    /// Committed at most so many seconds ago.
    pub(super) from_s: Option<u64>,
    /// Committed more than so many seconds ago.
    pub(super) before_s: Option<u64>,
}

/// One write. `source` and `to` are places in the list of names; deliveries and events are picked from those
/// that there are before the batch.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Accept {
        source: u8,
        id: u8,
        body: u8,
        comparison: Option<(u32, u8)>,
        reuse: BodyReuse,
        to: Vec<u8>,
    },
    /// Accept an event of a source that was never registered: the batch must fail.
    AcceptFromNowhere {
        id: u8,
    },
    Claim {
        to: u8,
        max: u16,
        lease_for: Duration,
    },
    Extend {
        delivery: Pick,
        token: Token,
        lease_for: Duration,
    },
    Settle {
        delivery: Pick,
        token: Token,
        verdict: Said,
        attempt: Option<u8>,
    },
    Sweep {
        rules: Vec<Rule>,
        max: u32,
    },
    Redeliver {
        id: u8,
        to: u8,
        events: Events,
        fresh_key: bool,
        only: Option<u8>,
        events_max: u32,
    },
    Cancel {
        id: u8,
    },
    Hold(Pick),
    LetGo(Pick),
    MarkDone(Pick),
    AcceptConflict {
        conflict: Pick,
        to: Vec<u8>,
    },
    DismissConflict {
        conflict: Pick,
    },
    Pause {
        to: u8,
    },
    Resume {
        to: u8,
    },
    Run {
        event: Pick,
        run: u8,
        payload: Option<u8>,
    },
    RegisterSource {
        source: u8,
        fingerprint: u8,
    },
    RegisterDestination {
        to: u8,
        fingerprint: u8,
        policy: u8,
    },
}

/// What is picked from a list of what there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    /// One that is busy (a leased delivery, an open conflict), if there is any; else any.
    Busy(u8),
    /// Any.
    Any(u8),
    /// One that there is not.
    Unknown,
}

/// Which token is shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    /// That of the newest claim before the batch.
    Newest,
    /// The one before it.
    Earlier,
    /// The next one, which an earlier claim of the batch may have given out.
    Next,
    /// One that nobody has.
    Wild,
}

/// How a lease ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Done,
    RetryIn(Duration),
    Dead,
    Release,
}

/// A retention rule: how many seconds ago an event was committed at least.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) source: u8,
    pub(super) finished_s: Option<u64>,
    pub(super) unfinished_s: Option<u64>,
}

/// Runs of at most `steps_max` steps.
pub(super) fn steps(steps_max: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=steps_max)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => vec(operation(), 1..=8).prop_map(Step::Batch),
        8 => wait().prop_map(Step::Wait),
        4 => look(),
        1 => Just(Step::Reopen),
        1 => flood(),
    ]
}

/// Many bodies under one identity, sometimes so many that not all are kept.
fn flood() -> impl Strategy<Value = Step> {
    let bodies = sample::subsequence((0..13).collect::<Vec<u8>>(), 1..=13);
    (name(), 0..IDS, bodies).prop_map(|(source, id, bodies)| {
        let accept = |body| Operation::Accept {
            source,
            id,
            body,
            comparison: None,
            reuse: BodyReuse::Ignore,
            to: vec![0],
        };
        Step::Batch(bodies.into_iter().map(accept).collect())
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        20 => accept(),
        12 => claim(),
        16 => settle(),
        4 => extend(),
        6 => sweep(),
        6 => redeliver(),
        16 => decision(),
        3 => run(),
        3 => register(),
        1 => (0..IDS).prop_map(|id| Operation::AcceptFromNowhere { id }),
    ]
}

fn accept() -> impl Strategy<Value = Operation> {
    let body = prop_oneof![6 => 0..3_u8, 1 => 3..14_u8];
    let comparison = prop_oneof![3 => Just(None), 2 => (1..=2_u32, 0..2_u8).prop_map(Some)];
    let reuse = prop_oneof![
        3 => Just(BodyReuse::Ignore),
        3 => Just(BodyReuse::Flag),
        1 => Just(BodyReuse::Refuse),
    ];
    (name(), 0..IDS, body, comparison, reuse, names()).prop_map(
        |(source, id, body, comparison, reuse, to)| Operation::Accept {
            source,
            id,
            body,
            comparison,
            reuse,
            to,
        },
    )
}

fn claim() -> impl Strategy<Value = Operation> {
    (name(), 0..6_u16, lease_for()).prop_map(|(to, max, lease_for)| Operation::Claim { to, max, lease_for })
}

fn extend() -> impl Strategy<Value = Operation> {
    (pick(), token(), lease_for()).prop_map(|(delivery, token, lease_for)| Operation::Extend {
        delivery,
        token,
        lease_for,
    })
}

fn settle() -> impl Strategy<Value = Operation> {
    let said = prop_oneof![
        4 => Just(Said::Done),
        4 => sample::select(vec![0, 5, 60, u64::MAX]).prop_map(|s| Said::RetryIn(Duration::from_secs(s))),
        1 => Just(Said::Dead),
        2 => Just(Said::Release),
    ];
    (pick(), token(), said, option::of(any::<u8>())).prop_map(|(delivery, token, verdict, attempt)| {
        Operation::Settle { delivery, token, verdict, attempt }
    })
}

fn sweep() -> impl Strategy<Value = Operation> {
    let finished_s = option::of(sample::select(vec![0, 10, 500]));
    let unfinished_s = option::weighted(0.2, sample::select(vec![0, 100, 5_000]));
    let rule = (name(), finished_s, unfinished_s).prop_map(|(source, finished_s, unfinished_s)| Rule {
        source,
        finished_s,
        unfinished_s,
    });
    let max = prop_oneof![3 => 0..4_u32, 2 => 4..50_u32];
    (vec(rule, 0..=3), max).prop_map(|(rules, max)| Operation::Sweep { rules, max })
}

fn redeliver() -> impl Strategy<Value = Operation> {
    let events_max = prop_oneof![0..4_u32, 4..40_u32];
    let only = prop_oneof![3 => Just(None), 1 => (0..8_u8).prop_map(Some)];
    (0..REDELIVERIES, name(), events(), any::<bool>(), only, events_max).prop_map(
        |(id, to, events, fresh_key, only, events_max)| Operation::Redeliver {
            id,
            to,
            events,
            fresh_key,
            only,
            events_max,
        },
    )
}

fn decision() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => pick().prop_map(Operation::Hold),
        3 => pick().prop_map(Operation::LetGo),
        2 => pick().prop_map(Operation::MarkDone),
        3 => (pick(), names()).prop_map(|(conflict, to)| Operation::AcceptConflict { conflict, to }),
        1 => pick().prop_map(|conflict| Operation::DismissConflict { conflict }),
        1 => name().prop_map(|to| Operation::Pause { to }),
        3 => name().prop_map(|to| Operation::Resume { to }),
        1 => (0..REDELIVERIES).prop_map(|id| Operation::Cancel { id }),
    ]
}

fn run() -> impl Strategy<Value = Operation> {
    (pick(), 0..3_u8, option::of(any::<u8>())).prop_map(|(event, run, payload)| Operation::Run {
        event,
        run,
        payload,
    })
}

fn register() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (name(), 0..2_u8).prop_map(|(source, fingerprint)| Operation::RegisterSource { source, fingerprint }),
        (name(), 0..2_u8, 0..POLICIES).prop_map(|(to, fingerprint, policy)| {
            Operation::RegisterDestination { to, fingerprint, policy }
        }),
    ]
}

fn look() -> impl Strategy<Value = Step> {
    use StateName::{Dead, Done, Held, Leased, Waiting};
    let state = option::of(sample::select(vec![Waiting, Leased, Done, Dead, Held]));
    let event = || option::of(any::<u8>());
    let list = prop_oneof![
        events().prop_map(Listed::Events),
        (event(), option::of(name()), state).prop_map(|(event, to, state)| Listed::Deliveries {
            event,
            to,
            state
        }),
        (event(), any::<bool>()).prop_map(|(event, open_only)| Listed::Conflicts { event, open_only }),
    ];
    let order = sample::select(vec![Order::OldestFirst, Order::NewestFirst]);
    (list, 1..8_u16, order).prop_map(|(list, items_max, order)| Step::Look { list, items_max, order })
}

fn events() -> impl Strategy<Value = Events> {
    let event_type =
        option::weighted(0.4, sample::select(vec!["order.*", "*.new", "*", "user.new", "o*r*d"]));
    let seconds = || option::weighted(0.2, sample::select(vec![0, 1, 60, 1_000]));
    (option::weighted(0.4, name()), event_type, seconds(), seconds())
        .prop_map(|(source, event_type, from_s, before_s)| Events { source, event_type, from_s, before_s })
}

fn name() -> impl Strategy<Value = u8> {
    0..NAMES
}

fn names() -> impl Strategy<Value = Vec<u8>> {
    sample::subsequence((0..NAMES).collect::<Vec<_>>(), 0..=usize::from(NAMES))
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        8 => any::<u8>().prop_map(Pick::Busy),
        8 => any::<u8>().prop_map(Pick::Any),
        1 => Just(Pick::Unknown),
    ]
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![
        12 => Just(Token::Newest),
        3 => Just(Token::Next),
        3 => Just(Token::Earlier),
        1 => Just(Token::Wild),
    ]
}

fn lease_for() -> impl Strategy<Value = Duration> {
    sample::select(vec![1, 10, 60]).prop_map(Duration::from_secs)
}

fn wait() -> impl Strategy<Value = Duration> {
    sample::select(vec![1, 1_000, 5_000, 30_000, 100_000, 600_000]).prop_map(Duration::from_millis)
}
