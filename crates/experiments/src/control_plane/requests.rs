//! Requests to a switch and their reply times.
//!
//! The reply time starts before the first byte of the request goes to the socket. It ends when the read that
//! completes the reply returns. A multipart reply consists of several messages: the last one counts, and the time
//! to the first is reported too.
//!
//! Invariants:
//!
//! - The reply time is unknown if the tester may have been descheduled when the last part arrived. Gaps between the
//!   first part and the last do not matter.
//! - A request stays here until its reply is complete or the caller gives it up.
//! - A multipart reply that never ends is given up at a fixed size.

use std::collections::BTreeMap;

use openflow::header::Xid;
use openflow::model::SwitchConfig;
use openflow::model::message::Message;
use packet::time::Nanos;
use tester::module::{Event, EventKind, MeasuredValue, MessageRange, ModuleContext};

use super::statistics;
use super::summary::Summary;

/// Name of the limit set by the patience of a module.
pub const PATIENCE_LIMIT: &str = "timeout for replies, counters and expiring entries";

/// Size at which a reply is given up; a dump of a million entries has a tenth of it.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Number of messages at which a reply is given up.
const ANSWER_PARTS_MAX: u64 = 1 << 20;

/// Creates a set-config message that enables asynchronous messages.
///
/// Some switches (Open vSwitch) send none to a controller that connects to them before it sets the miss send length.
pub fn hear_news() -> Message {
    Message::SetConfig(SwitchConfig { miss_send_bytes: u16::MAX, ..SwitchConfig::default() })
}

/// Reply to the last of several messages that were sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Transaction ids of the messages.
    pub said: MessageRange,
    /// Time before the first byte went to the socket.
    pub sent_at: Nanos,
    /// Time at which the first message of the reply was read.
    pub first_at: Nanos,
    /// Time at which the last message of the reply was read.
    pub last_at: Nanos,
    /// Size of all messages of the reply, in bytes.
    pub bytes: u64,
    /// Number of messages of the reply.
    pub parts: u64,
    /// Whether the reply exceeded the limits without an end.
    pub is_endless: bool,
    /// Number of entries, ports or other items that the reply reports on.
    pub rows: u64,
    /// Number of frames that the reply counts.
    pub frames: u64,
    /// Number of errors for any of the messages.
    pub errors: u32,
    /// Whether the reply is an error, or the request could not be sent.
    pub is_refused: bool,
    /// Whether the arrival time of the first message is known.
    pub is_first_known: bool,
    /// Whether the arrival time of the last message is known.
    pub is_known: bool,
}

/// Outstanding requests.
#[derive(Debug, Default)]
pub struct PendingRequests {
    waiting: BTreeMap<(usize, Xid), PendingRequest>,
}

#[derive(Debug)]
struct PendingRequest {
    answer: Answer,
    is_sent: bool,
    has_begun: bool,
    is_over: bool,
}

/// Reply times of one type of request.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    first_ns: Vec<f64>,
    last_ns: Vec<f64>,
    /// Replies without a known time because the tester may have been descheduled.
    pub unknown: u64,
    /// Rejected requests.
    pub refused: u64,
    /// Requests without a reply before their timeout.
    pub unanswered: u64,
    /// Requests whose multipart reply did not end before the timeout, or exceeded the size limits.
    pub endless: u64,
    /// Size of the last reply, in bytes.
    pub bytes: u64,
    /// Number of items in the last reply.
    pub rows: u64,
}

impl PendingRequests {
    /// Sends messages and waits for the reply to the last of them.
    pub fn ask(
        &mut self,
        context: &mut ModuleContext,
        connection: usize,
        messages: Vec<Message>,
    ) -> MessageRange {
        let said = context.send_all(connection, messages);
        self.wait(connection, said, context.now());
        said
    }

    fn wait(&mut self, connection: usize, said: MessageRange, now: Nanos) {
        let answer = Answer {
            said,
            sent_at: now,
            first_at: Nanos::ZERO,
            last_at: Nanos::ZERO,
            bytes: 0,
            parts: 0,
            is_endless: false,
            rows: 0,
            frames: 0,
            errors: 0,
            is_refused: false,
            is_first_known: false,
            is_known: false,
        };
        let waiting = PendingRequest { answer, is_sent: false, has_begun: false, is_over: false };
        self.waiting.insert((connection, said.xid), waiting);
    }

    /// Returns the number of outstanding requests.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives up a request; returns whether it was outstanding.
    pub fn give_up(&mut self, connection: usize, said: MessageRange) -> bool {
        self.waiting.remove(&(connection, said.xid)).is_some()
    }

