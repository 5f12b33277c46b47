//! The handshake as state machines: a message in, the next step out.
//!
//! The server sends the first message (hello). The client then sends one message at a time (init,
//! its region, each ring, connect) and waits for the acknowledgement of each. This module uses no
//! socket, memory or clock: descriptors are a type parameter, passed through unused. It checks
//! everything that the messages alone allow; `attach` checks the memory.

use std::collections::VecDeque;

use super::fault::Fault;
use super::layout::{QUEUES_MAX, REGION_BYTES_MAX, SLOTS_LOG2_MAX, Shape};
use super::protocol::{
    AddRing, Direction, Hello, Init, MODE_ETHERNET, Message, NAME_BYTES, SECRET_BYTES, Text,
    VERSION, text,
};

/// Maximum number of regions of a client.
pub const REGIONS_MAX: u16 = 16;

/// The identity of an end, in either role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The interface's number on its socket.
    pub id: u32,
    /// The secret, zero for none.
    pub secret: Text<SECRET_BYTES>,
    /// The interface's name, for the peer's reports.
    pub name: Text<NAME_BYTES>,
}

/// A ring in a client's offer.
#[derive(Debug)]
pub struct RingOffer<F> {
    /// The message about the ring.
    pub ring: AddRing,
    /// Its eventfd.
    pub doorbell: F,
}

/// All regions and rings of a client.
#[derive(Debug)]
pub struct Offer<F> {
    /// Size and file of each region.
    pub regions: Vec<(u64, F)>,
    /// The rings to the server, by index.
    pub to_server: Vec<RingOffer<F>>,
    /// The rings to the client, by index.
    pub to_client: Vec<RingOffer<F>>,
}

/// The server's next step after a message.
#[derive(Debug)]
pub enum ServerStep<F> {
    /// Send this reply.
    Reply(Message),
    /// Attach to the offer, then reply with [`Server::connected`].
    Attach(Offer<F>),
    /// The client disconnected, for this reason.
    Left(String),
}

/// A server's side of the handshake with one client.
#[derive(Debug)]
pub struct Server<F> {
    identity: Identity,
    rings_max: [u16; 2],
    greeted: bool,
    offer: Offer<F>,
    done: bool,
}

impl<F> Server<F> {
    /// Creates a server that allows this many rings per direction (`to_server`, `to_client`), from
    /// 1 to [`QUEUES_MAX`].
    pub fn new(identity: Identity, to_server: u16, to_client: u16) -> Self {
        let offer = Offer { regions: Vec::new(), to_server: Vec::new(), to_client: Vec::new() };
        let rings_max = [to_server.clamp(1, QUEUES_MAX), to_client.clamp(1, QUEUES_MAX)];
        Server { identity, rings_max, greeted: false, offer, done: false }
    }

    /// Returns the first message.
    pub fn hello(&self) -> Message {
        Message::Hello(Hello {
            name: text("planimeter"),
            version_min: VERSION,
            version_max: VERSION,
            region_max: REGIONS_MAX - 1,
            to_client_max: self.rings_max[1] - 1,
            to_server_max: self.rings_max[0] - 1,
            slots_log2_max: SLOTS_LOG2_MAX,
        })
    }

    /// Returns the reply after the offer is attached.
    pub fn connected(&self) -> Message {
        Message::Connected { name: self.identity.name }
    }

    /// Returns whether the client has requested this interface and was accepted.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Processes a message with its descriptor.
    pub fn receive(
        &mut self,
        message: Message,
        descriptor: Option<F>,
    ) -> Result<ServerStep<F>, Fault> {
        let wants_one = matches!(message, Message::AddRegion { .. } | Message::AddRing(_));
        if wants_one != descriptor.is_some() {
            return Err(Fault::Descriptor);
        }
        match message {
            Message::Disconnect { reason, .. } => {
                return Ok(ServerStep::Left(super::protocol::words(&reason)));
            }
            Message::Init(init) if !self.greeted => self.greet(&init)?,
            _ if !self.greeted || self.done => return Err(Fault::Unexpected),
            Message::AddRegion { index, bytes } => self.add_region(index, bytes, descriptor)?,
            Message::AddRing(ring) => self.add_ring(ring, descriptor)?,
            Message::Connect { .. } => {
                self.done = true;
                let empty =
                    Offer { regions: Vec::new(), to_server: Vec::new(), to_client: Vec::new() };
                return Ok(ServerStep::Attach(std::mem::replace(&mut self.offer, empty)));
            }
            _ => return Err(Fault::Unexpected),
        }
        Ok(ServerStep::Reply(Message::Ack))
    }

    fn greet(&mut self, init: &Init) -> Result<(), Fault> {
        if init.version != VERSION {
            return Err(Fault::Version);
        }
        if init.id != self.identity.id {
            return Err(Fault::Id);
        }
        if init.mode != MODE_ETHERNET {
            return Err(Fault::Mode);
        }
        let has_secret = self.identity.secret[0] != 0;
        if has_secret && !are_equal(&self.identity.secret, &init.secret) {
            return Err(Fault::Secret);
        }
        self.greeted = true;
        Ok(())
    }

