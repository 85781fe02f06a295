//! Folders that the seed's own receiver made (contract R40, R41, R52), and damage of every kind in them and in
//! ours: all of it fails closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hookstead_core::{
    Body, BodySelector, Digest, Outcome, RecordRun, Register, RunOutcome, SourceNumber, Store, StoreError,
    Write, Written,
};

use super::backend::Dir;
use super::folder::entry;
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{accept, events, find, problems, register, try_accept};

cases!("files::seed":
    a_folder_of_the_seed_opens_as_one_source,
    its_retries_are_duplicates_and_other_bytes_conflict,
    new_events_of_that_source_lie_where_the_seed_looks,
    its_receipts_are_known_runs,
    every_corrupt_entry_of_the_seed_fails_closed_and_the_rest_is_served,
    every_corrupt_entry_of_ours_fails_closed_and_the_rest_is_served,
    an_entry_that_is_gone_is_named_and_not_made_again,
    a_foreign_file_is_named_and_left_alone,
    a_bit_anywhere_in_an_entry_is_never_served_altered,
);

/// A folder as the seed's receiver leaves it.
struct Seed {
    dir: Dir,
}

impl Seed {
    fn new(entries: &[(&str, &str)]) -> Self {
        let dir = Dir::new();
        std::fs::create_dir_all(dir.root().join("deliveries")).expect("it can be made");
        let seed = Self { dir };
        for (id, body) in entries {
            std::fs::write(seed.entry(id), seed_entry(id, body)).expect("it can be written");
        }
        seed
    }

    fn entry(&self, id: &str) -> PathBuf {
        self.dir.root().join(format!("deliveries/{}.json", Digest::of(id.as_bytes())))
    }

    fn receipt(&self, id: &str, run: &str) -> PathBuf {
        let digest = Digest::of(format!("{id}\0{run}").as_bytes());
        self.dir.root().join(format!("processed/{digest}.json"))
    }

    /// Opens it, and registers the source as a configuration would.
    fn open(&self) -> Arc<dyn Store> {
        let store = self.dir.open().store;
        let name = "seed".parse().expect("a legal name");
        let source = Register::Source { name, identity_fingerprint: "id-v1".to_owned() };
        let written = store.apply(&[Write::Register(source)], OPENED_AT).expect("it is registered");
        let Written::Registered(hookstead_core::Registered::Source { row, previous_fingerprint }) =
            &written[0]
        else {
            panic!("a source was registered as {written:?}");
        };
        assert_eq!((row.number, row.generation, previous_fingerprint), (SourceNumber(1), 1, &None));
        store
    }
}

fn seed_entry(id: &str, body: &str) -> String {
    format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"{id}\",\n  \"body\": \"{}\",\n  \"sha256\": \"{}\",\n  \
         \"acceptedAt\": \"2026-02-02T02:39:59.123456789Z\"\n}}",
        BASE64_STANDARD.encode(body),
        Digest::of(body.as_bytes())
    )
}

fn a_folder_of_the_seed_opens_as_one_source() {
    let seed = Seed::new(&[("delivery-1", "one"), ("A..b", "two")]);
    let store = seed.open();
    let listed = events(&store);
    assert_eq!(listed.len(), 2);
    for event in &listed {
        assert_eq!(event.source.as_str(), "seed");
        assert_eq!(event.committed_at.to_string(), "2026-02-02T02:39:59.123456Z");
    }
    let first = find(&store, "delivery-1");
    let body = store.body(BodySelector::Event(first.id)).expect("it can be read");
    assert_eq!(body, Some(Body::Kept("one".into())));
    assert_eq!(problems(&store), [""; 0]);
    drop(store);
    let again = events(&seed.dir.open().store);
    assert_eq!(again, listed, "the second start finds the same events under the same ids");
}

fn its_retries_are_duplicates_and_other_bytes_conflict() {
    let seed = Seed::new(&[("delivery-1", "one")]);
    let before = std::fs::read(seed.entry("delivery-1")).expect("it is there");
    let store = seed.open();
    register_app(&store);
    assert_eq!(accept(&store, "delivery-1", b"one"), Outcome::Duplicate);
    assert_eq!(accept(&store, "delivery-1", b"one "), Outcome::Conflict { variant: Some(1) });
    assert_eq!(accept(&store, "delivery-1", b"one"), Outcome::Duplicate);
    assert_eq!(accept(&store, "Delivery-1", b"one"), Outcome::Stored, "another case is another event");
    assert_eq!(std::fs::read(seed.entry("delivery-1")).expect("it is there"), before);
}

