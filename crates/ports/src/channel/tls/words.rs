//! Texts for TLS errors, with a hint.
//!
//! Source: the alerts of RFC 8446, section 6. Invariant: every error has a text; rarer ones have
//! that of rustls.

use std::path::Path;

use rustls::{CertificateError, Error};

/// Explains why the handshake between the peer and this end failed. This end trusts the CA in the
/// file.
pub(super) fn explain(error: &Error, ca_cert: Option<&Path>) -> String {
    let ca = ca_cert.map_or_else(String::new, |file| format!(" of {}", file.display()));
    match error {
        Error::NoCertificatesPresented => {
            format!("it shows no certificate; give it one that the CA{ca} has signed")
        }
        Error::InvalidCertificate(why) => certificate(why, &ca),
        Error::AlertReceived(alert) => {
            format!("it refused us: {alert:?}; look at its log, CA and clock")
        }
        Error::InvalidMessage(_) => {
            "what it sends is no TLS; let it use ssl:, or offer it tcp: here".to_string()
        }
        Error::PeerIncompatible(why) => format!("no TLS 1.2 or 1.3 in common: {why:?}"),
        other => other.to_string(),
    }
}

fn certificate(why: &CertificateError, ca: &str) -> String {
    use CertificateError as Why;
    match why {
        Why::UnknownIssuer | Why::BadSignature => {
            format!("its certificate is not signed by the CA{ca}; compare both ends' ca_cert")
        }
        Why::Expired | Why::ExpiredContext { .. } => {
            "its certificate has expired; renew it, or set the clock right".to_string()
        }
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            "its certificate is not valid yet; set the clocks right".to_string()
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            "its certificate is not made for this end of a connection; see extendedKeyUsage"
                .to_string()
        }
        other => format!("its certificate cannot be used: {other:?}"),
    }
}
