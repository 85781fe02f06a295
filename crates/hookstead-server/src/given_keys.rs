//! The public keys of one source: those that its configuration gives, and those that are fetched for all sources.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use hookstead::verify::{KeyAnswer, KeyFormat, KeySource, KeyWanted};

/// Answers for one source.
#[derive(Debug)]
pub(crate) struct GivenKeys {
    /// Key id to key, as the configuration has them.
    texts: BTreeMap<String, String>,
    /// The same, read when they were first asked for. It has no key id that `texts` has not.
    read: Mutex<HashMap<String, KeyAnswer>>,
    published: Option<Arc<dyn KeySource>>,
}

impl GivenKeys {
    pub(crate) fn new(texts: BTreeMap<String, String>, published: Option<Arc<dyn KeySource>>) -> Self {
        Self { texts, read: Mutex::default(), published }
    }

    fn given(&self, wanted: &KeyWanted) -> Option<KeyAnswer> {
        let key_id = wanted.key_id.as_deref()?;
        let text = self.texts.get(key_id)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        Some(read.entry(key_id.to_owned()).or_insert_with(|| answer(wanted, key_id, text)).clone())
    }
}

impl KeySource for GivenKeys {
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
        if let Some(given) = self.given(wanted) {
            return given;
        }
        match &self.published {
            Some(published) => published.keys(wanted),
            None => KeyAnswer::NotAtHand,
        }
    }
}

fn answer(wanted: &KeyWanted, key_id: &str, text: &str) -> KeyAnswer {
    let place = &wanted.place;
    let read = match place.format {
        KeyFormat::Jwks => place.parse(text.as_bytes()),
        KeyFormat::Key | KeyFormat::Certificate => place.parse_key(text.as_bytes()),
    };
    match read {
        Ok(keys) => KeyAnswer::Keys(Arc::new(keys)),
        Err(error) => {
            tracing::error!(
                provider.name = %place.provider, key.id = key_id, error = %error,
                "a key of the configuration cannot be used: what it would prove is refused; mend `keys` of the source"
            );
            KeyAnswer::Unknown
        }
    }
}
