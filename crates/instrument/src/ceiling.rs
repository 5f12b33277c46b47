//! What the tester's own controller can say and hear in a second, so that it is never taken for a switch's.
//!
//! The controller that measures switches is set before a [`mirror`]: a peer that turns requests into answers by
//! their headers alone, in a thread of its own, over the same kind of channel as a target's. Messages go
//! in batches, several of which are under way, as they do at the highest rates. Source: cbench's question, asked
//! of ourselves. Invariant: what is told was said and heard whole; a kind that came to no end is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, Field, Match, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Connecting, Listener, Url, memory};
use results::record::{ControllerCeiling, Deed};

use crate::controller::play::Until;
use crate::controller::script::{Commit, Script};
use crate::controller::{Controller, RealTime, Settings};
use crate::module::{Desk, Ended, Event, Measured, Module, Needs, TimerId, What};
use crate::rig::live::LiveRig;
use crate::stage::Scene;

/// The peer that costs next to nothing.
pub mod mirror;

/// How long each kind is said for.
const SPAN: Nanos = Nanos::from_millis(60);

/// How long the last answers may take.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Messages that are said at once.
const BATCH: u32 = 64;

/// Batches under way.
const AHEAD: u32 = 8;

/// Bytes of the frame in a packet-out and a packet-in.
const FRAME_BYTES: usize = 60;

/// Flow-mods that are played from memory.
const PLAYED: u32 = 20_000;

/// Bytes that a channel in memory holds each way.
const MEMORY_BYTES: usize = 256 << 10;

/// Which channel leads to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In one process.
    Memory,
    /// A Unix socket, as local switches have.
    Unix,
    /// TCP over loopback.
    Tcp,
}

/// What is said and heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Echo,
    Barrier,
    /// A flow-mod with a barrier behind it.
    FlowMod,
    /// A packet-out with a barrier behind it.
    PacketOut,
    /// A packet-in that is answered by a packet-out, which brings the next.
    PacketRoundTrip,
    /// Packet-ins, many of which one packet-out brings.
    PacketIn,
}

/// All of them, with the names under which they are told.
const KINDS: [(Kind, &str); 6] = [
    (Kind::Echo, "echo"),
    (Kind::Barrier, "barrier"),
    (Kind::FlowMod, "flow_mod"),
    (Kind::PacketOut, "packet_out"),
    (Kind::PacketRoundTrip, "packet_round_trip"),
    (Kind::PacketIn, "packet_in"),
];

/// The name of flow-mods that were encoded before, as workloads say them.
const FLOW_MOD_PLAYED: &str = "flow_mod_played";

impl Way {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Memory => "memory",
            Way::Unix => "unix",
            Way::Tcp => "tcp",
        }
    }
}

/// Where the mirror is reached.
enum Place {
    Memory,
    Listens(Listener),
}

/// Measures it over this kind of channel, socket files under `folder`.
pub fn measure(way: Way, folder: &std::path::Path) -> Result<ControllerCeiling, ChannelError> {
    let address = match way {
        Way::Memory => None,
        Way::Unix => {
            let file = folder.join(format!("mirror-{}.sock", std::process::id()));
            Some(format!("punix:{}", file.display()))
        }
        Way::Tcp => Some("ptcp:0:127.0.0.1".into()),
    };
    let mut place = match address {
        None => Place::Memory,
        Some(url) => Place::Listens(Listener::open(&url.parse()?)?),
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

/// Does something with a channel at whose other end a mirror is, which ends afterwards.
fn with_mirror<T>(
    place: &mut Place,
    does: impl FnOnce(Box<dyn Channel>) -> T,
) -> Result<T, ChannelError> {
    let (ours, theirs): (Box<dyn Channel>, Box<dyn Channel>) = match place {
        Place::Memory => {
            let (ours, theirs) = memory::pair(MEMORY_BYTES, "mirror");
            (Box::new(ours), Box::new(theirs))
        }
        Place::Listens(listener) => {
            let url: Url = listener.address_to_connect();
            let ours = Connecting::wait(&url, PATIENCE)?;
            // What has connected waits to be accepted.
            let theirs = listener.accept()?.ok_or(ChannelError::TimedOut(url))?;
            (ours, theirs)
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let peer = thread::spawn(move || mirror::serve(theirs, &flag));
    let done = does(ours);
    stop.store(true, Ordering::Relaxed);
    // A mirror that panicked has answered nothing, which shows by what was measured.
    let _ = peer.join();
    Ok(done)
}

/// How many of a kind are said and heard in a second by modules on a stage.
fn said(kind: Kind, channel: Box<dyn Channel>) -> Option<f64> {
    let mut module = Saying::new(kind);
    let mut rig = LiveRig::new(Vec::new(), 0, Arc::new(AtomicBool::new(false)));
    let mut channel = Some(channel);
    let report = rig.stage(&mut module, &Scene::default(), &mut |_, _| Ok(channel.take()));
    let rate = report.measured.first().map(|found| found.value);
    rate.filter(|_| report.ended == Ended::Said)
}

/// How many flow-mods that were encoded before are said in a second, their barriers heard.
fn played(channel: Box<dyn Channel>) -> Option<f64> {
    let mut settings = Settings::new();
    settings.session.versions = vec![mirror::VERSION];
    let mut time = RealTime::default();
    let controller = Controller::start(channel, settings, &mut time).ok()?;
    let flow_mods = (0..PLAYED).map(flow_mod);
    let script = Script::flow_mods(Deed::Add, mirror::VERSION, Commit::Barrier(256), flow_mods);
    let script = Arc::new(script.ok()?.ahead(2));
    let found = controller.play(&script).to_end(&mut time, || Until::Over).ok()?;
    let is_whole = found.flow_mods == u64::from(PLAYED) && found.duration.0 > 0;
    is_whole.then(|| found.flow_mods as f64 * 1e9 / found.duration.0 as f64)
}

fn flow_mod(number: u32) -> FlowMod {
    let matching = Match::ANY.with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, number);
    FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(2)])
}

/// A packet-out that the mirror answers with so many packet-ins.
fn packet_out(packet_ins: u32) -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: None,
        in_port: packet_ins,
        fields: Match::ANY,
        actions: vec![Action::output(reserved::IN_PORT)],
        data: vec![0xff; FRAME_BYTES],
    })
}