    /// Returns whether part of the reply to an outstanding request has arrived.
    pub fn has_begun(&self, connection: usize, said: MessageRange) -> bool {
        self.waiting.get(&(connection, said.xid)).is_some_and(|waiting| waiting.has_begun)
    }

    /// Processes an event; returns the reply that it completes.
    ///
    /// The event that the request was sent may arrive after the reply was read.
    pub fn note(&mut self, event: &Event<'_>) -> Option<Answer> {
        let key = match event.what {
            EventKind::Sent { connection, said, first, .. } => {
                let waiting = self.waiting.get_mut(&(connection, said.xid))?;
                waiting.answer.sent_at = first;
                waiting.is_sent = true;
                (connection, said.xid)
            }
            EventKind::SendFailed { connection, said, .. } => {
                let waiting = self.waiting.get_mut(&(connection, said.xid))?;
                waiting.answer.is_refused = true;
                (waiting.is_sent, waiting.is_over) = (true, true);
                (connection, said.xid)
            }
            EventKind::Message { connection, xid, message, bytes, is_timestamp_valid, .. } => {
                let range = ..=(connection, xid);
                let (&key, waiting) = self.waiting.range_mut(range).next_back()?;
                if key.0 != connection || waiting.is_over {
                    return None;
                }
                let place = waiting.answer.said.place(xid)?;
                waiting.hear(place, message, bytes, (event.at, is_timestamp_valid));
                key
            }
            _ => return None,
        };
        let waiting = self.waiting.get(&key)?;
        if !(waiting.is_sent && waiting.is_over) {
            return None;
        }
        self.waiting.remove(&key).map(|waiting| waiting.answer)
    }
}

impl PendingRequest {
    fn hear(&mut self, place: u32, message: &Message, bytes: usize, (at, is_known): (Nanos, bool)) {
        let answer = &mut self.answer;
        let is_error = matches!(message, Message::Error(_));
        answer.errors += u32::from(is_error);
        if place + 1 != answer.said.count {
            return;
        }
        if !self.has_begun {
            (self.has_begun, answer.first_at) = (true, at);
            answer.is_first_known = is_known;
        }
        (answer.last_at, answer.is_known) = (at, is_known);
        answer.bytes += bytes as u64;
        answer.parts += 1;
        answer.is_refused |= is_error;
        self.is_over = true;
        if let Message::MultipartReply(part) = message {
            answer.rows += statistics::rows(&part.body);
            answer.frames += statistics::frames(&part.body);
            answer.is_endless =
                part.more && (answer.bytes >= ANSWER_BYTES_MAX || answer.parts >= ANSWER_PARTS_MAX);
            self.is_over = !part.more || answer.is_endless;
        }
    }
}

impl Answer {
    /// Returns the time from before the request was sent until the last message of the reply was read.
    pub fn delay(&self) -> Nanos {
        self.last_at.since(self.sent_at)
    }
}

impl Delays {
    /// Adds a reply.
    pub fn note(&mut self, answer: &Answer) {
        if answer.is_refused {
            self.refused += 1;
            return;
        }
        if answer.is_endless {
            self.endless += 1;
            return;
        }
        (self.bytes, self.rows) = (answer.bytes, answer.rows);
        if answer.is_first_known {
            self.first_ns.push(answer.first_at.since(answer.sent_at).0 as f64);
        }
        if answer.is_known {
            self.last_ns.push(answer.delay().0 as f64);
        } else {
            self.unknown += 1;
        }
    }

    /// Returns the number of replies, with a known time or not.
    pub fn answered(&self) -> u64 {
        self.last_ns.len() as u64 + self.unknown
    }

    /// Returns the number of requests that were sent and not rejected.
    pub fn asked(&self) -> u64 {
        self.answered() + self.unanswered + self.endless
    }

    /// Returns the distribution of the reply times, if there are any.
    pub fn spread(&self) -> Option<Summary> {
        Summary::of(self.last_ns.clone())
    }

    /// Reports the reply times under a name; each has an uncertainty of ±`half`.
    pub fn tell(&self, name: &str, half: f64, tell: &mut impl FnMut(MeasuredValue)) {
        if let Some(spread) = self.spread() {
            spread.tell(name, half, tell);
        }
    }

