//! A case played on a subject: each step is done, and what comes of it compared with what the case
//! expects, frame for frame and message for message.
//!
//! After each order a barrier is awaited, so that errors are known; after each frame the subject is
//! given time until it is quiet. Whatever comes that no line expects fails the case, and so does
//! whatever an expected line waits for in vain.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use openflow::header::Xid;
use openflow::model::{
    Action, BundleAddMessage, BundleCommand, BundleControl, BundleFlags, FlowMod, Match, Message,
    MultipartReply, MultipartReplyBody, MultipartRequestBody, SwitchConfig, reserved,
};
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, Version};
use packet::field::Field;
use packet::time::Nanos;
use ports::channel::Channel;

use crate::case::{Case, Do, Expect, Step};
use crate::language::{PortChange, has_all, kind_of, request};
use crate::subject::Subject;

/// Turns after which a simulated switch has done everything.
const TURNS: usize = 12;

/// The connection that a case begins on.
const FIRST: &str = "c1";

/// Plays so far.
static PLAYS: AtomicU64 = AtomicU64::new(0);

/// What the generations in roles start from in this play: more than any before.
pub fn generation_base() -> u64 {
    PLAYS.load(Ordering::Relaxed) * 100
}

/// Plays a case in one version; an error says which line went how.
pub fn play(case: &Case, version: Version, subject: &mut dyn Subject) -> Result<(), String> {
    let mut player = Player {
        subject,
        controllers: BTreeMap::new(),
        plain: None,
        frames: Vec::new(),
        bundle_flags: BundleFlags::NONE,
        ports_changed: Vec::new(),
        at: FIRST.to_owned(),
    };
    PLAYS.fetch_add(1, Ordering::Relaxed);
    player.connect(FIRST, version)?;
    player.clear(version)?;
    let outcome = case.steps.iter().try_for_each(|step| {
        let place = format!("{}:{}: {}", case.file, step.line, step.text);
        player.step(step, version).map_err(|why| format!("{place}\n    {why}"))
    });
    player.leave(version)?;
    outcome
}

struct Player<'a> {
    subject: &'a mut dyn Subject,
    controllers: BTreeMap<String, Controller>,
    plain: Option<PlainChannel>,
    /// Frames that left and nobody has looked at yet.
    frames: Vec<(u32, Vec<u8>)>,
    bundle_flags: BundleFlags,
    /// Ports whose settings were changed, to be set back at the end.
    ports_changed: Vec<u32>,
    /// The connection that speaks now.
    at: String,
}

struct Controller {
    session: Session,
    channel: Box<dyn Channel>,
    /// Bytes that go out as they are, behind what the session sends.
    raw: Vec<u8>,
    /// What came that nobody has looked at yet.
    came: Vec<(Xid, Message)>,
    down: bool,
    /// How much has come so far, so that quiet can be told from progress.
    count: usize,
}

/// A connection on which nothing is said but what a case says.
struct PlainChannel {
    channel: Box<dyn Channel>,
    bytes: Vec<u8>,
    down: bool,
}

/// What came of a step.
#[derive(Default)]
struct Outcome {
    frames: Vec<(u32, Vec<u8>)>,
    messages: Vec<Message>,
    /// Kinds of messages on the plain connection.
    kinds: Vec<String>,
    down: bool,
}

/// How much has to come.
#[derive(Default)]
struct Awaited {
    frames: usize,
    messages: usize,
    kinds: usize,
    /// Nothing has to come, and what a barrier has not shown can be looked at later.
    nothing: bool,
}

