//! Where a push must not go, it does not go: a table of forms (`forbidden.txt`), names that change their
//! mind, and redirects. What counts is that nothing connects.

use std::sync::Arc;
use std::time::Duration;

use hookstead::sink::push::{DIALED_MAX, PushOptions, PushSink, PushUrl, Reach, SigningSecret};
use hookstead::sink::{Sink, TargetHealth, Tried, TriedVerdict};

use super::network::MadeUp;
use super::outgoing::outgoing;
use super::target::{Step, Target, say};

const FORMS: &str = include_str!("forbidden.txt");

/// How many forms there are at least; so many the product has promised.
const FORMS_MIN: usize = 300;

const PUBLIC: &str = "203.0.114.7";

fn forms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = FORMS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a kind and a form"))
}

fn options(url: &str, reach: Reach) -> PushOptions {
    let options = PushOptions::new(PushUrl::parse(url, reach).unwrap(), SigningSecret::generate().unwrap());
    PushOptions { timeout: Duration::from_secs(30), ..options }
}

fn sink(url: &str, reach: Reach, network: &Arc<MadeUp>) -> PushSink {
    PushSink::new(options(url, reach), Arc::clone(network) as _).unwrap()
}

#[track_caller]
fn check_forbidden(tried: &Tried) {
    assert_eq!(tried.rule, "address-forbidden", "{tried:?}");
    assert_eq!(tried.verdict, TriedVerdict::Retry { after: None });
    assert_eq!((tried.target, tried.status), (TargetHealth::Down, None));
}

/// Refused at configuration, or, if it were let in there, at the connection: nothing is ever dialed.
#[tokio::test]
async fn no_form_of_a_forbidden_address_connects() {
    let mut tried = 0;
    for (kind, form) in forms() {
        tried += 1;
        match kind {
            "resolves" => check_resolved(form, &[Reach::Public]).await,
            "resolves-never" => check_resolved(form, &[Reach::Public, Reach::Loopback, Reach::Private]).await,
            "private" => check_url(form, &[Reach::Public]),
            "never" | "malformed" => check_url(form, &[Reach::Public, Reach::Loopback, Reach::Private]),
            unknown => panic!("kind `{unknown}`"),
        }
    }
    assert!(tried >= FORMS_MIN, "{tried} forms");
}

fn check_url(form: &str, reaches: &[Reach]) {
    for reach in reaches {
        let refused = PushUrl::parse(form, *reach).expect_err(form);
        assert!(!refused.fix().is_empty() && !refused.fix().ends_with('.'), "{form}");
    }
}

/// Alone, and hidden among public addresses.
async fn check_resolved(address: &str, reaches: &[Reach]) {
    for reach in reaches {
        for answer in [&[address][..], &[PUBLIC, "2606:4700::1", address], &[PUBLIC; DIALED_MAX + 1]] {
            let hidden = [answer, &[address]].concat();
            let network = Arc::new(MadeUp::dead_end().with("app.test", &[&hidden]));
            let tried = sink("http://app.test/hooks", *reach, &network).deliver(&outgoing()).await;
            check_forbidden(&tried);
            assert_eq!(network.dialed(), [], "{address} {reach:?}");
            let error = tried.error.unwrap_or_default();
            assert!(error.starts_with("`app.test` stands for `"), "{error}");
        }
    }
}

/// The private forms are real addresses: with `allow_private` they are reached.
#[tokio::test]
async fn what_is_private_is_reached_if_the_destination_says_so() {
    let target = Target::start(vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    for (kind, form) in forms() {
        if kind == "resolves" {
            let network = Arc::new(MadeUp::leading_to(target.address()).with("app.test", &[&[form]]));
            let tried = sink("http://app.test/hooks", Reach::Private, &network).deliver(&outgoing()).await;
            assert_eq!(tried.rule, "success", "{form}: {tried:?}");
            assert_eq!(network.dialed(), [std::net::SocketAddr::new(form.parse().unwrap(), 80)]);
        }
    }
}

/// The name is looked up once an attempt, and what was checked is what is dialed.
#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let target = Target::start(vec![Step::Read, say("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")]).await;
    let answers: &[&[&str]] = &[&[PUBLIC], &["127.0.0.1"], &["169.254.169.254"], &[PUBLIC], &["::1", PUBLIC]];
    let network = Arc::new(MadeUp::leading_to(target.address()).with("rebinding.test", answers));
    let sink = sink("http://rebinding.test/", Reach::Public, &network);
    for (look_up, answer) in answers.iter().enumerate() {
        let tried = sink.deliver(&outgoing()).await;
        if *answer == [PUBLIC] {
            assert_eq!(tried.rule, "success", "{tried:?}");
        } else {
            check_forbidden(&tried);
        }
        assert_eq!(network.looked_up.lock().unwrap().len(), look_up + 1);
    }
    let public = format!("{PUBLIC}:80").parse().unwrap();
    assert_eq!(network.dialed(), [public, public]);
}

/// A checked target may send anywhere by a redirect: nothing follows, no name in it is looked up.
#[tokio::test]
async fn a_redirect_to_a_forbidden_address_is_not_followed() {
    let urls = || forms().filter(|(kind, _)| ["private", "never"].contains(kind)).map(|(_, url)| url);
    for (form, status) in urls().zip([301, 302, 303, 307, 308].into_iter().cycle()) {
        let answer = format!("HTTP/1.1 {status} Go\r\nlocation: {form}\r\nconnection: close\r\n\r\n");
        let target = Target::start(vec![Step::Read, say(answer)]).await;
        let network = Arc::new(MadeUp::leading_to(target.address()).with("app.test", &[&[PUBLIC]]));
        let tried = sink("http://app.test/", Reach::Public, &network).deliver(&outgoing()).await;
        assert_eq!((tried.rule, tried.status), ("redirect-not-followed", Some(status)), "{form}");
        assert_eq!((network.dialed().len(), target.connections()), (1, 1), "{form}");
        assert_eq!(*network.looked_up.lock().unwrap(), ["app.test"]);
    }
}
