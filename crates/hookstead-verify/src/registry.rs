//! The built-in providers: every file of `providers/`, embedded when the crate is built, each read the first time
//! that somebody asks for it.

use std::sync::{Arc, OnceLock};

use crate::provider::Provider;

include!(concat!(env!("OUT_DIR"), "/providers.rs"));

/// Providers by name.
#[derive(Debug)]
pub struct Registry {
    /// In the order of [`RECORDS`], which are sorted by name.
    providers: Vec<OnceLock<Arc<Provider>>>,
}

impl Registry {
    /// The providers that come with the crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Registry> = OnceLock::new();
        BUILTIN.get_or_init(|| Self { providers: RECORDS.iter().map(|_| OnceLock::new()).collect() })
    }

    /// The provider of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Provider>> {
        let index = RECORDS.binary_search_by(|(found, _)| (*found).cmp(name)).ok()?;
        Some(self.read(index))
    }

    /// The name that is closest to one that is not there, if one is close.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        let close = self.names().map(|known| (strsim::damerau_levenshtein(&name, known), known)).min();
        close.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known)
    }

    /// All names, sorted. Unlike [`iter`](Self::iter) this reads no record.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        RECORDS.iter().map(|(name, _)| *name)
    }

    /// The record of that name as it is written.
    pub fn toml(&self, name: &str) -> Option<&'static str> {
        let index = RECORDS.binary_search_by(|(found, _)| (*found).cmp(name)).ok()?;
        Some(RECORDS[index].1)
    }

    /// All providers, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Provider>> {
        (0..self.providers.len()).map(|index| self.read(index))
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