impl Player<'_> {
    fn connect(&mut self, name: &str, version: Version) -> Result<(), String> {
        let channel = self.subject.connect()?;
        let settings =
            Settings { versions: vec![version], echo_idle: None, ..Settings::new(End::Controller) };
        let session = Session::new(settings, self.subject.now());
        let (raw, came) = (Vec::new(), Vec::new());
        let controller = Controller { session, channel, raw, came, down: false, count: 0 };
        self.controllers.insert(name.to_owned(), controller);
        self.at = name.to_owned();
        let up = |player: &mut Self| {
            let controller = &player.controllers[&player.at];
            controller.session.version().is_some() || controller.down
        };
        self.until("the session comes up", up)?;
        match self.controllers[name].down {
            true => Err(format!("{} does not speak OpenFlow {version}", self.subject.name())),
            // Open vSwitch tells a connection that it did not make nothing unless it asks for it.
            // After the barrier the switch, too, has seen that the session is up.
            false => {
                let miss_send_bytes = 128;
                let config = SwitchConfig { miss_send_bytes, ..SwitchConfig::default() };
                self.order(&Message::SetConfig(config))
            }
        }
    }

    /// Lets the subject work until `done`, with a limit.
    fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let since = self.subject.now();
        for turn in 0.. {
            self.turn();
            if done(self) {
                return Ok(());
            }
            if turn >= TURNS && self.subject.is_quiet(since, true) {
                break;
            }
        }
        Err(format!("in vain it was waited until {what}"))
    }

    fn turn(&mut self) {
        self.subject.turn(&mut self.frames);
        let now = self.subject.now();
        for controller in self.controllers.values_mut() {
            controller.turn(now);
        }
        if let Some(plain) = &mut self.plain {
            plain.turn();
        }
    }

    /// Removes what an earlier case may have left in a subject that is used again.
    fn clear(&mut self, version: Version) -> Result<(), String> {
        if self.subject.is_spent() {
            return Ok(());
        }
        for message in crate::language::clearing(version) {
            self.send(&message)?;
        }
        self.barrier()?;
        self.settle(Awaited::default());
        for controller in self.controllers.values_mut() {
            controller.came.clear();
        }
        Ok(())
    }

    /// Sets ports back to what they were.
    fn leave(&mut self, version: Version) -> Result<(), String> {
        if self.subject.is_spent() {
            return Ok(());
        }
        let changed = std::mem::take(&mut self.ports_changed);
        if !changed.is_empty() {
            // The others may be slaves by now.
            self.connect("leaving", version)?;
        }
        for number in changed {
            self.act(&Do::PortMod(PortChange::none(number)), version)?;
        }
        Ok(())
    }

    fn here(&mut self) -> &mut Controller {
        self.controllers.get_mut(&self.at).expect("only known connections are chosen")
    }

    fn send(&mut self, message: &Message) -> Result<Xid, String> {
        let now = self.subject.now();
        self.here().session.send(message, now).map_err(|error| error.to_string())
    }

    /// Sends a barrier and waits for its answer, or for the end of the connection.
    fn barrier(&mut self) -> Result<(), String> {
        if self.here().down {
            return Ok(());
        }
        let xid = self.send(&Message::BarrierRequest)?;
        self.until("the barrier is answered", move |player| {
            let here = player.here();
            let place = here
                .came
                .iter()
                .position(|(of, message)| *of == xid && *message == Message::BarrierReply);
            if let Some(place) = place {
                here.came.remove(place);
            }
            place.is_some() || here.down
        })
    }

    /// Lets the subject work until it is quiet, longer if not as much has come as is awaited.
    fn settle(&mut self, awaited: Awaited) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut seen, mut since) = (0, self.subject.now());
        for turn in 0.. {
            self.turn();
            let waiting = self.here().came.len();
            let kinds = self.plain.as_ref().map_or(0, |plain| plain.cut().len());
            let count: usize = self.controllers.values().map(|one| one.count).sum();
            let progress = self.frames.len() + count + kinds;
            if progress != seen {
                (seen, since) = (progress, self.subject.now());
            }
            let less = self.frames.len() < awaited.frames
                || waiting < awaited.messages
                || kinds < awaited.kinds;
            if turn >= TURNS && (awaited.nothing || self.subject.is_quiet(since, less)) {
                break;
            }
        }
        outcome.frames = std::mem::take(&mut self.frames);
        outcome.messages = self.here().came.drain(..).map(|(_, message)| message).collect();
        if let Some(plain) = &mut self.plain {
            let name = |bytes: &[u8]| kind_of(bytes).map_or("unknown", |kind| kind.name());
            let kinds = plain.cut().into_iter().map(|bytes| name(bytes).to_owned());
            outcome.kinds = kinds.filter(|name| name != "controller_status").collect();
            plain.bytes.clear();
        }
        outcome
    }

    fn step(&mut self, step: &Step, version: Version) -> Result<(), String> {
        self.act(&step.what, version)?;
        let frames = step.expect.iter().filter(|one| matches!(one, Expect::Frame { .. })).count();
        let kinds = step.expect.iter().filter(|one| matches!(one, Expect::Kind(_))).count();
        let rows = |one: &&Expect| matches!(one, Expect::Rows(_) | Expect::Row(_));
        let replies = usize::from(step.expect.iter().any(|one| rows(&one)));
        let single = |one: &&Expect| matches!(one, Expect::Message { .. });
        let messages = step.expect.iter().filter(single).count() + replies;
        let is_order = !matches!(step.what, Do::Frame { .. } | Do::Become { .. } | Do::Put(_));
        let nothing = is_order && step.expect.is_empty();
        let mut outcome = self.settle(Awaited { frames, messages, kinds, nothing });
        outcome.down = match step.what {
            Do::Plain | Do::Put(_) => self.plain.as_ref().is_some_and(|plain| plain.down),
            _ => self.here().down,
        };
        compare(&step.expect, outcome)
    }

    fn act(&mut self, what: &Do, version: Version) -> Result<(), String> {
        match what {
            Do::Send(make) => self.order(&make(version)?),
            Do::SendAlone(make) => self.send(&make(version)?).map(drop),
            Do::Raw(make) => {
                let bytes = make(version)?;
                self.here().raw.extend(bytes);
                self.turn();
                self.barrier()
            }
            Do::PortMod(change) => {
                self.ports_changed.push(change.number);
                let macs = self.macs(version)?;
                let find = |number| macs.get(&number).copied().unwrap_or([2, 0, 0, 0, 0, 9]);
                self.order(&change.message(version, &find))
            }
            Do::Bundle { id, command, flags } => {
                if *command == BundleCommand::Open {
                    self.bundle_flags = *flags;
                }
                let (command, flags) = (*command, self.bundle_flags);
                let (id, properties) = (*id, Vec::new());
                let control = BundleControl { id, command, is_reply: false, flags, properties };
                self.order(&Message::BundleControl(control))
            }
            Do::BundleAdd { id, message } => {
                let (id, flags, properties) = (*id, self.bundle_flags, Vec::new());
                let message = Box::new(message.clone());
                let add = BundleAddMessage { id, flags, message, properties };
                self.order(&Message::BundleAddMessage(add))
            }
            Do::Many { count, table } => self.many(*count, *table),
            Do::Full => self.full(),
            Do::Plain => {
                let (channel, bytes) = (self.subject.connect()?, Vec::new());
                self.plain = Some(PlainChannel { channel, bytes, down: false });
                Ok(())
            }
            Do::Put(make) => {
                let bytes = make(version)?;
                let plain = self.plain.as_mut().ok_or("there is no plain connection")?;
                let sent = plain.channel.transmit(&bytes).map_err(|error| error.to_string())?;
                if sent == bytes.len() { Ok(()) } else { Err("it did not take the bytes".into()) }
            }
            Do::Frame { port, bytes } => {
                self.subject.arrive(*port, bytes);
                Ok(())
            }
            Do::Pass(span) => {
                self.subject.pass(*span);
                Ok(())
            }
            Do::Become { name } if self.controllers.contains_key(name) => {
                self.at.clone_from(name);
                Ok(())
            }
            Do::Become { name } => self.connect(name, version),
        }
    }

    fn order(&mut self, message: &Message) -> Result<(), String> {
        self.send(message)?;
        self.barrier()
    }

    /// The ports' hardware addresses as the switch tells them.
    fn macs(&mut self, version: Version) -> Result<BTreeMap<u32, [u8; 6]>, String> {
        let request = match version {
            Version::V1_0 | Version::V1_1 | Version::V1_2 => Message::FeaturesRequest,
            _ => request(MultipartRequestBody::PortDesc(reserved::NONE)),
        };
        self.order(&request)?;
        let came = std::mem::take(&mut self.here().came);
        let ports = came.into_iter().flat_map(|(_, message)| match message {
            Message::FeaturesReply(features) => features.ports,
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::PortDesc(ports),
                ..
            }) => ports,
            _ => Vec::new(),
        });
        Ok(ports.map(|port| (port.number, port.mac)).collect())
    }

    /// Adds entries that differ in a port number.
    fn many(&mut self, count: u32, table: u8) -> Result<(), String> {
        for number in 0..count {
            self.send(&Message::FlowMod(FlowMod { table, ..numbered(number) }))?;
            if number % 100 == 99 {
                self.barrier()?;
            }
        }
        self.barrier()
    }

    /// Adds entries until something comes back, with a limit.
    fn full(&mut self) -> Result<(), String> {
        for number in 0..FULL_MAX {
            self.send(&Message::FlowMod(numbered(number)))?;
            if number % 512 == 511 {
                self.barrier()?;
                if let Some(first) = self.here().came.first().cloned() {
                    self.here().came = vec![first];
                    return Ok(());
                }
            }
        }
        Err(format!("after {FULL_MAX} entries nothing was refused"))
    }
}

