//! Specification of a vhost-user port: `PATH[,role=server|client][,queues=N]`.

use std::path::PathBuf;

use crate::memif::socket::Address;

/// Maximum number of queues per direction.
pub const QUEUES_MAX: u16 = 64;

/// Socket role of the port. The rings are in the front end's memory in both roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The port listens, and front ends connect (the default of virtio-user and QEMU).
    Server,
    /// The front end listens (`server=1` of virtio-user, `server=on` of QEMU), and the port
    /// reconnects.
    Client,
}

/// A vhost-user port's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Address of the socket.
    pub address: Address,
    /// Socket role (default: server).
    pub role: Role,
    /// Queue pairs that a front end may use (default: 1).
    pub queues: u16,
}

impl Spec {
    /// Returns the defaults for this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Spec { address: Address::Path(path.into()), role: Role::Server, queues: 1 }
    }

    /// Parses the text after `vhost:`, or returns the reason for rejecting it.
    pub fn parse(spec: &str) -> Result<Spec, &'static str> {
        let mut words = spec.split(',');
        let path = words.next().unwrap_or_default();
        if path.is_empty() || path.contains('=') {
            return Err("missing socket path (hint: write vhost:PATH[,role=client][,queues=N])");
        }
        let mut parsed = Spec::new(path);
        if !parsed.address.is_possible() {
            return Err("socket path too long: at most 107 bytes");
        }
        for word in words {
            match word.split_once('=') {
                Some(("role", "server")) => parsed.role = Role::Server,
                Some(("role", "client")) => parsed.role = Role::Client,
                Some(("role", _)) => return Err("invalid role (hint: use server or client)"),
                Some(("queues", number)) => {
                    let number = number.parse().ok();
                    let number = number.filter(|queues| (1..=QUEUES_MAX).contains(queues));
                    parsed.queues = number.ok_or("invalid number of queues (hint: use 1 to 64)")?;
                }
                _ => return Err("unknown option (hint: use role=server|client or queues=N)"),
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_parsed_and_invalid_ones_reported() {
        assert_eq!(Spec::parse("/run/v"), Ok(Spec::new("/run/v")));
        let wanted = Spec { role: Role::Client, queues: 64, ..Spec::new("v") };
        assert_eq!(Spec::parse("v,role=client,queues=64"), Ok(wanted));
        let long = "x".repeat(108);
        for (spec, word) in [
            ("", "missing socket path"),
            ("role=server", "missing socket path"),
            ("v,role=master", "server or client"),
            ("v,queues=0", "1 to 64"),
            ("v,queues=65", "1 to 64"),
            ("v,packed", "unknown option"),
            ("v,", "unknown option"),
            (long.as_str(), "107 bytes"),
        ] {
            let error = Spec::parse(spec).expect_err(spec);
            assert!(error.contains(word), "{spec:?} gives {error:?}, which lacks {word:?}");
        }
    }
}
