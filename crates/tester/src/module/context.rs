//! Context of a measurement module: queued commands, timers and results.
//!
//! - Commands run in order when the module returns.
//! - Timers, log entries and results are stored immediately.
//! - Transaction ids are assigned here, so that a module knows them before anything is sent.
//!
//! Invariant: the named limits here bound memory. What exceeds them is counted, and the module is
//! notified once.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use openflow::codec::{NotExpressible, encode};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::{MessageKind, Version};
use packet::filter::Entry;
use packet::time::Nanos;
use snmp::SnmpRequest;

use super::Ended;
use super::findings::{LogEntry, MeasuredValue, ModuleResults, Series, Value};
use super::host_tasks::HostTask;
use crate::search::bracket::Bracket;
use crate::stream::{Rate, Stream};

/// Maximum number of commands in one reaction.
pub const COMMANDS_MAX: usize = 1 << 16;

/// Maximum number of pending timers.
pub const TIMERS_MAX: usize = 1 << 16;

/// First transaction id for messages of modules. The session uses the lower ones.
const XID_FIRST: Xid = 0x0100_0000;

/// Context of a measurement module: queued commands, timers and results.
#[derive(Debug)]
pub struct ModuleContext {
    pub(crate) now: Nanos,
    pub(crate) poll_period: Nanos,
    pub(crate) frame_poll_period: Nanos,
    pub(crate) commands: Vec<Command>,
    timers: BTreeSet<TimerId>,
    timers_set: u64,
    asked: u64,
    xid: Xid,
    findings: ModuleResults,
    search: Option<Box<Bracket>>,
    over: Option<Ended>,
}

/// A queued command.
#[derive(Debug)]
pub(crate) enum Command {
    Send(usize, MessageRange, Vec<Message>),
    SendEncoded(usize, EncodedMessages),
    Connect(usize),
    Disconnect(usize),
    Prepare(Box<Stream>),
    Begin(u16, SendSpan),
    ChangeRate(u16, Rate),
    Stop(u16),
    Watch(usize, FrameFilter),
    Counters,
    Snmp(usize, SnmpId, SnmpRequest),
    RunHostTask(HostTask),
    CancelHostTask,
}

/// Identifier of an SNMP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnmpId(u64);

/// Transaction ids of a batch of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageRange {
    /// First transaction id. Raw bytes that are no message also have one, as an identifier.
    pub xid: Xid,
    /// Number of messages. Their transaction ids are consecutive.
    pub count: u32,
}

/// Encoded messages: sending them needs no encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedMessages {
    pub(crate) said: MessageRange,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) kinds: Arc<[(MessageKind, u64)]>,
}

/// When to send a stream's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendSpan {
    /// Start time. None for immediately.
    pub from: Option<Nanos>,
    /// End time. None for no limit.
    pub until: Option<Nanos>,
    /// Maximum number of frames. None for no limit.
    pub frames: Option<u64>,
}

/// Selects the frames of a port that become events. The others are only counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FrameFilter {
    /// No frame.
    #[default]
    None,
    /// Every frame.
    All,
    /// Frames of the tester's streams.
    Probes,
    /// Frames of these streams.
    Streams(Vec<u16>),
    /// Frames that match this filter, also those that the tester did not send.
    Filter(Vec<Entry>),
}

/// A timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    due: Nanos,
    number: u64,
}

impl SendSpan {
    /// No limits.
    pub const OPEN: SendSpan = SendSpan { from: None, until: None, frames: None };

    /// Ends at this time.
    pub fn until(at: Nanos) -> Self {
        SendSpan { until: Some(at), ..SendSpan::OPEN }
    }

    /// Ends after this many frames.
    pub fn frames(count: u64) -> Self {
        SendSpan { frames: Some(count), ..SendSpan::OPEN }
    }
}

impl MessageRange {
    /// Returns the transaction ids.
    pub fn xids(self) -> impl Iterator<Item = Xid> {
        (0..self.count).map(move |place| self.xid.wrapping_add(place))
    }

    /// Returns the index of the message with this transaction id.
    pub fn place(self, xid: Xid) -> Option<u32> {
        let place = xid.wrapping_sub(self.xid);
        (place < self.count).then_some(place)
    }
}

impl EncodedMessages {
    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the transaction ids.
    pub fn said(&self) -> MessageRange {
        self.said
    }
}

impl TimerId {
    /// Returns the due time.
    pub fn due(self) -> Nanos {
        self.due
    }
}

impl ModuleContext {
    pub(crate) fn new(now: Nanos) -> Self {
        ModuleContext {
            now,
            poll_period: Nanos::ZERO,
            frame_poll_period: Nanos::ZERO,
            commands: Vec::new(),
            timers: BTreeSet::new(),
            timers_set: 0,
            asked: 0,
            xid: XID_FIRST,
            findings: ModuleResults::default(),
            search: None,
            over: None,
        }
    }

