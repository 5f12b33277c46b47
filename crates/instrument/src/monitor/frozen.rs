//! Every counter of a monitor at one moment, by port and by stream; rates are the differences of two.
//!
//! A stream's frames carry the same protocols and have a few sizes, so that they are counted by number and
//! classed once; only other frames are taken to pieces one by one.

use packet::parse::{Layers, Network};
use packet::time::Nanos;
use packet::traffic::{Class, Count, Traffic};

use super::{Monitor, PortTally};
use crate::generate::template::Template;
use crate::generate::templates::Templates;
use crate::trial::Classes;

/// What was counted up to a moment.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// That moment.
    pub at: Nanos,
    /// By port.
    pub ports: Vec<PortCounts>,
    /// By stream, in the order of the trial.
    pub streams: Vec<StreamCounts>,
}

/// What arrived on one port.
#[derive(Debug, Clone)]
pub struct PortCounts {
    /// How it was sorted.
    pub tally: PortTally,
    /// By protocol and size, all of it.
    pub traffic: Traffic,
}

/// What arrived of one stream.
#[derive(Debug, Clone)]
pub struct StreamCounts {
    /// The stream's number.
    pub id: u16,
    /// Intact frames on all ports, every copy, of the warm-up too.
    pub arrived: Count,
    /// What became of the measured frames; which of them were misrouted or flooded is known at the end.
    pub classes: Classes,
}

/// One stream's intact frames, by size and port.
#[derive(Debug)]
pub(super) struct Alike {
    /// Where the protocol stands that its frames carry behind IP, and which, if it varies.
    protocol: Option<(usize, u8)>,
    sizes: Vec<Size>,
}

#[derive(Debug)]
struct Size {
    bytes: usize,
    class: Class,
    by_port: Vec<u64>,
}

impl Alike {
    pub(super) fn new(templates: &Templates, ports: usize) -> Self {
        let size = |template: &Template| {
            let bytes = template.bytes();
            let class = Class::of(bytes, bytes.len());
            Size { bytes: bytes.len(), class, by_port: vec![0; ports] }
        };
        let bytes = templates.of(0).bytes();
        let layers = Layers::of(bytes);
        let network = usize::from(layers.network_at);
        let at = match layers.network {
            Network::Ipv4 => Some(network + 9),
            Network::Ipv6 => Some(network + 6),
            Network::Arp | Network::None => None,
        };
        let varies = |at: &usize| templates.all().any(|template| template.varies_at(*at));
        let protocol = at.filter(varies).map(|at| (at, bytes[at]));
        Alike { protocol, sizes: templates.all().map(size).collect() }
    }

    /// Whether an intact frame must be taken to pieces.
    #[inline]
    pub(super) fn is_unlike(&self, bytes: &[u8]) -> bool {
        self.protocol.is_some_and(|(at, protocol)| bytes[at] != protocol)
    }

    /// Counts intact frames of so many bytes.
    #[inline]
    pub(super) fn count(&mut self, port: usize, bytes: usize, frames: u64) {
        if let Some(size) = self.sizes.iter_mut().find(|size| size.bytes == bytes) {
            size.by_port[port] += frames;
        }
    }

    fn total(&self) -> Count {
        let mut total = Count::default();
        for size in &self.sizes {
            let frames = size.by_port.iter().sum();
            total.add(frames, frames * size.bytes as u64);
        }
        total
    }
}

impl Monitor {
    /// What arrived on a port, by protocol and size.
    pub fn traffic(&self, port: usize) -> Traffic {
        let mut traffic = self.others[port].clone();
        for stream in &self.streams {
            for size in &stream.alike.sizes {
                traffic.add_alike(size.class, size.by_port[port]);
            }
        }
        traffic
    }

    /// Every counter as it is at this moment.
    pub fn freeze(&self, at: Nanos) -> Frozen {
        let port = |(port, tally): (usize, &PortTally)| PortCounts {
            tally: *tally,
            traffic: self.traffic(port),
        };
        let stream = |stream: &super::Incoming| {
            let mut arrived = stream.alike.total();
            arrived.add(stream.unlike.frames, stream.unlike.bytes);
            let classes = stream.legs[1].classes;
            StreamCounts { id: stream.templates.stream(), arrived, classes }
        };
        Frozen {
            at,
            ports: self.ports.iter().enumerate().map(port).collect(),
            streams: self.streams.iter().map(stream).collect(),
        }
    }
}
