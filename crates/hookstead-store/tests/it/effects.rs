//! Effects: the caller's own statements, committed with the settle of a delivery or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hookstead_core::{
    Attempt, Claim, Delivery, DeliveryFilter, Effect, Lease, LeaseToken, Order, Outcome, Page, RetryPolicy,
    Settle, Settled, Settlement, StateName, Store, Verdict, Write, Written,
};
use hookstead_store::{EffectError, OpenOptions, SqliteTransaction, open, sqlite_effect};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::scene::{APP, accepting, find, problems, register};

cases!("effects":
    an_effect_is_committed_with_done,
    an_effect_sees_what_came_before_it_in_its_batch,
    an_effect_that_fails_is_undone_and_its_delivery_tried_again,
    an_effect_of_the_last_attempt_that_fails_leaves_it_dead,
    an_effect_that_takes_too_long_is_undone,
    a_statement_that_an_effect_may_not_use_is_refused_and_fails_it,
    tables_of_its_own_are_free_to_an_effect,
    a_lease_that_is_lost_runs_no_effect,
    the_same_settle_again_runs_no_effect_again,
    whatever_an_effect_does_its_neighbours_are_untouched,
    an_effect_that_takes_too_long_leaves_its_neighbours_untouched,
    nothing_is_committed_after_an_effect_has_undone_its_transaction,
    what_was_done_with_an_effect_is_there_after_a_reopen,
);

/// The time of effects that come to an end: more than the busiest machine takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A store with a table of the caller's own.
struct Scene {
    folder: Folder,
    store: Arc<dyn Store>,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let store = Self::open(&folder, PATIENCE);
        register(&store);
        let scene = Self { folder, store };
        let made = scene.settle_with("setup", |tx| {
            Ok(tx.execute_batch("CREATE TABLE ledger (id TEXT PRIMARY KEY, amount INTEGER) STRICT")?)
        });
        assert_eq!(made, Settlement::Settled(Settled::Done));
        scene
    }

    /// Opened anew with another time for what comes now.
    fn with(self, effect_time_max: Duration) -> Self {
        let Self { folder, store } = self;
        store.close(OPENED_AT).expect("it closes");
        drop(store);
        Self { store: Self::open(&folder, effect_time_max), folder }
    }

    fn open(folder: &Folder, effect_time_max: Duration) -> Arc<dyn Store> {
        let options = OpenOptions { effect_time_max, ..options() };
        open(&folder.url(), &options, OPENED_AT).expect("the store opens").store
    }

    /// The lease of a new event.
    fn lease(&self, id: &str) -> Lease {
        let claim = Write::Claim(Claim { destination: APP, max: 1, lease_for: Duration::from_secs(60) });
        let written = self.apply(&[accepting(&self.store, id, b"{}"), claim]);
        match &written[1] {
            Written::Claimed(leases) => leases.first().expect("it is due").clone(),
            other => panic!("a claim was answered {other:?}"),
        }
    }

    fn apply(&self, writes: &[Write]) -> Vec<Written> {
        self.store.apply(writes, OPENED_AT).expect("the batch is committed")
    }

    fn settle(&self, lease: &Lease, effect: Effect) -> Settlement {
        match self.apply(&[settling(lease, effect)]).as_slice() {
            [Written::Settled(settlement)] => settlement.clone(),
            other => panic!("a settle was answered {other:?}"),
        }
    }

    fn settle_with<F>(&self, id: &str, run: F) -> Settlement
    where
        F: Fn(&SqliteTransaction<'_>) -> Result<(), EffectError> + Send + Sync + 'static,
    {
        self.settle(&self.lease(id), sqlite_effect(run))
    }

    fn delivery(&self, id: &str) -> Delivery {
        let event = Some(find(&self.store, id).id);
        let filter = DeliveryFilter { event, ..DeliveryFilter::default() };
        let page = Page::first(10, Order::OldestFirst);
        let deliveries = self.store.list_deliveries(&filter, &page).expect("they can be listed").items;
        deliveries.into_iter().next().expect("it is owed")
    }

    fn attempts(&self, id: &str) -> Vec<Attempt> {
        self.store.attempts(&self.delivery(id).id).expect("they can be read")
    }

    /// A number, as another connection sees it.
    fn number(&self, sql: &str) -> i64 {
        let reader = Connection::open(self.folder.database()).expect("anybody can read it");
        reader.query_row(sql, [], |row| row.get(0)).expect("the query is right")
    }

    fn ledger(&self) -> i64 {
        self.number("SELECT count(*) FROM ledger")
    }

    fn check_undone(&self, id: &str, settlement: &Settlement, rule: &str) {
        let due = RetryPolicy::default().next_due(&self.delivery(id).id, 1, OPENED_AT);
        assert_eq!(*settlement, Settlement::Settled(Settled::Retry { due }), "{id}");
        let attempts = self.attempts(id);
        assert_eq!(attempts.len(), 1, "{id}");
        assert_eq!(attempts[0].rule.as_deref(), Some(rule), "{id}: {attempts:?}");
    }
}