    /// Returns the time of the current event.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Returns the 99th percentile of the event loop's iteration time, weighted by time.
    ///
    /// The loop may find a message or frame late by up to this time. Measured delays that end at
    /// such an arrival may thus be too long by this time. Known when the module has ended. Zero in
    /// virtual time.
    pub fn poll_period(&self) -> Nanos {
        self.poll_period
    }

    /// The same for frames: zero where the port stamps them and not the tester.
    pub fn frame_poll_period(&self) -> Nanos {
        self.frame_poll_period
    }

    /// Queues a message and returns its transaction id.
    pub fn send(&mut self, connection: usize, message: Message) -> Xid {
        self.send_all(connection, vec![message]).xid
    }

    /// Queues messages. They are written to the socket together, as many as it accepts.
    pub fn send_all(&mut self, connection: usize, messages: Vec<Message>) -> MessageRange {
        let said = self.number(messages.len() as u32);
        self.command(Command::Send(connection, said, messages));
        said
    }

    /// Encodes messages for one or more calls of `send_encoded`. Every transmission has the same transaction
    /// ids.
    pub fn encode(
        &mut self,
        version: Version,
        messages: &[Message],
    ) -> Result<EncodedMessages, NotExpressible> {
        let said = self.number(messages.len() as u32);
        let (mut bytes, mut kinds) = (Vec::new(), Vec::new());
        for (message, xid) in messages.iter().zip(said.xids()) {
            encode(version, xid, message, &mut bytes)?;
            super::report::count(&mut kinds, message.kind(), 1);
        }
        Ok(EncodedMessages { said, bytes: bytes.into(), kinds: kinds.into() })
    }

    /// Prepares raw bytes, which need not be valid messages.
    pub fn raw(&mut self, bytes: Vec<u8>) -> EncodedMessages {
        let said = MessageRange { count: 0, ..self.number(1) };
        EncodedMessages { said, bytes: bytes.into(), kinds: Arc::new([]) }
    }

    /// Queues prepared messages.
    pub fn send_encoded(&mut self, connection: usize, prepared: &EncodedMessages) -> MessageRange {
        self.command(Command::SendEncoded(connection, prepared.clone()));
        prepared.said
    }

    /// Opens a connection. [`EventKind::Connected`](super::EventKind::Connected) or
    /// [`EventKind::Disconnected`](super::EventKind::Disconnected) reports the result.
    pub fn connect(&mut self, connection: usize) {
        self.command(Command::Connect(connection));
    }

    /// Closes a connection. Drops queued messages that have not been written.
    pub fn disconnect(&mut self, connection: usize) {
        self.command(Command::Disconnect(connection));
    }

    /// Builds the frames of a stream without sending them, so that `begin` costs nothing.
    ///
    /// Its frames are recognized on arrival from then on.
    pub fn prepare(&mut self, stream: Stream) {
        self.command(Command::Prepare(Box::new(stream)));
    }

    /// Sends frames of a prepared stream. A stopped stream continues with the next sequence number.
    pub fn begin(&mut self, stream: u16, span: SendSpan) {
        self.command(Command::Begin(stream, span));
    }

    /// Prepares a stream and sends its frames.
    pub fn start(&mut self, stream: Stream, span: SendSpan) {
        let id = stream.id;
        self.prepare(stream);
        self.begin(id, span);
    }

    /// Sets a stream's rate, whether it is active or not.
    pub fn change_rate(&mut self, stream: u16, rate: Rate) {
        self.command(Command::ChangeRate(stream, rate));
    }

    /// Stops a stream.
    pub fn stop(&mut self, stream: u16) {
        self.command(Command::Stop(stream));
    }

    /// Selects which frames of a port are events. The default is none.
    pub fn watch(&mut self, port: usize, watch: FrameFilter) {
        self.command(Command::Watch(port, watch));
    }

    /// Requests the ports' counters, which [`EventKind::Counters`](super::EventKind::Counters)
    /// returns.
    pub fn counters(&mut self) {
        self.command(Command::Counters);
    }

    /// Queries an agent by index. [`EventKind::Snmp`](super::EventKind::Snmp) returns the result.
    pub fn snmp(&mut self, agent: usize, question: SnmpRequest) -> SnmpId {
        self.asked += 1;
        let asked = SnmpId(self.asked);
        self.command(Command::Snmp(agent, asked, question));
        asked
    }

    /// Starts a host task. [`EventKind::HostTask`](super::EventKind::HostTask) reports the result.
    pub fn run_host_task(&mut self, task: HostTask) {
        self.command(Command::RunHostTask(task));
    }

    /// Stops the current host task. Its result is still reported.
    pub fn cancel_host_task(&mut self) {
        self.command(Command::CancelHostTask);
    }

    /// Sets a timer for this time. It expires immediately if the time has passed.
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

    /// Sets a timer that expires after this span.
    pub fn timer_in(&mut self, span: Nanos) -> TimerId {
        self.timer_at(self.now.saturating_add(span))
    }

