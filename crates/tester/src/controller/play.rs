//! Playback of a script as fast as the switch accepts it. Replies are only counted.
//!
//! The player parses only headers of replies, and skips rows of statistics by their lengths
//! (OpenFlow 1.0.0, section 5.3.5; 1.3.5, section 7.3.5). So it reads a reply of a hundred
//! megabytes at memory speed. The caller calls [`Play::turn`] with a clock and then waits as
//! [`Play::rest`] returns. In virtual time a simulated switch runs in between.
//!
//! Invariants:
//!
//! - The number of outstanding batches does not exceed the script's limit.
//! - One buffer bounds memory, independent of what the switch sends.

use std::os::fd::RawFd;
use std::sync::Arc;

use channel::Channel;
use openflow::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX};
use openflow::version::{ErrorCode, MessageKind, Version};
use packet::time::Nanos;

use super::script::Script;
use super::{ControlError, Controller, WaitHook};

/// Size of the receive buffer: the content of a socket, and room for a partial message.
const READ_BYTES: usize = 1 << 20;

/// A script during playback.
pub struct Play {
    channel: Box<dyn Channel>,
    script: Arc<Script>,
    codes: Codes,
    buffer: Vec<u8>,
    unread: std::ops::Range<usize>,
    /// Our queued echo replies.
    answer: Vec<u8>,
    begun: Option<Nanos>,
    sent: usize,
    /// Batches answered in this round of the script.
    answered: usize,
    /// Flow-mods of earlier rounds.
    flow_mods_before: u64,
    /// Whether an endless script stops after this round.
    is_last_round: bool,
    /// Deadline for the switch's next progress.
    deadline: Nanos,
    patience: Nanos,
    played: ScriptReport,
}

/// Result of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptReport {
    /// Confirmed flow-mods.
    pub flow_mods: u64,
    /// Confirmed batches.
    pub answers: u64,
    /// Entries in statistics replies.
    pub rows: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Time from the first byte sent to the first reply or its first part.
    pub first_byte: Option<Nanos>,
    /// Time from the first byte sent to the last reply received.
    pub duration: Nanos,
    /// Errors that the switch sent.
    pub errors: u64,
    /// The first error.
    pub error: Option<ErrorCode>,
}

/// Result of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayStep {
    /// All batches are answered. Never returned in an endless script before its last round.
    Over,
    /// Something was sent or received: call again immediately.
    Moved,
    /// Nothing to do before the next event. See [`Play::rest`].
    Waits,
}

/// How long to play a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayLimit {
    /// To its end.
    Over,
    /// To the end of its current round.
    LastRound,
    /// Stop immediately.
    LeftAlone,
}

/// Codes of message types in the session's version.
#[derive(Debug, Clone, Copy)]
struct Codes {
    version: Version,
    barrier: u8,
    bundle: Option<u8>,
    multipart: u8,
}

impl Controller {
    /// Hands the connection over to a script. The reply timeout limits each step.
    pub fn play(self, script: &Arc<Script>) -> Play {
        let version = script.version();
        let code = |kind: MessageKind| kind.code(version);
        let codes = Codes {
            version,
            barrier: code(MessageKind::BarrierReply).expect("every version has barriers"),
            bundle: code(MessageKind::BundleControl).or_else(|| {
                // In 1.3 the reply is an experimenter message (ONF extension 230).
                MessageKind::BundleControl.onf_type(version)?;
                code(MessageKind::Experimenter)
            }),
            multipart: code(MessageKind::MultipartReply).expect("every version has statistics"),
        };
        let mut buffer = vec![0; READ_BYTES];
        let held = self.session.unread().iter().chain(&self.buffer[self.unread.clone()]);
        let count = buffer.iter_mut().zip(held).map(|(place, byte)| *place = *byte).count();
        Play {
            channel: self.channel,
            script: Arc::clone(script),
            codes,
            buffer,
            unread: 0..count,
            answer: self.session.transmit().to_vec(),
            begun: None,
            sent: 0,
            answered: 0,
            flow_mods_before: 0,
            is_last_round: false,
            deadline: Nanos::MAX,
            patience: self.settings.reply_timeout,
            played: ScriptReport::default(),
        }
    }
}