fn settling(lease: &Lease, effect: Effect) -> Write {
    let attempt = Attempt {
        token: lease.token,
        number: lease.attempt,
        started_at: OPENED_AT,
        took_us: 1,
        status: None,
        excerpt: bytes::Bytes::new(),
        error: None,
        rule: Some("handler-done".to_owned()),
    };
    let verdict = Verdict::DoneWith(effect);
    Write::Settle(Box::new(Settle {
        delivery: lease.delivery,
        token: lease.token,
        verdict,
        attempt: Some(attempt),
    }))
}

/// Enters an amount under an id.
fn entering(id: &str, amount: i64) -> Effect {
    let id = id.to_owned();
    sqlite_effect(move |tx| {
        tx.execute("INSERT INTO ledger VALUES (?1, ?2)", (&id, amount))?;
        Ok(())
    })
}

fn enter(tx: &SqliteTransaction<'_>) -> rusqlite::Result<usize> {
    tx.execute("INSERT INTO ledger VALUES ('entered', 1)", ())
}

fn an_effect_is_committed_with_done() {
    let scene = Scene::new();
    let settlement = scene.settle(&scene.lease("evt_1"), entering("a", 5));
    assert_eq!(settlement, Settlement::Settled(Settled::Done));
    assert_eq!(scene.number("SELECT amount FROM ledger WHERE id = 'a'"), 5);
    assert_eq!(scene.delivery("evt_1").state_name(), StateName::Done);
    assert_eq!(scene.attempts("evt_1")[0].rule.as_deref(), Some("handler-done"));
    assert_eq!(problems(&scene.store), [] as [&str; 0]);
}

fn an_effect_sees_what_came_before_it_in_its_batch() {
    let scene = Scene::new();
    let leases = ["evt_1", "evt_2"].map(|id| scene.lease(id));
    let doubling = sqlite_effect(|tx| {
        let seen = tx.query("SELECT amount FROM ledger", (), |row| row.get::<_, i64>(0))?;
        let events: i64 = tx.query_row("SELECT count(*) FROM events", (), |row| row.get(0))?;
        tx.execute("INSERT INTO ledger VALUES ('seen', ?1)", [seen[0] * 100 + events])?;
        assert!(tx.last_insert_rowid() > 0);
        Ok(())
    });
    scene.apply(&[
        settling(&leases[0], entering("a", 7)),
        accepting(&scene.store, "evt_3", b"{}"),
        settling(&leases[1], doubling),
    ]);
    assert_eq!(scene.number("SELECT amount FROM ledger WHERE id = 'seen'"), 704, "with `setup` four events");
}

fn an_effect_that_fails_is_undone_and_its_delivery_tried_again() {
    let scene = Scene::new();
    let failed = scene.settle_with("an error", |tx| {
        enter(tx)?;
        Err("the account is closed".into())
    });
    scene.check_undone("an error", &failed, "effect-error");
    let failed = scene.settle_with("a constraint", |tx| {
        enter(tx)?;
        enter(tx)?;
        Ok(())
    });
    scene.check_undone("a constraint", &failed, "effect-error");
    let failed = scene.settle_with("a panic", |tx| {
        enter(tx)?;
        panic!("the account is {}", "gone")
    });
    scene.check_undone("a panic", &failed, "effect-panic");
    let error = |id| scene.attempts(id)[0].error.clone().expect("it says why");
    assert_eq!(error("an error"), "the account is closed");
    assert!(error("a constraint").contains("UNIQUE"), "{}", error("a constraint"));
    assert_eq!(error("a panic"), "it panicked: the account is gone");
    assert_eq!(scene.ledger(), 0);
    assert_eq!(scene.settle(&scene.lease("evt_1"), entering("a", 1)), Settlement::Settled(Settled::Done));
}