    /// Cancels a timer. Returns whether it was still pending.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.remove(&timer)
    }

    /// Writes a log entry with the time of this event.
    pub fn log(&mut self, name: impl Into<Cow<'static, str>>, values: &[(&'static str, Value)]) {
        let values = values.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        self.log_entry(LogEntry { at: self.now, name: name.into(), values });
    }

    /// Writes a log entry.
    pub fn log_entry(&mut self, entry: LogEntry) {
        self.findings.log(entry);
    }

    /// Records a measured value.
    pub fn measured(&mut self, measured: MeasuredValue) {
        self.findings.measured(measured);
    }

    /// Records a series of points.
    pub fn series(&mut self, series: Series) {
        self.findings.series(series);
    }

    /// Reports a search's progress to observers. The last call in a reaction wins.
    pub fn report_search(&mut self, bracket: Option<Bracket>) {
        self.search = bracket.map(Box::new);
    }

    /// Takes the search progress reported since the last call.
    pub fn take_search(&mut self) -> Option<Box<Bracket>> {
        self.search.take()
    }

    /// Ends the module: it is complete.
    pub fn end(&mut self) {
        self.over.get_or_insert(Ended::Completed);
    }

    /// Ends the module with what it has: its own limit of this name expired.
    pub fn end_by_limit(&mut self, name: &'static str) {
        self.over.get_or_insert(Ended::Limit(name));
    }

    /// Ends the module with an error. Results so far remain.
    ///
    /// The first reason counts. It can also be given in `finish`.
    pub fn fail(&mut self, why: impl Into<String>) {
        if self.over.as_ref().is_none_or(|over| *over == Ended::Completed) {
            self.over = Some(Ended::Failed(why.into()));
        }
    }

    /// Counts items left out because of the module's own limit of this name.
    pub fn count_left_out(&mut self, limit: &'static str, count: u64) {
        self.findings.beyond_by(limit, count);
    }

    /// Assigns this many transaction ids.
    fn number(&mut self, count: u32) -> MessageRange {
        let said = MessageRange { xid: self.xid, count };
        self.xid = self.xid.wrapping_add(count).max(XID_FIRST);
        said
    }

    fn command(&mut self, command: Command) {
        match self.commands.len() < COMMANDS_MAX {
            true => self.commands.push(command),
            false => self.findings.beyond("COMMANDS_MAX"),
        }
    }

    /// Removes and returns the first timer that is due.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<TimerId> {
        let first = self.timers.first().copied().filter(|timer| timer.due <= now)?;
        self.timers.remove(&first);
        Some(first)
    }

    /// Returns the number of pending timers.
    pub(crate) fn timers(&self) -> usize {
        self.timers.len()
    }

    /// Returns when the next timer is due.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timers.first().map(|timer| timer.due)
    }

    /// Returns why the module is over, if it ended itself.
    pub(crate) fn over(&self) -> Option<&Ended> {
        self.over.as_ref()
    }

    pub(crate) fn findings_mut(&mut self) -> &mut ModuleResults {
        &mut self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_returned_in_order_and_can_be_cancelled() {
        let mut context = ModuleContext::new(Nanos(100));
        let late = context.timer_in(Nanos(50));
        let first = context.timer_at(Nanos(120));
        let second = context.timer_at(Nanos(120));
        let gone = context.timer_at(Nanos(10));
        assert!(context.cancel(gone) && !context.cancel(gone));
        assert_eq!((context.take_due(Nanos(119)), context.next_due()), (None, Some(Nanos(120))));
        let reported: Vec<_> = std::iter::from_fn(|| context.take_due(Nanos(150))).collect();
        assert_eq!(reported, [first, second, late]);
        assert!(!context.cancel(first));
    }

    #[test]
    fn transaction_ids_are_consecutive_and_known_before_sending() {
        let mut context = ModuleContext::new(Nanos(0));
        let one = context.send(0, Message::BarrierRequest);
        let many = context.send_all(1, vec![Message::FeaturesRequest; 3]);
        let prepared = context.encode(Version::V1_3, &[Message::BarrierRequest]).unwrap();
        let raw = context.raw(vec![1, 2, 3]);
        assert_eq!((many.xid, prepared.said().xid, raw.said().xid), (one + 1, one + 4, one + 5));
        assert_eq!(many.xids().collect::<Vec<_>>(), [one + 1, one + 2, one + 3]);
        assert_eq!((many.place(one + 3), many.place(one + 4)), (Some(2), None));
        assert_eq!(context.send_encoded(0, &prepared), prepared.said());
        assert_eq!((prepared.len(), raw.len(), context.commands.len()), (8, 3, 3));
    }

    #[test]
    fn queued_commands_and_timers_are_limited() {
        let mut context = ModuleContext::new(Nanos(0));
        (0..COMMANDS_MAX + 3).for_each(|_| context.counters());
        for at in 0..TIMERS_MAX + 2 {
            context.timer_at(Nanos(at as u64));
        }
        assert_eq!(context.commands.len(), COMMANDS_MAX);
        let limits = context.findings_mut().limits().to_vec();
        assert_eq!(limits, [("COMMANDS_MAX", 3), ("TIMERS_MAX", 2)]);
    }
}
