//! Fast path in the kernel: XDP programs forward the frames that the tables of a bridge, a router,
//! an OpenFlow switch or a ProGFE element decide, without copying them to user space.
//!
//! - The tables in user space remain the truth. Mirrors ([`dataplane::mirror`]) write every change
//!   to memory that the programs read, within the change itself and without system calls. Changes
//!   of flow tables follow in batches: see [`FastPath::follow`]. A new program of an element
//!   replaces the one in the kernel: see [`FastPath::follow_element`].
//! - A program forwards a frame only if the user-space code would forward it in the same way. All
//!   other frames escape: they go to user space as without a fast path. So do frames for learning,
//!   flooding, ARP, ICMP errors, options, fragmentation, and entries that found no room.
//! - The programs count per core. [`FastPath::traffic`] has the frames of each pair of ports.
//! - Programs and memory end with the process.
//!
//! One program runs at each interface; all share the maps. The caller attaches the programs and
//! provides the code for escaping frames: see [`FastPath::program`].
//!
//! Requires Linux 5.11 on a little-endian processor, for a switch Linux 6.9 on x86-64. Native
//! programs also require that interfaces report whether they send redirected frames (Linux 6.3).

mod addresses;
mod bridge;
mod checksum;
mod element;
mod exact_table;
mod ports;
mod router;
mod switch;
mod trie;

use std::io;
use std::sync::Arc;

use dataplane::bridge::Bridge;
use dataplane::pipeline::Pipeline;
use dataplane::router::Router;
use ebpf::{Assembly, Label};
use packet::frame::PortNo;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::Element;

use bridge::BridgePath;
use element::ElementPath;
use ports::Ports;
use router::RouterPath;
use switch::SwitchPath;

pub use element::{BlockPath, ElementStep, block_paths};
pub use ports::{PORTS_MAX, PairTraffic};
pub use switch::{PortExtra, Reason, SwitchReport};

/// Appends instructions that forward a frame or jump to a label, for a frame that escapes.
///
/// R6 must be the program's context. R7 and the context stay unchanged.
pub type Emit = Box<dyn Fn(&mut Assembly, Label) + Send>;

/// The fast path of one bridge, router, switch or ProGFE element.
#[derive(Debug)]
pub struct FastPath {
    ports: Arc<Ports>,
    tables: Tables,
}

#[derive(Debug)]
enum Tables {
    Bridge(Arc<BridgePath>),
    Router(Arc<RouterPath>),
    Switch(Arc<SwitchPath>),
    Element(Arc<ElementPath>),
}

/// Numbers of table entries in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entries {
    /// Addresses of a bridge, or of learning blocks.
    pub macs: usize,
    /// Neighbors of a router.
    pub neighbors: usize,
    /// Routes of a router or of blocks whose frames escape, because there was no room for them.
    pub routes_without_room: u64,
    /// Changes of addresses or neighbors that found no room; the frames of these entries escape.
    pub others_without_room: u64,
}

impl FastPath {
    /// Creates the fast path of a bridge between these ports, and mirrors its table from now on.
    ///
    /// Addresses at other ports are not mirrored. At most [`PORTS_MAX`] ports.
    pub fn of_bridge(bridge: &mut Bridge, ports: &[PortNo], seed: u64) -> io::Result<FastPath> {
        let ports = Arc::new(Ports::new(ports)?);
        let path = Arc::new(BridgePath::new(bridge, Arc::clone(&ports), seed)?);
        bridge.table.set_mirror(Some(path.mirror()));
        Ok(FastPath { ports, tables: Tables::Bridge(path) })
    }

    /// Creates the fast path of a router between these ports, and mirrors its tables from now on.
    ///
    /// Routes to other ports are mirrored as escapes. At most [`PORTS_MAX`] ports.
    pub fn of_router(router: &mut Router, ports: &[PortNo], seed: u64) -> io::Result<FastPath> {
        let ports = Arc::new(Ports::new(ports)?);
        let path = Arc::new(RouterPath::new(router, Arc::clone(&ports), seed)?);
        router.set_mirrors(Some(path.mirrors()));
        Ok(FastPath { ports, tables: Tables::Router(path) })
    }

    /// Creates the fast path of a switch between these ports, and includes its counters in the
    /// statistics of the pipeline from now on.
    ///
    /// Outputs to other ports escape. At most [`PORTS_MAX`] ports. Call [`FastPath::follow`] before
    /// frames arrive.
    pub fn of_switch(pipeline: &mut Pipeline, ports: &[PortNo], seed: u64) -> io::Result<FastPath> {
        let numbers = ports;
        let ports = Arc::new(Ports::new(numbers)?);
        let path = SwitchPath::new(pipeline, numbers, Arc::clone(&ports), seed)?;
        Ok(FastPath { ports, tables: Tables::Switch(path) })
    }

    /// Creates the fast path of a ProGFE element between these ports, and its mirror.
    ///
    /// Outputs to other ports escape. At most [`PORTS_MAX`] ports. Call
    /// [`FastPath::follow_element`] next.
    pub fn of_element(
        element: &mut Element<Compiled>,
        ports: &[PortNo],
        seed: u64,
    ) -> io::Result<FastPath> {
        let ports = Arc::new(Ports::new(ports)?);
        let path = Arc::new(ElementPath::new(Arc::clone(&ports), seed)?);
        element.set_mirror(Some(path.mirror()));
        Ok(FastPath { ports, tables: Tables::Element(path) })
    }

