//! Limits of the tester's control channel, so that they are not mistaken for those of a switch.
//!
//! The controller that measures switches runs against a [`echo_peer`]: a peer in its own thread that
//! converts requests into replies by their headers. It uses the same kind of channel as a target.
//! Messages are sent in batches with several outstanding, as at the highest rates of a measurement.
//! The method is that of cbench, applied to the tester.
//!
//! Invariant: a rate counts only complete exchanges. A kind that did not finish is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use channel::{Channel, ChannelError, Connecting, Listener, Url, memory};
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, Field, Match, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use record::{ControllerCeiling, ControllerCommand};

use crate::controller::play::PlayLimit;
use crate::controller::script::{Commit, Script};
use crate::controller::{Controller, RealTime, Settings};
use crate::executor::TopologyInfo;
use crate::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};
use crate::rig::live::LiveRig;

pub mod echo_peer;

/// Duration of each kind of exchange.
const SPAN: Nanos = Nanos::from_millis(60);

/// Timeout for the last replies.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Messages per batch.
const BATCH: u32 = 64;

/// Number of outstanding batches.
const AHEAD: u32 = 8;

/// Size of the frame in a packet-out and a packet-in, in bytes.
const FRAME_BYTES: usize = 60;

/// Number of flow-mods in the script.
const PLAYED: u32 = 20_000;

/// Capacity of a channel in memory in each direction, in bytes.
const MEMORY_BYTES: usize = 256 << 10;

/// Kind of channel to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// Memory of one process.
    Memory,
    /// Unix socket, as for local switches.
    Unix,
    /// TCP over loopback.
    Tcp,
}

/// Kind of exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeKind {
    Echo,
    Barrier,
    /// A flow-mod followed by a barrier.
    FlowMod,
    /// A packet-out followed by a barrier.
    PacketOut,
    /// A packet-in answered by a packet-out, which triggers the next packet-in.
    PacketRoundTrip,
    /// Packet-ins, many per packet-out.
    PacketIn,
}

/// All kinds with their names in the report.
const KINDS: [(ExchangeKind, &str); 6] = [
    (ExchangeKind::Echo, "echo"),
    (ExchangeKind::Barrier, "barrier"),
    (ExchangeKind::FlowMod, "flow_mod"),
    (ExchangeKind::PacketOut, "packet_out"),
    (ExchangeKind::PacketRoundTrip, "packet_round_trip"),
    (ExchangeKind::PacketIn, "packet_in"),
];

/// Name of the flow-mods that a script sends, as workloads do.
const FLOW_MOD_PLAYED: &str = "flow_mod_played";

impl ChannelKind {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            ChannelKind::Memory => "memory",
            ChannelKind::Unix => "unix",
            ChannelKind::Tcp => "tcp",
        }
    }
}

/// How to reach the mirror.
enum MirrorAddress {
    Memory,
    Listens(Listener),
}

/// Measures the limits over this kind of channel. Creates socket files in `folder`.
pub fn measure(
    way: ChannelKind,
    folder: &std::path::Path,
) -> Result<ControllerCeiling, ChannelError> {
    let address = match way {
        ChannelKind::Memory => None,
        ChannelKind::Unix => {
            let file = folder.join(format!("mirror-{}.sock", std::process::id()));
            Some(format!("punix:{}", file.display()))
        }
        ChannelKind::Tcp => Some("ptcp:0:127.0.0.1".into()),
    };
    let mut place = match address {
        None => MirrorAddress::Memory,
        Some(url) => MirrorAddress::Listens(Listener::open(&url.parse()?)?),
    };
    let mut found = ControllerCeiling { channel: way.name().into(), ..Default::default() };
    for (kind, name) in KINDS {
        let rate = with_mirror(&mut place, |channel| said(kind, channel))?;
        found.per_s.extend(rate.map(|rate| (name.to_string(), rate)));
    }
    let rate = with_mirror(&mut place, played)?;
    found.per_s.extend(rate.map(|rate| (FLOW_MOD_PLAYED.to_string(), rate)));
    Ok(found)
}

