//! ARP with a user's router: the tester plays its neighbors, and finds its MAC addresses.
//!
//! The tester requests the MAC address of each router port, and replies for the sender and for the
//! next hop while the device is open. A thread on sockets that receive only ARP frames does this,
//! so that frames of a measurement cost it no time. Source: RFC 826.
//!
//! Invariant: requests go to the router only, and replies cover the tester's own addresses only.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netio::afpacket::{AfPacketPort, Options};
use netio::port::{Port, PortError};
use os::clock;
use packet::build::Builder;
use packet::frame::Batch;
use packet::header::arp;
use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use crate::TargetError;
use workload::parts::{ROUTER_IN_SECOND, SENDER_SECOND};
use workload::{NEXT_HOP, PORT_PREFIX, ROUTER_IN, ROUTER_OUT, SENDER};

/// Address of each router port, and of the neighbor behind it.
const NETWORKS: [(Ipv4Addr, Ipv4Addr); 3] =
    [(ROUTER_IN, SENDER), (ROUTER_OUT, NEXT_HOP), (ROUTER_IN_SECOND, SENDER_SECOND)];

/// Interval between requests to a router, and between polls of the sockets.
const ASK: Nanos = Nanos::from_millis(200);
const POLL_INTERVAL: Nanos = Nanos::from_millis(5);

/// Receive buffer for ARP, in bytes.
const RING_BYTES: usize = 64 << 10;

/// The tester's stations as a router's neighbors.
pub struct Neighbours {
    /// The MAC addresses of the router's ports.
    pub macs: Vec<Mac>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A port, and its neighbor.
struct NeighbourPort {
    port: AfPacketPort,
    name: String,
    gateway: Ipv4Addr,
    own: Ipv4Addr,
    mac: Mac,
}

impl Neighbours {
    /// Resolves the router's MAC addresses on these interfaces unless they are given, and replies
    /// as these stations from now on.
    pub fn meet(
        interfaces: &[(&str, Mac)],
        given: &[Mac],
        patience: Nanos,
    ) -> Result<Neighbours, TargetError> {
        let failed = |error: PortError| TargetError::failed("cannot use ARP", error);
        let mut sides = Vec::new();
        for (&(name, mac), (gateway, own)) in interfaces.iter().zip(NETWORKS) {
            let options = Options {
                ether_type: Some(ethernet::TYPE_ARP),
                ring_bytes: RING_BYTES,
                ..Options::forwarder()
            };
            let port = AfPacketPort::open(name, &options).map_err(failed)?;
            sides.push(NeighbourPort { port, name: name.to_owned(), gateway, own, mac });
        }
        let mut macs = Vec::new();
        for (place, side) in sides.iter_mut().enumerate() {
            macs.push(match given.get(place) {
                Some(mac) => *mac,
                None => side.ask(patience)?,
            });
        }
        let end = Arc::new(AtomicBool::new(false));
        let wanted = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            while !wanted.load(Ordering::Relaxed) {
                for side in &mut sides {
                    // The measurement that needs a missing port reports it.
                    let _ = side.turn();
                }
                clock::sleep_until(clock::now().saturating_add(POLL_INTERVAL));
            }
        });
        Ok(Neighbours { macs, end, thread: Some(thread) })
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl NeighbourPort {
    /// Resolves the MAC address of the router's port.
    fn ask(&mut self, patience: Nanos) -> Result<Mac, TargetError> {
        let failed =
            |error: PortError| TargetError::failed("cannot send ARP requests to the router", error);
        let deadline = clock::now().saturating_add(patience);
        while clock::now() < deadline {
            let question = arp::Header {
                operation: arp::REQUEST,
                sender_mac: self.mac,
                sender_ip: self.own,
                target_mac: [0; 6],
                target_ip: self.gateway,
            };
            self.say([0xff; 6], question).map_err(failed)?;
            let until = clock::now().saturating_add(ASK);
            while clock::now() < until {
                if let Some(mac) = self.turn().map_err(failed)? {
                    return Ok(mac);
                }
                clock::sleep_until(clock::now().saturating_add(POLL_INTERVAL));
            }
        }
        Err(TargetError::CannotHold(format!(
            "no ARP reply for {} at {} within {:.0} s (hint: configure the address \
             {0}/{PORT_PREFIX} on the router's port, or give the MAC addresses of its ports as \
             router=MAC+MAC)",
            self.gateway,
            self.name,
            patience.as_secs_f64()
        )))
    }

    /// Replies to requests; returns the router's MAC address if a reply contained it.
    fn turn(&mut self) -> Result<Option<Mac>, PortError> {
        let mut batch = Batch::new(64);
        self.port.receive(&mut batch, clock::now())?;
        let mut found = None;
        for frame in batch.frames() {
            let Some(message) = message_of(frame.bytes()) else { continue };
            if message.sender_ip == self.gateway {
                found = Some(message.sender_mac);
            }
            if message.operation == arp::REQUEST && message.target_ip == self.own {
                let answer = arp::Header {
                    operation: arp::REPLY,
                    sender_mac: self.mac,
                    sender_ip: self.own,
                    target_mac: message.sender_mac,
                    target_ip: message.sender_ip,
                };
                self.say(message.sender_mac, answer)?;
            }
        }
        Ok(found)
    }

    fn say(&mut self, to: Mac, message: arp::Header) -> Result<(), PortError> {
        let mut batch = Batch::new(1);
        batch.push_bytes(&Builder::new(to, self.mac).arp(message).bytes());
        self.port.transmit(&mut batch, clock::now()).map(drop)
    }
}

/// Parses ARP for IPv4 over Ethernet in an untagged frame.
fn message_of(frame: &[u8]) -> Option<arp::Header> {
    let frame = ethernet::View::new(frame)?;
    if frame.type_or_length() != ethernet::TYPE_ARP {
        return None;
    }
    arp::Header::parse(frame.payload()).ok().map(|(message, _)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_arp_messages_are_parsed() {
        let message = arp::Header {
            operation: arp::REQUEST,
            sender_mac: [2, 0, 0, 0, 0, 1],
            sender_ip: ROUTER_IN,
            target_mac: [0; 6],
            target_ip: SENDER,
        };
        let bytes = Builder::new([0xff; 6], [2, 0, 0, 0, 0, 1]).arp(message).bytes();
        assert_eq!(message_of(&bytes), Some(message));
        assert!((0..42).all(|length| message_of(&bytes[..length]).is_none()));
    }
}