    /// Lets frames be decided by the running program of an element, if they are not already. After
    /// an error they escape until another program runs.
    pub fn follow_element(
        &self,
        element: &mut Element<Compiled>,
        now: Nanos,
    ) -> io::Result<ElementStep> {
        match &self.tables {
            Tables::Element(path) => path.follow(element, now),
            _ => Ok(ElementStep::None),
        }
    }

    /// Lets frames be decided by the programs of an element that all ports have.
    pub fn resume(&self) {
        if let Tables::Element(path) = &self.tables {
            path.resume();
        }
    }

    /// Returns false while all frames of an element escape.
    pub fn runs(&self) -> bool {
        match &self.tables {
            Tables::Element(path) => path.runs(),
            _ => true,
        }
    }

    /// Leaves frames to the element until another program runs, because a port cannot have the
    /// program in the kernel.
    pub fn give_up(&self) {
        if let Tables::Element(path) = &self.tables {
            path.give_up();
        }
    }

    /// Applies all changes of a switch since the last call; they become visible together. Does
    /// nothing while a bundle is open. Frames are forwarded by the changes when this returns.
    ///
    /// Returns whether memory of removed entries waits to be reused: then call this again within
    /// some milliseconds.
    pub fn follow(&self, pipeline: &mut Pipeline, now: Nanos) -> bool {
        match &self.tables {
            Tables::Switch(path) => path.follow(pipeline, now),
            _ => false,
        }
    }

    /// Returns what happens to the entries and frames of a switch.
    pub fn switch_report(&self) -> Option<SwitchReport> {
        match &self.tables {
            Tables::Switch(path) => Some(path.report()),
            _ => None,
        }
    }

    /// Returns the traffic of a port of a switch or an element that [`FastPath::traffic`] does not
    /// have.
    pub fn extra(&self, port: PortNo) -> PortExtra {
        match &self.tables {
            Tables::Switch(path) => path.extra(port),
            Tables::Element(path) => path.extra(port),
            Tables::Bridge(_) | Tables::Router(_) => PortExtra::default(),
        }
    }

    /// Sets the length of the longest frame of a port, without a tag. Longer frames escape, and
    /// all frames until every port has a length.
    pub fn set_frame_bytes_max(&self, port: PortNo, frame_bytes_max: usize) {
        self.ports.set_frame_bytes_max(port, frame_bytes_max);
    }

    /// Redirects frames for a port to the interface with this index. Until then they escape.
    pub fn connect(&self, port: PortNo, interface: u32) -> io::Result<()> {
        self.ports.connect(port, interface)?;
        if let Tables::Switch(path) = &self.tables {
            path.set_connected(port, true);
        }
        Ok(())
    }

    /// Ends the connection of a port: frames for it escape.
    pub fn disconnect(&self, port: PortNo) -> io::Result<()> {
        if let Tables::Switch(path) = &self.tables {
            path.set_connected(port, false);
        }
        self.ports.disconnect(port)
    }

    /// Returns the instructions for the frames that a port receives.
    ///
    /// With `is_partial`, frames escape whose checksum may have been left to hardware.
    pub fn program(&self, port: PortNo, is_partial: bool) -> Emit {
        match &self.tables {
            Tables::Bridge(path) => {
                let path = Arc::clone(path);
                Box::new(move |program: &mut Assembly, escape| {
                    path.emit(port, is_partial, program, escape);
                })
            }
            Tables::Router(path) => {
                let path = Arc::clone(path);
                Box::new(move |program: &mut Assembly, escape| {
                    path.emit(port, is_partial, program, escape);
                })
            }
            Tables::Switch(path) => {
                let path = Arc::clone(path);
                Box::new(move |program: &mut Assembly, escape| {
                    path.emit(port, is_partial, program, escape);
                })
            }
            Tables::Element(path) => path.emitter(port, is_partial),
        }
    }

    /// Reads the traffic of each pair of ports that forwarded frames. That of an element is as of
    /// the last call of [`Element::add_mirrored`].
    pub fn traffic(&self) -> io::Result<Vec<PairTraffic>> {
        match &self.tables {
            Tables::Element(path) => Ok(path.traffic()),
            _ => self.ports.traffic(),
        }
    }

    /// Returns the numbers of mirrored entries.
    pub fn entries(&self) -> Entries {
        match &self.tables {
            Tables::Bridge(path) => path.entries(),
            Tables::Router(path) => path.entries(),
            Tables::Element(path) => path.entries(),
            Tables::Switch(_) => Entries::default(),
        }
    }
}

/// Checks whether this process and its kernel can have a fast path of a switch. This takes as long
/// as the verifier needs for a program, some tens of milliseconds.
pub fn probe_switch() -> io::Result<()> {
    switch::probe()
}

/// Returns an error for a condition that the caller reports as a reason.
fn unsupported(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}