fn an_effect_of_the_last_attempt_that_fails_leaves_it_dead() {
    let scene = Scene::new();
    let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let name = "app".parse().expect("a legal name");
    let fingerprint = "to-v1".to_owned();
    scene.apply(&[Write::Register(hookstead_core::Register::Destination { name, fingerprint, retry })]);
    let failed = scene.settle_with("evt_1", |_| Err("no".into()));
    assert!(matches!(failed, Settlement::Settled(Settled::Dead(_))), "{failed:?}");
    assert_eq!(scene.delivery("evt_1").state_name(), StateName::Dead);
}

const TIME_MAX: Duration = Duration::from_secs(1);

/// The same where good effects come to an end beside the bad ones.
const NEIGHBOURS_TIME_MAX: Duration = Duration::from_secs(3);

/// Effects that do not come to an end within [`TIME_MAX`], each in its own way.
fn endless() -> Vec<(&'static str, Effect)> {
    const COUNTING: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let reading = sqlite_effect(|tx| {
        enter(tx)?;
        tx.query_row(&format!("{COUNTING} SELECT count(*) FROM n"), (), |_| Ok(()))?;
        Ok(())
    });
    let writing = sqlite_effect(|tx| {
        enter(tx)?;
        tx.execute(&format!("INSERT INTO ledger {COUNTING} SELECT 'n' || i, i FROM n"), ())?;
        Ok(())
    });
    let repeating = sqlite_effect(|tx| {
        loop {
            tx.execute("REPLACE INTO ledger VALUES ('a', 1)", ())?;
        }
    });
    let obstinate = sqlite_effect(|tx| {
        while tx.query_row("SELECT 1", (), |_| Ok(())).is_ok() {}
        enter(tx).map_or(Ok(()), |_| Err("it was let".into()))
    });
    let elsewhere = sqlite_effect(|tx| {
        enter(tx)?;
        let begun = Instant::now();
        while begun.elapsed() <= TIME_MAX {
            std::hint::spin_loop();
        }
        Ok(())
    });
    vec![
        ("reading", reading),
        ("writing", writing),
        ("repeating", repeating),
        ("obstinate", obstinate),
        ("elsewhere", elsewhere),
    ]
}

fn an_effect_that_takes_too_long_is_undone() {
    let scene = Scene::new().with(TIME_MAX);
    for (id, effect) in endless() {
        let lease = scene.lease(id);
        let begun = Instant::now();
        let settlement = scene.settle(&lease, effect);
        assert!(begun.elapsed() > TIME_MAX, "{id}: it was not given its time");
        scene.check_undone(id, &settlement, "effect-timeout");
        assert_eq!(scene.ledger(), 0, "{id}");
    }
}

