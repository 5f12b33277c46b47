//! Random switches and modules: every run ends, and the accounts are consistent.

use channel::Channel;
use channel::memory::{MemoryChannel, pair};
use netio::memory::pair_stamped;
use netio::port::Port;
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::filter::{Entry, Verdict};
use packet::time::{Clock, Nanos};
use tester::executor::TopologyInfo;
use tester::module::*;
use tester::rig::sim::{Device, SimRig};
use tester::stream::Rate;

use super::toy::Vice;
use super::{probes, rig, stage};

/// Pseudo-random numbers from a seed (SplitMix by Steele, Lea and Flood).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }
}

/// Runs a random command at each event and counts events.
struct Whim {
    chance: Chance,
    events: u64,
    frames: u64,
    /// Id of the last new stream.
    fresh: u16,
    version: Version,
}

impl Whim {
    fn act(&mut self, context: &mut ModuleContext) {
        let (stream, connection) = (self.chance.below(3) as u16, self.chance.below(3) as usize);
        let soon = Nanos(self.chance.below(300_000));
        match self.chance.below(18) {
            0 if self.fresh < 30 => {
                self.fresh += 1;
                context.start(probes(self.fresh, 3, 1e5), SendSpan::OPEN);
            }
            1 => context.begin(stream, SendSpan::frames(soon.0 % 50)),
            2 => context.begin(stream, SendSpan::until(context.now() + soon)),
            3 => context.stop(stream),
            4 => context.change_rate(stream, Rate::FramesPerSecond(1.0 + soon.0 as f64)),
            5 => context.watch(connection % 2, FrameFilter::All),
            6 => context.watch(connection % 2, FrameFilter::Streams(vec![stream])),
            7 => context
                .watch(connection % 2, FrameFilter::Filter(vec![Entry::any(Verdict::Capture)])),
            8 => context.connect(connection),
            9 => context.disconnect(connection),
            10 => context.counters(),
            11 => context.log("whim", &[("at", soon.into()), ("of", "chance".into())]),
            12 => {
                let garbage = context.raw(vec![soon.0 as u8; (soon.0 % 40) as usize]);
                context.send_encoded(connection, &garbage);
            }
            13 => {
                let rule = FlowMod { cookie: 0x0a00_0000 + soon.0 % 3, ..FlowMod::default() };
                context.send(connection, Message::FlowMod(rule));
            }
            14 => {
                let messages = [Message::BarrierRequest, Message::FeaturesRequest];
                let prepared = context.encode(self.version, &messages).unwrap();
                context.send_encoded(connection, &prepared);
            }
            15 => {
                let timer = context.timer_in(soon);
                if soon.0.is_multiple_of(3) {
                    context.cancel(timer);
                }
            }
            _ => {
                context.send(connection, Message::BarrierRequest);
            }
        }
    }
}

