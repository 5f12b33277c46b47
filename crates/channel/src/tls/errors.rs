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
            format!("the peer has no certificate (hint: give it one that the CA{ca} has signed)")
        }
        Error::InvalidCertificate(why) => certificate(why, &ca),
        Error::AlertReceived(alert) => {
            format!("rejected by the peer: {alert:?} (hint: check its log, CA and clock)")
        }
        Error::InvalidMessage(_) => {
            "the peer does not use TLS (hint: use ssl: at the peer, or tcp: here)".to_string()
        }
        Error::PeerIncompatible(why) => format!("no common version of TLS 1.2 and 1.3: {why:?}"),
        other => other.to_string(),
    }
}

fn certificate(why: &CertificateError, ca: &str) -> String {
    use CertificateError as Why;
    match why {
        Why::UnknownIssuer | Why::BadSignature => {
            format!(
                "the peer's certificate is not signed by the CA{ca} (hint: compare ca_cert of \
                 both ends)"
            )
        }
        Why::Expired | Why::ExpiredContext { .. } => {
            "the peer's certificate has expired (hint: renew it, or correct the clock)".to_string()
        }
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            "the peer's certificate is not valid yet (hint: correct the clocks)".to_string()
        }
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            "the peer's certificate is not valid for its role (hint: check extendedKeyUsage)"
                .to_string()
        }
        other => format!("the peer's certificate is unusable: {other:?}"),
    }
}
