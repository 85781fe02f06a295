//! The keys that providers publish: kept in memory, fetched outside of requests.
//!
//! A request asks and is answered at once from what is there; what is missing goes onto a bounded list that a task
//! works. Strangers can make a source ask for documents at the provider's own hosts that do not exist, so the number
//! of documents is bounded for each provider, what was not found is remembered for a while, and what is good is
//! never thrown out for what was never found. Which addresses are a provider's is decided before anything comes here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hookstead_verify::{KEY_DOCUMENT_BYTES_MAX, KeyAnswer, KeyPlace, KeySource, KeyWanted, PublishedKeys};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::sink::push::{FetchError, Fetcher};

/// After this time keys are fetched again, while those that are there go on being used.
pub const KEYS_FRESH_TIME: Duration = Duration::from_hours(1);

/// For how long keys are used when they cannot be fetched again. A day: longer than an outage, shorter than the time
/// for which a key that was withdrawn may do harm.
pub const KEYS_USE_TIME: Duration = Duration::from_hours(24);

/// For how long it is remembered that the provider has no such document.
pub const KEYS_MISSING_TIME: Duration = Duration::from_mins(5);

/// How long after a fetch an unknown key id may cause the next one.
pub const KEYS_AGAIN_TIME: Duration = Duration::from_mins(1);

/// How long after a failed fetch the next one may begin.
pub const KEYS_PAUSE: Duration = Duration::from_secs(30);

/// Most documents of one provider. Honest ones have one or two.
pub const KEY_PLACES_MAX: usize = 32;

/// Most documents that are fetched at the same time.
pub const KEY_FETCHES_MAX: usize = 4;

/// Pauses between the attempts of one fetch.
const ATTEMPT_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];

/// The keys that are at hand. Clones of the `Arc` go into [`VerifyOptions::key_source`] of each source.
///
/// [`VerifyOptions::key_source`]: hookstead_verify::VerifyOptions::key_source
#[derive(Debug)]
pub struct KeyCache {
    entries: Mutex<HashMap<KeyPlace, Entry>>,
    wanted: mpsc::Sender<KeyPlace>,
}

/// What is to be fetched for a [`KeyCache`]; dropped, nothing is.
#[derive(Debug)]
pub struct KeyFetches {
    wanted: mpsc::Receiver<KeyPlace>,
    cache: Weak<KeyCache>,
}

/// What is known of one document.
#[derive(Debug)]
struct Entry {
    keys: Option<(Arc<PublishedKeys>, Instant)>,
    /// The provider has no such document, until then.
    missing_until: Option<Instant>,
    is_fetching: bool,
    /// No fetch begins before.
    pause_until: Option<Instant>,
    used_at: Instant,
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self { keys: None, missing_until: None, is_fetching: false, pause_until: None, used_at: now }
    }

    /// The keys, unless they are too old to be used, and how old they are.
    fn usable(&self, now: Instant) -> Option<(Arc<PublishedKeys>, Duration)> {
        let (keys, since) = self.keys.as_ref()?;
        let age = now.duration_since(*since);
        (age < KEYS_USE_TIME).then(|| (keys.clone(), age))
    }

    fn may_go(&self, now: Instant) -> bool {
        !self.is_fetching && self.missing_until.is_none_or(|until| until <= now)
    }
}

impl KeyCache {
    /// An empty cache, and what has to be run for it.
    pub fn new() -> (Arc<Self>, KeyFetches) {
        let (sender, wanted) = mpsc::channel(KEY_PLACES_MAX);
        let cache = Arc::new(Self { entries: Mutex::default(), wanted: sender });
        let fetches = KeyFetches { wanted, cache: Arc::downgrade(&cache) };
        (cache, fetches)
    }

    fn answer(&self, wanted: &KeyWanted, now: Instant) -> KeyAnswer {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(&wanted.place) && !make_room(&mut entries, &wanted.place, now) {
            return KeyAnswer::NotAtHand;
        }
        let entry = entries.entry(wanted.place.clone()).or_insert_with(|| Entry::new(now));
        entry.used_at = now;
        let Some((keys, age)) = entry.usable(now) else {
            if entry.missing_until.is_some_and(|until| now < until) {
                return KeyAnswer::Unknown;
            }
            self.order(&wanted.place, entry, now);
            return KeyAnswer::NotAtHand;
        };
        let has_it = wanted.key_id.as_deref().is_none_or(|id| keys.has(id));
        if age >= KEYS_FRESH_TIME || (!has_it && age >= KEYS_AGAIN_TIME) {
            self.order(&wanted.place, entry, now);
        }
        // A key that was made since then: the sender comes again when it is here.
        if !has_it && entry.is_fetching { KeyAnswer::NotAtHand } else { KeyAnswer::Keys(keys) }
    }

