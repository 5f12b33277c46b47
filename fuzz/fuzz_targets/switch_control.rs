//! Feeds any bytes from a controller of any version to a complete switch, while frames pass. The
//! switch does not panic, stays within its limits, and continues to serve other controllers.
//!
//! The first byte selects the version and whether lengths are corrected. The controller's messages
//! follow. A message of version 0xff is a frame for one of the ports instead, and one of version
//! 0xfe advances the time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, Version};
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos};
use channel::Channel;
use channel::memory::{self, MemoryChannel};
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use elements::config::{Config, Kind, Limits, OpenFlowConfig, PortConfig};
use elements::node::Node;

const PORTS: u32 = 3;

/// A switch whose limits can all be reached within a few hundred bytes.
fn small() -> OpenFlowConfig {
    OpenFlowConfig {
        tables: 4,
        exact_flows_max: 8,
        wildcard_flows_max: 16,
        flows_max: 8,
        groups_max: 6,
        buckets_max: 12,
        meters_max: 4,
        buffers: 4,
        limits: Limits {
            connections: 4,
            bundles: 2,
            bundle_messages: 4,
            bundle_bytes: 1 << 16,
            multipart_request_bytes: 1 << 16,
            monitors: 2,
            ..Limits::default()
        },
        ..OpenFlowConfig::default()
    }
}

struct Rig {
    node: Node,
    wires: Vec<MemoryPort>,
    now: Nanos,
}

impl Rig {
    fn new() -> Rig {
        let mut config = Config::new(Kind::OpenFlow(small()));
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=PORTS {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair_stamped(64, &format!("p{number}"), Clock::Virtual);
            ports.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let now = Nanos::from_secs(1);
        let node = Node::open(&config, ports, 7, now).expect("a valid configuration");
        Rig { node, wires, now }
    }

    fn adopt(&mut self) -> MemoryChannel {
        let (ours, theirs) = memory::pair(1 << 18, "controller");
        self.node.adopt(Box::new(ours), self.now);
        theirs
    }

    /// Runs some turns. Takes sent frames and discards the switch's messages.
    fn turns(&mut self, count: usize, hostile: &mut MemoryChannel) {
        let mut buffer = [0; 4096];
        for _ in 0..count {
            self.node.turn(self.now);
            self.node.serve(self.now);
            self.node.events.clear();
            for wire in &mut self.wires {
                let _ = wire.receive(&mut Batch::new(64), self.now);
            }
            while hostile.receive(&mut buffer).is_ok_and(|count| count > 0) {}
        }
    }

    fn arrive(&mut self, port: u8, bytes: &[u8]) {
        let mut batch = Batch::new(1);
        batch.push_bytes(&bytes[..bytes.len().min(FRAME_BYTES_MAX)]);
        let wire = usize::from(port) % self.wires.len();
        let _ = self.wires[wire].transmit(&mut batch, self.now);
    }

    /// Checks that a well-behaved controller can connect and gets a reply.
    fn still_serves(&mut self, version: Version, hostile: &mut MemoryChannel) {
        let mut channel = self.adopt();
        let settings =
            Settings { versions: vec![version], echo_idle: None, ..Settings::new(End::Controller) };
        let mut session = Session::new(settings, self.now);
        let (mut buffer, mut up) = ([0; 16 << 10], false);
        for _ in 0..400 {
            let sent = channel.transmit(session.transmit()).expect("it is let in");
            session.transmitted(sent);
            self.turns(1, hostile);
            let count = channel.receive(&mut buffer).expect("it is kept");
            assert_eq!(session.receive(&buffer[..count], self.now), count);
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Up { .. } => {
                        up = true;
                        session
                            .send(&openflow::model::Message::BarrierRequest, self.now)
                            .expect("a barrier");
                    }
                    Event::Message { answers: Some(_), .. } => return,
                    Event::Message { .. } => {}
                    other => panic!("the switch misbehaves: {other:?}"),
                }
            }
        }
        panic!("a good controller is not served; up: {up}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let spoken = Version::SUPPORTED;
    let version = spoken[usize::from(choice >> 1) % spoken.len()];
    let mut rig = Rig::new();
    let mut hostile = rig.adopt();
    let _ = hostile.transmit(&[version.wire(), 0, 0, 8, 0, 0, 0, 1]);
    rig.turns(1, &mut hostile);
    while let [wire, kind, high, low, ..] = *rest {
        let said = usize::from(u16::from_be_bytes([high, low]));
        let length = said.max(8).min(rest.len());
        let (message, tail) = rest.split_at(length);
        rest = tail;
        match wire {
            0xff => rig.arrive(kind, &message[4..]),
            0xfe => rig.now += Nanos::from_millis(100 * u64::from(kind)),
            _ => {
                let mut message = message.to_vec();
                if choice & 1 == 0 {
                    message[0] = version.wire();
                    message[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                }
                let _ = hostile.transmit(&message);
            }
        }
        rig.turns(1, &mut hostile);
    }
    rig.turns(4, &mut hostile);
    rig.still_serves(version, &mut hostile);
});
