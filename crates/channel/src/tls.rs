//! TLS on control channels: this end's identity, the trusted CA, and connections.
//!
//! Source: OpenFlow switch specification 1.0.0, section 4.1 (and 1.3, 6.3.3): both ends
//! authenticate by certificates signed by a site-specific key; TLS 1.2 (RFC 5246) and 1.3 (RFC
//! 8446). A peer is trusted if its certificate chains to the CA and is currently valid. Like Open
//! vSwitch, this module does not compare names in the certificate with addresses: the CA certifies
//! the switches and controllers of one network, whose addresses change.
//!
//! Invariant: connecting requires a CA, and a listener with a CA accepts only clients with a
//! certificate of that CA.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, IpAddr as TlsIp, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, Connection, InconsistentKeys, RootCertStore, ServerConfig,
    ServerConnection,
};

use super::{ChannelError, Url};

mod no_hostname_verifier;
pub(super) mod stream;
mod errors;

/// Supported versions; 1.1 and older are insecure (RFC 8996).
const VERSIONS: [&rustls::SupportedProtocolVersion; 2] =
    [&rustls::version::TLS13, &rustls::version::TLS12];

/// Maximum number of bytes of a file with certificates or a key.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// The PEM files of a TLS configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The private key of the certificate.
    pub private_key: Option<PathBuf>,
    /// This end's certificate, followed by those between it and the CA.
    pub certificate: Option<PathBuf>,
    /// Certificates of the CAs that sign peers' certificates.
    pub ca_cert: Option<PathBuf>,
}

impl Files {
    /// Returns whether no file is named.
    pub fn is_empty(&self) -> bool {
        *self == Files::default()
    }
}

/// A TLS configuration; copies share it.
#[derive(Debug, Clone)]
pub struct Tls {
    client: Option<Arc<ClientConfig>>,
    server: Option<Arc<ServerConfig>>,
    ca_cert: Option<Arc<PathBuf>>,
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Tls {
    /// Reads the files. Listening requires a certificate and its key; connecting requires a CA.
    ///
    /// With both, either end must authenticate. A listener without a CA accepts all clients.
    pub fn load(files: &Files) -> Result<Tls, ChannelError> {
        let identity = identity(files)?;
        let roots = files.ca_cert.as_deref().map(roots).transpose()?.map(Arc::new);
        let provider = Arc::new(ring::default_provider());
        let client = match &roots {
            Some(roots) => Some(client(&provider, roots, &identity, files)?),
            None => None,
        };
        let server = match &identity {
            Some(identity) => Some(server(&provider, roots.as_ref(), identity, files)?),
            None => None,
        };
        let ca_cert = files.ca_cert.clone().map(Arc::new);
        Ok(Tls { client: client.map(Arc::new), server: server.map(Arc::new), ca_cert })
    }

    /// Checks that the configuration has what `url` requires; succeeds for addresses without TLS.
    pub fn check(tls: Option<&Tls>, url: &Url) -> Result<(), ChannelError> {
        let (setting, there, why) = match url {
            Url::Tls(_) => (
                "ca_cert",
                tls.is_some_and(|tls| tls.client.is_some()),
                "name the file with the certificate of the peer's CA",
            ),
            Url::PassiveTls(_) => (
                "certificate",
                tls.is_some_and(|tls| tls.server.is_some()),
                "name the files of certificate and private_key",
            ),
            _ => return Ok(()),
        };
        match there {
            true => Ok(()),
            false => Err(ChannelError::Credentials {
                setting,
                file: None,
                why: format!("missing for {url} (hint: {why})"),
            }),
        }
    }

    /// Returns the state of a connection that this end made to `address`.
    fn connecting(&self, address: std::net::IpAddr) -> Result<Connection, rustls::Error> {
        let config = self.client.clone().expect("checked before the connection");
        let name = ServerName::IpAddress(TlsIp::from(address));
        ClientConnection::new(config, name).map(Connection::Client)
    }

    /// Returns the state of a connection that a peer made to this end.
    fn accepting(&self) -> Result<Connection, rustls::Error> {
        let config = self.server.clone().expect("checked before the listener");
        ServerConnection::new(config).map(Connection::Server)
    }
}

fn unusable(setting: &'static str, file: &Path, why: impl Into<String>) -> ChannelError {
    ChannelError::Credentials { setting, file: Some(file.to_owned()), why: why.into() }
}

fn identity(files: &Files) -> Result<Option<Identity>, ChannelError> {
    let (certificate, key) = match (&files.certificate, &files.private_key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(file), None) => {
            return Err(unusable("certificate", file, "no private_key for it (hint: set both)"));
        }
        (None, Some(file)) => {
            return Err(unusable("private_key", file, "no certificate for it (hint: set both)"));
        }
    };
    let chain = certificates("certificate", certificate)?;
    let text = read("private_key", key)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let why = match error {
            pem::Error::NoItemsFound => "no private key in PEM format without password \
                (hint: convert it with 'openssl pkey -in FILE -out NEW')"
                .to_string(),
            other => format!("not a PEM file: {other}"),
        };
        unusable("private_key", key, why)
    })?;
    Ok(Some((chain, key)))
}

