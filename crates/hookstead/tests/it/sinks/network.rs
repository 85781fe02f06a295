//! A network whose names and connections are made up, and counted.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use hookstead::sink::push::{Dialing, Network, Resolving};
use tokio::net::TcpStream;

/// Answers each look-up of a name with the next of its answers, the last one again and again, and sends every
/// connection to one place.
#[derive(Default)]
pub(super) struct MadeUp {
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    leads_to: Option<SocketAddr>,
    /// The names that were looked up.
    pub(super) looked_up: Mutex<Vec<String>>,
    /// The addresses that were connected to.
    pub(super) dialed: Mutex<Vec<SocketAddr>>,
}

impl MadeUp {
    /// One where every connection is refused.
    pub(super) fn dead_end() -> Self {
        Self::default()
    }

    /// One where every connection leads to that address.
    pub(super) fn leading_to(address: SocketAddr) -> Self {
        Self { leads_to: Some(address), ..Self::default() }
    }

    /// What a name stands for, look-up after look-up.
    pub(super) fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }

    pub(super) fn dialed(&self) -> Vec<SocketAddr> {
        self.dialed.lock().unwrap().clone()
    }
}

impl Network for MadeUp {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            self.looked_up.lock().unwrap().push(name.to_owned());
            let mut names = self.names.lock().unwrap();
            let answers = names.get_mut(name).ok_or_else(|| io::Error::other("no such name"))?;
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        })
    }

    fn dial(&self, address: SocketAddr) -> Dialing<'_> {
        Box::pin(async move {
            self.dialed.lock().unwrap().push(address);
            match self.leads_to {
                Some(target) => TcpStream::connect(target).await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}
