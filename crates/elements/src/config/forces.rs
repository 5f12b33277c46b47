//! Control elements with which a ProGFE element communicates over ForCES.

use std::path::PathBuf;
use std::str::FromStr;

use channel::tls::Files;
use channel::{ChannelError, Url};
use forces::association::Channel;
use forces::wire::Id;

use super::Problem;

/// Maximum number of control elements.
pub const CES_MAX: usize = 16;
/// Default ID of the first control element; the next ones follow.
pub const CE_ID_FIRST: u32 = 0x4000_0001;

/// Control elements, the primary one first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForcesConfig {
    /// The control elements.
    pub ces: Vec<CeConfig>,
    /// The private key of `certificate`, in PEM.
    pub private_key: Option<PathBuf>,
    /// The element's certificate in PEM, for `ssl:` and `pssl:`.
    pub certificate: Option<PathBuf>,
    /// The CA certificate that authenticates control elements, in PEM.
    pub ca_cert: Option<PathBuf>,
    /// Whether to allow listening on non-loopback addresses without TLS and a CA.
    pub is_insecure: bool,
}

/// A control element: the address of its high-priority channel, and its ID.
#[derive(Debug, Clone, PartialEq)]
pub struct CeConfig {
    /// Its address, or the address to listen on. The other two channels use the next two ports.
    pub url: Url,
    /// Its ID, if configured.
    pub id: Option<u32>,
}

impl FromStr for CeConfig {
    type Err = ChannelError;

    /// Parses `URL[,id=0x40000001]`. The default port is 6704 (RFC 5811).
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        let wrong = |why| ChannelError::BadUrl(text.to_owned(), why);
        let (url, id) = match text.split_once(",id=") {
            None => (text, None),
            Some((url, id)) => {
                let number = match id.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => id.parse().ok(),
                };
                let id = number.filter(|id| Id(*id).is_ce());
                let id = id.ok_or(wrong("control element IDs start at 0x40000000"))?;
                (url, Some(id))
            }
        };
        let url = Url::with_default_port(url, Channel::High.port())?;
        if url.in_a_row().is_none() {
            return Err(wrong(
                "no addresses for three channels (hint: use a lower port or a shorter path)",
            ));
        }
        Ok(CeConfig { url, id })
    }
}

impl ForcesConfig {
    /// Returns the files of the TLS credentials.
    pub fn tls_files(&self) -> Files {
        Files {
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_cert: self.ca_cert.clone(),
        }
    }

    /// Returns the ID of the control element at this index.
    pub fn id_of(&self, place: usize) -> Id {
        Id(self.ces[place].id.unwrap_or(CE_ID_FIRST + place as u32))
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if self.ces.len() > CES_MAX {
            problems.push(Problem::TooMany { key: "forces", have: self.ces.len(), max: CES_MAX });
            return;
        }
        for ce in &self.ces {
            let checked = ce.url.require_authentication(self.ca_cert.is_some(), self.is_insecure);
            let why = checked.err().map(|error| error.to_string());
            problems.extend(why.map(|why| Problem::BadUrl { key: "forces", why }));
        }
        for place in 0..self.ces.len() {
            let id = self.id_of(place);
            if (0..place).any(|other| self.id_of(other) == id) {
                let why = format!("two control elements have the ID {:#010x}", id.0);
                problems.push(Problem::BadUrl { key: "forces", why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_beyond_loopback_requires_authentication_or_explicit_permission() {
        for (url, has_ca, is_insecure, is_rejected) in [
            ("ptcp:6704", false, false, false),
            ("ptcp:6704:0.0.0.0", false, false, true),
            ("ptcp:6704:[::]", true, false, true),
            ("ptcp:6704:0.0.0.0", false, true, false),
            ("pssl:6704:0.0.0.0", false, false, true),
            ("pssl:6704:0.0.0.0", true, false, false),
            ("tcp:10.0.0.1", false, false, false),
        ] {
            let ca_cert = has_ca.then(|| PathBuf::from("ca.pem"));
            let ces = vec![url.parse().unwrap()];
            let config = ForcesConfig { ces, ca_cert, is_insecure, ..ForcesConfig::default() };
            let mut problems = Vec::new();
            config.validate(&mut problems);
            let hint = problems.iter().any(|problem| problem.to_string().contains("(hint: "));
            assert_eq!((!problems.is_empty(), hint), (is_rejected, is_rejected), "{url}");
        }
    }

    #[test]
    fn control_elements_are_identified_by_address_and_id() {
        let read = |text: &str| text.parse::<CeConfig>();
        let plain = read("tcp:127.0.0.1").unwrap();
        assert_eq!((plain.url.to_string().as_str(), plain.id), ("tcp:127.0.0.1:6704", None));
        let named = read("ptcp:7000:127.0.0.1,id=0x40000009").unwrap();
        assert_eq!(
            (named.url.to_string().as_str(), named.id),
            ("ptcp:7000:127.0.0.1", Some(0x4000_0009))
        );
        for (text, why) in [
            ("tcp:127.0.0.1,id=7", "start at 0x40000000"),
            ("tcp:127.0.0.1,id=x", "start at 0x40000000"),
            ("tcp:127.0.0.1:65535", "three channels"),
            ("udp:1.2.3.4", "unknown scheme"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let ces = vec![read("tcp:1.1.1.1").unwrap(), read("tcp:1.1.1.2,id=0x40000001").unwrap()];
        let mut problems = Vec::new();
        ForcesConfig { ces, ..ForcesConfig::default() }.validate(&mut problems);
        assert!(problems[0].to_string().contains("two control elements have the ID 0x40000001"));
    }
}
