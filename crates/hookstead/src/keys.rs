//! The keys that providers publish: kept in memory, fetched outside of requests.
//!
//! A request asks and is answered at once from what is there; what is missing goes onto a bounded list that a task
//! works. Strangers can make a source ask for documents at the provider's own hosts that do not exist, so for each
//! provider the number of documents and the rate of new ones are bounded, what was not found is remembered for a while,
//! and what can be used gives way to nothing but another document that was found. Which addresses are a provider's is
//! decided before anything comes here.

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

/// Most documents of one provider that can be used, and most of those that are not there: on their way, failed or not
/// found. Honest ones have one or two.
pub const KEY_PLACES_MAX: usize = 32;

/// Most documents of one provider, never seen before, that are asked for at once. More come one after each
/// [`KEY_NEW_PAUSE`].
pub const KEYS_NEW_MAX: u32 = 32;

/// How long it takes until one more document of a provider may be asked for that was never seen before. Anybody can
/// name one, so this is how often strangers can make the server call the provider; honest ones have a new one a year.
pub const KEY_NEW_PAUSE: Duration = Duration::from_secs(1);

/// Most documents that are fetched at the same time.
pub const KEY_FETCHES_MAX: usize = 4;

/// Pauses between the attempts of one fetch.
const ATTEMPT_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];

/// The keys that are at hand. Clones of the `Arc` go into [`VerifyOptions::key_source`] of each source.
///
/// [`VerifyOptions::key_source`]: hookstead_verify::VerifyOptions::key_source
#[derive(Debug)]
pub struct KeyCache {
    known: Mutex<Known>,
    wanted: mpsc::Sender<KeyPlace>,
}

/// What is to be fetched for a [`KeyCache`]; dropped, nothing is.
#[derive(Debug)]
pub struct KeyFetches {
    wanted: mpsc::Receiver<KeyPlace>,
    cache: Weak<KeyCache>,
}

/// What is known of all documents.
#[derive(Debug, Default)]
struct Known {
    entries: HashMap<KeyPlace, Entry>,
    /// For each provider.
    new: HashMap<String, New>,
}

/// How many documents that were never seen before a provider may still be asked for.
#[derive(Debug)]
struct New {
    left: u32,
    since: Instant,
}

impl New {
    /// Takes one, if one is left.
    fn take(&mut self, now: Instant) -> bool {
        let pauses = now.duration_since(self.since).as_nanos() / KEY_NEW_PAUSE.as_nanos();
        let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(pauses).min(KEYS_NEW_MAX);
        self.since = if self.left == KEYS_NEW_MAX { now } else { self.since + KEY_NEW_PAUSE * pauses };
        let taken = self.left.checked_sub(1);
        self.left = taken.unwrap_or_default();
        taken.is_some()
    }
}

impl Known {
    /// Whether there is a place for a document that was never seen before.
    fn admits(&mut self, place: &KeyPlace, now: Instant) -> bool {
        let full = || New { left: KEYS_NEW_MAX, since: now };
        let new = self.new.entry(place.provider.clone()).or_insert_with(full);
        new.take(now) && self.make_room(place, Kind::Lacking, now)
    }

    /// Makes one more place for a document of this kind, maybe that of another one of the same kind: the longest
    /// unused of those that are not being fetched. So what is only asked for never takes the place of what can be
    /// used, whoever asks.
    fn make_room(&mut self, place: &KeyPlace, kind: Kind, now: Instant) -> bool {
        let same = |known: &KeyPlace, entry: &Entry| {
            known != place && known.provider == place.provider && entry.kind(now) == kind
        };
        let same = self.entries.iter().filter(|(known, entry)| same(known, entry));
        if same.clone().count() < KEY_PLACES_MAX {
            return true;
        }
        let goes = same.filter(|(_, entry)| !entry.is_fetching).min_by_key(|(_, entry)| entry.used_at);
        match goes.map(|(known, _)| known.clone()) {
            Some(goes) => self.entries.remove(&goes).is_some(),
            None => false,
        }
    }
}

/// Whether a document can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usable,
    /// On its way, failed, not found, or too old.
    Lacking,
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

    fn kind(&self, now: Instant) -> Kind {
        let usable = self.keys.as_ref().is_some_and(|(_, since)| now.duration_since(*since) < KEYS_USE_TIME);
        if usable { Kind::Usable } else { Kind::Lacking }
    }
}

impl KeyCache {
    /// An empty cache, and what has to be run for it.
    pub fn new() -> (Arc<Self>, KeyFetches) {
        let (sender, wanted) = mpsc::channel(KEY_PLACES_MAX);
        let cache = Arc::new(Self { known: Mutex::default(), wanted: sender });
        let fetches = KeyFetches { wanted, cache: Arc::downgrade(&cache) };
        (cache, fetches)
    }

