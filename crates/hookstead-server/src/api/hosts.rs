//! Which `Host` the admin listener answers to. A page of a stranger that had its own name resolved to our
//! address (DNS rebinding) sends its own name here, and is refused.

use std::net::{IpAddr, SocketAddr};

/// The allowed hosts of a listener.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    listener: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// For a listener, and the names that were configured, in lower case.
    pub(crate) fn new(listener: SocketAddr, names: &[String]) -> Self {
        Self { listener: listener.ip().to_canonical(), names: names.to_vec() }
    }

    /// Whether a `Host` value is one of ours; its port does not matter.
    ///
    /// An address written in digits cannot be rebound: whoever uses it has reached it. It is still taken only
    /// where it can be the listener's.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if name == "localhost" || self.names.iter().any(|known| known == name) {
            return true;
        }
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        address.parse::<IpAddr>().is_ok_and(|address| self.is_ours(address.to_canonical()))
    }

    fn is_ours(&self, address: IpAddr) -> bool {
        self.listener.is_unspecified() || address == self.listener || address.is_loopback()
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_allowed() {
        let loopback = Hosts::new("127.0.0.1:4666".parse().unwrap(), &["hooks.internal".to_owned()]);
        for good in [
            "127.0.0.1:4666",
            "127.0.0.1",
            "localhost:4666",
            "LocalHost",
            "localhost.",
            "[::1]:4666",
            "::1",
            "hooks.internal",
            "Hooks.Internal:443",
        ] {
            assert!(loopback.allows(good), "{good}");
        }
        for bad in
            ["", "evil.example", "evil.example:4666", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil"]
        {
            assert!(!loopback.allows(bad), "{bad}");
        }
        let open = Hosts::new("0.0.0.0:4666".parse().unwrap(), &[]);
        assert!(open.allows("10.0.0.1:4666") && !open.allows("evil.example"));
    }
}