    /// Puts a document onto the list. Where that is full the next request tries again.
    fn order(&self, place: &KeyPlace, entry: &mut Entry, now: Instant) {
        let rests = entry.pause_until.is_some_and(|until| now < until);
        if !entry.is_fetching && !rests {
            entry.is_fetching = self.wanted.try_send(place.clone()).is_ok();
        }
    }

    fn settle(&self, place: &KeyPlace, fetched: Result<PublishedKeys, Failed>, now: Instant) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(place.clone()).or_insert_with(|| Entry::new(now));
        entry.is_fetching = false;
        (entry.missing_until, entry.pause_until) = (None, None);
        match fetched {
            Ok(keys) => entry.keys = Some((Arc::new(keys), now)),
            Err(Failed::Missing) if entry.usable(now).is_none() => {
                entry.missing_until = Some(now + KEYS_MISSING_TIME);
            }
            Err(_) => entry.pause_until = Some(now + KEYS_PAUSE),
        }
    }
}

impl KeySource for KeyCache {
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
        match wanted.place.url {
            Some(_) => self.answer(wanted, Instant::now()),
            // There is nowhere to fetch it from.
            None => KeyAnswer::Unknown,
        }
    }
}

/// Whether one more document of the provider has a place, maybe that of another one: the longest unused of those
/// that were never found, else of all.
fn make_room(entries: &mut HashMap<KeyPlace, Entry>, place: &KeyPlace, now: Instant) -> bool {
    let of_provider = |known: &KeyPlace| known.provider == place.provider;
    if entries.keys().filter(|known| of_provider(known)).count() < KEY_PLACES_MAX {
        return true;
    }
    let candidates = entries.iter().filter(|(known, entry)| of_provider(known) && entry.may_go(now));
    let goes = candidates.min_by_key(|(_, entry)| (entry.keys.is_some(), entry.used_at));
    match goes.map(|(known, _)| known.clone()) {
        Some(goes) => entries.remove(&goes).is_some(),
        None => false,
    }
}

/// How a fetch failed.
#[derive(Debug)]
enum Failed {
    /// There is no such document, or it holds no key.
    Missing,
    /// Nobody knows.
    Unreached,
}

impl KeyFetches {
    /// Fetches what the cache lacks, until the cache is dropped. Run it on a task of its own; dropping it ends every
    /// fetch.
    pub async fn run(mut self, fetcher: Fetcher) {
        let mut fetching = JoinSet::new();
        while let Some(place) = self.wanted.recv().await {
            while fetching.len() >= KEY_FETCHES_MAX && fetching.join_next().await.is_some() {}
            let (cache, fetcher) = (self.cache.clone(), fetcher.clone());
            fetching.spawn(async move {
                let fetched = fetch(&fetcher, &place).await;
                if let Some(cache) = cache.upgrade() {
                    cache.settle(&place, fetched, Instant::now());
                }
            });
        }
    }
}

/// One document, with a few attempts. How it went is logged here.
async fn fetch(fetcher: &Fetcher, place: &KeyPlace) -> Result<PublishedKeys, Failed> {
    let url = place.url.as_deref().unwrap_or_default();
    let mut found = fetcher.get(url, KEY_DOCUMENT_BYTES_MAX).await;
    for pause in ATTEMPT_PAUSES {
        if found.as_ref().err().is_none_or(FetchError::is_final) {
            break;
        }
        sleep(pause).await;
        found = fetcher.get(url, KEY_DOCUMENT_BYTES_MAX).await;
    }
    let provider = &place.provider;
    let failed = |error: &dyn std::error::Error, failed: Failed| {
        tracing::warn!(
            provider.name = %provider, keys.url = url, error = %error,
            "keys that the provider publishes could not be fetched; what they would prove is refused"
        );
        failed
    };
    match found {
        Ok(document) => match place.parse(&document) {
            Ok(keys) => {
                tracing::info!(provider.name = %provider, keys.url = url, "keys were fetched");
                Ok(keys)
            }
            Err(error) => Err(failed(&error, Failed::Missing)),
        },
        Err(error) if error.is_final() => Err(failed(&error, Failed::Missing)),
        Err(error) => Err(failed(&error, Failed::Unreached)),
    }
}