impl Module for Whim {
    fn needs(&self) -> ModuleRequirements {
        let late = Connection { opens: false, ..Connection::new(0) };
        ModuleRequirements {
            connections: vec![Connection::new(0), late],
            stops_on_disconnect: false,
            ..ModuleRequirements::new(Nanos::from_millis(3))
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        self.events += 1;
        self.frames += u64::from(matches!(event.what, EventKind::Frame(_)));
        if let EventKind::Start(_) = event.what {
            (0..3).for_each(|id| context.prepare(probes(id, 3, 1e4)));
            for place in 0..40 {
                context.timer_in(Nanos(place * 70_000));
            }
        }
        // On average, events cause no more events than there were.
        if self.chance.below(2) == 0 || matches!(event.what, EventKind::Timer(_)) {
            self.act(context);
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

#[test]
fn random_modules_and_switches_always_end_with_consistent_accounts() {
    let vices = [
        Vice::None,
        Vice::SilentAfter(9),
        Vice::ClosesAfter(7),
        Vice::LosesItself(12),
        Vice::WrongXids,
        Vice::Repeats,
        Vice::Reorders,
        Vice::Garbles,
        Vice::RefusesHalf,
        Vice::Floods,
    ];
    let (mut frames, mut by_limit) = (0, 0);
    for seed in 0..60u64 {
        let mut rig = rig(vices[seed as usize % vices.len()]);
        rig.device.tells_misses = seed % 3 == 0;
        let chance = Chance(seed);
        let mut module = Whim { chance, events: 0, frames: 0, fresh: 2, version: Version::V1_5 };
        let report = stage(&mut rig, &mut module);
        assert_eq!(report.costs.events, module.events, "seed {seed}: {report:?}");
        assert_eq!(report.ports.iter().map(|port| port.watched).sum::<u64>(), module.frames);
        for stream in &report.streams {
            let copies = stream.expected + stream.elsewhere;
            assert!(stream.arrived <= stream.sent && stream.arrived == copies, "seed {seed}");
            assert_eq!((stream.altered, stream.duplicate, stream.late), (0, 0, 0), "seed {seed}");
            assert!(stream.told + stream.arrived <= stream.sent || stream.told > 0, "seed {seed}");
        }
        let arrived: u64 = report.streams.iter().map(|stream| stream.arrived).sum();
        assert_eq!(report.ports.iter().map(|port| port.probes).sum::<u64>(), arrived);
        frames += module.frames;
        by_limit += u32::from(report.ended == Ended::Limit(TIME_LIMIT));
        assert!(!matches!(report.ended, Ended::Restless(_)), "seed {seed}");
    }
    assert!(frames > 500 && by_limit > 20, "{frames} frames, {by_limit} by their limit");
}

/// Sends random bytes after a hello.
struct Babbler {
    channel: Option<MemoryChannel>,
    chance: Chance,
    said: u32,
}

impl Device for Babbler {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        let channel = self.channel.as_mut()?;
        let mut bytes = [0; 4096];
        channel.receive(&mut bytes).ok()?;
        let hello = [4, 0, 0, 8, 0, 0, 0, 1];
        let features = [[4, 6, 0, 32, 0, 0, 0, 2], [0; 8], [0; 8], [0; 8]].concat();
        let babble: Vec<u8> = match self.said {
            0 => hello.to_vec(),
            1 => features,
            2..60 => {
                let kind = self.chance.below(36) as u8;
                let body = self.chance.below(80) as usize;
                let mut message = vec![4, kind, 0, 8 + body as u8, 0, 0, 0, 3];
                message.extend((0..body).map(|_| self.chance.below(256) as u8));
                message
            }
            _ => return None,
        };
        channel.transmit(&babble).ok()?;
        self.said += 1;
        Some(now + Nanos::from_micros(10))
    }
}

#[test]
fn a_measurement_with_random_bytes_from_the_switch_always_ends() {
    let (mut refused, mut whole) = (0, 0);
    for seed in 0..100 {
        let (near, far) = pair_stamped(16, "link", Clock::Virtual);
        let ports: Vec<Box<dyn Port>> = vec![Box::new(near), Box::new(far)];
        let device = Babbler { channel: None, chance: Chance(seed), said: 0 };
        let mut rig = SimRig::new(ports, device, 1);
        let (chance, version) = (Chance(seed), Version::V1_3);
        let mut module = Whim { chance, events: 0, frames: 0, fresh: 2, version };
        let report = rig.stage(&mut module, &TopologyInfo::default(), &mut |device, _, _| {
            let (ours, theirs) = pair(1 << 16, "babbler");
            (device.channel, device.said) = (Some(theirs), 0);
            Ok(Box::new(ours))
        });
        refused += report.connections[0].refused;
        whole += u32::from(report.ended == Ended::Limit(TIME_LIMIT));
    }
    assert!(refused > 500 && whole > 10, "{refused} refused, {whole} by their limit");
}
