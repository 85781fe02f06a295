//! The address that a destination is pushed to, checked when it is configured.
//!
//! It is parsed once, by the rules that browsers use (so that `0x7f.1` and `①②⑦.0.0.1` are seen for what they
//! are), and what was parsed is what is connected to: no second reading can come to another host. It resolves
//! no names; what a name stands for is checked at each connection.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::guard::{ForbiddenAddress, Reach, check_address};

/// Most bytes of a push URL.
pub const PUSH_URL_BYTES_MAX: usize = 2_048;

/// Names that mean the machine itself wherever they are asked for.
const LOOPBACK_NAMES: &[&str] = &["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/// Names under which clouds serve credentials to their machines.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// An `http` or `https` URL that a destination may be pushed to, as far as that can be seen without asking a
/// name server.
#[derive(Clone, PartialEq, Eq)]
pub struct PushUrl {
    url: Url,
    host: PushHost,
    port: u16,
    reach: Reach,
}

/// The host of a push URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushHost {
    /// A name, in lower case and ASCII, without the dot at its end.
    Name(String),
    /// An address, written in whatever way.
    Address(IpAddr),
}

/// Why a text is refused as a push URL, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushUrlError {
    /// It is longer than [`PUSH_URL_BYTES_MAX`].
    #[error("the URL has {bytes} bytes, more than {PUSH_URL_BYTES_MAX}")]
    TooLong {
        /// Bytes in it.
        bytes: usize,
    },
    /// It begins with neither `http://` nor `https://`.
    #[error("`{url}` does not begin with `http://` or `https://`")]
    Scheme {
        /// The text.
        url: String,
    },
    /// It holds white space, a control character or a backslash, which programs read differently.
    #[error("the URL holds {0:?}")]
    Character(char),
    /// It cannot be parsed.
    #[error("`{url}` is not a URL: {reason}")]
    Malformed {
        /// The text.
        url: String,
        /// What the parser says.
        reason: String,
    },
    /// It has a user name or password before the host.
    #[error("the URL has a user name or password before the host")]
    Userinfo,
    /// It has a part behind `#`, which is never sent.
    #[error("the URL has a fragment, `#{0}`")]
    Fragment(String),
    /// Its port is 0.
    #[error("the URL's port is 0")]
    Port,
    /// Its host is an address that the destination may not reach.
    #[error("the push address {0}")]
    Forbidden(ForbiddenAddress),
    /// Its host is a name of the machine itself.
    #[error("`{0}` is the machine itself")]
    LoopbackName(String),
    /// Its host is the name of a metadata service.
    #[error("`{0}` is the name of a cloud's metadata service")]
    MetadataName(String),
}

impl PushUrlError {
    /// What a person can do about it, as one sentence without a full stop.
    pub fn fix(&self) -> String {
        match self {
            Self::TooLong { .. } => "give a shorter URL; what the target needs is in the body".into(),
            Self::Scheme { url } if !url.contains("://") => {
                format!("write `https://{url}` or `http://{url}`")
            }
            Self::Scheme { .. } => "push goes by HTTP only; write an `http://` or `https://` URL".into(),
            Self::Character(_) => "remove it, or write it in percent-encoding".into(),
            Self::Malformed { .. } => "write it as `https://host/path`".into(),
            Self::Userinfo => {
                "remove it; let the target check the signature of each push instead of a password".into()
            }
            Self::Fragment(_) => "remove the `#` and what follows it".into(),
            Self::Port => "name the port that the target listens on, or none".into(),
            Self::Forbidden(address) => address.fix().into(),
            Self::LoopbackName(_) => {
                "set `allow_private = true` on the destination if it is meant to reach this machine".into()
            }
            Self::MetadataName(_) => {
                "push to another address; metadata services hand out credentials and are never pushed to"
                    .into()
            }
        }
    }
}

impl PushUrl {
    /// Parses and checks a URL for a destination of that reach.
    ///
    /// # Errors
    ///
    /// [`PushUrlError`], with the fix, for everything that is no plain `http` or `https` URL, and for every
    /// host of which it can be seen here that the destination may not reach it.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, PushUrlError> {
        check_text(text)?;
        let url = Url::parse(text).map_err(|error| malformed(text, &error.to_string()))?;
        if let Some(fragment) = url.fragment() {
            return Err(PushUrlError::Fragment(fragment.to_owned()));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => PushHost::Name(name.trim_end_matches('.').to_owned()),
            Some(Host::Ipv4(address)) => PushHost::Address(address.into()),
            Some(Host::Ipv6(address)) => PushHost::Address(address.into()),
            None => return Err(malformed(text, "it has no host")),
        };
        check_host(&host, reach)?;
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(PushUrlError::Port)?;
        Ok(Self { url, host, port, reach })
    }

    /// How far pushes to it may reach: what it was parsed with.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The host.
    pub fn host(&self) -> &PushHost {
        &self.host
    }

    /// The port, written or implied.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is `https`.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The whole URL, as it is used.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// What the request line names: path and query.
    pub(super) fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// What the `Host` header names: the host, and the port if it was written and is not the scheme's own.
    pub(super) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

