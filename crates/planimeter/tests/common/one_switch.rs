//! One of our switches in virtual time, emulating any model, and modules of the catalog that run on
//! it.
//!
//! The switch gets a turn whenever it requests one, so that its actions occur exactly when its
//! model declares. The module's report is used directly, not the record made from it.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use channel::memory::{MemoryChannel, pair};
use channel::{Channel, ChannelError};
use elements::config::{Config, Kind, OpenFlowConfig, PortConfig};
use elements::hardware_model::model::Model;
use elements::node::Node;
use experiments::Context;
use netio::memory::pair_stamped;
use netio::port::{Port, PortCounters, PortError, PortFacts};
use openflow::codec::{decode, encode};
use openflow::frame::Stream;
use openflow::model::message::Message;
use openflow::model::{Action, FlowModCommand, Instruction, Match};
use openflow::version::Version;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use studies::{CatalogEntry, taking};
use targets::name::TargetKind;
use tester::executor::TopologyInfo;
use tester::module::{MeasuredValue, StageReport, SwitchPort};
use tester::procedure::{Outcome, Step};
use tester::rig::sim::{Device, SimRig};
use workload::Addresses;
use workload::Technology;
use workload::parameter::{Effort, ParameterError, Parameters};

/// Capacity of a link, in frames.
const RING_FRAMES: usize = 1024;

/// Interval between pieces of an endless reply.
const PIECE_EVERY: Nanos = Nanos::from_millis(1);

/// Multipart type of flow statistics.
const FLOW_STATS: [u8; 2] = [0, 1];

/// Capacity of a control channel, in bytes.
const CHANNEL_BYTES: usize = 1 << 20;

/// A fault of a switch, from some time after the start of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vice {
    /// It sends and receives nothing more.
    FallsSilent(Nanos),
    /// It closes all its connections, and accepts no others.
    Leaves(Nanos),
    /// Its flow statistics never end: the last piece has the MORE flag and is repeated every
    /// millisecond.
    NeverEnds,
    /// It stalls for this time, frames and messages alike.
    StandsStill(Nanos, Nanos),
}

/// A request that a switch accepts but does not perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It performs no rewriting action.
    IgnoresRewrites,
    /// Of this many added rules it does not install the last one.
    IgnoresRules(u32),
    /// One of this many frames leaves with a wrong source address.
    Unstable(u32),
}

/// A port whose frames occasionally leave with a wrong source address.
struct Spoilt {
    inner: Box<dyn Port>,
    one_of: u32,
    sent: u32,
}

impl Port for Spoilt {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        for frame in batch.frames_mut() {
            self.sent += 1;
            if self.sent.is_multiple_of(self.one_of) {
                frame.bytes_mut()[11] ^= 1;
            }
        }
        self.inner.transmit(batch, now)
    }

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }
}

/// Filter that removes requests that the switch does not perform.
struct Filter {
    flaw: Flaw,
    stream: Stream,
    ready: Vec<u8>,
    added: u32,
}

impl Filter {
    /// Takes received bytes of messages, and drops the filtered parts.
    fn pass(&mut self, bytes: &[u8]) {
        assert_eq!(self.stream.push(bytes), bytes.len());
        while let Some(message) = self.stream.cut().unwrap() {
            let bytes = message.to_vec();
            let Ok((header, Message::FlowMod(mut flow))) = decode(&bytes) else {
                self.ready.extend(bytes);
                continue;
            };
            let adds = flow.command == FlowModCommand::Add && flow.matching != Match::ANY;
            self.added += u32::from(adds);
            match self.flaw {
                Flaw::IgnoresRules(every) if adds && self.added.is_multiple_of(every) => continue,
                Flaw::IgnoresRewrites => flow.instructions.iter_mut().for_each(|instruction| {
                    if let Instruction::ApplyActions(actions) = instruction {
                        actions.retain(|action| matches!(action, Action::Output { .. }));
                    }
                }),
                _ => {}
            }
            let version = Version::from_wire(header.version).unwrap();
            encode(version, header.xid, &Message::FlowMod(flow), &mut self.ready).unwrap();
        }
    }
}

/// The last piece of flow statistics, and the remaining number of repetitions.
type Piece = Arc<Mutex<(Vec<u8>, u32)>>;

/// The switch.
pub struct Switch {
    node: Node,
    vice: Option<Vice>,
    flaw: Option<Flaw>,
    /// Time of the first connection, if there was one.
    begun_at: Option<Nanos>,
    /// Whether all its connections are closed.
    has_left: Arc<AtomicBool>,
    /// The endless piece.
    piece: Piece,
    said_at: Nanos,
}

