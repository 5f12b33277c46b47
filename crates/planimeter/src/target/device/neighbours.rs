//! What a router of the user's own has to know of its neighbours, and what the tester has to know of the router.
//!
//! The tester asks each port of the router for the hardware address of the address that it ought to have, and
//! answers for the sender and for the next hop, as long as the device is held: a thread on sockets that get frames of ARP
//! alone, so that those of a measurement cost it nothing. Source: RFC 826.
//! Invariant: nobody but the router is asked, and nothing is answered for but the tester's own addresses.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use packet::build::Builder;
use packet::frame::Batch;
use packet::header::arp;
use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;
use ports::afpacket::{AfPacketPort, Options};
use ports::clock;
use ports::port::{Port, PortError};

use crate::target::TargetError;
use crate::workload::parts::{ROUTER_IN_SECOND, SENDER_SECOND};
use crate::workload::{NEXT_HOP, PORT_PREFIX, ROUTER_IN, ROUTER_OUT, SENDER};

/// What each port of a router is to have, and who is behind it.
const NETWORKS: [(Ipv4Addr, Ipv4Addr); 3] =
    [(ROUTER_IN, SENDER), (ROUTER_OUT, NEXT_HOP), (ROUTER_IN_SECOND, SENDER_SECOND)];

/// How often a router is asked, and how often what came is looked at.
const ASK: Nanos = Nanos::from_millis(200);
const LOOK: Nanos = Nanos::from_millis(5);

/// Bytes of ARP that may wait.
const RING_BYTES: usize = 64 << 10;

/// The tester's stations as a router's neighbours.
pub struct Neighbours {
    /// The hardware addresses of the router's ports.
    pub macs: Vec<Mac>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A port, and who is behind it.
struct Side {
    port: AfPacketPort,
    name: String,
    gateway: Ipv4Addr,
    own: Ipv4Addr,
    mac: Mac,
}

impl Neighbours {
    /// Asks the router by these interfaces, unless its hardware addresses are given, and answers from now on as
    /// these stations.
    pub fn meet(
        interfaces: &[(&str, Mac)],
        given: &[Mac],
        patience: Nanos,
    ) -> Result<Neighbours, TargetError> {
        let failed = |error: PortError| TargetError::failed("speaking ARP", error);
        let mut sides = Vec::new();
        for (&(name, mac), (gateway, own)) in interfaces.iter().zip(NETWORKS) {
            let options = Options {
                ether_type: Some(ethernet::TYPE_ARP),
                ring_bytes: RING_BYTES,
                ..Options::forwarder()
            };
            let port = AfPacketPort::open(name, &options).map_err(failed)?;
            sides.push(Side { port, name: name.to_owned(), gateway, own, mac });
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
                    // A port that is gone is told by the measurement that needs it.
                    let _ = side.turn();
                }
                clock::sleep_until(clock::now().saturating_add(LOOK));
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

impl Side {
    /// The hardware address of the router's port.
    fn ask(&mut self, patience: Nanos) -> Result<Mac, TargetError> {
        let failed = |error: PortError| TargetError::failed("asking the router by ARP", error);
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
                clock::sleep_until(clock::now().saturating_add(LOOK));
            }
        }
        Err(TargetError::CannotHold(format!(
            "nobody answers for {} at {} within {:.0} s: give the router's port the address {0}/{PORT_PREFIX}, or \
             write the hardware addresses of its ports as router=MAC+MAC",
            self.gateway,
            self.name,
            patience.as_secs_f64()
        )))
    }

    /// Answers what was asked; the router's hardware address, if it told that.
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

/// ARP about IPv4 on Ethernet in an untagged frame.
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
    fn only_whole_messages_of_arp_are_read() {
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