    fn add_region(&mut self, index: u16, bytes: u64, descriptor: Option<F>) -> Result<(), Fault> {
        let expected = self.offer.regions.len();
        if usize::from(index) != expected || index >= REGIONS_MAX {
            return Err(Fault::RegionIndex);
        }
        let before: u64 = self.offer.regions.iter().map(|(bytes, _)| bytes).sum();
        if bytes == 0 || bytes > REGION_BYTES_MAX || before + bytes > REGION_BYTES_MAX {
            return Err(Fault::RegionSize);
        }
        self.offer.regions.push((bytes, descriptor.ok_or(Fault::Descriptor)?));
        Ok(())
    }

    fn add_ring(&mut self, ring: AddRing, descriptor: Option<F>) -> Result<(), Fault> {
        let (rings, limit) = match ring.direction {
            Direction::ToServer => (&mut self.offer.to_server, self.rings_max[0]),
            Direction::ToClient => (&mut self.offer.to_client, self.rings_max[1]),
        };
        if usize::from(ring.index) != rings.len() || ring.index >= limit {
            return Err(Fault::RingIndex);
        }
        if ring.slots_log2 > SLOTS_LOG2_MAX {
            return Err(Fault::RingSize);
        }
        rings.push(RingOffer { ring, doorbell: descriptor.ok_or(Fault::Descriptor)? });
        Ok(())
    }
}

/// Compares two secrets in constant time. Bytes after the end of a secret are ignored.
fn are_equal(ours: &Text<SECRET_BYTES>, theirs: &Text<SECRET_BYTES>) -> bool {
    let mut theirs = *theirs;
    if let Some(end) = theirs.iter().position(|&byte| byte == 0) {
        theirs[end..].fill(0);
    }
    ours.iter().zip(&theirs).fold(0, |seen, (one, other)| seen | (one ^ other)) == 0
}

/// Descriptor to send with a client's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// No descriptor.
    None,
    /// The region's file.
    Region,
    /// The eventfd of the ring of this direction and index.
    Doorbell(Direction, u16),
}

/// The client's next step after a message.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Create a region of this shape, then call [`Client::start`].
    Prepare(Shape),
    /// Send this message.
    Say(Message, Attachment),
    /// The connection is up.
    Up,
    /// The server disconnected, for this reason.
    Left(String),
}

/// A client's side of the handshake with one server.
#[derive(Debug)]
pub struct Client {
    identity: Identity,
    wanted: Shape,
    state: ClientState,
}

#[derive(Debug)]
enum ClientState {
    Silent,
    Preparing,
    Telling(VecDeque<(Message, Attachment)>),
    Up,
}

impl Client {
    /// Creates a client that requests rings of this shape, and accepts fewer or smaller ones.
    pub fn new(identity: Identity, wanted: Shape) -> Self {
        Client { identity, wanted, state: ClientState::Silent }
    }

    /// Processes a message. Servers send no descriptors; the receiving code closes any that arrive.
    pub fn receive(&mut self, message: Message) -> Result<ClientStep, Fault> {
        if let Message::Disconnect { reason, .. } = message {
            return Ok(ClientStep::Left(super::protocol::words(&reason)));
        }
        match (&mut self.state, message) {
            (ClientState::Silent, Message::Hello(hello)) => {
                let shape = self.agree(&hello)?;
                self.state = ClientState::Preparing;
                Ok(ClientStep::Prepare(shape))
            }
            (ClientState::Telling(rest), Message::Ack) => match rest.pop_front() {
                Some((message, attachment)) => Ok(ClientStep::Say(message, attachment)),
                None => Err(Fault::Unexpected),
            },
            (ClientState::Telling(rest), Message::Connected { .. }) if rest.is_empty() => {
                self.state = ClientState::Up;
                Ok(ClientStep::Up)
            }
            _ => Err(Fault::Unexpected),
        }
    }

    /// Starts the requests once the region exists, with this shape and size. Returns the first
    /// message.
    pub fn start(&mut self, shape: &Shape, region_bytes: u64) -> (Message, Attachment) {
        let mut rest = VecDeque::new();
        rest.push_back((Message::AddRegion { index: 0, bytes: region_bytes }, Attachment::Region));
        rest.extend(shape.rings().map(|ring| {
            (Message::AddRing(ring), Attachment::Doorbell(ring.direction, ring.index))
        }));
        rest.push_back((Message::Connect { name: self.identity.name }, Attachment::None));
        self.state = ClientState::Telling(rest);
        let init = Init {
            version: VERSION,
            id: self.identity.id,
            mode: MODE_ETHERNET,
            secret: self.identity.secret,
            name: text("planimeter"),
        };
        (Message::Init(init), Attachment::None)
    }

    fn agree(&self, hello: &Hello) -> Result<Shape, Fault> {
        if hello.version_min > VERSION || hello.version_max < VERSION {
            return Err(Fault::Version);
        }
        Ok(Shape {
            to_server: self.wanted.to_server.min(hello.to_server_max.saturating_add(1)),
            to_client: self.wanted.to_client.min(hello.to_client_max.saturating_add(1)),
            slots_log2: self.wanted.slots_log2.min(hello.slots_log2_max),
            buffer_bytes: self.wanted.buffer_bytes,
        })
    }
}

#[cfg(test)]
mod tests;
