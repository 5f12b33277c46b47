//! Snapshot of a monitor's counters, by port and by stream. Rates are differences of two snapshots.
//!
//! A stream's frames have the same protocols and only a few sizes. So they are counted by size and
//! classified once. Only other frames are parsed individually.

use packet::parse::{Layers, Network};
use packet::time::Nanos;
use packet::traffic::{Class, Count, Traffic};

use super::{Monitor, PortTally};
use crate::generator::template::Template;
use crate::generator::templates::Templates;
use crate::trial::Classes;

/// All counters at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub at: Nanos,
    /// Counters by port.
    pub ports: Vec<PortCounts>,
    /// Counters by stream, in the order of the trial.
    pub streams: Vec<StreamCounts>,
}

/// Counters of one port.
#[derive(Debug, Clone)]
pub struct PortCounts {
    /// Frame classes.
    pub tally: PortTally,
    /// All received frames by protocol and size.
    pub traffic: Traffic,
}

/// Counters of one stream.
#[derive(Debug, Clone)]
pub struct StreamCounts {
    /// Stream id.
    pub id: u16,
    /// Intact frames on all ports, with every copy and the warm-up.
    pub arrived: Count,
    /// Classes of the measured frames. Misrouted and flooded frames are only known at the end.
    pub classes: Classes,
}

/// One stream's intact frames, by size and port.
#[derive(Debug)]
pub(super) struct BatchRun {
    /// Offset of the IP protocol and its usual value, if it varies.
    protocol: Option<(usize, u8)>,
    sizes: Vec<Size>,
}

#[derive(Debug)]
struct Size {
    bytes: usize,
    class: Class,
    by_port: Vec<u64>,
}

impl BatchRun {
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
        BatchRun { protocol, sizes: templates.all().map(size).collect() }
    }

    /// Returns whether an intact frame needs individual parsing.
    #[inline]
    pub(super) fn is_unlike(&self, bytes: &[u8]) -> bool {
        self.protocol.is_some_and(|(at, protocol)| bytes[at] != protocol)
    }

    /// Counts intact frames of this size.
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
    /// Returns the frames received on a port, by protocol and size.
    pub fn traffic(&self, port: usize) -> Traffic {
        let mut traffic = self.others[port].clone();
        for stream in &self.streams {
            for size in &stream.alike.sizes {
                traffic.add_alike(size.class, size.by_port[port]);
            }
        }
        traffic
    }

    /// Returns a snapshot of all counters.
    pub fn freeze(&self, at: Nanos) -> Snapshot {
        let port = |(port, tally): (usize, &PortTally)| PortCounts {
            tally: *tally,
            traffic: self.traffic(port),
        };
        let stream = |stream: &super::ReceivedStream| {
            let mut arrived = stream.alike.total();
            arrived.add(stream.unlike.frames, stream.unlike.bytes);
            let classes = stream.phases[1].classes;
            StreamCounts { id: stream.templates.stream(), arrived, classes }
        };
        Snapshot {
            at,
            ports: self.ports.iter().enumerate().map(port).collect(),
            streams: self.streams.iter().map(stream).collect(),
        }
    }
}