/// The switch's end of a connection, which closes when the switch has left.
struct End {
    channel: MemoryChannel,
    has_left: Arc<AtomicBool>,
    /// The endless piece, if that is the fault.
    piece: Option<Piece>,
    filter: Option<Filter>,
}

impl Switch {
    fn does_wrong(&self, now: Nanos) -> bool {
        let (Some(begun_at), Some(vice)) = (self.begun_at, self.vice) else { return false };
        match vice {
            Vice::FallsSilent(after) | Vice::Leaves(after) => now.since(begun_at) >= after,
            Vice::NeverEnds | Vice::StandsStill(..) => false,
        }
    }
}

impl Device for Switch {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        if let (Some(begun_at), Some(Vice::StandsStill(after, span))) = (self.begun_at, self.vice) {
            let from = begun_at.saturating_add(after);
            let until = from.saturating_add(span);
            if (from..until).contains(&now) {
                return Some(until);
            }
        }
        let does_wrong = self.does_wrong(now);
        let is_silent = does_wrong && matches!(self.vice, Some(Vice::FallsSilent(_)));
        self.has_left.store(does_wrong && !is_silent, Ordering::Relaxed);
        self.node.turn(now);
        if !is_silent {
            self.node.serve(now);
        }
        self.node.events.clear();
        let mut next = self.node.next_event(now);
        if self.vice == Some(Vice::NeverEnds) {
            let mut piece = self.piece.lock().unwrap();
            if !piece.0.is_empty() {
                if now.since(self.said_at) >= PIECE_EVERY {
                    (piece.1, self.said_at) = (piece.1 + 1, now);
                }
                let again = self.said_at.saturating_add(PIECE_EVERY);
                next = Some(next.map_or(again, |at| at.min(again)));
            }
        }
        // Past work of a silent switch does not schedule a turn.
        if is_silent { next.filter(|at| *at > now) } else { next }
    }
}

impl End {
    /// Repeats the endless piece if that is due.
    fn repeat(&mut self) -> Result<(), ChannelError> {
        let Some(piece) = &self.piece else { return Ok(()) };
        let (bytes, due) = &mut *piece.lock().unwrap();
        for _ in 0..std::mem::take(due) {
            self.channel.transmit(bytes)?;
        }
        Ok(())
    }

    /// Sets the MORE flag of flow statistics in these messages; stores the last piece.
    fn unended(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let piece = self.piece.as_ref()?;
        let (mut all, mut at) = (bytes.to_vec(), 0);
        while let Some(header) = all.get(at..at + 12) {
            let (version, kind) = (header[0], header[1]);
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let is_reply = kind == if version == 1 { 17 } else { 19 };
            let end = all.len().min(at + length.max(8));
            if is_reply && header[8..10] == FLOW_STATS && end == at + length {
                all[at + 11] |= 1;
                piece.lock().unwrap().0 = all[at..end].to_vec();
            }
            at = end;
        }
        Some(all)
    }

    fn look(&self) -> Result<(), ChannelError> {
        match self.has_left.load(Ordering::Relaxed) {
            true => Err(ChannelError::Closed(self.channel.peer().into())),
            false => Ok(()),
        }
    }
}

impl Channel for End {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        self.look()?;
        self.repeat()?;
        let Some(filter) = &mut self.filter else { return self.channel.receive(buffer) };
        let mut bytes = [0; 4096];
        let count = self.channel.receive(&mut bytes)?;
        filter.pass(&bytes[..count]);
        let some = buffer.len().min(filter.ready.len());
        buffer[..some].copy_from_slice(&filter.ready[..some]);
        filter.ready.drain(..some);
        Ok(some)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        self.look()?;
        let unended = self.unended(bytes);
        self.channel.transmit(unended.as_deref().unwrap_or(bytes))
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn peer(&self) -> &str {
        self.channel.peer()
    }
}

/// A switch, and the tester around it.
pub struct OneSwitch {
    rig: SimRig<Switch>,
}

impl OneSwitch {
    /// Creates a switch like this model; its random choices follow from the seed.
    pub fn like(model: &Model, seed: u64) -> OneSwitch {
        let openflow = OpenFlowConfig {
            probe_ms: 3_600_000,
            wildcard_flows_max: 100_000,
            ..OpenFlowConfig::default()
        };
        let mut config = Config::new(Kind::OpenFlow(openflow));
        config.model = Some(Arc::new(model.clone()));
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for number in [1, 2] {
            let ends = pair_stamped(RING_FRAMES, "link", Clock::Virtual);
            near.push(Box::new(ends.0) as Box<dyn Port>);
            far.push((number, Box::new(ends.1) as Box<dyn Port>));
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
        }
        let node = Node::open(&config, far, seed, Nanos::ZERO).unwrap();
        let has_left = Arc::default();
        let (piece, said_at) = (Piece::default(), Nanos::ZERO);
        let (vice, flaw, begun_at) = (None, None, None);
        let switch = Switch { node, vice, flaw, begun_at, has_left, piece, said_at };
        OneSwitch { rig: SimRig::new(near, switch, seed) }
    }

