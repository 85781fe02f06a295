//! How many events a second the store `files:` accepts, beside what the seed's own receiver does (contract
//! R42: every folder up to the root synced for each event), one by one and 64 at once, on the same disk, in turns.
//!
//! `cargo run --release -p hookstead-store --example files_rate [FOLDER]`

use std::fs::{DirBuilder, File, OpenOptions as FileOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hookstead_core::{
    Acceptance, AcceptanceFacts, Digest, Identity, ProviderEventId, Register, Scope, SourceNumber, Store,
    Timestamp, Write,
};
use hookstead_store::{OpenOptions, open};

/// As many as connections that wait for an answer at once.
const BATCH: usize = 64;
const ROUNDS: usize = 5;
const BATCHES_A_ROUND: usize = 8;
const BODY_BYTES: usize = 1_024;
const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(parent)?;
    let (ours, seeds) = (folder.path().join("ours"), folder.path().join("seeds"));
    let store = open(&format!("files:{}", ours.display()), &OpenOptions::default(), NOW)?.store;
    let name = "shop".parse()?;
    store.apply(&[Write::Register(Register::Source { name, identity_fingerprint: "1".to_owned() })], NOW)?;
    let mut out = io::stdout();
    let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let ours = rate(&accept_batches(&store, round)?);
        let one = rate(&accept_as_seed(&seeds, round)?);
        let many = rate(&accept_as_seed_at_once(&seeds, round)?);
        one_by_one.push(ours / one);
        at_once.push(ours / many);
        writeln!(
            out,
            "round {round}: files {ours:.0}/s, the seed {one:.0}/s one by one, {many:.0}/s at once"
        )?;
    }
    let median = |ratios: &mut Vec<f64>| {
        ratios.sort_by(f64::total_cmp);
        ratios[ROUNDS / 2]
    };
    let (one, many) = (median(&mut one_by_one), median(&mut at_once));
    writeln!(out, "median: {one:.1} times the seed one by one, {many:.1} times {BATCH} at once")?;
    store.close(NOW)?;
    Ok(())
}

/// So many events in so long.
struct Took(usize, Duration);

fn rate(Took(events, time): &Took) -> f64 {
    f64::from(u32::try_from(*events).unwrap_or(u32::MAX)) / time.as_secs_f64()
}

fn accept_batches(store: &Arc<dyn Store>, round: usize) -> Result<Took, AnyError> {
    let key = &store.facts().identity_key;
    let mut batches = Vec::new();
    for batch in 0..BATCHES_A_ROUND {
        let accept = |n: usize| -> Result<Write, AnyError> {
            let id = format!("evt_{round}_{batch}_{n}");
            let identity = Identity {
                source: SourceNumber(1),
                scope: Scope::default(),
                id: ProviderEventId::new(id.into_bytes())?,
            };
            let mut entropy = [0; 10];
            entropy.copy_from_slice(&key.hash(&identity, 0).0[..10]);
            let facts = AcceptanceFacts { received_at: NOW, ..AcceptanceFacts::default() };
            let body = vec![b'x'; BODY_BYTES].into();
            Ok(Write::Accept(Box::new(Acceptance::new(key, identity, body, facts, entropy))))
        };
        batches.push((0..BATCH).map(accept).collect::<Result<Vec<_>, _>>()?);
    }
    let began = Instant::now();
    for batch in &batches {
        store.apply(batch, NOW)?;
    }
    Ok(Took(BATCH * BATCHES_A_ROUND, began.elapsed()))
}

fn accept_as_seed(folder: &Path, round: usize) -> Result<Took, AnyError> {
    let began = Instant::now();
    for n in 0..BATCH {
        accept_one_as_seed(folder, &format!("evt_{round}_{n}"))?;
    }
    Ok(Took(BATCH, began.elapsed()))
}

/// The same by a thread for each connection, as the seed's receiver serves them.
fn accept_as_seed_at_once(folder: &Path, round: usize) -> Result<Took, AnyError> {
    let began = Instant::now();
    let each = |thread: usize| {
        (0..BATCHES_A_ROUND)
            .try_for_each(|n| accept_one_as_seed(folder, &format!("evt_{round}_{thread}_{n}")))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..BATCH).map(|thread| scope.spawn(move || each(thread))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?.map_err(AnyError::from))
    })?;
    Ok(Took(BATCH * BATCHES_A_ROUND, began.elapsed()))
}

fn accept_one_as_seed(folder: &Path, id: &str) -> io::Result<()> {
    let deliveries = folder.join("deliveries");
    DirBuilder::new().recursive(true).mode(0o700).create(&deliveries)?;
    for above in deliveries.ancestors() {
        File::open(above)?.sync_all()?;
    }
    let body = vec![b'x'; BODY_BYTES];
    let entry = format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"{id}\",\n  \"body\": \"{}\",\n  \"sha256\": \"{}\",\n  \
         \"acceptedAt\": \"{NOW}\"\n}}",
        BASE64_STANDARD.encode(&body),
        Digest::of(&body)
    );
    let pending = deliveries.join(format!(".pending-{id}"));
    let mut file = FileOptions::new().write(true).create_new(true).mode(0o600).open(&pending)?;
    file.write_all(entry.as_bytes())?;
    file.sync_all()?;
    drop(file);
    std::fs::hard_link(&pending, deliveries.join(format!("{}.json", Digest::of(id.as_bytes()))))?;
    File::open(&deliveries)?.sync_all()?;
    std::fs::remove_file(&pending)
}
