//! Test switch in virtual time, correct or with one misbehavior, to test the event loop.
//!
//! A flow-mod's cookie is the IPv4 destination of its rule. Matching frames leave on port 1 once
//! the rule is active. The time of each action is known to the test.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use channel::Channel;
use channel::memory::{MemoryChannel, pair, pair_stamped};
use netio::port::Port;
use openflow::header::Xid;
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::model::packet_io::{PacketIn, PacketInReason};
use openflow::model::switch::Features;
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, ErrorCode};
use packet::frame::Batch;
use packet::parse::Packet;
use packet::time::Nanos;
use tester::rig::sim::Device;

/// Misbehavior of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vice {
    /// None.
    None,
    /// It sends no hello.
    NoHello,
    /// It sends no features reply.
    NoFeatures,
    /// It stops processing after this many messages.
    SilentAfter(u32),
    /// It closes the connection after this many messages.
    ClosesAfter(u32),
    /// Its replies have transaction ids that match no request.
    WrongXids,
    /// It sends each reply twice.
    Repeats,
    /// It swaps the order of two replies.
    Reorders,
    /// It sends an invalid message before each reply.
    Garbles,
    /// It sends bytes without message boundaries after this many messages.
    LosesItself(u32),
    /// It rejects every other flow-mod.
    RefusesHalf,
    /// It sends packet-ins endlessly.
    Floods,
}

/// The test switch.
pub struct Toy {
    /// The other ends of the tester's ports.
    pub ports: Vec<Box<dyn Port>>,
    /// Processing delay of a message.
    pub delay: Nanos,
    /// The n-th rule becomes active n times this later than confirmed.
    pub lag: Nanos,
    /// Whether to send packet-ins for table misses.
    pub tells_misses: bool,
    pub vice: Vice,
    lines: Vec<Line>,
    rules: Vec<(u32, Nanos)>,
    messages: u32,
    flow_mods: u32,
    floods_at: Nanos,
}

struct Line {
    channel: Option<MemoryChannel>,
    session: Session,
    /// Received messages with the end of their processing.
    waiting: Vec<(Nanos, Xid, Message)>,
    held: Option<Vec<u8>>,
    out: Vec<u8>,
}

impl Toy {
    pub fn new(ports: Vec<Box<dyn Port>>, vice: Vice) -> Self {
        Toy {
            ports,
            delay: Nanos::from_micros(100),
            lag: Nanos::ZERO,
            tells_misses: false,
            vice,
            lines: Vec::new(),
            rules: Vec::new(),
            messages: 0,
            flow_mods: 0,
            floods_at: Nanos::ZERO,
        }
    }

    /// Opens a connection.
    pub fn connect(&mut self, now: Nanos) -> Box<dyn Channel> {
        self.adopt(pair(1 << 16, "toy"), now)
    }

    /// Opens a connection with timestamps from the wire.
    pub fn connect_stamped(&mut self, clock: &Arc<AtomicU64>, now: Nanos) -> Box<dyn Channel> {
        self.adopt(pair_stamped(1 << 16, "toy", clock), now)
    }

    fn adopt(
        &mut self,
        (near, far): (MemoryChannel, MemoryChannel),
        now: Nanos,
    ) -> Box<dyn Channel> {
        self.lines.push(Line {
            channel: Some(far),
            session: Session::new(Settings::new(End::Switch), now),
            waiting: Vec::new(),
            held: None,
            out: Vec::new(),
        });
        Box::new(near)
    }

    fn hear(&mut self, place: usize, now: Nanos) {
        let line = &mut self.lines[place];
        let Some(channel) = &mut line.channel else { return };
        let mut bytes = [0; 4096];
        loop {
            let Ok(count) = channel.receive(&mut bytes) else {
                line.channel = None;
                return;
            };
            assert_eq!(line.session.receive(&bytes[..count], now), count);
            while let Some(event) = line.session.poll_event() {
                if let Event::Message { xid, message, .. } = event {
                    line.waiting.push((now + self.delay, xid, message));
                }
            }
            if count == 0 {
                return;
            }
        }
    }

    fn act(&mut self, place: usize, now: Nanos) {
        while let Some(&(due, xid, _)) = self.lines[place].waiting.first()
            && due <= now
        {
            let (_, _, message) = self.lines[place].waiting.remove(0);
            self.messages += 1;
            match self.vice {
                Vice::SilentAfter(count) if self.messages > count => continue,
                Vice::ClosesAfter(count) if self.messages > count => {
                    self.lines[place].channel = None;
                    return;
                }
                Vice::LosesItself(count) if self.messages > count => {
                    self.lines[place].out.extend([1, 2, 0, 3, 0, 0, 0, 0]);
                    return;
                }
                _ => {}
            }
            if let Some(reply) = self.reply(message, now) {
                self.answer(place, xid, &reply);
            }
        }
    }