/// Calls `does` with a channel to a mirror, and stops the mirror afterwards.
fn with_mirror<T>(
    place: &mut MirrorAddress,
    does: impl FnOnce(Box<dyn Channel>) -> T,
) -> Result<T, ChannelError> {
    let (ours, theirs): (Box<dyn Channel>, Box<dyn Channel>) = match place {
        MirrorAddress::Memory => {
            let (ours, theirs) = memory::pair(MEMORY_BYTES, "mirror");
            (Box::new(ours), Box::new(theirs))
        }
        MirrorAddress::Listens(listener) => {
            let url: Url = listener.address_to_connect();
            let ours = Connecting::wait(&url, PATIENCE)?;
            // A connected peer is already in the accept queue.
            let theirs = listener.accept()?.ok_or(ChannelError::TimedOut(url))?;
            (ours, theirs)
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let peer = thread::spawn(move || echo_peer::serve(theirs, &flag));
    let done = does(ours);
    stop.store(true, Ordering::Relaxed);
    // The results show if a mirror panicked, because it sent no replies.
    let _ = peer.join();
    Ok(done)
}

/// Returns the rate at which a module exchanges one kind, per second.
fn said(kind: ExchangeKind, channel: Box<dyn Channel>) -> Option<f64> {
    let mut module = ExchangeModule::new(kind);
    let mut rig = LiveRig::new(Vec::new(), 0, Arc::new(AtomicBool::new(false)));
    let mut channel = Some(channel);
    let report = rig.stage(&mut module, &TopologyInfo::default(), &mut |_, _| Ok(channel.take()));
    let rate = report.measured.first().map(|found| found.value);
    rate.filter(|_| report.ended == Ended::Completed)
}

/// Returns the rate of flow-mods from a script, with their barriers confirmed, per second.
fn played(channel: Box<dyn Channel>) -> Option<f64> {
    let mut settings = Settings::new();
    settings.session.versions = vec![echo_peer::VERSION];
    let mut time = RealTime::default();
    let controller = Controller::start(channel, settings, &mut time).ok()?;
    let flow_mods = (0..PLAYED).map(flow_mod);
    let script = Script::flow_mods(
        ControllerCommand::Add,
        echo_peer::VERSION,
        Commit::Barrier(256),
        flow_mods,
    );
    let script = Arc::new(script.ok()?.ahead(2));
    let found = controller.play(&script).to_end(&mut time, || PlayLimit::Over).ok()?;
    let is_whole = found.flow_mods == u64::from(PLAYED) && found.duration.0 > 0;
    is_whole.then(|| found.flow_mods as f64 * 1e9 / found.duration.0 as f64)
}

fn flow_mod(number: u32) -> FlowMod {
    let matching = Match::ANY.with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, number);
    FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(2)])
}

/// A packet-out that causes this many packet-ins from the mirror.
fn packet_out(packet_ins: u32) -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: None,
        in_port: packet_ins,
        fields: Match::ANY,
        actions: vec![Action::output(reserved::IN_PORT)],
        data: vec![0xff; FRAME_BYTES],
    })
}

/// Module that exchanges one kind of message.
struct ExchangeModule {
    kind: ExchangeKind,
    number: u32,
    begun_at: Option<Nanos>,
    last: Nanos,
    /// Outstanding and received replies.
    open: u64,
    done: u64,
    timer: Option<TimerId>,
    is_late: bool,
}

impl ExchangeModule {
    fn new(kind: ExchangeKind) -> ExchangeModule {
        ExchangeModule {
            kind,
            number: 0,
            begun_at: None,
            last: Nanos::ZERO,
            open: 0,
            done: 0,
            timer: None,
            is_late: false,
        }
    }