/// Statements that an effect may not use, and a word of why.
const FORBIDDEN: [(&str, &str); 45] = [
    ("BEGIN", "transactions"),
    ("COMMIT", "transactions"),
    ("END", "transactions"),
    ("ROLLBACK", "transactions"),
    ("SAVEPOINT mine", "savepoints"),
    ("RELEASE hookstead_effect", "savepoints"),
    ("ROLLBACK TO hookstead_effect", "savepoints"),
    ("ATTACH ':memory:' AS other", "attach"),
    ("DETACH main", "detach"),
    ("PRAGMA synchronous = OFF", "PRAGMA synchronous"),
    ("PRAGMA foreign_keys = ON", "PRAGMA foreign_keys"),
    ("PRAGMA writable_schema = ON", "PRAGMA writable_schema"),
    ("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint"),
    ("PRAGMA journal_mode = DELETE", "PRAGMA journal_mode"),
    ("ANALYZE", "analyze"),
    ("INSERT INTO done SELECT * FROM work", "`done`"),
    ("INSERT INTO Work SELECT * FROM done", "`work`"),
    ("UPDATE work SET state = 'waiting'", "`work`"),
    ("UPDATE main.work SET state = 'waiting'", "`work`"),
    ("DELETE FROM work", "`work`"),
    ("DELETE FROM \"EVENTS\"", "`events`"),
    ("UPDATE events SET body = x''", "`events`"),
    ("REPLACE INTO store SELECT * FROM store", "`store`"),
    ("DELETE FROM attempts", "`attempts`"),
    ("DELETE FROM event_ids", "`event_ids`"),
    ("DELETE FROM identities", "`identities`"),
    ("DELETE FROM identity_ranges", "`identity_ranges`"),
    ("DELETE FROM pending_identities", "`pending_identities`"),
    ("DELETE FROM migrations", "`migrations`"),
    ("DELETE FROM sources", "`sources`"),
    ("WITH x AS (SELECT 1) DELETE FROM runs", "`runs`"),
    ("DROP TABLE variants", "`variants`"),
    ("ALTER TABLE redeliveries RENAME TO mine", "`redeliveries`"),
    ("ALTER TABLE duplicates ADD COLUMN mine", "`duplicates`"),
    ("ALTER TABLE destinations DROP COLUMN paused", "`destinations`"),
    ("CREATE INDEX mine ON work (state)", "`work`"),
    ("DROP INDEX work_waiting", "`work`"),
    ("CREATE TRIGGER mine AFTER INSERT ON work BEGIN DELETE FROM ledger; END", "`work`"),
    ("CREATE TEMP TABLE work (seq)", "temporary"),
    ("CREATE TEMP VIEW done AS SELECT 1", "temporary"),
    ("CREATE TEMP TRIGGER mine AFTER INSERT ON work BEGIN DELETE FROM ledger; END", "temporary"),
    ("INSERT INTO ledger VALUES ('x', 1) RETURNING load_extension('x')", "extensions"),
    ("INSERT INTO triggered VALUES (1)", "`work`"),
    ("CREATE VIRTUAL TABLE words USING fts5(word)", "virtual tables"),
    ("SELECT * FROM pragma_journal_mode", "PRAGMA journal_mode"),
];

fn a_statement_that_an_effect_may_not_use_is_refused_and_fails_it() {
    let scene = Scene::new();
    let made = scene.settle_with("trigger", |tx| {
        tx.execute_batch(
            "CREATE TABLE triggered (n);
             CREATE TRIGGER onto_work AFTER INSERT ON triggered BEGIN DELETE FROM work; END;",
        )?;
        Ok(())
    });
    assert_eq!(made, Settlement::Settled(Settled::Done), "such a trigger can be made, and not be fired");
    let schema = "SELECT count(*) FROM sqlite_schema";
    let objects = scene.number(schema);
    for (index, (sql, why)) in FORBIDDEN.into_iter().enumerate() {
        for ignored in [false, true] {
            let id = format!("evt_{index}_{ignored}");
            let failed = scene.settle_with(&id, move |tx| {
                enter(tx)?;
                let refused = tx.execute_batch(sql);
                if ignored { Ok(()) } else { Ok(refused?) }
            });
            scene.check_undone(&id, &failed, "effect-refused");
            let error = scene.attempts(&id)[0].error.clone().expect("it says why");
            assert!(error.starts_with("an effect may not ") && error.contains(why), "{sql}: {error}");
            assert_eq!((scene.ledger(), scene.number(schema)), (0, objects), "{sql}");
        }
    }
    assert_eq!(problems(&scene.store), [] as [&str; 0]);
}

