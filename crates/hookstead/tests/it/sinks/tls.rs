//! `https` targets: whose certificate is trusted is pushed to, and of every other the reason is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookstead::sink::push::{
    CA_FILE_BYTES_MAX, PushOptions, PushSetupError, PushSink, PushUrl, Reach, SigningSecret, SystemNetwork,
};
use hookstead::sink::{Sink, TargetHealth, Tried, TriedVerdict};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::network::MadeUp;
use super::outgoing::{BODY, outgoing};
use super::target::{Step, Target, say};

/// Certificates and keys that `certs/make.sh` made.
pub(super) fn certs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sinks/certs").join(file)
}

pub(super) fn acceptor(name: &str) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(certs(&format!("{name}.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_file(certs(&format!("{name}.key"))).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![certificate], key).unwrap()))
}

fn options(url: &str, ca_file: Option<PathBuf>) -> PushOptions {
    let url = PushUrl::parse(url, Reach::Loopback).unwrap();
    PushOptions { ca_file, ..PushOptions::new(url, SigningSecret::generate().unwrap()) }
}

fn answer() -> Vec<Step> {
    vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")]
}

/// One attempt under a name that leads to the target.
async fn push_to(target: &Target, host: &str, ca_file: Option<PathBuf>) -> Tried {
    let network = MadeUp::leading_to(target.address()).with("app.test", &[&["127.0.0.1"]]);
    let sink = PushSink::new(options(&format!("https://{host}/"), ca_file), Arc::new(network));
    let tried = sink.unwrap().deliver(&outgoing()).await;
    target.wait_for_silence().await;
    tried
}

#[tokio::test]
async fn a_private_ca_is_trusted_by_its_file() {
    let target = Target::start_tls(answer(), acceptor("good")).await;
    for host in ["app.test", "app.test.", "127.0.0.1"] {
        let tried = push_to(&target, host, Some(certs("ca.pem"))).await;
        assert_eq!((tried.rule, &tried.excerpt[..]), ("success", &b"ok"[..]), "{tried:?}");
        assert_eq!(target.seen().pop().unwrap().body, BODY);
    }
}

#[tokio::test]
async fn every_other_certificate_is_refused_and_says_why() {
    for (certificate, ca_file, reason) in [
        ("good", None, "a CA that is not trusted here; if it is a private one, set `ca_file`"),
        ("expired", Some("ca.pem"), "the certificate is not valid: certificate expired"),
        (
            "other",
            Some("ca.pem"),
            "the certificate is not valid: certificate not valid for name \"app.test\"",
        ),
    ] {
        let target = Target::start_tls(answer(), acceptor(certificate)).await;
        // Without a CA file the system's are needed, which a bare machine may not have.
        let ca_file = Some(ca_file.map_or_else(|| certs("other.pem"), certs));
        let tried = push_to(&target, "app.test", ca_file).await;
        assert_eq!((tried.rule, tried.target), ("tls-failed", TargetHealth::Down));
        assert_eq!(tried.verdict, TriedVerdict::Retry { after: None });
        assert!(tried.error.as_deref().unwrap_or_default().contains(reason), "{tried:?}");
        assert_eq!(target.seen().len(), 0, "nothing is said before the certificate is checked");
    }
}

/// The last one drips a record of the greatest length.
#[tokio::test]
async fn what_is_no_tls_fails_in_time() {
    for (script, rule, reason) in [
        (vec![say("HTTP/1.1 400 Bad Request\r\n\r\n"), Step::Hang], "tls-failed", "does not speak TLS"),
        (vec![Step::Glance, Step::Reset], "tls-failed", "no TLS"),
        (vec![Step::Glance], "tls-failed", "no TLS"),
        (vec![Step::Hang], "timeout", "no connection within 400ms"),
        (
            vec![Step::Drip([&[22, 3, 3, 64, 0][..], &[0; 64 * 256]].concat())],
            "timeout",
            "no connection within 400ms",
        ),
    ] {
        let target = Target::start(script).await;
        let url = format!("https://{}/", target.address());
        let timeout = if rule == "timeout" { Duration::from_millis(400) } else { Duration::from_secs(30) };
        let options = PushOptions { timeout, ..options(&url, Some(certs("ca.pem"))) };
        let tried =
            PushSink::new(options, Arc::new(SystemNetwork::new())).unwrap().deliver(&outgoing()).await;
        assert_eq!(tried.rule, rule, "{tried:?}");
        assert!(tried.error.as_deref().unwrap_or_default().contains(reason), "{tried:?}");
        target.wait_for_silence().await;
    }
}

#[tokio::test]
async fn http_to_a_tls_port_is_no_answer() {
    let target = Target::start_tls(answer(), acceptor("good")).await;
    let url = format!("http://{}/", target.address());
    let sink = PushSink::new(options(&url, None), Arc::new(SystemNetwork::new())).unwrap();
    let tried = sink.deliver(&outgoing()).await;
    assert!(["answer-invalid", "connection-lost"].contains(&tried.rule), "{tried:?}");
}

#[test]
fn a_ca_file_that_is_none_is_refused_when_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let huge = vec![b'\n'; usize::try_from(CA_FILE_BYTES_MAX).unwrap() + 1];
    for path in [
        folder.path().join("missing"),
        folder.path().to_owned(),
        write("empty", b""),
        write("text", b"no PEM at all"),
        write("broken", b"-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n"),
        write("no-certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        write("huge", &huge),
        certs("good.key"),
    ] {
        let sink =
            PushSink::new(options("https://app.test/", Some(path.clone())), Arc::new(MadeUp::dead_end()));
        let error = sink.expect_err("a CA file that is none");
        assert!(matches!(&error, PushSetupError::CaFile { path: named, .. } if *named == path), "{error}");
    }
}
