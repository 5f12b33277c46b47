//! Where a module puts what is to be done: commands, timers, and what it found.
//!
//! Commands are done in their order when the module has returned; timers, log and findings are kept
//! at once. Numbers of messages are given out here, so that a module knows them before anything is
//! sent. Invariant: whatever a module does, memory is bounded by the limits with a name here; what is
//! beyond them is counted, and the module told once.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use openflow::codec::{NotExpressible, encode};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::{MessageKind, Version};
use packet::filter::Entry;
use packet::time::Nanos;
use snmp::Question;

use super::Ended;
use super::findings::{Findings, LogEntry, Measured, Series, Value};
use super::hosts::Errand;
use crate::search::bracket::Bracket;
use crate::stream::{Rate, Stream};

/// Commands that one reaction may give.
pub const COMMANDS_MAX: usize = 1 << 16;

/// Timers that may be set at a time.
pub const TIMERS_MAX: usize = 1 << 16;

/// The first number that is given to a message: lower ones are the session's own.
const XID_FIRST: Xid = 0x0100_0000;

/// What a module says is to be done, and what it found.
#[derive(Debug)]
pub struct Desk {
    pub(crate) now: Nanos,
    pub(crate) turn: Nanos,
    pub(crate) frame_turn: Nanos,
    pub(crate) commands: Vec<Command>,
    timers: BTreeSet<TimerId>,
    timers_set: u64,
    asked: u64,
    xid: Xid,
    findings: Findings,
    searching: Option<Box<Bracket>>,
    over: Option<Ended>,
}

/// Something that is to be done.
#[derive(Debug)]
pub(crate) enum Command {
    Send(usize, Said, Vec<Message>),
    Say(usize, Prepared),
    Connect(usize),
    Disconnect(usize),
    Prepare(Box<Stream>),
    Begin(u16, Span),
    ChangeRate(u16, Rate),
    Stop(u16),
    Watch(usize, Watch),
    Counters,
    Snmp(usize, SnmpId, Question),
    Errand(Errand),
    EndErrand,
}

/// A question to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnmpId(u64);

/// Messages that were said together: which they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Said {
    /// The number of the first of them; bytes that are no message have one too, to be known by.
    pub xid: Xid,
    /// How many messages; their numbers follow one another.
    pub count: u32,
}

/// Messages that are bytes already, so that saying them costs no encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    pub(crate) said: Said,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) kinds: Arc<[(MessageKind, u64)]>,
}

/// When a stream's frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// From when on; left out at once.
    pub from: Option<Nanos>,
    /// Until when; left out until something else ends it.
    pub until: Option<Nanos>,
    /// How many frames at most.
    pub frames: Option<u64>,
}

/// Which of the frames that arrive on a port are told as events. The others are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Watch {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// Those of the tester's streams.
    Probes,
    /// Those of these streams.
    Streams(Vec<u16>),
    /// Those that this filter captures, whosever they are.
    Filter(Vec<Entry>),
}

/// A moment that a module asked to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    due: Nanos,
    number: u64,
}

impl Span {
    /// Until something else ends it.
    pub const OPEN: Span = Span { from: None, until: None, frames: None };

    /// Until this moment.
    pub fn until(at: Nanos) -> Self {
        Span { until: Some(at), ..Span::OPEN }
    }

    /// So many frames.
    pub fn frames(count: u64) -> Self {
        Span { frames: Some(count), ..Span::OPEN }
    }
}

impl Said {
    /// The numbers of the messages.
    pub fn xids(self) -> impl Iterator<Item = Xid> {
        (0..self.count).map(move |place| self.xid.wrapping_add(place))
    }

    /// Which of the messages has this number, from 0, if one does.
    pub fn place(self, xid: Xid) -> Option<u32> {
        let place = xid.wrapping_sub(self.xid);
        (place < self.count).then_some(place)
    }
}

impl Prepared {
    /// How many bytes they are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Their numbers.
    pub fn said(&self) -> Said {
        self.said
    }
}

impl TimerId {
    /// When it is due.
    pub fn due(self) -> Nanos {
        self.due
    }
}

impl Desk {
    pub(crate) fn new(now: Nanos) -> Self {
        Desk {
            now,
            turn: Nanos::ZERO,
            frame_turn: Nanos::ZERO,
            commands: Vec::new(),
            timers: BTreeSet::new(),
            timers_set: 0,
            asked: 0,
            xid: XID_FIRST,
            findings: Findings::default(),
            searching: None,
            over: None,
        }
    }

    /// The moment of the event that is being told.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How long a turn of the stage's loop was, for 99 % of the time: what was read may have waited for so long, and a
    /// delay that ends with it may be shorter by that. Known when the module is over; zero in virtual time.
    pub fn turn(&self) -> Nanos {
        self.turn
    }

    /// The same of frames: zero where the port stamps them and not the tester.
    pub fn frame_turn(&self) -> Nanos {
        self.frame_turn
    }