fn new_events_of_that_source_lie_where_the_seed_looks() {
    let seed = Seed::new(&[("delivery-1", "one")]);
    let store = seed.open();
    register_app(&store);
    accept(&store, "delivery-2", b"two");
    let text = std::fs::read_to_string(seed.entry("delivery-2")).expect("it lies in `deliveries`");
    assert!(text.starts_with("{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"delivery-2\",\n"));
}

fn register_app(store: &Arc<dyn Store>) {
    let destination = Register::Destination {
        name: "app".parse().expect("a legal name"),
        fingerprint: "to-v1".to_owned(),
        retry: hookstead_core::RetryPolicy::default(),
    };
    store.apply(&[Write::Register(destination)], OPENED_AT).expect("it is registered");
}

fn run(store: &Arc<dyn Store>, id: &str, run: &str) -> Result<RunOutcome, StoreError> {
    let write = RecordRun {
        event: find(store, id).id,
        run: run.parse().expect("a legal name"),
        business_id: Some("business-42".to_owned()),
        payload: Some("{\"a\":1}".into()),
    };
    let written = store.apply(&[Write::RecordRun(Box::new(write))], OPENED_AT)?;
    match written.into_iter().next() {
        Some(Written::RunRecorded(outcome)) => Ok(outcome),
        other => panic!("a run was answered {other:?}"),
    }
}

fn its_receipts_are_known_runs() {
    let seed = Seed::new(&[("delivery-1", "one")]);
    std::fs::create_dir_all(seed.dir.root().join("processed")).expect("it can be made");
    let good = format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"delivery-1\",\n  \"runId\": \"r1\",\n  \
         \"businessEventId\": \"business-42\",\n  \"bodySHA256\": \"{}\",\n  \
         \"processedAt\": \"2026-02-02T02:40:01Z\",\n  \"payload\": {{\n    \"a\": 1\n  }}\n}}",
        Digest::of(b"one")
    );
    std::fs::write(seed.receipt("delivery-1", "r1"), &good).expect("it can be written");
    std::fs::write(seed.receipt("delivery-1", "r2"), "{}").expect("it can be written");
    let store = seed.open();
    let Ok(RunOutcome::Known(receipt)) = run(&store, "delivery-1", "r1") else { panic!("it was run before") };
    assert_eq!(receipt.processed_at.to_string(), "2026-02-02T02:40:01Z");
    assert_eq!(receipt.payload.as_deref(), Some("{\n    \"a\": 1\n  }".as_bytes()));
    let damaged = run(&store, "delivery-1", "r2");
    assert!(matches!(damaged, Err(StoreError::Corrupt { .. })), "D3: {damaged:?}");
    assert_eq!(std::fs::read_to_string(seed.receipt("delivery-1", "r2")).expect("it is there"), "{}");
    assert!(matches!(run(&store, "delivery-1", "r3"), Ok(RunOutcome::New(_))));
    assert_eq!(problems(&store).len(), 1);
}

/// An entry, and everything that can be wrong with it (contract R44).
fn corruptions(good: &str, id: &str) -> Vec<(&'static str, String)> {
    let digest = good.split('"').find(|part| part.len() == 64).expect("it has a digest").to_owned();
    let body = good.split('"').nth(9).expect("it has a body").to_owned();
    vec![
        ("empty", String::new()),
        ("cut", good[..good.len() / 2].to_owned()),
        ("other schema", good.replace("\"schemaVersion\": 1", "\"schemaVersion\": 2")),
        ("schema 1.0", good.replace("\"schemaVersion\": 1", "\"schemaVersion\": 1.0")),
        ("schema \"1\"", good.replace("\"schemaVersion\": 1", "\"schemaVersion\": \"1\"")),
        ("other id", good.replace(&format!("\"{id}\""), "\"another\"")),
        ("wrong digest", good.replace(&digest, &Digest::of(b"another").to_string())),
        ("upper-case digest", good.replace(&digest, &digest.to_uppercase())),
        ("no base64", good.replace(&format!("\"{body}\""), "\"%%%\"")),
        ("trailing bytes", format!("{good}x")),
        ("two values", format!("{good}{good}")),
    ]
}