fn tables_of_its_own_are_free_to_an_effect() {
    let scene = Scene::new();
    let statements = [
        "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, sum INTEGER NOT NULL, at TEXT)",
        "CREATE TABLE IF NOT EXISTS orders (id)",
        "CREATE INDEX orders_by_sum ON orders (sum)",
        "CREATE VIEW large AS SELECT * FROM orders WHERE sum > 100",
        "CREATE TRIGGER onto_ledger AFTER INSERT ON orders
            BEGIN INSERT INTO ledger VALUES ('order ' || new.id, new.sum); END",
        "INSERT INTO orders (sum, at) VALUES (120, datetime('now')), (5, '')",
        "UPDATE orders SET sum = sum + 1 WHERE sum > (SELECT avg(sum) FROM orders)",
        "ALTER TABLE orders ADD COLUMN paid INTEGER NOT NULL DEFAULT 0 CHECK (paid IN (0, 1))",
        "ALTER TABLE orders RENAME COLUMN at TO ordered_at",
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10)
            INSERT INTO orders (sum) SELECT i FROM n",
        "DELETE FROM orders WHERE sum = 5",
        "CREATE TABLE copied AS SELECT event_id, state FROM work UNION ALL SELECT event_id, state FROM done",
        "ALTER TABLE copied RENAME TO kept",
        "REINDEX orders_by_sum",
        "DROP INDEX orders_by_sum",
    ];
    for (index, sql) in statements.into_iter().enumerate() {
        let id = format!("evt_{index}");
        let settled = scene.settle_with(&id, move |tx| Ok(tx.execute_batch(sql)?));
        let said = scene.attempts(&id)[0].error.clone();
        assert_eq!(settled, Settlement::Settled(Settled::Done), "{sql}: {said:?}");
    }
    assert_eq!(scene.number("SELECT count(*) FROM orders"), 10);
    assert_eq!(scene.number("SELECT sum FROM large"), 121);
    assert_eq!(scene.ledger(), 12);
    assert_eq!(problems(&scene.store), [] as [&str; 0]);
}

fn counting(count: &Arc<AtomicUsize>, effect: Result<(), &'static str>) -> Effect {
    let count = Arc::clone(count);
    sqlite_effect(move |tx| {
        count.fetch_add(1, Ordering::SeqCst);
        tx.execute("INSERT INTO ledger VALUES (random(), 1)", ())?;
        Ok(effect?)
    })
}

fn a_lease_that_is_lost_runs_no_effect() {
    let scene = Scene::new();
    let lease = scene.lease("evt_1");
    let count = Arc::<AtomicUsize>::default();
    for token in [LeaseToken(0), lease.token.next()] {
        let settled = scene.settle(&Lease { token, ..lease.clone() }, counting(&count, Ok(())));
        assert_eq!(settled, Settlement::LeaseLost);
    }
    let mut unknown = lease.clone();
    unknown.delivery.generation += 1;
    assert_eq!(scene.settle(&unknown, counting(&count, Ok(()))), Settlement::Unknown);
    assert_eq!((count.load(Ordering::SeqCst), scene.ledger()), (0, 0));
    assert_eq!(scene.settle(&lease, counting(&count, Ok(()))), Settlement::Settled(Settled::Done));
    assert_eq!((count.load(Ordering::SeqCst), scene.ledger()), (1, 1));
}

fn the_same_settle_again_runs_no_effect_again() {
    let scene = Scene::new();
    for (id, says, entries) in [("good", Ok(()), 1), ("bad", Err("no"), 1)] {
        let lease = scene.lease(id);
        let count = Arc::<AtomicUsize>::default();
        let first = scene.settle(&lease, counting(&count, says));
        assert_eq!(scene.settle(&lease, counting(&count, Ok(()))), first, "{id}");
        let twice = [settling(&lease, counting(&count, Ok(()))), settling(&lease, counting(&count, says))];
        assert_eq!(scene.apply(&twice), [Written::Settled(first.clone()), Written::Settled(first)], "{id}");
        assert_eq!((count.load(Ordering::SeqCst), scene.ledger()), (1, entries), "{id}");
        assert_eq!(scene.attempts(id).len(), 1, "{id}");
    }
}

fn whatever_an_effect_does_its_neighbours_are_untouched() {
    let scene = Scene::new();
    let bad = vec![
        ("error", sqlite_effect(|tx| enter(tx).map_err(Into::into).and(Err("no".into())))),
        ("panic", sqlite_effect(|_| panic!("no"))),
        ("refused", sqlite_effect(|tx| Ok(tx.execute_batch("DELETE FROM work")?))),
        (
            "rollback",
            sqlite_effect(|tx| {
                enter(tx)?;
                tx.execute("INSERT OR ROLLBACK INTO ledger VALUES ('entered', 2)", ())?;
                Ok(())
            }),
        ),
    ];
    let each = bad.iter().map(|one| vec![one.clone()]);
    check_neighbours(&scene, &each.chain([bad.clone()]).collect::<Vec<_>>());
}

