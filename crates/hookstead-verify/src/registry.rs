//! The built-in providers: every file of `providers/`, embedded when the crate is built, each read the first time
//! that somebody asks for it. Records of one's own can stand beside them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::provider::Provider;
use crate::record::ProviderError;

include!(concat!(env!("OUT_DIR"), "/providers.rs"));

/// Providers by name.
#[derive(Debug)]
pub struct Registry {
    /// In the order of [`RECORDS`], which are sorted by name.
    providers: Vec<OnceLock<Arc<Provider>>>,
    added: BTreeMap<String, Added>,
}

/// A record that is not built in.
#[derive(Debug)]
struct Added {
    toml: String,
    provider: Arc<Provider>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// The providers that come with the crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Registry> = OnceLock::new();
        BUILTIN.get_or_init(Self::new)
    }

    /// The built-in providers, for [`add`](Self::add).
    pub fn new() -> Self {
        Self { providers: RECORDS.iter().map(|_| OnceLock::new()).collect(), added: BTreeMap::new() }
    }

    /// Adds a record. Where it has the name of another, it takes its place.
    ///
    /// # Errors
    ///
    /// As [`Provider::parse`]; the registry is then as it was.
    ///
    /// ```
    /// use hookstead_verify::Registry;
    ///
    /// let toml = r#"
    ///     title = "Acme"
    ///     confidence = "own"
    ///     [[scheme]]
    ///     kind = "hmac"
    ///     hash = "sha256"
    ///     sig = { at = "header.X-Acme-Signature", encoding = "hex" }
    ///     content = "{body}"
    /// "#;
    /// let mut registry = Registry::new();
    /// registry.add("acme", toml)?;
    /// assert!(registry.get("acme").is_some() && registry.get("stripe").is_some());
    /// # Ok::<(), hookstead_verify::ProviderError>(())
    /// ```
    pub fn add(&mut self, name: &str, toml: &str) -> Result<(), ProviderError> {
        let provider = Arc::new(Provider::parse(name, toml)?);
        self.added.insert(name.to_owned(), Added { toml: toml.to_owned(), provider });
        Ok(())
    }

    /// The provider of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Provider>> {
        if let Some(added) = self.added.get(name) {
            return Some(&added.provider);
        }
        let index = RECORDS.binary_search_by(|(found, _)| (*found).cmp(name)).ok()?;
        Some(self.read(index))
    }

    /// The name that is closest to one that is not there, if one is close.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        let close = self.names().map(|known| (strsim::damerau_levenshtein(&name, known), known)).min();
        close.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known)
    }

    /// All names: the built-in ones, then those that were added, each sorted. Unlike [`iter`](Self::iter) this
    /// reads no record.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = RECORDS.iter().map(|(name, _)| *name);
        builtin.filter(|name| !self.added.contains_key(*name)).chain(self.added.keys().map(String::as_str))
    }

    /// The record of that name as it is written.
    pub fn toml(&self, name: &str) -> Option<&str> {
        if let Some(added) = self.added.get(name) {
            return Some(&added.toml);
        }
        let index = RECORDS.binary_search_by(|(found, _)| (*found).cmp(name)).ok()?;
        Some(RECORDS[index].1)
    }

    /// All providers, in the order of [`names`](Self::names).
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Provider>> {
        let builtin = (0..self.providers.len()).filter(|index| !self.added.contains_key(RECORDS[*index].0));
        builtin.map(|index| self.read(index)).chain(self.added.values().map(|added| &added.provider))
    }

    fn read(&self, index: usize) -> &Arc<Provider> {
        let (name, toml) = RECORDS[index];
        self.providers[index].get_or_init(|| match Provider::parse(name, toml) {
            Ok(provider) => Arc::new(provider),
            // Embedded text cannot change after the build, and the tests read all of it.
            Err(error) => panic!("built-in provider: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of its schemes signs the id of its own headers, and the headers of one choose the scheme.
    const CONDITIONAL: &[&str] = &["svix"];

    const ACME: &str = "title = \"Acme\"\nconfidence = \"own\"\n[[scheme]]\nkind = \"token\"\n\
                        sig = { at = \"header.X-Acme\" }\n";

    #[test]
    fn a_record_of_ones_own_stands_beside_the_others() {
        let builtin = Registry::builtin().names().count();
        let mut registry = Registry::new();
        registry.add("acme", ACME).unwrap();
        assert_eq!(registry.get("acme").unwrap().title(), "Acme");
        assert_eq!((registry.names().count(), registry.iter().count()), (builtin + 1, builtin + 1));
        assert_eq!(registry.nearest("acne"), Some("acme"));
        assert!(registry.add("stripe", "title = 1").is_err());
        assert_eq!(registry.get("stripe").unwrap().title(), "Stripe");

        registry.add("stripe", ACME).unwrap();
        assert_eq!(registry.get("stripe").unwrap().title(), "Acme");
        assert_eq!(registry.toml("stripe"), Some(ACME));
        assert_eq!(registry.names().count(), builtin + 1);
        assert_eq!(Registry::builtin().get("stripe").unwrap().title(), "Stripe");
    }

    #[test]
    fn what_a_record_says_of_its_id_is_what_its_schemes_sign() {
        let signed = |provider: &Provider| {
            provider.has_id() && provider.id.iter().all(|template| provider.signs(template))
        };
        let differs = |provider: &&Arc<Provider>| provider.id_covered != signed(provider);
        let found: Vec<_> =
            Registry::builtin().iter().filter(differs).map(|provider| provider.name()).collect();
        assert_eq!(found, CONDITIONAL);
    }
}
