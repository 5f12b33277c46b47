//! Tests of a complete switch over memory ports, with controllers over memory channels, in virtual
//! time.

mod auxiliary;
mod bundles;
mod faults;
mod flows;
mod frames;
mod limits;
mod models;
mod monitors;
mod nicira;
mod roles;
mod statistics;
mod tables;
mod turns;

use std::net::Ipv4Addr;

use channel::Connecting;
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use openflow::header::Xid;
use openflow::model::{self, Action, Field, FlowMod, Match, Message, PRIORITY_DEFAULT};
use openflow::session::{self, Session, Settings};
use openflow::version::{End, ErrorCode, Version};
use packet::frame::Batch;
use packet::time::Clock;

use super::*;
use crate::config::{OpenFlowConfig, PortConfig};

/// A switch, the peers of its ports, and its controllers.
struct Rig {
    node: Node,
    wires: Vec<Option<MemoryPort>>,
    controllers: Vec<Controller>,
    now: Nanos,
    log: Vec<String>,
    /// Budget steps of control work in one turn.
    steps: u64,
}

/// A controller, with received replies and asynchronous messages.
struct Controller {
    session: Session,
    channel: Box<dyn Channel>,
    replies: Vec<(Xid, Message)>,
    news: Vec<Message>,
    reads: bool,
    down: bool,
}

impl Rig {
    /// Creates a switch with three ports and these settings.
    fn new(settings: OpenFlowConfig) -> Rig {
        Rig::over(settings, |port| Box::new(port))
    }

    /// Creates a switch whose ports are wrapped.
    fn over(settings: OpenFlowConfig, wrap: impl Fn(MemoryPort) -> Box<dyn Port>) -> Rig {
        Rig::made(3, Kind::OpenFlow(settings), |_| {}, wrap)
    }

    /// Creates a node of this kind with three ports, after `tell` changed its configuration.
    fn with(kind: Kind, tell: impl FnOnce(&mut Config)) -> Rig {
        Rig::made(3, kind, tell, |port| Box::new(port))
    }

    /// Creates a node with this number of ports.
    fn made(
        ports_count: u32,
        kind: Kind,
        tell: impl FnOnce(&mut Config),
        wrap: impl Fn(MemoryPort) -> Box<dyn Port>,
    ) -> Rig {
        let mut config = Config::new(kind);
        let (mut ports, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=ports_count {
            let spec = format!("memory:{number}");
            config.ports.push(PortConfig { number, spec });
            let (ours, theirs) = pair_stamped(1024, &format!("p{number}"), Clock::Virtual);
            ports.push((number, wrap(ours)));
            wires.push(Some(theirs));
        }
        tell(&mut config);
        let now = Nanos::from_secs(1);
        let node = Node::open(&config, ports, 7, now).expect("a valid configuration");
        let (controllers, log, steps) = (Vec::new(), Vec::new(), STEPS_A_TURN);
        Rig { node, wires, controllers, now, log, steps }
    }

    /// Creates a switch with one connected controller.
    fn connected(settings: OpenFlowConfig) -> Rig {
        let mut rig = Rig::new(settings);
        rig.connect(1 << 20);
        rig
    }

    /// Creates a switch with a connected controller of this version.
    fn speaking(version: Version, settings: OpenFlowConfig) -> Rig {
        let mut rig = Rig::new(settings);
        rig.connect_as(version, 1 << 20);
        rig
    }

    /// Adds a controller of 1.0 on a channel with a buffer of `bytes` bytes, and establishes its
    /// session.
    fn connect(&mut self, bytes: usize) -> usize {
        self.connect_as(Version::V1_0, bytes)
    }

    /// Adds a controller of this version on a channel with a buffer of `bytes` bytes.
    fn connect_as(&mut self, version: Version, bytes: usize) -> usize {
        let label = format!("c{}", self.controllers.len());
        let (ours, theirs) = channel::memory::pair(bytes, &label);
        self.node.adopt(Box::new(ours), self.now);
        self.speak(version, Box::new(theirs))
    }

    /// Connects a controller of 1.0 to a Unix socket that the switch listens on.
    fn dial(&mut self, path: &std::path::Path) -> usize {
        let url = format!("unix:{}", path.display()).parse().unwrap();
        let deadline = Nanos::from_secs(1);
        let mut attempt = Connecting::start_with(&url, None, self.now, deadline).unwrap();
        let channel = attempt.finish(self.now).unwrap().expect("the switch accepts connections");
        self.speak(Version::V1_0, channel)
    }

    /// Establishes a session of this version on a channel.
    fn speak(&mut self, version: Version, channel: Box<dyn Channel>) -> usize {
        let versions = vec![version];
        let settings = Settings { echo_idle: None, versions, ..Settings::new(End::Controller) };
        self.controllers.push(Controller {
            session: Session::new(settings, self.now),
            channel,
            replies: Vec::new(),
            news: Vec::new(),
            reads: true,
            down: false,
        });
        self.settle();
        assert_eq!(self.controllers.last().unwrap().session.version(), Some(version));
        self.controllers.len() - 1
    }

    /// Delivers all data in transit, without advancing the clock.
    fn settle(&mut self) {
        for _ in 0..50 {
            self.step();
        }
    }

    fn step(&mut self) {
        self.node.turn(self.now);
        self.node.serve_within(self.now, Budget::of_steps(self.steps));
        self.log.extend(self.node.events.drain(..).map(|event| event.to_string()));
        for controller in &mut self.controllers {
            controller.step(self.now);
        }
    }

    /// Advances the clock in steps that are short enough for every timeout.
    fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        while self.now < until {
            self.now = until.min(self.now + Nanos::from_millis(100));
            self.settle_quickly();
        }
    }