impl Play {
    /// Sends and receives once without blocking.
    ///
    /// Reads `clock` before and after receiving, so that no reply gets a time before its arrival.
    pub fn turn(&mut self, clock: &mut dyn FnMut() -> Nanos) -> Result<PlayStep, ControlError> {
        let now = clock();
        let begun = *self.begun.get_or_insert(now);
        let said = self.say(now.since(begun))?;
        let heard = self.receive()?;
        let now = clock();
        self.scan(now.since(begun))?;
        if heard > 0 || self.answered == self.batches_begun() || self.deadline == Nanos::MAX {
            self.deadline = now.saturating_add(self.patience);
        }
        if self.answered == self.script.batches().len() {
            if !self.script.is_endless() || self.is_last_round {
                return Ok(PlayStep::Over);
            }
            self.flow_mods_before += self.script.count();
            (self.sent, self.answered) = (0, 0);
            return Ok(PlayStep::Moved);
        }
        match said + heard {
            0 if now >= self.deadline => {
                let kind = MessageKind::BarrierRequest;
                Err(ControlError::Silent(self.channel.peer().to_owned(), kind))
            }
            0 => Ok(PlayStep::Waits),
            _ => Ok(PlayStep::Moved),
        }
    }

    /// Returns the descriptor to wait for, whether for writability, and the deadline.
    pub fn rest(&self, now: Nanos) -> (Option<RawFd>, bool, Nanos) {
        let elapsed = self.begun.map_or(Nanos::ZERO, |begun| now.since(begun));
        let owes = self.sent < self.may_send(elapsed) || !self.answer.is_empty();
        let due = self.due_next().map(|due| self.begun.unwrap_or(now).saturating_add(due));
        let deadline = due.map_or(self.deadline, |due| due.min(self.deadline));
        (self.channel.descriptor(), self.channel.waits_for_room(owes), deadline)
    }

    /// Stops an endless script after the current round, so that the switch is in its initial state
    /// and nothing is outstanding.
    pub fn end(&mut self) {
        self.is_last_round = true;
    }

    /// Plays the script to its end, as long as `until` permits.
    ///
    /// An endless script plays until `until` returns [`PlayLimit::LastRound`] or [`PlayLimit::LeftAlone`].
    pub fn to_end(
        mut self,
        hook: &mut dyn WaitHook,
        mut until: impl FnMut() -> PlayLimit,
    ) -> Result<ScriptReport, ControlError> {
        /// Maximum wait before the next call of `until`.
        const LOOK_AGAIN: Nanos = Nanos::from_millis(5);
        loop {
            let turn = self.turn(&mut || hook.now())?;
            match until() {
                _ if turn == PlayStep::Over => break,
                PlayLimit::LeftAlone => break,
                PlayLimit::LastRound => self.end(),
                PlayLimit::Over => {}
            }
            if turn == PlayStep::Waits {
                let now = hook.now();
                let (descriptor, wants_to_write, deadline) = self.rest(now);
                let deadline = deadline.min(now.saturating_add(LOOK_AGAIN));
                hook.rest(descriptor, wants_to_write, deadline);
            }
        }
        Ok(self.finish())
    }

    /// Returns the result so far.
    pub fn finish(self) -> ScriptReport {
        self.played
    }

    /// Returns how many batches have been sent completely or partly.
    fn batches_begun(&self) -> usize {
        self.script.batches().partition_point(|batch| batch.end < self.sent)
            + usize::from(self.sent > 0)
    }

    /// Returns the offset up to which bytes may be sent now: limited by outstanding batches and
    /// pace.
    fn may_send(&self, elapsed: Nanos) -> usize {
        let batches = self.script.batches();
        let last = (self.answered + self.script.batches_ahead()).min(batches.len());
        let due = match self.script.per_second() {
            None => last,
            Some(_) => {
                let from = self.answered.min(last);
                from + batches[from..last]
                    .partition_point(|batch| self.due(batch.flow_mods) <= elapsed)
            }
        };
        due.checked_sub(1).map_or(0, |last| batches[last].end)
    }

    /// Returns when this number of flow-mods of this round may have been sent, from the start.
    fn due(&self, flow_mods: u64) -> Nanos {
        let per_second = self.script.per_second().unwrap_or(f64::INFINITY);
        Nanos::from_secs_f64((self.flow_mods_before + flow_mods) as f64 / per_second)
    }

    /// Returns when the next batch is due, if only the pace delays it.
    fn due_next(&self) -> Option<Nanos> {
        self.script.per_second()?;
        let batches = self.script.batches();
        let waiting = batches.partition_point(|batch| batch.end <= self.sent);
        let is_held = waiting >= self.answered + self.script.batches_ahead();
        batches.get(waiting).filter(|_| !is_held).map(|batch| self.due(batch.flow_mods))
    }

