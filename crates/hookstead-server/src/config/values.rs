//! What the values of single keys may be.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::ConfigSource;
use super::settings::{ProxyHeader, RateLimit};
use crate::limits::RATE_REQUESTS_MAX;

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

/// A name as it stands in `Host`, without a port, in lower case.
pub(crate) fn host_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    if let Some((_, rest)) = name.split_once("://") {
        let meant = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
        return Err(format!("is no host name; did you mean \"{meant}\"?"));
    }
    let is_address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    if let Some((meant, _port)) = name.split_once(':').filter(|_| !is_address) {
        return Err(format!("has a port, which does not matter; did you mean \"{meant}\"?"));
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if is_address || (!name.is_empty() && name.bytes().all(known)) {
        return Ok(name);
    }
    Err("is no host name; write it as it stands in the address, such as \"hooks.example.com\"".to_owned())
}

/// The header that trusted proxies write.
pub(crate) fn proxy_header(text: &str) -> Result<ProxyHeader, String> {
    [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded]
        .into_iter()
        .find(|header| header.as_str().eq_ignore_ascii_case(text))
        .ok_or_else(|| "is not \"x-forwarded-for\" or \"forwarded\"".to_owned())
}

/// A number of requests in a second, a minute or an hour.
pub(crate) fn rate(text: &str) -> Result<RateLimit, String> {
    let expected = "is no rate; write \"100/s\", \"600/m\" or \"5000/h\"";
    let (requests, unit) = text.split_once('/').ok_or(expected)?;
    let per = match unit.trim() {
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return Err(expected.to_owned()),
    };
    let requests = requests.trim();
    if requests.is_empty() || !requests.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(expected.to_owned());
    }
    match requests.parse::<u32>() {
        Ok(requests @ 1..=RATE_REQUESTS_MAX) => Ok(RateLimit { requests, per }),
        _ => Err(format!("is not between 1 and {RATE_REQUESTS_MAX}; leave `rate` out for no limit")),
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
    fn host_names_are_read_without_their_surroundings() {
        for (text, name) in [("Hooks.Example.com", "hooks.example.com"), ("hooks", "hooks"), ("::1", "::1")] {
            assert_eq!(host_name(text).as_deref(), Ok(name));
        }
        for text in ["https://hooks.example.com/in", "hooks.example.com:443"] {
            assert!(host_name(text).is_err_and(|error| error.contains("\"hooks.example.com\"")), "{text}");
        }
        for bad in ["", "a b", "a/b", "*.example.com"] {
            assert!(host_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_have_a_number_and_a_time() {
        for text in ["100/s", "600/m", "5000/h"] {
            assert_eq!(rate(text).map(|rate| rate.to_string()).as_deref(), Ok(text));
        }
        for bad in
            ["", "100", "100/", "/s", "100/d", "1.5/s", "-1/s", "+1/s", "0/s", "1000001/s", "99999999999/s"]
        {
            assert!(rate(bad).is_err(), "{bad}");
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