    /// Says a message; its number.
    pub fn send(&mut self, connection: usize, message: Message) -> Xid {
        self.send_all(connection, vec![message]).xid
    }

    /// Says messages, handed to the socket in one piece as far as it takes them.
    pub fn send_all(&mut self, connection: usize, messages: Vec<Message>) -> Said {
        let said = self.number(messages.len() as u32);
        self.command(Command::Send(connection, said, messages));
        said
    }

    /// Messages as bytes, to be said later, again and again if need be: their numbers stay.
    pub fn encode(
        &mut self,
        version: Version,
        messages: &[Message],
    ) -> Result<Prepared, NotExpressible> {
        let said = self.number(messages.len() as u32);
        let (mut bytes, mut kinds) = (Vec::new(), Vec::new());
        for (message, xid) in messages.iter().zip(said.xids()) {
            encode(version, xid, message, &mut bytes)?;
            super::report::count(&mut kinds, message.kind(), 1);
        }
        Ok(Prepared { said, bytes: bytes.into(), kinds: kinds.into() })
    }

    /// Bytes that may be no messages at all, to be said.
    pub fn raw(&mut self, bytes: Vec<u8>) -> Prepared {
        let said = Said { count: 0, ..self.number(1) };
        Prepared { said, bytes: bytes.into(), kinds: Arc::new([]) }
    }

    /// Says what was prepared.
    pub fn say(&mut self, connection: usize, prepared: &Prepared) -> Said {
        self.command(Command::Say(connection, prepared.clone()));
        prepared.said
    }

    /// Makes a connection that is not up; [`What::Up`](super::What::Up) or
    /// [`What::Lost`](super::What::Lost) tells what came of it.
    pub fn connect(&mut self, connection: usize) {
        self.command(Command::Connect(connection));
    }

    /// Ends a connection. What was said before and has not left is dropped.
    pub fn disconnect(&mut self, connection: usize) {
        self.command(Command::Disconnect(connection));
    }

    /// Makes the frames of a stream ready, without sending any, so that beginning it costs nothing.
    /// From then on they are known when they arrive.
    pub fn prepare(&mut self, stream: Stream) {
        self.command(Command::Prepare(Box::new(stream)));
    }

    /// Sends frames of a stream that is ready. One that was stopped goes on with the next number.
    pub fn begin(&mut self, stream: u16, span: Span) {
        self.command(Command::Begin(stream, span));
    }

    /// Makes a stream ready and sends its frames.
    pub fn start(&mut self, stream: Stream, span: Span) {
        let id = stream.id;
        self.prepare(stream);
        self.begin(id, span);
    }

    /// Has a stream's frames be sent at this rate from now on, whether it is being sent or not.
    pub fn change_rate(&mut self, stream: u16, rate: Rate) {
        self.command(Command::ChangeRate(stream, rate));
    }

    /// Sends no more frames of a stream.
    pub fn stop(&mut self, stream: u16) {
        self.command(Command::Stop(stream));
    }

    /// Says which frames of a port are events; none are before that.
    pub fn watch(&mut self, port: usize, watch: Watch) {
        self.command(Command::Watch(port, watch));
    }

    /// Asks for the ports' counters, which come as an event.
    pub fn counters(&mut self) {
        self.command(Command::Counters);
    }

    /// Asks an agent, counted from 0; [`What::Snmp`](super::What::Snmp) tells what came of it.
    pub fn snmp(&mut self, agent: usize, question: Question) -> SnmpId {
        self.asked += 1;
        let asked = SnmpId(self.asked);
        self.command(Command::Snmp(agent, asked, question));
        asked
    }

    /// Sends hosts on an errand; [`What::Errand`](super::What::Errand) tells what came of it.
    pub fn errand(&mut self, errand: Errand) {
        self.command(Command::Errand(errand));
    }

    /// Ends the errand that is under way; what it came to is told all the same.
    pub fn end_errand(&mut self) {
        self.command(Command::EndErrand);
    }

    /// Asks to be told at this moment, or as soon as possible if it has passed.
    pub fn timer_at(&mut self, due: Nanos) -> TimerId {
        self.timers_set += 1;
        let timer = TimerId { due, number: self.timers_set };
        if self.timers.len() < TIMERS_MAX {
            self.timers.insert(timer);
        } else {
            self.findings.beyond("TIMERS_MAX");
        }
        timer
    }

    /// Asks to be told after so long.
    pub fn timer_in(&mut self, span: Nanos) -> TimerId {
        self.timer_at(self.now.saturating_add(span))
    }