    /// Reports the time to the first message of a reply under a name.
    pub fn tell_first(&self, name: &str, half: f64, tell: &mut impl FnMut(MeasuredValue)) {
        if let Some(spread) = Summary::of(self.first_ns.clone()) {
            spread.tell(name, half, tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use openflow::model::multipart::{AggregateStats, MultipartReply, MultipartReplyBody};

    use super::*;

    const SAID: MessageRange = MessageRange { xid: 10, count: 3 };

    fn asking() -> PendingRequests {
        let mut asking = PendingRequests::default();
        asking.wait(0, SAID, Nanos(5));
        asking
    }

    fn heard(asking: &mut PendingRequests, at: u64, xid: Xid, message: &Message) -> Option<Answer> {
        heard_if(asking, at, xid, message, true)
    }

    fn heard_if(
        asking: &mut PendingRequests,
        at: u64,
        xid: Xid,
        message: &Message,
        is_timestamp_valid: bool,
    ) -> Option<Answer> {
        let what = EventKind::Message {
            connection: 0,
            xid,
            message,
            bytes: 100,
            probe: None,
            is_timestamp_valid,
            wire: None,
        };
        asking.note(&Event { at: Nanos(at), what })
    }

    fn sent(asking: &mut PendingRequests) -> Option<Answer> {
        let [first, last] = [Nanos(20), Nanos(22)];
        let what = EventKind::Sent { connection: 0, said: SAID, first, last, wire: None };
        asking.note(&Event { at: last, what })
    }

    fn part(more: bool) -> Message {
        let sum = AggregateStats { packets: 7, bytes: 700, flows: 2 };
        Message::MultipartReply(MultipartReply { more, body: MultipartReplyBody::Aggregate(sum) })
    }

    #[test]
    fn a_multipart_reply_ends_with_its_last_message() {
        let mut asking = asking();
        assert_eq!(sent(&mut asking), None);
        assert_eq!(heard(&mut asking, 30, 13, &Message::BarrierReply), None, "no such request");
        assert_eq!(heard(&mut asking, 30, 12, &part(true)), None);
        let answer = heard(&mut asking, 40, 12, &part(false)).unwrap();
        assert_eq!((answer.first_at, answer.delay()), (Nanos(30), Nanos(20)));
        assert_eq!((answer.bytes, answer.rows, answer.frames), (200, 2, 14));
        assert_eq!(asking.waiting(), 0);
    }

    #[test]
    fn an_endless_reply_is_given_up() {
        let mut asking = asking();
        sent(&mut asking);
        let count = (1..).find_map(|count| {
            heard(&mut asking, 30, 12, &part(true)).map(|answer| (count, answer))
        });
        let (count, answer) = count.unwrap();
        assert_eq!((count, answer.parts, answer.is_endless), (ANSWER_PARTS_MAX, count, true));
        let mut delays = Delays::default();
        delays.note(&answer);
        assert_eq!((delays.endless, delays.answered(), delays.asked()), (1, 0, 1));
        assert_eq!(asking.waiting(), 0);
    }

    #[test]
    fn gaps_between_the_parts_of_a_reply_do_not_matter() {
        let parts = |known: [bool; 3]| {
            let mut asking = asking();
            sent(&mut asking);
            let mut delays = Delays::default();
            for (place, is_known) in known.into_iter().enumerate() {
                let at = 30 + 10 * place as u64;
                let answer = heard_if(&mut asking, at, 12, &part(place < 2), is_known);
                answer.iter().for_each(|answer| delays.note(answer));
            }
            (delays.first_ns.clone(), delays.last_ns.clone(), delays.unknown)
        };
        assert_eq!(parts([true, false, true]), (vec![10.0], vec![30.0], 0));
        assert_eq!(parts([false, true, true]), (vec![], vec![30.0], 0));
        assert_eq!(parts([true, true, false]), (vec![10.0], vec![], 1));
    }

    #[test]
    fn a_reply_may_be_read_before_its_request_is_reported_as_sent() {
        let mut asking = asking();
        assert_eq!(heard(&mut asking, 30, 12, &Message::BarrierReply), None);
        assert_eq!(heard(&mut asking, 31, 12, &Message::BarrierReply), None, "a second reply");
        assert_eq!(sent(&mut asking).unwrap().delay(), Nanos(10));
    }

    #[test]
    fn errors_are_counted_and_one_for_the_last_message_rejects_the_request() {
        let error = Message::error(openflow::version::ErrorCode::RequestBadType, &[]);
        let mut asking = asking();
        sent(&mut asking);
        assert_eq!(heard(&mut asking, 30, 10, &error), None);
        let answer = heard(&mut asking, 40, 12, &error).unwrap();
        assert_eq!((answer.errors, answer.is_refused), (2, true));
        let mut delays = Delays::default();
        delays.note(&answer);
        assert_eq!((delays.refused, delays.asked()), (1, 0));
    }
}
