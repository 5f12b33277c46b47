//! Sender of a program over Ethernet: repeats unacknowledged chunks until the element reports the
//! outcome.

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::{
    ASK, CHUNK, CHUNK_BYTES_MAX, ETHER_TYPE, HEAD_BYTES, STATUS, State, Status, frame, head,
};

/// Maximum number of unacknowledged chunks.
const WINDOW: u16 = 32;
/// Retransmission timeout. Without progress for this long, the sender repeats all unacknowledged
/// chunks.
const RETRY: Nanos = Nanos::from_millis(200);
/// Maximum number of retransmissions without progress.
const TRIES_MAX: u32 = 25;

/// Sender of one program.
#[derive(Debug)]
pub struct Sender {
    own: Mac,
    to: Mac,
    session: u32,
    chunks: Vec<Vec<u8>>,
    /// The first unacknowledged chunk, and the first that was not sent.
    acknowledged: u16,
    sent: u16,
    /// Parts of the status text.
    parts: Vec<Option<Vec<u8>>>,
    outcome: Option<State>,
    retry_at: Nanos,
    tries: u32,
}

/// Outcome for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program runs. Has the status text.
    Accepted(String),
    /// The program is rejected. Has the reason.
    Refused(String),
    /// All sessions of the element are in use.
    Busy,
    /// The element does not reply.
    Silent,
}

impl Sender {
    /// Creates a sender from one address to another. Returns `None` if the program is too long.
    pub fn new(own: Mac, to: Mac, session: u32, program: &[u8], now: Nanos) -> Option<Sender> {
        let mut chunks: Vec<Vec<u8>> =
            program.chunks(CHUNK_BYTES_MAX).map(<[u8]>::to_vec).collect();
        if chunks.is_empty() {
            chunks.push(Vec::new());
        }
        u16::try_from(chunks.len()).ok()?;
        Some(Sender {
            own,
            to,
            session,
            chunks,
            acknowledged: 0,
            sent: 0,
            parts: Vec::new(),
            outcome: None,
            retry_at: now.saturating_add(RETRY),
            tries: 0,
        })
    }

    /// Returns the next frame to send, if there is one now.
    pub fn next_frame(&mut self, now: Nanos) -> Option<Vec<u8>> {
        if now >= self.retry_at {
            self.tries += 1;
            self.retry_at = now.saturating_add(RETRY);
            self.sent = self.acknowledged;
        }
        if self.outcome.is_some() {
            let missing = self.parts.iter().position(Option::is_none)?;
            // One missing part at a time is requested, once per timeout or received part.
            (self.sent == self.acknowledged).then_some(())?;
            self.sent = self.acknowledged.wrapping_add(1);
            let part = (missing as u16).to_be_bytes();
            return Some(frame(self.to, self.own, self.session, ASK, &part));
        }
        let count = self.chunks.len() as u16;
        if self.sent >= count || self.sent - self.acknowledged >= WINDOW {
            return None;
        }
        let bytes = &self.chunks[usize::from(self.sent)];
        let mut rest = Vec::with_capacity(HEAD_BYTES + bytes.len());
        for number in [self.sent, count, bytes.len() as u16] {
            rest.extend(number.to_be_bytes());
        }
        rest.extend(bytes);
        self.sent += 1;
        Some(frame(self.to, self.own, self.session, CHUNK, &rest))
    }

    /// Processes a received frame.
    pub fn frame_came(&mut self, bytes: &[u8], now: Nanos) {
        let Some(outer) = ethernet::View::new(bytes) else { return };
        if outer.type_or_length() != ETHER_TYPE || outer.destination() != self.own {
            return;
        }
        let Some((STATUS, session, rest)) = head(outer.payload()) else { return };
        let Some(status) = Status::read(rest).filter(|_| session == self.session) else { return };
        let went_on = match status.state {
            State::Receiving if self.outcome.is_none() && status.next > self.acknowledged => {
                self.acknowledged = status.next.min(self.chunks.len() as u16);
                self.sent = self.sent.max(self.acknowledged);
                true
            }
            State::Receiving => false,
            state => {
                let is_first = self.outcome.is_none();
                self.outcome = Some(state);
                if is_first {
                    self.parts = vec![None; status.part.1.max(1).into()];
                    self.sent = self.acknowledged;
                }
                let place = self.parts.get_mut(usize::from(status.part.0));
                let is_new = place.is_some_and(|place| place.replace(status.text).is_none());
                if is_new {
                    self.sent = self.acknowledged;
                }
                is_new
            }
        };
        if went_on {
            self.tries = 0;
            self.retry_at = now.saturating_add(RETRY);
        }
    }

    /// Returns the outcome, once it is known.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.outcome {
            Some(State::Busy) => return Some(Outcome::Busy),
            Some(state) if self.parts.iter().all(Option::is_some) => {
                let all: Vec<u8> = self.parts.iter().flatten().flatten().copied().collect();
                let text = String::from_utf8_lossy(&all).into_owned();
                return Some(match state {
                    State::Accepted => Outcome::Accepted(text),
                    _ => Outcome::Refused(text),
                });
            }
            _ => {}
        }
        (self.tries > TRIES_MAX).then_some(Outcome::Silent)
    }

    /// Returns when the next retransmission is due.
    pub fn due(&self) -> Nanos {
        self.retry_at
    }
}
