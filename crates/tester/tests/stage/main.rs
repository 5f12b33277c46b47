//! Modules with an event loop in virtual time.
//!
//! Events are exact to the nanosecond. For any switch behavior, each run ends with a reason and a
//! report.

#![allow(clippy::unwrap_used)]

mod activation;
mod agents;
mod chance;
mod robust;
mod streams;
mod toy;
mod wire;

use std::net::Ipv4Addr;

use netio::memory::pair_stamped;
use netio::port::Port;
use packet::time::Clock;
use tester::executor::TopologyInfo;
use tester::module::{Module, StageReport};
use tester::rig::sim::SimRig;
use tester::stream::{Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};
use toy::{Toy, Vice};

/// Two ports with a test switch between them.
fn rig(vice: Vice) -> SimRig<Toy> {
    let (near, far): (Vec<_>, Vec<_>) = ["in", "out"]
        .iter()
        .map(|name| pair_stamped(1024, name, Clock::Virtual))
        .map(|(near, far)| (Box::new(near) as Box<dyn Port>, Box::new(far) as Box<dyn Port>))
        .unzip();
    SimRig::new(near, Toy::new(far, vice), 7)
}

/// Runs a module on the rig.
fn stage(rig: &mut SimRig<Toy>, module: &mut dyn Module) -> StageReport {
    rig.stage(module, &TopologyInfo::default(), &mut |toy, _, now| Ok(toy.connect(now)))
}

/// Frames to this many addresses in turn, from 10.0.0.0 on.
fn probes(id: u16, addresses: u64, pps: f64) -> Stream {
    let ip = (Ipv4Addr::new(10, 9, 9, 9), Ipv4Addr::new(10, 0, 0, 0));
    let headers = Headers::udp(([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]), ip, (1, 2));
    let values = Values::Range { first: u64::from(ip.1.to_bits()), step: 1 };
    let vary = FieldVariation {
        count: addresses,
        order: IndexOrder::Sequential,
        fields: vec![(Field::IpDestination, values)],
    };
    let plain = Stream::plain(id, 64, headers, Rate::FramesPerSecond(pps));
    Stream { vary: vec![vary], ..plain }
}