    fn answer(&self, wanted: &KeyWanted, now: Instant) -> KeyAnswer {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.entries.contains_key(&wanted.place) && !known.admits(&wanted.place, now) {
            return KeyAnswer::NotAtHand;
        }
        let entry = known.entries.entry(wanted.place.clone()).or_insert_with(|| Entry::new(now));
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
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.is_ok() && !known.make_room(place, Kind::Usable, now) {
            // Every other one is being fetched again at this moment: this one is asked for again.
            known.entries.remove(place);
            return;
        }
        let entry = known.entries.entry(place.clone()).or_insert_with(|| Entry::new(now));
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

#[cfg(test)]
mod tests {
    use hookstead_verify::{Registry, Request, Verifier, VerifyOptions};

    use super::*;

    /// Remembers where a request sends us for a key.
    #[derive(Debug, Default)]
    struct Asked(Mutex<Option<KeyPlace>>);

    impl KeySource for Asked {
        fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
            *self.0.lock().unwrap() = Some(wanted.place.clone());
            KeyAnswer::NotAtHand
        }
    }

    /// The place of a certificate of Amazon's.
    fn certificate() -> KeyPlace {
        let asked = Arc::new(Asked::default());
        let conf = [("topic_arn".to_owned(), "t".to_owned())].into();
        let options = VerifyOptions { conf, key_source: Some(asked.clone()), ..VerifyOptions::default() };
        let provider = Registry::builtin().get("aws-sns").unwrap().clone();
        let body = br#"{"Type":"Notification","MessageId":"m","TopicArn":"t","Message":"m","Timestamp":"n",
            "SignatureVersion":"1","Signature":"AAAA","SigningCertURL":"https://sns.eu-west-1.amazonaws.com/a.pem"}"#;
        let request = Request { method: "POST", target: "/", url: None, headers: &[("a", "b")], body };
        Verifier::new(provider, &[], options).unwrap().verify(&request, 0).unwrap_err();
        asked.0.lock().unwrap().clone().unwrap()
    }

    /// A cache, and whoever asks it for documents of one provider.
    struct Scene {
        cache: Arc<KeyCache>,
        fetches: KeyFetches,
        place: KeyPlace,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let (cache, fetches) = KeyCache::new();
            Self { cache, fetches, place: certificate(), now: Instant::now() }
        }

        fn place(&self, name: &str) -> KeyPlace {
            let mut place = self.place.clone();
            place.url = Some(format!("https://sns.eu-west-1.amazonaws.com/{name}.pem"));
            place
        }

        fn ask(&self, name: &str) -> KeyAnswer {
            self.cache.answer(&KeyWanted { place: self.place(name), key_id: None }, self.now)
        }

        fn is_at_hand(&self, name: &str) -> bool {
            matches!(self.ask(name), KeyAnswer::Keys(_))
        }

        /// What was ordered since the last time, each fetched with this result.
        fn fetch(&mut self, result: impl Fn() -> Result<PublishedKeys, Failed>) -> usize {
            let mut count = 0;
            while let Ok(place) = self.fetches.wanted.try_recv() {
                self.cache.settle(&place, result(), self.now);
                count += 1;
            }
            count
        }

        fn found(&mut self, name: &str) {
            self.ask(name);
            assert_eq!(self.fetch(|| Ok(PublishedKeys::default())), 1, "{name}");
            assert!(self.is_at_hand(name));
        }

        fn places(&self) -> usize {
            self.cache.known.lock().unwrap().entries.len()
        }
    }

    #[tokio::test]
    async fn made_up_addresses_never_take_the_place_of_a_good_key() {
        let mut scene = Scene::new();
        scene.found("good");
        // Missing ones, ones that failed, and ones that are on their way: an hour of each.
        for is_reached in [Some(true), Some(false), None] {
            for second in 0..3_600_u32 {
                scene.now += Duration::from_secs(1);
                scene.ask(&format!("made-up-{second}"));
                if let Some(is_reached) = is_reached {
                    scene.fetch(|| Err(if is_reached { Failed::Missing } else { Failed::Unreached }));
                }
            }
            assert!(scene.is_at_hand("good"));
            assert!(scene.places() <= 2 * KEY_PLACES_MAX, "{}", scene.places());
            scene.fetch(|| Ok(PublishedKeys::default()));
        }
    }

    #[tokio::test]
    async fn a_good_key_gets_a_place_while_all_are_taken_by_missing_ones() {
        let mut scene = Scene::new();
        for index in 0..KEY_PLACES_MAX {
            scene.now += Duration::from_millis(1);
            scene.ask(&format!("made-up-{index}"));
            scene.fetch(|| Err(Failed::Missing));
        }
        scene.now += KEY_NEW_PAUSE;
        scene.found("good");
        // The longest unused one went for it and is asked for again; the others are remembered.
        assert!(matches!(scene.ask("made-up-1"), KeyAnswer::Unknown));
    }

    #[tokio::test]
    async fn of_good_keys_the_longest_unused_goes_for_another_good_one() {
        let mut scene = Scene::new();
        for index in 0..=KEY_PLACES_MAX {
            scene.now += KEY_NEW_PAUSE;
            scene.found(&format!("good-{index}"));
            assert!(scene.is_at_hand("good-0"), "it is in use");
        }
        assert_eq!(scene.places(), KEY_PLACES_MAX);
        assert!(!scene.is_at_hand("good-1"));
    }

    #[tokio::test]
    async fn strangers_cannot_make_the_server_fetch_without_bound() {
        let mut scene = Scene::new();
        let mut fetched = 0;
        for request in 0..10_000_u32 {
            // A thousand requests a second, each with an address of its own.
            scene.now += Duration::from_millis(1);
            scene.ask(&format!("made-up-{request}"));
            fetched += scene.fetch(|| Err(Failed::Missing));
        }
        assert_eq!(fetched, KEYS_NEW_MAX as usize + 9);
    }
}
