//! Creates ring ends from a completed handshake: allocates the client's memory, or maps and checks
//! a client's offer.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::doorbell::Doorbell;
use super::fault::Fault;
use super::handshake::{Offer, RingOffer};
use super::layout::Shape;
use super::protocol::{AddRing, Direction};
use super::receive::ReceiveEnd;
use super::region::{Region, Regions};
use super::ring::{Buffers, Ring, Side};
use super::transmit::TransmitEnd;

/// The ends of a connection's rings, by index.
pub struct RingEnds {
    /// Ends of the rings to receive from.
    pub receive: Vec<ReceiveEnd>,
    /// Ends of the rings to send into.
    pub transmit: Vec<TransmitEnd>,
}

/// The client's memory and rings, to be offered to the server.
pub struct ClientRings {
    /// The region's file.
    pub file: OwnedFd,
    /// The region's bytes.
    pub bytes: u64,
    /// Eventfds of the rings to the server, by index.
    pub to_server: Vec<Doorbell>,
    /// Eventfds of the rings to the client, by index.
    pub to_client: Vec<Doorbell>,
    /// The client's ends.
    pub ends: RingEnds,
}

/// Allocates a client's region with empty rings, on huge pages if `huge` and some are free.
pub fn prepare(shape: &Shape, huge: bool) -> io::Result<ClientRings> {
    let (region, file) = Region::create(shape.bytes(), huge)?;
    let bytes = region.bytes() as u64;
    let regions: Regions = Arc::new([region]);
    let mut prepared = ClientRings {
        file,
        bytes,
        to_server: Vec::new(),
        to_client: Vec::new(),
        ends: RingEnds { receive: Vec::new(), transmit: Vec::new() },
    };
    for told in shape.rings() {
        let ring =
            ring(&regions, &told, Side::Client).map_err(|fault| io::Error::other(fault.text()))?;
        ring.initialise();
        let doorbell = Doorbell::create()?;
        let buffers = Buffers::Ours {
            first: shape.buffers_at(told.direction, told.index) as u32,
            stride: shape.buffer_stride() as u32,
            capacity: shape.buffer_bytes,
        };
        match told.direction {
            Direction::ToServer => {
                prepared.to_server.push(doorbell.clone());
                prepared.ends.transmit.push(TransmitEnd::new(ring, buffers, doorbell));
            }
            Direction::ToClient => {
                prepared.to_client.push(doorbell.clone());
                prepared.ends.receive.push(ReceiveEnd::new(ring, buffers, doorbell));
            }
        }
    }
    Ok(prepared)
}

/// Maps a client's regions, and checks everything that its messages cannot prove.
pub fn attach(offer: Offer<OwnedFd>, is_trusted: bool) -> Result<RingEnds, Fault> {
    let mapped: Result<Vec<Region>, Fault> =
        offer.regions.iter().map(|(bytes, file)| Region::map(file, *bytes, is_trusted)).collect();
    let regions: Regions = mapped?.into();
    let mut ends = RingEnds { receive: Vec::new(), transmit: Vec::new() };
    for RingOffer { ring: told, doorbell } in offer.to_server {
        let (ring, doorbell) = (checked(&regions, &told)?, Doorbell::adopt(doorbell)?);
        ends.receive.push(ReceiveEnd::new(ring, Buffers::Theirs, doorbell));
    }
    for RingOffer { ring: told, doorbell } in offer.to_client {
        let (ring, doorbell) = (checked(&regions, &told)?, Doorbell::adopt(doorbell)?);
        ends.transmit.push(TransmitEnd::new(ring, Buffers::Theirs, doorbell));
    }
    // Like other servers: a connection starts with zero indices, and old values are ignored. The
    // client accesses its indices only after the server's `connected` message.
    ends.receive.iter_mut().for_each(ReceiveEnd::open);
    Ok(ends)
}

fn checked(regions: &Regions, told: &AddRing) -> Result<Ring, Fault> {
    let ring = ring(regions, told, Side::Server)?;
    if !ring.has_cookie() {
        return Err(Fault::RingCookie);
    }
    ring.reset();
    Ok(ring)
}

fn ring(regions: &Regions, told: &AddRing, side: Side) -> Result<Ring, Fault> {
    let place = (told.region, told.offset);
    Ring::new(regions.clone(), place, told.slots_log2, (side, told.direction))
}