impl fmt::Display for PushUrl {
    /// Scheme, host and path. The query is left out: people put secrets there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme(), self.authority(), self.url.path())
    }
}

impl fmt::Debug for PushUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushUrl({self})")
    }
}

/// What the parser would forgive, and another program read differently.
fn check_text(text: &str) -> Result<(), PushUrlError> {
    if text.len() > PUSH_URL_BYTES_MAX {
        return Err(PushUrlError::TooLong { bytes: text.len() });
    }
    let odd = |c: &char| c.is_whitespace() || c.is_control() || *c == '\\';
    if let Some(odd) = text.chars().find(odd) {
        return Err(PushUrlError::Character(odd));
    }
    let Some(rest) = after_scheme(text) else { return Err(PushUrlError::Scheme { url: text.to_owned() }) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(malformed(text, "it has no host"));
    }
    if authority.contains('@') { Err(PushUrlError::Userinfo) } else { Ok(()) }
}

fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(rest)
}

fn malformed(text: &str, reason: &str) -> PushUrlError {
    PushUrlError::Malformed { url: text.to_owned(), reason: reason.to_owned() }
}

fn check_host(host: &PushHost, reach: Reach) -> Result<(), PushUrlError> {
    let name = match host {
        PushHost::Address(address) => {
            return check_address(*address, reach).map_err(PushUrlError::Forbidden);
        }
        PushHost::Name(name) => name,
    };
    if METADATA_NAMES.contains(&name.as_str()) {
        return Err(PushUrlError::MetadataName(name.clone()));
    }
    let is_loopback = LOOPBACK_NAMES.contains(&name.as_str()) || name.ends_with(".localhost");
    if is_loopback && reach == Reach::Public {
        return Err(PushUrlError::LoopbackName(name.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> PushUrlError {
        PushUrl::parse(text, Reach::Public).expect_err(text)
    }

    #[test]
    fn a_plain_url_is_taken_apart() {
        let url = PushUrl::parse("https://App.Example.com/hooks?key=1", Reach::Public).expect("a good URL");
        assert_eq!(url.host(), &PushHost::Name("app.example.com".into()));
        assert_eq!((url.port(), url.is_secure()), (443, true));
        assert_eq!((url.target().as_str(), url.authority().as_str()), ("/hooks?key=1", "app.example.com"));
        assert_eq!(format!("{url:?}"), "PushUrl(https://app.example.com/hooks)", "no query in logs");
        let url = PushUrl::parse("http://[2606:4700::1]:8080", Reach::Public).expect("a good URL");
        assert_eq!((url.target().as_str(), url.authority().as_str()), ("/", "[2606:4700::1]:8080"));
    }

    #[test]
    fn each_refusal_has_its_fix() {
        let fixes = [
            ("localhost:3000/hooks", "write `https://localhost:3000/hooks` or `http://localhost:3000/hooks`"),
            ("ftp://example.com/", "push goes by HTTP only; write an `http://` or `https://` URL"),
            ("http://10.0.0.1/", "set `allow_private = true` on the destination"),
            ("http://localhost/", "set `allow_private = true` on the destination"),
            ("http://example.com/#top", "remove the `#` and what follows it"),
            ("http://example.com:0/", "name the port"),
            ("http://user:pw@example.com/", "remove it"),
            ("http://169.254.169.254/", "push to another address"),
            ("http:///path", "write it as `https://host/path`"),
        ];
        for (text, fix) in fixes {
            assert!(refused(text).fix().starts_with(fix), "{text}: {}", refused(text).fix());
        }
    }

    #[test]
    fn a_private_reach_takes_private_hosts_but_no_metadata() {
        for text in
            ["http://localhost:3000/", "http://app.localhost/", "http://127.0.0.1/", "http://[fd00::1]/"]
        {
            assert!(PushUrl::parse(text, Reach::Private).is_ok(), "{text}");
        }
        for text in ["http://metadata.google.internal./", "http://0xA9FEA9FE/", "http://[fd00:ec2::254]/"] {
            assert!(PushUrl::parse(text, Reach::Private).is_err(), "{text}");
        }
    }
}