/// Puts each corruption in the place of an entry, opens, and sees that nobody is answered by it.
fn assert_fails_closed(path: &Path, id: &str, body: &str, open: &dyn Fn() -> Arc<dyn Store>) {
    let good = std::fs::read_to_string(path).expect("it is there");
    let mut ways: Vec<(&str, Option<String>)> =
        corruptions(&good, id).into_iter().map(|(name, bad)| (name, Some(bad))).collect();
    ways.extend([("a folder", None), ("a dangling link", None)]);
    for (name, bad) in ways {
        std::fs::remove_file(path).expect("it is there");
        match (&bad, name) {
            (Some(bad), _) => std::fs::write(path, bad).expect("it can be written"),
            (None, "a folder") => std::fs::create_dir(path).expect("it can be made"),
            (None, _) => std::os::unix::fs::symlink("nowhere", path).expect("it can be linked"),
        }
        let store = open();
        for bytes in [body.as_bytes(), b"other bytes"] {
            let answer = try_accept(&store, id, bytes);
            assert!(matches!(answer, Err(StoreError::Corrupt { .. })), "{name}: {answer:?}");
        }
        if let Some(event) =
            events(&store).into_iter().find(|event| event.identity.id.as_bytes() == id.as_bytes())
        {
            let read = store.body(BodySelector::Event(event.id));
            assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{name}: {read:?}");
        }
        assert_eq!(problems(&store).len(), 1, "{name}: {:?}", problems(&store));
        assert_eq!(accept(&store, "sound", b"sound"), Outcome::Duplicate, "{name}: the rest is served");
        drop(store);
        match bad {
            Some(bad) => {
                assert_eq!(std::fs::read_to_string(path).expect("it is there"), bad, "{name}: left alone");
                std::fs::remove_file(path).expect("it is there");
            }
            None if name == "a folder" => std::fs::remove_dir(path).expect("it is left alone"),
            None => std::fs::remove_file(path).expect("it is left alone"),
        }
        std::fs::write(path, &good).expect("it can be written");
    }
    let store = open();
    assert_eq!(accept(&store, id, body.as_bytes()), Outcome::Duplicate, "put right, it is served again");
}

fn every_corrupt_entry_of_the_seed_fails_closed_and_the_rest_is_served() {
    let seed = Seed::new(&[("delivery-1", "one"), ("sound", "sound")]);
    let open = || {
        let store = seed.open();
        register_app(&store);
        store
    };
    // While the entry is damaged the first start cannot know the event; once it does, the log does.
    assert_fails_closed(&seed.entry("delivery-1"), "delivery-1", "one", &open);
}

fn every_corrupt_entry_of_ours_fails_closed_and_the_rest_is_served() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "delivery-1", b"one");
    accept(&store, "sound", b"sound");
    drop(store);
    assert_fails_closed(&entry(&dir, "delivery-1"), "delivery-1", "one", &|| dir.open().store);
}

fn an_entry_that_is_gone_is_named_and_not_made_again() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "evt_1", b"one");
    for reopen in [false, true] {
        let store = if reopen { dir.open().store } else { Arc::clone(&store) };
        if !reopen {
            std::fs::remove_file(entry(&dir, "evt_1")).expect("it is there");
            for name in std::fs::read_dir(entry(&dir, "x").parent().expect("it has one")).expect("it lists") {
                std::fs::remove_file(name.expect("it reads").path()).expect("it is there");
            }
        }
        assert!(matches!(try_accept(&store, "evt_1", b"one"), Err(StoreError::Corrupt { .. })));
        assert_eq!(problems(&store).len(), 1);
        assert!(!entry(&dir, "evt_1").exists());
        store.close(OPENED_AT).expect("it closes");
    }
}

fn a_foreign_file_is_named_and_left_alone() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "evt_1", b"one");
    let foreign = ["notes.txt", "sources/notes", "sources/shop/deliveries/notes.txt", "sources/shop/x"];
    for name in foreign {
        std::fs::write(dir.root().join(name), "mine").expect("it can be written");
    }
    let named = problems(&store);
    for name in foreign {
        assert!(named.iter().any(|problem| problem.contains(&format!("`{name}`"))), "{name}: {named:?}");
    }
    assert_eq!(named.len(), foreign.len());
    drop(store);
    let store = dir.open().store;
    assert_eq!(problems(&store).len(), foreign.len());
    assert_eq!(accept(&store, "evt_1", b"one"), Outcome::Duplicate);
    assert!(foreign.iter().all(|name| dir.root().join(name).exists()));
}

fn a_bit_anywhere_in_an_entry_is_never_served_altered() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "evt_1", b"the body of one event");
    let event = find(&store, "evt_1").id;
    let path = entry(&dir, "evt_1");
    let good = std::fs::read(&path).expect("it is there");
    let mut refused = 0;
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            std::fs::write(&path, bad).expect("it can be written");
            match store.body(BodySelector::Event(event)) {
                Ok(body) => assert_eq!(body, Some(Body::Kept("the body of one event".into())), "{at}.{bit}"),
                Err(StoreError::Corrupt { .. }) => refused += 1,
                Err(other) => panic!("{at}.{bit}: {other:?}"),
            }
        }
    }
    assert!(refused > 1_500, "{refused}");
}
