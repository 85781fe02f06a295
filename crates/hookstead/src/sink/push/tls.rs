//! TLS towards targets: what is trusted, and what a failure means in plain words.
//!
//! Trusted is what the system trusts, so that an operator's own CA and its removal of one hold here as well,
//! and no list of roots ages inside the binary; beside it the destination's `ca_file`. Nothing switches
//! checks off.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error};

use super::options::PushSetupError;
use super::url::PushHost;

/// Most bytes of a CA file: several times what all public CAs together take.
pub const CA_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A connector that trusts the system's CAs and those in the file.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, PushSetupError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let extra = ca_file.map_or(Ok(vec![]), certificates)?;
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider));
    let verifier = verifier.map_err(|error| match ca_file {
        Some(path) => ca_file_error(path, &error.to_string()),
        None => PushSetupError::Trust(error.to_string()),
    })?;
    let mut config = config(provider, verifier).map_err(|error| PushSetupError::Trust(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn config(provider: Arc<CryptoProvider>, verifier: Verifier) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    // "Dangerous" is a verifier of one's own; this one checks all that the default one does, with the
    // system's roots.
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PushSetupError> {
    let pem = read(path).map_err(|error| ca_file_error(path, &error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| ca_file_error(path, &error.to_string()))?;
    if found.is_empty() { Err(ca_file_error(path, "it holds no certificate")) } else { Ok(found) }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut pem = vec![];
    File::open(path)?.take(CA_FILE_BYTES_MAX + 1).read_to_end(&mut pem)?;
    if pem.len() as u64 > CA_FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {CA_FILE_BYTES_MAX} bytes")));
    }
    Ok(pem)
}

fn ca_file_error(path: &Path, reason: &str) -> PushSetupError {
    PushSetupError::CaFile { path: path.to_owned(), reason: reason.to_owned() }
}

/// The name that the target's certificate has to bear.
pub(super) fn server_name(host: &PushHost) -> Result<ServerName<'static>, InvalidDnsNameError> {
    match host {
        PushHost::Name(name) => ServerName::try_from(name.clone()),
        PushHost::Address(address) => Ok(ServerName::from(IpAddr::to_owned(address))),
    }
}

/// A failed handshake in plain words, with the fix where there is one.
pub(super) fn explain(error: &io::Error) -> String {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return format!("no TLS: {error}");
    };
    match tls {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the certificate comes from a CA that is not trusted here; if it is a private one, set `ca_file` on the \
             destination"
                .into()
        }
        Error::InvalidMessage(_) => "the target does not speak TLS at this port; is it an `http://` address?".into(),
        Error::InvalidCertificate(error) => format!("the certificate is not valid: {error}"),
        other => format!("no TLS: {other}"),
    }
}
