//! The built-in providers: every file of `providers/`, embedded when the crate is built.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::provider::Provider;

include!(concat!(env!("OUT_DIR"), "/providers.rs"));

/// Providers by name.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    providers: BTreeMap<String, Arc<Provider>>,
}

impl Registry {
    /// The providers that come with the crate.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Registry> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let parse = |(name, toml): &(&str, &str)| match Provider::parse(name, toml) {
                Ok(provider) => (provider.name.clone(), Arc::new(provider)),
                // Embedded text cannot change after the build, and the tests load all of it.
                Err(error) => panic!("built-in provider: {error}"),
            };
            Self { providers: RECORDS.iter().map(parse).collect() }
        })
    }

    /// The provider of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.get(name)
    }

    /// The name that is closest to one that is not there, if one is close.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        let known = self.providers.keys().map(String::as_str);
        let close = known.map(|known| (strsim::damerau_levenshtein(&name, known), known)).min();
        close.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known)
    }

    /// All providers, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Provider>> {
        self.providers.values()
    }
}
