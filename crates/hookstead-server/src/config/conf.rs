//! What a source has to say beside secrets: the values that its provider's record asks for (`conf`), and public keys
//! that the provider gives only to its customers (`keys`).

use std::collections::BTreeMap;

use super::reader::Section;
use super::secret::Lookup;

/// Most values of one source, and most keys.
const VALUES_MAX: usize = 64;

/// A table of texts; each stands there itself, or where a reference says. `None` if there was a problem with any.
pub(super) fn texts(
    section: &Section<'_>,
    name: &str,
    lookup: &Lookup<'_>,
) -> Option<BTreeMap<String, String>> {
    if section.value(name).is_none() {
        return Some(BTreeMap::new());
    }
    let table = section.section(name)?;
    let count = table.entries().count();
    if count > VALUES_MAX {
        let what = format!("{count} values, more than {VALUES_MAX}");
        section.findings.at(&section.key_span(name), &section.key(name), what, "");
        return None;
    }
    let read: Vec<_> = table
        .entries()
        .map(|(key, _, value)| Some((key.to_owned(), lookup.text(&table, key, value)?)))
        .collect();
    read.into_iter().collect()
}
