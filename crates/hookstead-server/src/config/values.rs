//! What the values of single keys may be.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::environment::ConfigSource;

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let name = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let port = text.parse::<u16>().ok().map(|port| format!("127.0.0.1:{port}"));
        match name.or(port) {
            Some(meant) => format!("is not an address; did you mean \"{meant}\"?"),
            None => {
                "is not an address; write IP:PORT, such as \"127.0.0.1:4665\" or \"[::1]:4665\"".to_owned()
            }
        }
    })
}

/// An address of the web; an empty text is none.
pub(crate) fn public_url(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = |why: &str| Err(format!("is not an address of the web: {why}"));
    let Ok(uri) = text.parse::<http::Uri>() else { return refused("write \"https://HOST\"") };
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(_)) if uri.query().is_none() && !text.contains('#') => {
            Ok(Some(text.trim_end_matches('/').to_owned()))
        }
        (Some("http" | "https"), Some(_)) => refused("it ends before `?` and `#`"),
        (Some(_), Some(_)) => refused("it begins with http:// or https://"),
        _ => Err(format!("is not an address of the web; did you mean \"https://{text}\"?")),
    }
}

/// A store's URL with its path made absolute.
pub(crate) fn store_url(text: &str, data: &Path) -> Result<String, String> {
    match text.split_once(':') {
        Some(("memory", "")) => Ok(text.to_owned()),
        Some((kind @ ("sqlite" | "files"), path)) if !path.is_empty() => {
            Ok(format!("{kind}:{}", data.join(path).display()))
        }
        Some(("sqlite", _)) => Err("names no file; write \"sqlite:PATH\"".to_owned()),
        Some(("files", _)) => Err("names no folder; write \"files:DIR\"".to_owned()),
        _ => Err("names no store; write \"sqlite:PATH\", \"files:DIR\" or \"memory:\"".to_owned()),
    }
}

/// Where on the disk a store with this URL is; `None` for one that is kept nowhere.
pub fn store_path(url: &str) -> Option<&Path> {
    url.strip_prefix("sqlite:").or_else(|| url.strip_prefix("files:")).map(Path::new)
}

/// A database that lies elsewhere takes everything else of its server along, so that a store and its token
/// are found in one place. `--data` wins.
pub(crate) fn data_of_store(url: &str, source: &ConfigSource) -> Option<PathBuf> {
    if source.overrides.data.is_some() {
        return None;
    }
    store_path(url)?.parent().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_web() {
        assert_eq!(
            public_url("https://hooks.example.com/"),
            Ok(Some("https://hooks.example.com".to_owned()))
        );
        assert_eq!(public_url("http://a:8080/base"), Ok(Some("http://a:8080/base".to_owned())));
        assert_eq!(public_url(""), Ok(None));
        for bad in ["hooks.example.com", "ftp://a", "https://a?b", "https://a#b", "https://"] {
            assert!(public_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn store_urls_are_made_absolute() {
        let url = |text| store_url(text, Path::new("/data"));
        assert_eq!(url("sqlite:a.db").as_deref(), Ok("sqlite:/data/a.db"));
        assert_eq!(url("sqlite:/x/a.db").as_deref(), Ok("sqlite:/x/a.db"));
        assert_eq!(url("files:inbox").as_deref(), Ok("files:/data/inbox"));
        assert_eq!(url("memory:").as_deref(), Ok("memory:"));
        for bad in ["sqlite:", "files:", "postgres://a", "a.db", ""] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }
}
