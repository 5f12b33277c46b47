//! Specification of a memif port:
//! `PATH[,id=N][,role=server|client][,queues=N][,rx=N][,tx=N][,ring=SLOTS][,buffer=BYTES]`
//! `[,secret=S][,abstract][,small-pages]`.

use std::path::PathBuf;

use packet::frame::FRAME_BYTES_MAX;

use super::layout::{QUEUES_MAX, REGION_BYTES_MAX, SLOTS_LOG2_MAX, Shape};
use super::protocol::{SECRET_BYTES, Text, text};
use super::ring::{CHAIN_MAX, Side};
use super::socket::Address;

/// Smallest buffer that a client may request.
const BUFFER_BYTES_MIN: u32 = 64;

/// Smallest ring that a client may request.
const SLOTS_MIN: usize = 4;

/// A memif port's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Address of the server's socket.
    pub address: Address,
    /// Role of the port (default: server).
    pub side: Side,
    /// The interface's number on the socket (default: 0).
    pub id: u32,
    /// Receiving queues: the number that a client requests, or the most that a server allows
    /// (default: 1).
    pub receive_queues: u16,
    /// Sending queues, likewise.
    pub transmit_queues: u16,
    /// Binary logarithm of the slots of a client's rings (default: 1024 slots).
    pub slots_log2: u8,
    /// Bytes of a client's buffers (default: 2048).
    pub buffer_bytes: u32,
    /// The secret, zero for none.
    pub secret: Text<SECRET_BYTES>,
    /// Whether a client allocates huge pages, if some are free and the server belongs to the same
    /// user.
    pub huge_pages: bool,
}

impl Spec {
    /// Returns the defaults for a server on this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Spec {
            address: Address::Path(path.into()),
            side: Side::Server,
            id: 0,
            receive_queues: 1,
            transmit_queues: 1,
            slots_log2: 10,
            buffer_bytes: 2048,
            secret: [0; SECRET_BYTES],
            huge_pages: true,
        }
    }

    /// Parses the text after `memif:`, or returns the reason for rejecting it.
    pub fn parse(spec: &str) -> Result<Spec, &'static str> {
        let mut words = spec.split(',');
        let path = words.next().unwrap_or_default();
        if path.is_empty() || path.contains('=') {
            return Err("missing socket path (hint: write memif:PATH[,id=N][,role=client]...)");
        }
        let mut parsed = Spec::new(path);
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => parsed.set(key, value)?,
                None if word == "abstract" => parsed.address = Address::Abstract(path.into()),
                None if word == "small-pages" => parsed.huge_pages = false,
                None => return Err(KNOWN),
            }
        }
        parsed.check()?;
        Ok(parsed)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "id" => {
                self.id = value.parse().map_err(|_| "invalid id (hint: use a number below 2^32)")?
            }
            "role" => {
                self.side = match value {
                    "server" => Side::Server,
                    "client" => Side::Client,
                    _ => return Err("invalid role (hint: use server or client)"),
                };
            }
            "queues" => {
                self.receive_queues = queues(value)?;
                self.transmit_queues = self.receive_queues;
            }
            "rx" => self.receive_queues = queues(value)?,
            "tx" => self.transmit_queues = queues(value)?,
            "ring" => {
                let slots: usize = value.parse().unwrap_or(0);
                if !slots.is_power_of_two() || !(SLOTS_MIN..=1 << SLOTS_LOG2_MAX).contains(&slots) {
                    return Err(
                        "invalid ring (hint: use a power of two from 4 to 16384, the slots of \
                         each ring)",
                    );
                }
                self.slots_log2 = slots.trailing_zeros() as u8;
            }
            "buffer" => {
                self.buffer_bytes = value.parse().unwrap_or(0);
                if !(BUFFER_BYTES_MIN..=FRAME_BYTES_MAX as u32).contains(&self.buffer_bytes) {
                    return Err("invalid buffer (hint: use 64 to 16384 bytes)");
                }
            }
            "secret" => {
                if value.is_empty() || value.len() >= SECRET_BYTES {
                    return Err("invalid secret (hint: use 1 to 23 bytes)");
                }
                self.secret = text(value);
            }
            _ => return Err(KNOWN),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), &'static str> {
        if !self.address.is_possible() {
            return Err("socket path too long: at most 107 bytes");
        }
        if self.side == Side::Client && self.shape().bytes() as u64 > REGION_BYTES_MAX {
            return Err("memory too large: queues, ring and buffer together need more than 1 GiB");
        }
        Ok(())
    }

    /// Returns the rings that a client requests.
    pub fn shape(&self) -> Shape {
        Shape {
            to_server: self.transmit_queues,
            to_client: self.receive_queues,
            slots_log2: self.slots_log2,
            buffer_bytes: self.buffer_bytes,
        }
    }

    /// Returns the largest frame that always fits into rings of this configuration.
    pub fn frame_bytes_max(&self) -> usize {
        let buffers = CHAIN_MAX.min(1 << self.slots_log2);
        (buffers * self.buffer_bytes as usize).min(FRAME_BYTES_MAX)
    }
}

const KNOWN: &str = "unknown option (hint: use id=N, role=server|client, queues=N, rx=N, tx=N, \
    ring=SLOTS, buffer=BYTES, secret=S, abstract or small-pages)";

fn queues(value: &str) -> Result<u16, &'static str> {
    value
        .parse()
        .ok()
        .filter(|queues| (1..=QUEUES_MAX).contains(queues))
        .ok_or("invalid number of queues (hint: use 1 to 64)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_values_are_those_of_dpdk_and_given_ones_are_used() {
        assert_eq!(Spec::parse("/run/m.sock"), Ok(Spec::new("/run/m.sock")));
        let all =
            "m,id=7,role=client,queues=4,rx=2,ring=256,buffer=9216,secret=s,abstract,small-pages";
        let expected = Spec {
            address: Address::Abstract("m".into()),
            side: Side::Client,
            id: 7,
            receive_queues: 2,
            transmit_queues: 4,
            slots_log2: 8,
            buffer_bytes: 9216,
            secret: text("s"),
            huge_pages: false,
        };
        assert_eq!(Spec::parse(all), Ok(expected));
    }

    #[test]
    fn invalid_specifications_are_reported() {
        let long = format!("/{}", "x".repeat(107));
        for (spec, word) in [
            ("", "missing socket path"),
            ("id=3", "missing socket path"),
            ("p,id=x", "a number below 2^32"),
            ("p,id=4294967296", "a number below 2^32"),
            ("p,role=master", "invalid role (hint: use server or client)"),
            ("p,queues=0", "1 to 64"),
            ("p,rx=65", "1 to 64"),
            ("p,ring=1000", "power of two"),
            ("p,ring=32768", "power of two"),
            ("p,ring=2", "power of two"),
            ("p,buffer=63", "64 to 16384"),
            ("p,buffer=16385", "64 to 16384"),
            ("p,secret=", "1 to 23"),
            ("p,secret=123456789012345678901234", "1 to 23"),
            ("p,zero-copy", "unknown option"),
            ("p,mtu=3", "unknown option"),
            ("p,", "unknown option"),
            (long.as_str(), "107 bytes"),
            ("p,role=client,queues=64,ring=16384", "1 GiB"),
        ] {
            let error = Spec::parse(spec).expect_err(spec);
            assert!(error.contains(word), "{spec:?} gives {error:?}, which lacks {word:?}");
        }
    }
}