    fn say(&mut self, elapsed: Nanos) -> Result<usize, ControlError> {
        let mut said = 0;
        // An echo reply must not interrupt a message.
        let is_between =
            |sent| sent == 0 || self.script.batches().iter().any(|batch| batch.end == sent);
        if !self.answer.is_empty() && is_between(self.sent) {
            let count = self.channel.transmit(&self.answer)?;
            self.answer.drain(..count);
            if !self.answer.is_empty() {
                return Ok(count);
            }
        }
        loop {
            let end = self.may_send(elapsed);
            if self.sent >= end {
                return Ok(said);
            }
            let count = self.channel.transmit(&self.script.bytes()[self.sent..end])?;
            if count == 0 {
                return Ok(said);
            }
            self.sent += count;
            said += count;
        }
    }

    /// Reads available bytes. Returns their number.
    fn receive(&mut self) -> Result<usize, ControlError> {
        if self.buffer.len() - self.unread.end <= MESSAGE_BYTES_MAX {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let count = self.channel.receive(&mut self.buffer[self.unread.end..])?;
        self.unread.end += count;
        self.played.bytes += count as u64;
        Ok(count)
    }

    /// Parses the complete messages in the buffer.
    fn scan(&mut self, elapsed: Nanos) -> Result<(), ControlError> {
        loop {
            let rest = &self.buffer[self.unread.clone()];
            if rest.len() < HEADER_BYTES {
                return Ok(());
            }
            let header = Header::parse(rest)
                .map_err(|_| ControlError::Unframed(self.channel.peer().to_owned()))?;
            let length = usize::from(header.length);
            if rest.len() < length {
                return Ok(());
            }
            self.played.first_byte.get_or_insert(elapsed);
            let from = self.unread.start;
            self.unread.start += length;
            self.take(header, from..from + length, elapsed);
        }
    }

    fn take(&mut self, header: Header, message: std::ops::Range<usize>, elapsed: Nanos) {
        let message = &self.buffer[message];
        match header.kind {
            kind if kind == self.codes.barrier || Some(kind) == self.codes.bundle => {
                self.answered_for(header.xid, elapsed);
            }
            kind if kind == self.codes.multipart => {
                let (rows, more) = rows(self.codes.version, message);
                self.played.rows += rows;
                if !more {
                    self.answered_for(header.xid, elapsed);
                }
            }
            ERROR => {
                let error = error_in(self.codes.version, message);
                self.error(header.xid, error, elapsed);
            }
            // Limits echo replies to a peer that sends requests without reading.
            ECHO_REQUEST if self.answer.len() < MESSAGE_BYTES_MAX => {
                let from = self.answer.len();
                self.answer.extend_from_slice(message);
                self.answer[from + 1] = ECHO_REPLY;
            }
            _ => {}
        }
    }

    /// Counts an error. An error for a batch's last request counts as the batch's reply.
    fn error(&mut self, xid: u32, error: Option<ErrorCode>, elapsed: Nanos) {
        self.played.errors += 1;
        self.played.error = self.played.error.or(error);
        self.answered_for(xid, elapsed);
    }

    fn answered_for(&mut self, xid: u32, elapsed: Nanos) {
        let batches = self.script.batches();
        if let Some(batch) = batches.get(self.answered).filter(|batch| batch.last == xid) {
            self.answered += 1;
            self.played.answers += 1;
            self.played.flow_mods = self.flow_mods_before + batch.flow_mods;
            self.played.duration = elapsed;
        }
    }
}

/// Codes that are the same in all versions.
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;

/// Returns the error in a message of this version.
fn error_in(version: Version, message: &[u8]) -> Option<ErrorCode> {
    let &[a, b, c, d] = message.get(HEADER_BYTES..HEADER_BYTES + 4)? else { return None };
    let [family, code] = [[a, b], [c, d]].map(u16::from_be_bytes);
    Some(ErrorCode::from_wire(version, family, code))
}

/// Returns the number of length-prefixed rows in a statistics reply, and whether more parts follow.
fn rows(version: Version, message: &[u8]) -> (u64, bool) {
    let Some(flags) = message.get(10..12) else { return (0, false) };
    let first = if version == Version::V1_0 { 12 } else { 16 };
    let (mut rest, mut count) = (message.get(first..).unwrap_or_default(), 0);
    while let Some(&[high, low]) = rest.first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        match rest.get(length..) {
            Some(behind) if length > 0 => rest = behind,
            _ => break,
        }
        count += 1;
    }
    (count, flags[1] & 1 != 0)
}

#[cfg(test)]
mod tests;