/// Most entries that are tried before a table is taken to have no end.
const FULL_MAX: u32 = 1 << 18;

/// An entry for one pair of UDP ports.
fn numbered(number: u32) -> FlowMod {
    let matching = Match::ANY
        .with(Field::EthType, 0x0800_u32)
        .with(Field::IpProto, 17_u32)
        .with(Field::UdpSrc, number >> 8)
        .with(Field::UdpDst, number & 0xff);
    FlowMod { table: 0, ..FlowMod::add(matching, 7, vec![Action::output(2)]) }
}

impl PlainChannel {
    fn turn(&mut self) {
        let mut buffer = [0; 4096];
        match self.channel.receive(&mut buffer) {
            Ok(count) => self.bytes.extend(&buffer[..count]),
            Err(_) => self.down = true,
        }
    }

    /// The whole messages that are there.
    fn cut(&self) -> Vec<&[u8]> {
        let (mut rest, mut messages) = (&self.bytes[..], Vec::new());
        while let Some(&[high, low]) = rest.get(2..4) {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some((message, after)) = rest.split_at_checked(length.max(8)) else { break };
            messages.push(message);
            rest = after;
        }
        messages
    }
}

impl Controller {
    fn turn(&mut self, now: Nanos) {
        let mut buffer = [0; 60_000];
        loop {
            match self.channel.receive(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    assert_eq!(self.session.receive(&buffer[..count], now), count);
                    self.poll();
                }
                Err(_) => {
                    self.down = true;
                    break;
                }
            }
        }
        self.poll();
        let count = self.channel.transmit(self.session.transmit()).unwrap_or(0);
        self.session.transmitted(count);
        if self.session.transmit().is_empty() && !self.raw.is_empty() {
            let count = self.channel.transmit(&self.raw).unwrap_or(0);
            self.raw.drain(..count);
        }
    }

    fn poll(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                // 1.5 tells each controller of all others; no case is about that alone.
                Event::Message { message: Message::ControllerStatus(_), .. } => {}
                Event::Message { xid, message, .. } => {
                    self.count += 1;
                    self.came.push((xid, message));
                }
                Event::Refused(error) => panic!("the switch sent nonsense: {error:?}"),
                Event::Up { .. } => {}
                Event::Down { .. } => self.down = true,
            }
        }
    }
}