    /// Adds a fault.
    pub fn with(mut self, vice: Vice) -> OneSwitch {
        self.rig.device.vice = Some(vice);
        self
    }

    /// Adds a flaw.
    pub fn flawed(mut self, flaw: Flaw) -> OneSwitch {
        self.rig.device.flaw = Some(flaw);
        if let Flaw::Unstable(one_of) = flaw {
            for forward_port in &mut self.rig.device.node.forward.forward_ports {
                let nothing = Box::new(pair_stamped(1, "nothing", Clock::Virtual).0);
                let inner = std::mem::replace(&mut forward_port.port, nothing);
                forward_port.port = Box::new(Spoilt { inner, one_of, sent: 0 });
            }
        }
        self
    }

    /// Runs an experiment that consists of modules; returns the report of each.
    pub fn run(&mut self, id: &str, set: &[String], seed: u64) -> Vec<StageReport> {
        let entry = entry(id);
        let mut method = (entry.build)(&context(entry, set, seed));
        let (mut reports, mut last) = (Vec::new(), None);
        loop {
            match method.next(last.as_ref()) {
                Step::Module { point, mut module } => {
                    let report = self.stage(&mut *module);
                    last = Some(Outcome::Module { point, report: Box::new(report.clone()) });
                    reports.push(report);
                }
                Step::Done => return reports,
                Step::Install(_) | Step::Trial { .. } => panic!("{id} is not a module"),
            }
        }
    }

    /// Runs only its first module; also returns the module's time limit; `None` if it has none.
    pub fn run_first(
        &mut self,
        id: &str,
        set: &[String],
        seed: u64,
    ) -> Option<(StageReport, Nanos)> {
        let entry = entry(id);
        match (entry.build)(&context(entry, set, seed)).next(None) {
            Step::Module { mut module, .. } => {
                let limit = module.needs().limit;
                Some((self.stage(&mut *module), limit))
            }
            _ => None,
        }
    }

    fn stage(&mut self, module: &mut dyn tester::module::Module) -> StageReport {
        let joined = [1, 2].map(|port| Some(SwitchPort { switch: 0, port })).to_vec();
        self.rig.stage(module, &TopologyInfo { joined }, &mut |switch, _, now| {
            let (ours, channel) = pair(CHANNEL_BYTES, "openflow");
            switch.begun_at.get_or_insert(now);
            let has_left = Arc::clone(&switch.has_left);
            let is_endless = switch.vice == Some(Vice::NeverEnds);
            let piece = is_endless.then(|| Arc::clone(&switch.piece));
            let filter = switch.flaw.map(|flaw| Filter {
                flaw,
                stream: Stream::default(),
                ready: Vec::new(),
                added: 0,
            });
            switch.node.adopt(Box::new(End { channel, has_left, piece, filter }), now);
            Ok(Box::new(ours))
        })
    }
}

/// Returns the experiment of this name.
pub fn entry(id: &str) -> &'static CatalogEntry {
    studies::find(id).unwrap()[0]
}

/// Returns whether an experiment consists of modules.
pub fn is_module(entry: &'static CatalogEntry) -> bool {
    matches!((entry.build)(&context(entry, &[], 1)).next(None), Step::Module { .. })
}

/// Returns an experiment's context with these settings.
fn context(entry: &'static CatalogEntry, set: &[String], seed: u64) -> Context {
    let mut parameters = Parameters::at(Effort::Quick);
    for assignment in
        ["simulate=true", "repeats=1"].into_iter().chain(set.iter().map(String::as_str))
    {
        match taking::assign(&mut parameters, &[entry], assignment) {
            // Tests pass one list to several experiments, which may not support all of it.
            Ok(_) | Err(ParameterError::NotTaken { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    Context {
        kind: TargetKind::Switch,
        technology: Technology::OpenFlow,
        addresses: Addresses::numbered([2, 0, 0, 0, 0], [2, 0, 0, 0, 1]),
        capacity_bps: 1_000_000_000,
        parameters,
        seed,
        ceiling_pps: None,
        has_throughputs: false,
    }
}

/// Returns a module's value of this name.
pub fn measured_metric<'a>(report: &'a StageReport, name: &str) -> Option<&'a MeasuredValue> {
    report.measured.iter().find(|measured| measured.name == name)
}
