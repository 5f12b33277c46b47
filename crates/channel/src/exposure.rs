//! Which listeners accept unauthenticated clients.
//!
//! Only processes of this host reach loopback addresses and socket files, and the host
//! authenticates their users. Other hosts reach all other addresses. There, TLS with a CA
//! authenticates clients by their certificates.

use super::{ChannelError, Url};

impl Url {
    /// Returns whether only processes of this host can connect: a loopback address or a socket
    /// file.
    pub fn is_local(&self) -> bool {
        match self {
            Url::Unix(_) | Url::PassiveUnix(_) => true,
            Url::Tcp(address)
            | Url::PassiveTcp(address)
            | Url::Tls(address)
            | Url::PassiveTls(address)
            | Url::Sctp(address)
            | Url::PassiveSctp(address) => address.ip().to_canonical().is_loopback(),
        }
    }

    /// Returns whether a listener at this address accepts unauthenticated clients.
    ///
    /// These are listeners that other hosts reach without TLS, and listeners with TLS but without a
    /// CA (`has_ca`).
    pub fn accepts_anyone(&self, has_ca: bool) -> bool {
        match self {
            Url::PassiveTls(_) => !has_ca,
            _ => self.is_passive() && !self.is_local(),
        }
    }

    /// Rejects a listener that other hosts reach without authentication, unless `is_insecure`
    /// allows it.
    pub fn require_authentication(
        &self,
        has_ca: bool,
        is_insecure: bool,
    ) -> Result<(), ChannelError> {
        match !is_insecure && !self.is_local() && self.accepts_anyone(has_ca) {
            true => Err(ChannelError::Unauthenticated(self.clone())),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_reachable_from_other_hosts_need_authentication() {
        for (text, is_open, is_rejected) in [
            ("ptcp:", false, false),
            ("ptcp:6653:127.0.0.1", false, false),
            ("ptcp:6653:[::1]", false, false),
            ("ptcp:6653:[::ffff:127.0.0.1]", false, false),
            ("ptcp:6653:0.0.0.0", true, true),
            ("ptcp:6653:[::]", true, true),
            ("psctp:6653:10.0.0.1", true, true),
            ("punix:/run/x", false, false),
            ("pssl:", true, false),
            ("pssl:6653:10.0.0.1", true, true),
            ("tcp:10.0.0.1", false, false),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.accepts_anyone(false), is_open, "{text}");
            assert_eq!(url.require_authentication(false, false).is_err(), is_rejected, "{text}");
            assert!(url.require_authentication(false, true).is_ok(), "{text}");
            let is_plain = is_open && !text.starts_with("pssl:");
            assert_eq!(url.accepts_anyone(true), is_plain, "{text}");
        }
    }
}