    fn reply(&mut self, message: Message, now: Nanos) -> Option<Message> {
        match message {
            Message::FeaturesRequest if self.vice == Vice::NoFeatures => None,
            Message::FeaturesRequest => {
                Some(Message::FeaturesReply(Features { datapath_id: 0xabc, ..Features::default() }))
            }
            Message::BarrierRequest => Some(Message::BarrierReply),
            Message::FlowMod(flow) => self.install(&flow, now),
            _ => None,
        }
    }

    fn install(&mut self, flow: &FlowMod, now: Nanos) -> Option<Message> {
        let lag = Nanos(self.lag.0 * u64::from(self.flow_mods));
        self.flow_mods += 1;
        if self.vice == Vice::RefusesHalf && self.flow_mods.is_multiple_of(2) {
            let refused = [1, 14, 0, 72, 0, 0, 0, 1];
            return Some(Message::error(ErrorCode::FlowModTableFull, &refused));
        }
        self.rules.push((flow.cookie as u32, now + lag));
        None
    }

    fn answer(&mut self, place: usize, xid: Xid, reply: &Message) {
        let is_features = matches!(reply, Message::FeaturesReply(_));
        let line = &mut self.lines[place];
        let vice = if is_features { Vice::None } else { self.vice };
        let xid = if vice == Vice::WrongXids { xid + 1_000_000 } else { xid };
        let version = line.session.version().unwrap();
        let mut bytes = Vec::new();
        if vice == Vice::Garbles {
            bytes.extend([version.wire(), 99, 0, 12, 0, 0, 0, 7, 1, 2, 3, 4]);
        }
        openflow::codec::encode(version, xid, reply, &mut bytes).unwrap();
        match vice {
            Vice::Repeats => line.out.extend([&bytes[..], &bytes].concat()),
            Vice::Reorders => match line.held.take() {
                None => line.held = Some(bytes),
                Some(first) => line.out.extend([bytes, first].concat()),
            },
            _ => line.out.extend(bytes),
        }
    }

    fn packet_in(&mut self, frame: &[u8]) {
        for line in self.lines.iter_mut().filter(|line| line.channel.is_some()) {
            let Some(version) = line.session.version() else { continue };
            let message = Message::PacketIn(PacketIn {
                buffer_id: None,
                frame_bytes: frame.len() as u16,
                in_port: 1,
                fields: openflow::model::Match::ANY,
                reason: PacketInReason::NoMatch,
                table: 0,
                cookie: u64::MAX,
                data: frame.to_vec(),
            });
            openflow::codec::encode(version, 0, &message, &mut line.out).unwrap();
        }
    }

    fn talk(&mut self, place: usize) {
        let line = &mut self.lines[place];
        let Some(channel) = &mut line.channel else { return };
        if self.vice == Vice::NoHello {
            return;
        }
        line.out.splice(0..0, line.session.transmit().iter().copied());
        line.session.transmitted(line.session.transmit().len());
        match channel.transmit(&line.out) {
            Ok(count) => drop(line.out.drain(..count)),
            Err(_) => line.channel = None,
        }
    }

    fn forward(&mut self, now: Nanos) {
        let mut batch = Batch::new(64);
        while self.ports[0].receive(&mut batch, now).unwrap() > 0 {
            let frames: Vec<Vec<u8>> =
                batch.frames().iter().map(|it| it.bytes().to_vec()).collect();
            batch.clear();
            let mut out = Batch::new(64);
            for frame in frames {
                let to = Packet::of(&frame).ipv4().map(|ip| Ipv4Addr::to_bits(ip.destination()));
                let is_ruled = |&(rule, from): &(u32, Nanos)| Some(rule) == to && from <= now;
                if self.rules.iter().any(is_ruled) {
                    out.push_bytes(&frame);
                } else if self.tells_misses {
                    self.packet_in(&frame);
                }
            }
            self.ports[1].transmit(&mut out, now).unwrap();
        }
    }
}

impl Device for Toy {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        self.forward(now);
        for place in 0..self.lines.len() {
            self.hear(place, now);
            self.act(place, now);
            self.talk(place);
        }
        // Forwards frames that a delaying port has buffered until now.
        self.ports[1].transmit(&mut Batch::new(0), now).unwrap();
        let floods = self.vice == Vice::Floods;
        if floods && now >= self.floods_at {
            (0..200).for_each(|_| self.packet_in(&[0; 100]));
            self.floods_at = now + Nanos::from_micros(10);
        }
        let waiting = self.lines.iter().filter_map(|line| line.waiting.first());
        let next = waiting.map(|&(due, ..)| due).min();
        let flood = floods.then_some(self.floods_at);
        [next, flood, self.ports[1].next_event()].into_iter().flatten().min()
    }
}
