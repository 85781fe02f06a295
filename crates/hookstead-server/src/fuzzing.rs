//! What the fuzz targets of `fuzz/` call: the names that people and programs type, stored header blocks, and the
//! configuration file. Each function panics if something does not hold that must hold whatever the bytes are. It is there
//! only with the feature `fuzzing` and promises nothing to anybody else.

use std::fmt::{Debug, Display};
use std::path::PathBuf;
use std::str::FromStr;

use hookstead::core::{
    DeliveryId, DestinationName, EventId, Identity, IdentityKey, ProviderEventId, RawHeaders, RedeliveryId,
    RunName, Scope, Seq, SourceName, SourceNumber, TypePattern,
};
pub use hookstead::fuzzing::answer;

use crate::Config;
pub use crate::api::fuzzing::lease;
use crate::config::{ConfigSource, Environment, Overrides, parse_duration, parse_size};
use crate::lookup::EventName;

/// Ids, short ids, names, `SOURCE:ID`, units: what is read is what is shown. Identities that are not equal have other
/// hashes. A stored block of headers gives back the fields that it was made of.
pub fn names(input: &[u8]) {
    headers(input);
    lease(input);
    identity(input);
    if let Some(EventName::Provider { source, id }) = EventName::parse(input) {
        assert_eq!([source.as_bytes(), b":", id.as_bytes()].concat(), input);
        assert!(!id.to_string().contains(char::is_control), "{id:?}");
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    round_trip::<EventId>(text);
    round_trip::<Seq>(text);
    round_trip::<DeliveryId>(text);
    round_trip::<RedeliveryId>(text);
    for named in [same::<SourceName>(text), same::<DestinationName>(text), same::<RunName>(text)] {
        assert!(named.is_none_or(|shown| shown == text));
    }
    if let Ok(pattern) = text.parse::<TypePattern>() {
        assert_eq!(pattern.as_str(), text);
        assert!(text.contains('*') || pattern.matches(Some(text)), "`{text}` does not match itself");
    }
    let _units = (parse_duration(text), parse_size(text));
}

fn round_trip<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let again = value.to_string().parse::<T>();
            assert_eq!(again.ok().as_ref(), Some(&value), "`{text}` is shown as `{value}`");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn same<T: FromStr + Display>(text: &str) -> Option<String> {
    text.parse::<T>().ok().map(|name| name.to_string())
}

/// The input cut at each of two places into scope and id: two identities, unless the places are one.
fn identity(input: &[u8]) {
    let Some((&[first, second], rest)) = input.split_first_chunk::<2>() else { return };
    let key = IdentityKey::from_bytes(&[7; 32]);
    let cut = |at: u8| {
        let (scope, id) = rest.split_at(usize::from(at).min(rest.len()));
        let (scope, id) = (Scope::new(scope).ok()?, ProviderEventId::new(id).ok()?);
        Some(Identity { source: SourceNumber(1), scope, id })
    };
    let (Some(first), Some(second)) = (cut(first), cut(second)) else { return };
    assert_eq!(first == second, key.hash(&first, 0) == key.hash(&second, 0));
}

fn headers(input: &[u8]) {
    let block = RawHeaders::from_block(input.to_vec().into());
    let again = RawHeaders::from_request(block.query(), block.fields());
    assert_eq!(again.query(), block.query());
    // A name with nothing in it makes no field.
    let fields: Vec<_> =
        block.fields().filter(|(name, value)| !name.is_empty() && !value.contains(&b'\r')).collect();
    assert!(again.fields().eq(fields.iter().filter(|(name, _)| !name.contains([':', '\r'])).copied()));
}

/// A configuration file: it is one, or what is wrong with it is said.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let source = ConfigSource {
        overrides: Overrides { config: Some("hookstead.toml".into()), ..Overrides::default() },
        environment: Environment::from_iter([("SECRET", "whsec_0123456789abcdef0123456789abcdef")]),
        folder: PathBuf::from("/nonexistent"),
    };
    match Config::load_text(&source, text) {
        Ok(config) => {
            assert_eq!(config.file.as_deref(), Some(source.folder.join("hookstead.toml").as_path()));
        }
        Err(errors) => {
            assert!(!errors.problems().is_empty());
            let shown = errors.to_string();
            assert!(!shown.contains("0123456789abcdef"), "a secret is shown: {shown}");
        }
    }
}
