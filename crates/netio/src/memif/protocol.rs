//! Control messages of memif 2.0, 128 bytes each, and their encoding.
//!
//! Format: the public `memif.h` of VPP and DPDK. Both ends are on one machine, so numbers are in
//! its byte order, unaligned, after a 16-bit type. Texts end at their first zero byte.

use super::fault::Fault;

/// Bytes of every control message.
pub const MESSAGE_BYTES: usize = 128;

/// Version 2.0, the only one in use.
pub const VERSION: u16 = 0x0200;

/// Bytes of an interface's or program's name.
pub const NAME_BYTES: usize = 32;

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 24;

/// Bytes of the reason in a `disconnect` message.
pub const REASON_BYTES: usize = 96;

/// The mode for Ethernet frames.
pub const MODE_ETHERNET: u8 = 0;

/// Ring flag: frames go from the client to the server.
const RING_TO_SERVER: u16 = 1;

/// A text of at most `N` bytes, padded with zeros.
pub type Text<const N: usize> = [u8; N];

/// Returns the first bytes of `text`, one fewer than fit, because other implementations require a
/// final zero.
pub fn text<const N: usize>(text: &str) -> Text<N> {
    let mut bytes = [0; N];
    let length = text.len().min(N - 1);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// Returns a text for display.
pub fn words(text: &[u8]) -> String {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    text[..end].escape_ascii().to_string()
}

/// Direction of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client, which allocated the memory, to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A server's first message: its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The server's program.
    pub name: Text<NAME_BYTES>,
    /// Lowest supported version.
    pub version_min: u16,
    /// Highest supported version.
    pub version_max: u16,
    /// Highest index of a region.
    pub region_max: u16,
    /// Highest index of a ring to the client.
    pub to_client_max: u16,
    /// Highest index of a ring to the server.
    pub to_server_max: u16,
    /// Binary logarithm of the largest ring.
    pub slots_log2_max: u8,
}

/// A client's reply: the interface that it requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// The selected version.
    pub version: u16,
    /// The interface on the server's socket.
    pub id: u32,
    /// Type of frames; see [`MODE_ETHERNET`].
    pub mode: u8,
    /// Shared secret, zero if there is none.
    pub secret: Text<SECRET_BYTES>,
    /// The client's program.
    pub name: Text<NAME_BYTES>,
}

/// One ring of the client; its eventfd comes with the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddRing {
    /// Direction of the ring.
    pub direction: Direction,
    /// Its index among the rings of its direction.
    pub index: u16,
    /// The region that contains it.
    pub region: u16,
    /// Its offset in the region.
    pub offset: u32,
    /// Binary logarithm of its slots.
    pub slots_log2: u8,
    /// Private bytes before each frame; no implementation uses them.
    pub private_bytes: u16,
}

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Acknowledges the last message.
    Ack,
    /// See [`Hello`].
    Hello(Hello),
    /// See [`Init`].
    Init(Init),
    /// A region of shared memory; its file comes with the message.
    AddRegion {
        /// Its index, from zero.
        index: u16,
        /// Its bytes.
        bytes: u64,
    },
    /// See [`AddRing`].
    AddRing(AddRing),
    /// All regions and rings were sent.
    Connect {
        /// The client's interface.
        name: Text<NAME_BYTES>,
    },
    /// The connection is up.
    Connected {
        /// The server's interface.
        name: Text<NAME_BYTES>,
    },
    /// Ends the connection.
    Disconnect {
        /// A number, zero in all known implementations.
        code: u32,
        /// The reason.
        reason: Text<REASON_BYTES>,
    },
}

impl Message {
    /// Returns the `disconnect` message for a fault.
    pub fn farewell(fault: Fault) -> Message {
        Message::Disconnect { code: 0, reason: text(fault.text()) }
    }

    /// Encodes the message.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut out = Writer { bytes: [0; MESSAGE_BYTES], at: 0 };
        match self {
            Message::Ack => out.put(&1u16.to_ne_bytes()),
            Message::Hello(hello) => {
                out.put(&2u16.to_ne_bytes());
                out.put(&hello.name);
                for number in [
                    hello.version_min,
                    hello.version_max,
                    hello.region_max,
                    hello.to_client_max,
                    hello.to_server_max,
                ] {
                    out.put(&number.to_ne_bytes());
                }
                out.put(&[hello.slots_log2_max]);
            }
            Message::Init(init) => {
                out.put(&3u16.to_ne_bytes());
                out.put(&init.version.to_ne_bytes());
                out.put(&init.id.to_ne_bytes());
                out.put(&[init.mode]);
                out.put(&init.secret);
                out.put(&init.name);
            }
            Message::AddRegion { index, bytes } => {
                out.put(&4u16.to_ne_bytes());
                out.put(&index.to_ne_bytes());
                out.put(&bytes.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                out.put(&5u16.to_ne_bytes());
                let flags = if ring.direction == Direction::ToServer { RING_TO_SERVER } else { 0 };
                out.put(&flags.to_ne_bytes());
                out.put(&ring.index.to_ne_bytes());
                out.put(&ring.region.to_ne_bytes());
                out.put(&ring.offset.to_ne_bytes());
                out.put(&[ring.slots_log2]);
                out.put(&ring.private_bytes.to_ne_bytes());
            }
            Message::Connect { name } => {
                out.put(&6u16.to_ne_bytes());
                out.put(name);
            }
            Message::Connected { name } => {
                out.put(&7u16.to_ne_bytes());
                out.put(name);
            }
            Message::Disconnect { code, reason } => {
                out.put(&8u16.to_ne_bytes());
                out.put(&code.to_ne_bytes());
                out.put(reason);
            }
        }
        out.bytes
    }

    /// Decodes a message from any bytes.
    pub fn decode(bytes: &[u8]) -> Result<Message, Fault> {
        let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().map_err(|_| Fault::Message)?;
        let mut fields = Reader { bytes, at: 0 };
        Ok(match fields.half() {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: fields.take(),
                version_min: fields.half(),
                version_max: fields.half(),
                region_max: fields.half(),
                to_client_max: fields.half(),
                to_server_max: fields.half(),
                slots_log2_max: fields.byte(),
            }),
            3 => Message::Init(Init {
                version: fields.half(),
                id: u32::from_ne_bytes(fields.take()),
                mode: fields.byte(),
                secret: fields.take(),
                name: fields.take(),
            }),
            4 => Message::AddRegion {
                index: fields.half(),
                bytes: u64::from_ne_bytes(fields.take()),
            },
            5 => {
                let flags = fields.half();
                let to_server = flags & RING_TO_SERVER != 0;
                Message::AddRing(AddRing {
                    direction: if to_server { Direction::ToServer } else { Direction::ToClient },
                    index: fields.half(),
                    region: fields.half(),
                    offset: u32::from_ne_bytes(fields.take()),
                    slots_log2: fields.byte(),
                    private_bytes: fields.half(),
                })
            }
            6 => Message::Connect { name: fields.take() },
            7 => Message::Connected { name: fields.take() },
            8 => Message::Disconnect {
                code: u32::from_ne_bytes(fields.take()),
                reason: fields.take(),
            },
            _ => return Err(Fault::Message),
        })
    }
}

struct Writer {
    bytes: [u8; MESSAGE_BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// Reads fields in order. No message's fields are longer than a message, so this never runs out.
struct Reader<'a> {
    bytes: &'a [u8; MESSAGE_BYTES],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = std::array::from_fn(|place| self.bytes[self.at + place]);
        self.at += N;
        field
    }

    fn half(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn byte(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }
}

#[cfg(test)]
mod tests;