/// The module that says and hears one kind.
struct Saying {
    kind: Kind,
    number: u32,
    begun_at: Option<Nanos>,
    last: Nanos,
    /// Answers that are waited for, and those that came.
    open: u64,
    done: u64,
    timer: Option<TimerId>,
    is_late: bool,
}

impl Saying {
    fn new(kind: Kind) -> Saying {
        Saying {
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

    /// Says the next batch.
    fn say(&mut self, desk: &mut Desk) {
        let mut messages = Vec::new();
        let count = if self.kind == Kind::PacketIn { 1 } else { BATCH };
        for _ in 0..count {
            self.number += 1;
            match self.kind {
                Kind::Echo => messages.push(Message::EchoRequest(self.number.to_be_bytes().into())),
                Kind::Barrier => messages.push(Message::BarrierRequest),
                Kind::FlowMod => {
                    messages.push(Message::FlowMod(flow_mod(self.number)));
                    messages.push(Message::BarrierRequest);
                }
                Kind::PacketOut => {
                    messages.push(packet_out(0));
                    messages.push(Message::BarrierRequest);
                }
                Kind::PacketRoundTrip => messages.push(packet_out(1)),
                Kind::PacketIn => messages.push(packet_out(BATCH)),
            }
        }
        desk.send_all(0, messages);
        self.open += u64::from(BATCH);
    }

    /// An answer came.
    fn heard(&mut self, at: Nanos, desk: &mut Desk) {
        self.done += 1;
        self.open = self.open.saturating_sub(1);
        self.last = at;
        let Some(begun_at) = self.begun_at else { return };
        let is_over = at.since(begun_at) >= SPAN;
        match (is_over, self.kind) {
            (false, Kind::PacketRoundTrip) => {
                desk.send(0, packet_out(1));
                self.open += 1;
            }
            (false, _) if self.done.is_multiple_of(u64::from(BATCH)) => self.say(desk),
            (true, _) if self.open == 0 => desk.end(),
            _ => {}
        }
    }
}

impl Module for Saying {
    fn needs(&self) -> Needs {
        let limit = SPAN.saturating_add(PATIENCE).saturating_add(PATIENCE);
        Needs::new(limit).in_versions(&[Version::V1_3])
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(_) => {
                self.begun_at = Some(desk.now());
                (0..AHEAD).for_each(|_| self.say(desk));
                self.timer = Some(desk.timer_in(SPAN.saturating_add(PATIENCE)));
            }
            What::Message { message, .. } => match (message, self.kind) {
                (Message::EchoReply(_), Kind::Echo)
                | (Message::BarrierReply, Kind::Barrier | Kind::FlowMod | Kind::PacketOut)
                | (Message::PacketIn(_), Kind::PacketRoundTrip | Kind::PacketIn) => {
                    self.heard(event.at, desk);
                }
                _ => {}
            },
            What::Timer(timer) if self.timer == Some(timer) => {
                self.is_late = true;
                desk.end_by_limit("answers of the mirror");
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        let span = self.begun_at.map_or(Nanos::ZERO, |begun| self.last.since(begun));
        if span > Nanos::ZERO && !self.is_late {
            let rate = self.done as f64 * 1e9 / span.0 as f64;
            desk.measured(Measured::new("said_per_s", "per_s", rate, 0.0).of(self.done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(way: Way) {
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
    fn every_kind_is_said_and_heard_over_every_channel() {
        [Way::Memory, Way::Unix, Way::Tcp].into_iter().for_each(check);
    }

    #[test]
    fn a_peer_that_never_answers_gives_no_rate() {
        let (ours, _theirs) = memory::pair(MEMORY_BYTES, "deaf");
        let mut settings = Settings::new();
        settings.session.hello_timeout = Nanos::from_millis(20);
        let started = Controller::start(Box::new(ours), settings, &mut RealTime::default());
        assert!(started.is_err());
    }
}
