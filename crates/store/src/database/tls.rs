//! TLS for connections to a store.
//!
//! Source: PostgreSQL 17, section 32.19 (`sslmode`, `sslrootcert`, `sslcert`, `sslkey` as in
//! libpq); TLS 1.2 (RFC 5246) and 1.3 (RFC 8446). Invariant: without the requested level of
//! security there is no connection. Certificate revocation lists and channel binding are not
//! supported.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Value of `sslrootcert` that selects the system's trusted CAs.
const SYSTEM: &str = "system";

/// Common locations of the system's trusted CAs.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// TLS files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// CA certificates that verify the server, or `system`.
    pub(super) roots: Option<PathBuf>,
    /// Client certificate.
    pub(super) certificate: Option<PathBuf>,
    /// Private key of the client certificate.
    pub(super) key: Option<PathBuf>,
}

impl Files {
    /// Fills in the files at libpq's default locations.
    pub(super) fn or_usual(self, home: Option<&Path>) -> Files {
        let usual = |name: &str| {
            home.map(|home| home.join(".postgresql").join(name)).filter(|file| file.is_file())
        };
        Files {
            roots: self.roots.or_else(|| usual("root.crt")),
            certificate: self.certificate.or_else(|| usual("postgresql.crt")),
            key: self.key.or_else(|| usual("postgresql.key")),
        }
    }
}

/// Required level of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Security {
    /// No TLS.
    None,
    /// TLS if the server supports it, without verification (`prefer`).
    Preferred(Files),
    /// TLS without verification (`require`).
    Encrypted(Files),
    /// TLS with a verified CA (`verify-ca`).
    Vouched(Files),
    /// TLS with a verified CA and host name (`verify-full`).
    Named(Files),
}

impl Security {
    /// The corresponding mode of the library.
    pub(super) fn mode(&self) -> SslMode {
        match self {
            Security::None => SslMode::Disable,
            Security::Preferred(_) => SslMode::Prefer,
            _ => SslMode::Require,
        }
    }

    /// Creates a TLS connector for a host.
    pub(super) fn connector(&self, host: &str) -> Result<Connector, String> {
        let provider = Arc::new(ring::default_provider());
        let (files, verifier): (_, Arc<dyn ServerCertVerifier>) = match self {
            Security::None => return Ok(Connector(None)),
            Security::Preferred(files) | Security::Encrypted(files) => {
                (files, Arc::new(AnyHostVerifier { roots: None, provider: Arc::clone(&provider) }))
            }
            Security::Vouched(files) => {
                let roots = Some(roots(files)?);
                (files, Arc::new(AnyHostVerifier { roots, provider: Arc::clone(&provider) }))
            }
            Security::Named(files) => {
                let roots = Arc::new(roots(files)?);
                let built =
                    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
                (files, built.build().map_err(|error| format!("sslrootcert: {error}"))?)
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&files.certificate, &files.key) {
            (None, _) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let shown = key.display();
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("{shown}: {error}"))?;
                let chain = certificates(certificate)?;
                let made = config.with_client_auth_cert(chain, key);
                made.map_err(|error| format!("{}: {error}", certificate.display()))?
            }
            (Some(certificate), None) => {
                let certificate = certificate.display();
                return Err(format!("{certificate}: no private key (hint: add sslkey=FILE)"));
            }
        };
        let name =
            ServerName::try_from(host.to_string()).map_err(|error| format!("{host}: {error}"))?;
        Ok(Connector(Some((TlsConnector::from(Arc::new(config)), name))))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    match found.is_empty() {
        true => Err(wrong(&"the file contains no certificate")),
        false => Ok(found),
    }
}

/// The CAs that verify the server.
fn roots(files: &Files) -> Result<RootCertStore, String> {
    let Some(file) = &files.roots else {
        let why = "no CA certificate to verify the server (hint: add sslrootcert=FILE or \
                   sslrootcert=system)";
        return Err(why.into());
    };
    let mut roots = RootCertStore::empty();
    if file.as_os_str() == SYSTEM {
        let there = SYSTEM_ROOTS.iter().map(Path::new).find(|it| it.is_file());
        let there =
            there.ok_or("sslrootcert=system: no list of CAs (hint: install ca-certificates)")?;
        // Ignores CA certificates that cannot be parsed.
        roots.add_parsable_certificates(certificates(there)?);
        return Ok(roots);
    }
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(roots)
}

/// Certificate verifier that ignores the host name. Without CAs it accepts any certificate.
#[derive(Debug)]
struct AnyHostVerifier {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHostVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let all = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A bidirectional byte stream.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection to the server of any kind.
pub(super) type ServerStream = Box<dyn Bytes>;

/// Adds TLS to a connection, if required.
pub(super) struct Connector(Option<(TlsConnector, ServerName<'static>)>);

impl TlsConnect<ServerStream> for Connector {
    type Stream = Secured;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured>> + Send>>;

    fn connect(self, way: ServerStream) -> Self::Future {
        Box::pin(async move {
            let (connector, name) =
                self.0.ok_or_else(|| io::Error::other("TLS was not requested"))?;
            connector.connect(name, way).await.map(Secured)
        })
    }
}

/// A connection with TLS.
pub(super) struct Secured(tokio_rustls::client::TlsStream<ServerStream>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
