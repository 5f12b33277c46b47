//! Parameters of an SNMP agent that is queried in addition to the measurement: its address and
//! credentials.
//!
//! Invariants:
//!
//! - Secrets come from a file or the environment, never from an assignment.
//! - No text created here contains a secret: an error in a file gives only the line number.

use std::net::{IpAddr, SocketAddr};

pub use snmp::{AuthProtocol, Credentials, Oid, Secret, User};

use super::declaration::{Parameter, ValueType};
use super::{list, number};

/// UDP port of SNMP agents.
const PORT: u16 = 161;

/// Key of a file with credentials.
pub const CREDENTIALS: &str = "snmp_credentials";

/// Environment variable with the contents of such a file.
pub const CREDENTIALS_VARIABLE: &str = "PLANIMETER_SNMP";

/// Maximum number of OIDs in addition to interfaces and load.
const OIDS_MAX: usize = 32;

/// An SNMP agent to query.
#[derive(Debug, Clone, PartialEq)]
pub struct SnmpAgent {
    /// Address; `None` for no agent.
    pub at: Option<AgentLocation>,
    /// Credentials.
    pub credentials: Credentials,
    /// Names of the interfaces that the tester's frames pass; empty for all except loopback.
    pub interfaces: Vec<String>,
    /// Additional OIDs that are read before and after.
    pub oids: Vec<Oid>,
    /// Seconds of retries at the end while the agent's counters are below the number of frames
    /// sent.
    pub wait_s: f64,
}

/// Location of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentLocation {
    /// Address, as reachable from this host.
    Address(SocketAddr),
    /// An agent for each target: the lab starts it, or virtual time simulates it.
    Lab,
}

impl Default for SnmpAgent {
    fn default() -> Self {
        SnmpAgent {
            at: None,
            credentials: Credentials::Community(Secret::new("public")),
            interfaces: Vec::new(),
            oids: Vec::new(),
            wait_s: 0.0,
        }
    }
}

impl SnmpAgent {
    /// Applies a value that its declaration allows; `None` if the value is invalid or the parameter
    /// is not one of these.
    pub(super) fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "snmp" => self.at = Some(at(value)?),
            "snmp_interfaces" => {
                self.interfaces = list(value, |name| (!name.is_empty()).then(|| name.to_owned()))?;
            }
            "snmp_oids" => {
                self.oids = list(value, |name| name.parse().ok())
                    .filter(|oids: &Vec<Oid>| oids.len() <= OIDS_MAX)?;
            }
            "snmp_settle_s" => self.wait_s = number(value)?,
            // The command line reads the file.
            CREDENTIALS => {}
            _ => return None,
        }
        Some(())
    }
}

fn at(text: &str) -> Option<AgentLocation> {
    if text == "lab" {
        return Some(AgentLocation::Lab);
    }
    let address = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, PORT));
    let address = address.ok().or_else(|| text.parse::<SocketAddr>().ok());
    address.filter(|address| address.port() != 0).map(AgentLocation::Address)
}

/// Parses credentials in TOML: `community`, or `user` with `auth`, `auth_password` and
/// `privacy_password`.
///
/// An error contains the line or the key, but not the contents.
pub fn credentials(text: &str) -> Result<Credentials, String> {
    let wrong = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().lines().count().max(1);
        format!("invalid line {line} (hint: write KEY = \"VALUE\")")
    };
    let table: toml::Table = text.parse().map_err(wrong)?;
    let keys = ["community", "user", "auth", "auth_password", "privacy", "privacy_password"];
    if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        // A secret used as a key by mistake is not repeated.
        let _ = key;
        return Err(format!("unknown key (hint: use {})", keys.join(", ")));
    }
    let read = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{key} must be a string (hint: write {key} = \"...\")")),
    };
    let credentials = match (read("community")?, read("user")?) {
        (Some(community), None) => Credentials::Community(Secret::new(community)),
        (None, Some(name)) => {
            let protocols = || AuthProtocol::NAMES.map(|(name, _)| name).join(", ");
            let protocol = match read("auth")? {
                None => AuthProtocol::Sha256,
                Some(text) => {
                    let known = AuthProtocol::NAMES.iter().find(|(name, _)| *name == text);
                    known
                        .ok_or_else(|| {
                            format!("unknown auth protocol (hint: use one of {})", protocols())
                        })?
                        .1
                }
            };
            if read("privacy")?.is_some_and(|text| text != "aes") {
                return Err("unknown privacy protocol (hint: use aes)".into());
            }
            let auth = read("auth_password")?.map(|secret| (protocol, Secret::new(secret)));
            let privacy = read("privacy_password")?.map(Secret::new);
            Credentials::User(User { name, auth, privacy })
        }
        _ => {
            return Err(
                "exactly one of community and user is required (hint: set either of them)".into()
            );
        }
    };
    credentials.check().map_err(|error| error.to_string())?;
    Ok(credentials)
}

