//! Which addresses are trusted: those that a record names, whatever a request says.

/// Longest address, in bytes.
const URL_BYTES_MAX: usize = 1024;

/// Fewest characters of a label that a `*` stands for.
const LABEL_MIN: usize = 3;

/// A record's rule for addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pin {
    hosts: Vec<String>,
    suffix: String,
}

/// Whether an address may have a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Query {
    Refused,
    Allowed,
}

impl Pin {
    /// A rule of hosts, in which a `*` stands for one label, and of what the path ends with.
    pub(crate) fn compile(hosts: &[String], suffix: &str) -> Result<Self, String> {
        let label = |label: &str| {
            label == "*"
                || (!label.is_empty() && label.bytes().all(|byte| is_host_byte(byte) && byte != b'.'))
        };
        for host in hosts {
            let labels: Vec<_> = host.split('.').collect();
            // Two labels at the end that are written out: a registered name, not a whole top-level domain.
            let written = labels.iter().rev().take_while(|label| **label != "*").count();
            if !labels.iter().all(|part| label(part)) || written < 2 {
                return Err(format!(
                    "`{host}` is no host; `*` stands for one label and not for the last two"
                ));
            }
        }
        Ok(Self { hosts: hosts.to_vec(), suffix: suffix.to_owned() })
    }

    /// Whether the address is `https`, without user, port and fragment, at one of the hosts, with a plain path.
    pub(crate) fn holds(&self, url: &str, query: Query) -> bool {
        let Some(rest) = url.strip_prefix("https://").filter(|_| url.len() <= URL_BYTES_MAX) else {
            return false;
        };
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (path, query) = match (path.split_once('?'), query) {
            (Some((path, found)), Query::Allowed) => (path, found),
            (Some(_), Query::Refused) => return false,
            (None, _) => (path, ""),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        self.hosts.iter().any(|pattern| is_host(pattern, host))
            && path.bytes().all(plain)
            && !path.contains("..")
            && path.ends_with(&self.suffix)
            && query.bytes().all(|byte| plain(byte) || b"%=&:+".contains(&byte))
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-.".contains(&byte)
}

fn is_host(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.split('.'), host.split('.'));
    let fits = |(pattern, label): (&str, &str)| match pattern {
        "*" => label.len() >= LABEL_MIN && label.bytes().all(is_host_byte),
        other => other.eq_ignore_ascii_case(label),
    };
    pattern.clone().count() == host.clone().count() && pattern.zip(host).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_hosts_pass() {
        let pin = Pin::compile(&["sns.*.amazonaws.com".into(), "api.example.com".into()], ".pem").unwrap();
        let holds = |url: &str| pin.holds(url, Query::Refused);
        assert!(holds("https://sns.eu-west-1.amazonaws.com/a-1.pem"));
        assert!(holds("https://API.example.com/x.pem"));
        for url in [
            "http://sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
            "https://evil.example/sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com@evil.example/a.pem",
            "https://user@sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com:444/a.pem",
            "https://sns.eu.west.amazonaws.com/a.pem",
            "https://sns.e.amazonaws.com/a.pem",
            "https://sns.evil%2eexample.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com/a.pem?x=1",
            "https://sns.eu-west-1.amazonaws.com/a.pem#x",
            "https://sns.eu-west-1.amazonaws.com/../a.pem",
            "https://sns.eu-west-1.amazonaws.com/a.crt",
            "https://sns.eu-west-1.amazonaws.com\\/a.pem",
            "https://s3.amazonaws.com/sns.eu-west-1.amazonaws.com/a.pem",
            "https:///a.pem",
            "",
        ] {
            assert!(!holds(url), "{url}");
        }
        assert!(!holds(&format!("https://api.example.com/{}.pem", "a".repeat(URL_BYTES_MAX))));
        let open = Pin::compile(&["api.example.com".into()], "").unwrap();
        assert!(open.holds("https://api.example.com/?Action=Confirm&Token=ab%3A", Query::Allowed));
        assert!(!open.holds("https://api.example.com/?a=b#c", Query::Allowed));
        assert!(!Pin::default().holds("https://api.example.com/", Query::Refused));
    }

    #[test]
    fn a_rule_names_a_domain() {
        for host in ["*", "*.com", "com", "", "a..com", "a.*.com", "a/b.com"] {
            assert!(Pin::compile(&[host.into()], "").is_err(), "{host}");
        }
    }
}