fn an_effect_that_takes_too_long_leaves_its_neighbours_untouched() {
    let endless = endless().into_iter().filter(|(name, _)| ["reading", "writing"].contains(name));
    let begun = Instant::now();
    check_neighbours(&Scene::new().with(NEIGHBOURS_TIME_MAX), &[endless.collect()]);
    assert!(begun.elapsed() > 2 * NEIGHBOURS_TIME_MAX, "each had its time");
}

/// Settles with the bad effects of each batch among good neighbours. Some take the batch with them.
fn check_neighbours(scene: &Scene, batches: &[Vec<(&str, Effect)>]) {
    for (number, bad) in batches.iter().enumerate() {
        let id = |what: &str| format!("{what} of {number}");
        let before = scene.ledger();
        let good = [scene.lease(&id("first")), scene.lease(&id("last"))];
        let leases: Vec<_> = bad.iter().map(|(name, _)| scene.lease(&id(name))).collect();
        let mut writes = vec![
            accepting(&scene.store, &id("accepted"), b"{}"),
            settling(&good[0], entering(&id("first"), 1)),
        ];
        writes.extend(leases.iter().zip(bad).map(|(lease, (_, effect))| settling(lease, effect.clone())));
        writes.push(settling(&good[1], entering(&id("last"), 1)));
        let written = scene.apply(&writes);
        let done = Written::Settled(Settlement::Settled(Settled::Done));
        assert!(matches!(&written[0], Written::Accepted(receipt) if receipt.outcome == Outcome::Stored));
        assert_eq!([&written[1], &written[written.len() - 1]], [&done, &done]);
        for answer in &written[2..written.len() - 1] {
            assert!(
                matches!(answer, Written::Settled(Settlement::Settled(Settled::Retry { .. }))),
                "{answer:?}"
            );
        }
        assert_eq!(scene.ledger() - before, 2, "{:?}", bad[0]);
        assert_eq!(find(&scene.store, &id("accepted")).duplicates.count, 0);
    }
    assert_eq!(scene.store.stats().expect("they are there").deliveries, recounted(scene));
    assert_eq!(problems(&scene.store), [] as [&str; 0]);
}

fn recounted(scene: &Scene) -> hookstead_core::DeliveryTally {
    let page = Page::first(1_000, Order::OldestFirst);
    let all = scene.store.list_deliveries(&DeliveryFilter::default(), &page).expect("they can be listed");
    let mut tally = hookstead_core::DeliveryTally::default();
    all.items.iter().for_each(|delivery| tally.add(delivery.state_name()));
    tally
}

fn nothing_is_committed_after_an_effect_has_undone_its_transaction() {
    let scene = Scene::new();
    let failed = scene.settle_with("evt_1", |tx| {
        enter(tx)?;
        let undone = tx.execute("INSERT OR ROLLBACK INTO ledger VALUES ('entered', 2)", ());
        assert!(undone.is_err(), "the key is taken");
        let after = tx.execute("INSERT INTO ledger VALUES ('after', 3)", ());
        assert!(after.is_err_and(|error| error.to_string().contains("undone its transaction")));
        Ok(())
    });
    scene.check_undone("evt_1", &failed, "effect-rollback");
    assert_eq!(scene.ledger(), 0);
}

fn what_was_done_with_an_effect_is_there_after_a_reopen() {
    let scene = Scene::new();
    let lease = scene.lease("evt_1");
    scene.settle(&lease, entering("a", 5));
    let scene = scene.with(PATIENCE);
    assert_eq!((scene.ledger(), scene.delivery("evt_1").state_name()), (1, StateName::Done));
    let count = Arc::<AtomicUsize>::default();
    assert_eq!(scene.settle(&lease, counting(&count, Ok(()))), Settlement::Settled(Settled::Done));
    assert_eq!((count.load(Ordering::SeqCst), scene.ledger()), (0, 1), "it knows that it was settled");
}