fn certificates(
    setting: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, ChannelError> {
    let text = read(setting, file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| unusable(setting, file, format!("not a PEM file: {error}")))?;
    match all.is_empty() {
        true => Err(unusable(
            setting,
            file,
            "no certificate in PEM format (hint: convert it with 'openssl x509 -inform DER -in \
             FILE -out NEW')",
        )),
        false => Ok(all),
    }
}

fn read(setting: &'static str, file: &Path) -> Result<Vec<u8>, ChannelError> {
    use std::io::Read;
    let failed = |error: std::io::Error| {
        unusable(
            setting,
            file,
            format!("cannot read the file: {error} (hint: check its name and permissions)"),
        )
    };
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(unusable(setting, file, "file too large: at most 1 MiB")),
        false => Ok(text),
    }
}

fn roots(file: &Path) -> Result<RootCertStore, ChannelError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca_cert", file)? {
        roots
            .add(certificate)
            .map_err(|error| unusable("ca_cert", file, format!("not a CA certificate: {error}")))?;
    }
    Ok(roots)
}

fn client(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    identity: &Option<Identity>,
    files: &Files,
) -> Result<ClientConfig, ChannelError> {
    let verifier = no_hostname_verifier::NoHostnameVerifier::new(
        roots.clone(),
        provider.signature_verification_algorithms,
    );
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&VERSIONS)
        .expect("the provider has suites for both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|error| refused(&error, files))?,
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

fn server(
    provider: &Arc<CryptoProvider>,
    roots: Option<&Arc<RootCertStore>>,
    (chain, key): &Identity,
    files: &Files,
) -> Result<ServerConfig, ChannelError> {
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&VERSIONS)
        .expect("the provider has suites for both versions");
    let builder = match roots {
        Some(roots) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
                    .build()
                    .expect("there is a CA and no revocation list");
            builder.with_client_cert_verifier(verifier)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| refused(&error, files))?;
    // Controllers stay connected: resumption would only keep state of those that left.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Builds the error for a certificate and key that were read but cannot be used together.
fn refused(error: &rustls::Error, files: &Files) -> ChannelError {
    let (key, certificate) = (files.private_key.clone(), files.certificate.clone());
    let (key, certificate) = (key.unwrap_or_default(), certificate.unwrap_or_default());
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let why = format!("not the key of the certificate in {}", certificate.display());
            unusable("private_key", &key, why)
        }
        rustls::Error::InvalidCertificate(_) => {
            unusable("certificate", &certificate, format!("unusable: {error}"))
        }
        other => unusable("private_key", &key, format!("unusable: {other}")),
    }
}

#[cfg(test)]
mod tests;