    /// Sends the next batch.
    fn say(&mut self, context: &mut ModuleContext) {
        let mut messages = Vec::new();
        let count = if self.kind == ExchangeKind::PacketIn { 1 } else { BATCH };
        for _ in 0..count {
            self.number += 1;
            match self.kind {
                ExchangeKind::Echo => {
                    messages.push(Message::EchoRequest(self.number.to_be_bytes().into()))
                }
                ExchangeKind::Barrier => messages.push(Message::BarrierRequest),
                ExchangeKind::FlowMod => {
                    messages.push(Message::FlowMod(flow_mod(self.number)));
                    messages.push(Message::BarrierRequest);
                }
                ExchangeKind::PacketOut => {
                    messages.push(packet_out(0));
                    messages.push(Message::BarrierRequest);
                }
                ExchangeKind::PacketRoundTrip => messages.push(packet_out(1)),
                ExchangeKind::PacketIn => messages.push(packet_out(BATCH)),
            }
        }
        context.send_all(0, messages);
        self.open += u64::from(BATCH);
    }

    /// Counts a reply.
    fn heard(&mut self, at: Nanos, context: &mut ModuleContext) {
        self.done += 1;
        self.open = self.open.saturating_sub(1);
        self.last = at;
        let Some(begun_at) = self.begun_at else { return };
        let is_over = at.since(begun_at) >= SPAN;
        match (is_over, self.kind) {
            (false, ExchangeKind::PacketRoundTrip) => {
                context.send(0, packet_out(1));
                self.open += 1;
            }
            (false, _) if self.done.is_multiple_of(u64::from(BATCH)) => self.say(context),
            (true, _) if self.open == 0 => context.end(),
            _ => {}
        }
    }
}

impl Module for ExchangeModule {
    fn needs(&self) -> ModuleRequirements {
        let limit = SPAN.saturating_add(PATIENCE).saturating_add(PATIENCE);
        ModuleRequirements::new(limit).in_versions(&[Version::V1_3])
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                self.begun_at = Some(context.now());
                (0..AHEAD).for_each(|_| self.say(context));
                self.timer = Some(context.timer_in(SPAN.saturating_add(PATIENCE)));
            }
            EventKind::Message { message, .. } => match (message, self.kind) {
                (Message::EchoReply(_), ExchangeKind::Echo)
                | (
                    Message::BarrierReply,
                    ExchangeKind::Barrier | ExchangeKind::FlowMod | ExchangeKind::PacketOut,
                )
                | (Message::PacketIn(_), ExchangeKind::PacketRoundTrip | ExchangeKind::PacketIn) => {
                    self.heard(event.at, context);
                }
                _ => {}
            },
            EventKind::Timer(timer) if self.timer == Some(timer) => {
                self.is_late = true;
                context.end_by_limit("replies of the mirror");
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let span = self.begun_at.map_or(Nanos::ZERO, |begun| self.last.since(begun));
        if span > Nanos::ZERO && !self.is_late {
            let rate = self.done as f64 * 1e9 / span.0 as f64;
            context.measured(MeasuredValue::new("said_per_s", "per_s", rate, 0.0).of(self.done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(way: ChannelKind) {
        let found = measure(way, &std::env::temp_dir()).unwrap();
        let mut wanted: Vec<&str> = KINDS.map(|(_, name)| name).to_vec();
        wanted.push(FLOW_MOD_PLAYED);
        wanted.sort_unstable();
        let names: Vec<&str> = found.per_s.keys().map(String::as_str).collect();
        assert_eq!(names, wanted, "{way:?}");
        assert!(found.per_s.values().all(|rate| *rate > 100.0), "{found:?}");
        assert_eq!(found.channel, way.name());
    }

    #[test]
    fn every_message_kind_is_transferred_over_every_channel() {
        [ChannelKind::Memory, ChannelKind::Unix, ChannelKind::Tcp].into_iter().for_each(check);
    }

    #[test]
    fn a_peer_without_replies_gives_no_rate() {
        let (ours, _theirs) = memory::pair(MEMORY_BYTES, "deaf");
        let mut settings = Settings::new();
        settings.session.hello_timeout = Nanos::from_millis(20);
        let started = Controller::start(Box::new(ours), settings, &mut RealTime::default());
        assert!(started.is_err());
    }
}