    /// Takes a timer back; whether it had not been told yet.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.remove(&timer)
    }

    /// Puts a record into the log, at the moment of this event.
    pub fn log(&mut self, name: impl Into<Cow<'static, str>>, values: &[(&'static str, Value)]) {
        let values = values.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        self.log_entry(LogEntry { at: self.now, name: name.into(), values });
    }

    /// Puts a record into the log.
    pub fn log_entry(&mut self, entry: LogEntry) {
        self.findings.log(entry);
    }

    /// Tells what was measured.
    pub fn measured(&mut self, measured: Measured) {
        self.findings.measured(measured);
    }

    /// Tells a row of points.
    pub fn series(&mut self, series: Series) {
        self.findings.series(series);
    }

    /// Tells whoever watches how far a search has come; of several together the last.
    pub fn searching(&mut self, bracket: Option<Bracket>) {
        self.searching = bracket.map(Box::new);
    }

    /// What was told of a search since this was last asked.
    pub fn take_searching(&mut self) -> Option<Box<Bracket>> {
        self.searching.take()
    }

    /// The module has all that it wanted.
    pub fn end(&mut self) {
        self.over.get_or_insert(Ended::Said);
    }

    /// The module has waited for as long as a limit of its own with this name allows, and ends with what
    /// it has.
    pub fn end_by_limit(&mut self, name: &'static str) {
        self.over.get_or_insert(Ended::Limit(name));
    }

    /// The module cannot go on, and why: what was found until now is kept. The first reason counts, and
    /// can also be given in its last words.
    pub fn fail(&mut self, why: impl Into<String>) {
        if self.over.as_ref().is_none_or(|over| *over == Ended::Said) {
            self.over = Some(Ended::Failed(why.into()));
        }
    }

    /// So many things were left out because of a limit of the module's own, of this name.
    pub fn leave_out(&mut self, limit: &'static str, count: u64) {
        self.findings.beyond_by(limit, count);
    }

    /// Numbers for so many messages.
    fn number(&mut self, count: u32) -> Said {
        let said = Said { xid: self.xid, count };
        self.xid = self.xid.wrapping_add(count).max(XID_FIRST);
        said
    }

    fn command(&mut self, command: Command) {
        match self.commands.len() < COMMANDS_MAX {
            true => self.commands.push(command),
            false => self.findings.beyond("COMMANDS_MAX"),
        }
    }

    /// The first timer that is due, which is then set no more.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<TimerId> {
        let first = self.timers.first().copied().filter(|timer| timer.due <= now)?;
        self.timers.remove(&first);
        Some(first)
    }

    /// How many timers are set.
    pub(crate) fn timers(&self) -> usize {
        self.timers.len()
    }

    /// When the next timer is due.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timers.first().map(|timer| timer.due)
    }

    /// Why the module is over, if it says that it is.
    pub(crate) fn over(&self) -> Option<&Ended> {
        self.over.as_ref()
    }

    pub(crate) fn findings_mut(&mut self) -> &mut Findings {
        &mut self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_can_be_taken_back() {
        let mut desk = Desk::new(Nanos(100));
        let late = desk.timer_in(Nanos(50));
        let first = desk.timer_at(Nanos(120));
        let second = desk.timer_at(Nanos(120));
        let gone = desk.timer_at(Nanos(10));
        assert!(desk.cancel(gone) && !desk.cancel(gone));
        assert_eq!((desk.take_due(Nanos(119)), desk.next_due()), (None, Some(Nanos(120))));
        let told: Vec<_> = std::iter::from_fn(|| desk.take_due(Nanos(150))).collect();
        assert_eq!(told, [first, second, late]);
        assert!(!desk.cancel(first));
    }

    #[test]
    fn numbers_follow_one_another_and_are_known_before_anything_is_sent() {
        let mut desk = Desk::new(Nanos(0));
        let one = desk.send(0, Message::BarrierRequest);
        let many = desk.send_all(1, vec![Message::FeaturesRequest; 3]);
        let prepared = desk.encode(Version::V1_3, &[Message::BarrierRequest]).unwrap();
        let raw = desk.raw(vec![1, 2, 3]);
        assert_eq!((many.xid, prepared.said().xid, raw.said().xid), (one + 1, one + 4, one + 5));
        assert_eq!(many.xids().collect::<Vec<_>>(), [one + 1, one + 2, one + 3]);
        assert_eq!((many.place(one + 3), many.place(one + 4)), (Some(2), None));
        assert_eq!(desk.say(0, &prepared), prepared.said());
        assert_eq!((prepared.len(), raw.len(), desk.commands.len()), (8, 3, 3));
    }

    #[test]
    fn what_a_module_leaves_on_its_desk_is_bounded() {
        let mut desk = Desk::new(Nanos(0));
        (0..COMMANDS_MAX + 3).for_each(|_| desk.counters());
        for at in 0..TIMERS_MAX + 2 {
            desk.timer_at(Nanos(at as u64));
        }
        assert_eq!(desk.commands.len(), COMMANDS_MAX);
        let limits = desk.findings_mut().limits().to_vec();
        assert_eq!(limits, [("COMMANDS_MAX", 3), ("TIMERS_MAX", 2)]);
    }
}