    fn settle_quickly(&mut self) {
        for _ in 0..3 {
            self.step();
        }
    }

    /// Sends a request and returns the parts of its reply.
    fn ask(&mut self, who: usize, request: &Message) -> Vec<Message> {
        let xid = self.send(who, request);
        self.settle();
        let replies = std::mem::take(&mut self.controllers[who].replies);
        replies.into_iter().filter(|(of, _)| *of == xid).map(|(_, reply)| reply).collect()
    }

    fn send(&mut self, who: usize, request: &Message) -> Xid {
        let controller = &mut self.controllers[who];
        controller.session.send(request, self.now).expect("room for a request")
    }

    /// Sends a request whose only reply is an error, and returns that.
    fn refused(&mut self, request: &Message) -> (ErrorCode, Vec<u8>) {
        match self.ask(0, request).as_slice() {
            [Message::Error(error)] => (error.code, error.data.clone()),
            other => panic!("{request} was answered with {other:?}"),
        }
    }

    /// Sends a message that must not have a reply.
    fn order(&mut self, request: &Message) {
        let replies = self.ask(0, request);
        assert!(replies.is_empty(), "{request} was answered with {replies:?}");
    }

    /// Sends a frame to a port.
    fn arrive(&mut self, port: usize, bytes: &[u8]) {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        let wire = self.wires[port - 1].as_mut().expect("the wire is there");
        assert_eq!(wire.transmit(&mut batch, self.now).unwrap(), 1);
        self.settle();
    }

    /// Receives the frames that left through a port.
    fn left(&mut self, port: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::new(1024);
        let wire = self.wires[port - 1].as_mut().expect("the wire is there");
        wire.receive(&mut batch, self.now).unwrap();
        batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
    }

    fn news(&mut self, who: usize) -> Vec<Message> {
        std::mem::take(&mut self.controllers[who].news)
    }
}

impl Controller {
    fn step(&mut self, now: Nanos) {
        if self.down {
            return;
        }
        let mut buffer = [0; 60_000];
        if self.reads {
            match self.channel.receive(&mut buffer) {
                Ok(count) => assert_eq!(self.session.receive(&buffer[..count], now), count),
                Err(_) => self.down = true,
            }
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                session::Event::Message { xid: 0, message, .. } => self.news.push(message),
                session::Event::Message { xid, message, .. } => self.replies.push((xid, message)),
                session::Event::Refused(error) => panic!("the switch sent nonsense: {error}"),
                session::Event::Up { .. } => {}
                session::Event::Down { .. } => self.down = true,
            }
        }
        let count = self.channel.transmit(self.session.transmit()).unwrap_or(0);
        self.session.transmitted(count);
    }
}

/// Returns a UDP frame of `bytes` bytes from 10.0.0.1, port 1000 + `flow`, to 10.0.0.2, port 2000.
fn udp(flow: u16, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let length = (bytes - 14) as u16;
    let [high, low] = length.to_be_bytes();
    frame.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend((1000 + flow).to_be_bytes());
    frame.extend(2000u16.to_be_bytes());
    frame.extend((length - 20).to_be_bytes());
    frame.resize(bytes, 0x5a);
    frame
}

/// Returns the exact match of [`udp`] on port 1.
fn exact(flow: u16) -> Match {
    Match::ANY
        .with(Field::InPort, 1u8)
        .with_mac(Field::EthSrc, [2, 0, 0, 0, 0, 1])
        .with_mac(Field::EthDst, [2, 0, 0, 0, 0, 2])
        .untagged()
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpDscp, 0u8)
        .with(Field::IpProto, 17u8)
        .with_ipv4(Field::Ipv4Src, Ipv4Addr::new(10, 0, 0, 1), 32)
        .with_ipv4(Field::Ipv4Dst, Ipv4Addr::new(10, 0, 0, 2), 32)
        .with(Field::UdpSrc, 1000 + flow)
        .with(Field::UdpDst, 2000u16)
}

fn from_port(port: u32) -> Match {
    Match::ANY.with(Field::InPort, port)
}

/// Returns a flow-mod that adds an entry with output to a port.
fn add(matching: Match, port: u32) -> FlowMod {
    FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(port)])
}