/// All parameters of this module.
pub const ALL: &[Parameter] = &[
    Parameter {
        key: "snmp",
        takes: ValueType::Text("IP[:PORT] or lab"),
        default: "",
        unit: "",
        help: "SNMP agent to poll before, during and after each measurement: that of a device, or \
               one for each target of the lab",
    },
    Parameter {
        key: CREDENTIALS,
        takes: ValueType::Text("FILE.toml"),
        default: "",
        unit: "",
        help: "credentials of the agent: community, or user, auth, auth_password, privacy_password \
               (community public; also from PLANIMETER_SNMP)",
    },
    Parameter {
        key: "snmp_interfaces",
        takes: ValueType::Text("NAME[,NAME...]"),
        default: "",
        unit: "",
        help: "interfaces of the agent that carry the tester's frames; all except loopback by \
               default",
    },
    Parameter {
        key: "snmp_oids",
        takes: ValueType::Text("OID[,OID...]"),
        default: "",
        unit: "",
        help: "further objects to read before and after",
    },
    Parameter {
        key: "snmp_settle_s",
        takes: ValueType::Number(0.0, 120.0),
        default: "0",
        unit: "s",
        help: "maximum time of polling at the end while the agent's counters are below the number \
               of sent frames",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_found_by_address() {
        let mut witness = SnmpAgent::default();
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1:161"),
            ("192.0.2.1:1161", "192.0.2.1:1161"),
            ("::1", "[::1]:161"),
            ("[::1]:1161", "[::1]:1161"),
        ] {
            assert_eq!(witness.assign("snmp", text), Some(()), "{text}");
            assert_eq!(witness.at, Some(AgentLocation::Address(shown.parse().unwrap())));
        }
        assert_eq!(witness.assign("snmp", "lab"), Some(()));
        assert_eq!(witness.at, Some(AgentLocation::Lab));
        for wrong in ["", "switch", "192.0.2.1:0", "192.0.2.1:x"] {
            assert_eq!(witness.assign("snmp", wrong), None, "{wrong}");
        }
        assert!(witness.assign("snmp_oids", "1.3.6.1.2.1.1.3.0,1.3.6").is_some());
        assert!(witness.assign("snmp_oids", "sysUpTime").is_none());
        assert!(witness.assign("other", "1").is_none());
    }

    #[test]
    fn credentials_are_parsed_and_errors_contain_no_secret() {
        let v2 = credentials("community = \"s3cret-word\"").unwrap();
        assert_eq!(v2, Credentials::Community(Secret::new("s3cret-word")));
        let text = "user = \"watcher\"\nauth = \"sha512\"\nauth_password = \"s3cret-word\"\n\
                    privacy_password = \"s3cret-text\"\n";
        let v3 = credentials(text).unwrap();
        assert_eq!(v3.level(), "v3 authPriv");
        let printed = format!("{v2:?} {v3:?}");
        assert!(!printed.contains("s3cret"), "{printed}");
        for (wrong, word) in [
            ("", "either"),
            ("community = \"s3cret\"\nuser = \"watcher\"", "either"),
            ("community = s3cret-word", "line 1"),
            ("user = \"watcher\"\nauth_password = 's3cret-word\n", "line 2"),
            ("s3cret-word = \"x\"", "unknown key"),
            ("user = \"watcher\"\nauth = \"s3cret\"", "sha256"),
            ("user = \"watcher\"\nauth_password = \"s3cret\"", "8 to 255"),
            ("user = \"watcher\"\nprivacy_password = \"s3cret-word\"", "auth_password"),
            ("user = \"watcher\"\nprivacy = \"s3cret\"", "aes"),
            ("community = 53", "must be a string"),
        ] {
            let error = credentials(wrong).unwrap_err();
            assert!(error.contains(word) && !error.contains("s3cret"), "{wrong:?}: {error}");
        }
    }
}