/// Holds what came against what was expected, in any order.
fn compare(expect: &[Expect], outcome: Outcome) -> Result<(), String> {
    let Outcome { mut frames, mut messages, mut kinds, down } = outcome;
    let by_rows = expect.iter().any(|one| matches!(one, Expect::Rows(_) | Expect::Row(_)));
    let mut rows = Vec::new();
    if by_rows {
        messages.retain(|message| match message {
            Message::MultipartReply(reply) => {
                rows.extend(reply.to_string().lines().skip(1).map(str::to_owned));
                false
            }
            _ => true,
        });
    }
    let told = |frames: &[(u32, Vec<u8>)], messages: &[Message], rest: &[String]| {
        let frames = frames.iter().map(|(port, bytes)| {
            format!("frame {port}: {} {}", packet::show::Show(bytes), hex(bytes))
        });
        let messages = messages.iter().map(ToString::to_string);
        let all: Vec<_> = frames.chain(messages).chain(rest.iter().take(5).cloned()).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join("\n      ") }
    };
    for one in expect {
        let found = match one {
            Expect::Frame { port, bytes } => {
                let place = frames.iter().position(|(from, got)| from == port && got == bytes);
                place.map(|place| drop(frames.remove(place))).is_some()
            }
            Expect::Message { check, .. } => {
                let place = messages.iter().position(check);
                place.map(|place| drop(messages.remove(place))).is_some()
            }
            Expect::Rows(count) => rows.len() == *count,
            Expect::Row(words) => rows.iter().any(|row| has_all(row, words)),
            Expect::Kind(name) => {
                let place = kinds.iter().position(|kind| kind == name);
                place.map(|place| drop(kinds.remove(place))).is_some()
            }
            Expect::Down => down,
        };
        if !found {
            let rest: Vec<String> = rows.iter().chain(&kinds).cloned().collect();
            return Err(format!("expected {one}, got {}", told(&frames, &messages, &rest)));
        }
    }
    match frames.is_empty() && messages.is_empty() && kinds.is_empty() {
        true => Ok(()),
        false => Err(format!("got besides {}", told(&frames, &messages, &kinds))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
