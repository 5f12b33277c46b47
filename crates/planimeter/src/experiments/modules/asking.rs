//! Questions to a switch and how long their answers take.
//!
//! A delay goes from the moment before the socket was handed the question's first byte to the moment
//! when the read returned that completed the answer. Answers come in several messages where
//! statistics do; the last one counts, and the first is told beside it. Invariants: an answer whose last part may
//! have come while the tester was away has no known delay, and what it missed of the parts between does not matter;
//! what is asked stays here until it is answered or given up; an answer that comes in pieces without an end is given
//! up when it is beyond all bounds.

use std::collections::BTreeMap;

use instrument::module::{Desk, Event, Measured, Said, What};
use openflow::header::Xid;
use openflow::model::SwitchConfig;
use openflow::model::message::Message;
use packet::time::Nanos;

use super::spread::Spread;
use super::statistics;

/// The name of the limit that a module's patience with a switch sets.
pub const PATIENCE_LIMIT: &str = "patience for answers, counters and the end of rules";

/// An answer that has so many bytes is given up: a table of a million rules has a tenth of that.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// And one of so many messages.
const ANSWER_PARTS_MAX: u64 = 1 << 20;

/// Asks to be told news. Some switches tell a controller that calls them none (Open vSwitch) before it has
/// said how much it wants of a frame.
pub fn hear_news() -> Message {
    Message::SetConfig(SwitchConfig { miss_send_bytes: u16::MAX, ..SwitchConfig::default() })
}

/// Messages that were said together; the answer to the last of them is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What was said.
    pub said: Said,
    /// Before the socket was handed the first byte.
    pub sent_at: Nanos,
    /// When the first message of the answer was read.
    pub first_at: Nanos,
    /// When the last was.
    pub last_at: Nanos,
    /// Bytes of all messages of the answer.
    pub bytes: u64,
    /// How many messages those were.
    pub parts: u64,
    /// Whether there was no end of them.
    pub is_endless: bool,
    /// How many things it tells of.
    pub rows: u64,
    /// Frames that it tells of.
    pub frames: u64,
    /// Errors about any of the messages said.
    pub errors: u32,
    /// Whether the answer is an error, or the question could not be put.
    pub is_refused: bool,
    /// Whether the tester was there when the first message came.
    pub is_first_known: bool,
    /// Whether it was there when the last one came.
    pub is_known: bool,
}

/// What is under way.
#[derive(Debug, Default)]
pub struct Asking {
    waiting: BTreeMap<(usize, Xid), Waiting>,
}

#[derive(Debug)]
struct Waiting {
    answer: Answer,
    is_sent: bool,
    has_begun: bool,
    is_over: bool,
}

/// The delays of answers of one kind.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    first_ns: Vec<f64>,
    last_ns: Vec<f64>,
    /// Answers whose delay is unknown because the tester was away.
    pub unknown: u64,
    /// Questions that were refused.
    pub refused: u64,
    /// Questions that nobody answered as long as was waited.
    pub unanswered: u64,
    /// Questions whose answers came in pieces without an end as long as was waited, or beyond all bounds.
    pub endless: u64,
    /// Bytes of the last answer.
    pub bytes: u64,
    /// What the last answer tells of.
    pub rows: u64,
}

impl Asking {
    /// Says messages and waits for the answer to the last of them.
    pub fn ask(&mut self, desk: &mut Desk, connection: usize, messages: Vec<Message>) -> Said {
        let said = desk.send_all(connection, messages);
        self.wait(connection, said, desk.now());
        said
    }

    fn wait(&mut self, connection: usize, said: Said, now: Nanos) {
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
        let waiting = Waiting { answer, is_sent: false, has_begun: false, is_over: false };
        self.waiting.insert((connection, said.xid), waiting);
    }

    /// How many questions are under way.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives a question up; whether it was under way.
    pub fn give_up(&mut self, connection: usize, said: Said) -> bool {
        self.waiting.remove(&(connection, said.xid)).is_some()
    }

    /// Whether some of the answer to a question that is under way has come.
    pub fn has_begun(&self, connection: usize, said: Said) -> bool {
        self.waiting.get(&(connection, said.xid)).is_some_and(|waiting| waiting.has_begun)
    }

    /// An event, and the answer that it completes. The socket may be heard to have taken a question
    /// only after the answer was read.
    pub fn note(&mut self, event: &Event<'_>) -> Option<Answer> {
        let key = match event.what {
            What::Sent { connection, said, first, .. } => {
                let waiting = self.waiting.get_mut(&(connection, said.xid))?;
                waiting.answer.sent_at = first;
                waiting.is_sent = true;
                (connection, said.xid)
            }
            What::Unsent { connection, said, .. } => {
                let waiting = self.waiting.get_mut(&(connection, said.xid))?;
                waiting.answer.is_refused = true;
                (waiting.is_sent, waiting.is_over) = (true, true);
                (connection, said.xid)
            }
            What::Message { connection, xid, message, bytes, is_moment_known, .. } => {
                let range = ..=(connection, xid);
                let (&key, waiting) = self.waiting.range_mut(range).next_back()?;
                if key.0 != connection || waiting.is_over {
                    return None;
                }
                let place = waiting.answer.said.place(xid)?;
                waiting.hear(place, message, bytes, (event.at, is_moment_known));
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

impl Waiting {
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
    /// From before the question left until the last of the answer was read.
    pub fn delay(&self) -> Nanos {
        self.last_at.since(self.sent_at)
    }
}

impl Delays {
    /// One answer more.
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

    /// Answers that came, known delay or not.
    pub fn answered(&self) -> u64 {
        self.last_ns.len() as u64 + self.unknown
    }

    /// Questions that were put and that the switch did not refuse.
    pub fn asked(&self) -> u64 {
        self.answered() + self.unanswered + self.endless
    }

    /// The spread of the delays, where there are any.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(self.last_ns.clone())
    }

    /// Tells the delays under a name; each is known to `half`.
    pub fn tell(&self, name: &str, half: f64, tell: &mut impl FnMut(Measured)) {
        if let Some(spread) = self.spread() {
            spread.tell(name, half, tell);
        }
    }

    /// Tells the time to the first message of an answer under a name.
    pub fn tell_first(&self, name: &str, half: f64, tell: &mut impl FnMut(Measured)) {
        if let Some(spread) = Spread::of(self.first_ns.clone()) {
            spread.tell(name, half, tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use openflow::model::multipart::{AggregateStats, MultipartReply, MultipartReplyBody};

    use super::*;

    const SAID: Said = Said { xid: 10, count: 3 };

    fn asking() -> Asking {
        let mut asking = Asking::default();
        asking.wait(0, SAID, Nanos(5));
        asking
    }

    fn heard(asking: &mut Asking, at: u64, xid: Xid, message: &Message) -> Option<Answer> {
        heard_if(asking, at, xid, message, true)
    }

    fn heard_if(
        asking: &mut Asking,
        at: u64,
        xid: Xid,
        message: &Message,
        is_moment_known: bool,
    ) -> Option<Answer> {
        let what = What::Message {
            connection: 0,
            xid,
            message,
            bytes: 100,
            probe: None,
            is_moment_known,
            wire: None,
        };
        asking.note(&Event { at: Nanos(at), what })
    }

    fn sent(asking: &mut Asking) -> Option<Answer> {
        let [first, last] = [Nanos(20), Nanos(22)];
        let what = What::Sent { connection: 0, said: SAID, first, last, wire: None };
        asking.note(&Event { at: last, what })
    }

    fn part(more: bool) -> Message {
        let sum = AggregateStats { packets: 7, bytes: 700, flows: 2 };
        Message::MultipartReply(MultipartReply { more, body: MultipartReplyBody::Aggregate(sum) })
    }

    #[test]
    fn an_answer_of_several_messages_is_over_with_the_last() {
        let mut asking = asking();
        assert_eq!(sent(&mut asking), None);
        assert_eq!(heard(&mut asking, 30, 13, &Message::BarrierReply), None, "nobody asked that");
        assert_eq!(heard(&mut asking, 30, 12, &part(true)), None);
        let answer = heard(&mut asking, 40, 12, &part(false)).unwrap();
        assert_eq!((answer.first_at, answer.delay()), (Nanos(30), Nanos(20)));
        assert_eq!((answer.bytes, answer.rows, answer.frames), (200, 2, 14));
        assert_eq!(asking.waiting(), 0);
    }

    #[test]
    fn an_answer_without_an_end_is_given_up_some_time() {
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
    fn what_is_missed_between_the_first_part_and_the_last_costs_no_delay() {
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
    fn an_answer_may_be_read_before_the_question_is_known_to_have_left() {
        let mut asking = asking();
        assert_eq!(heard(&mut asking, 30, 12, &Message::BarrierReply), None);
        assert_eq!(heard(&mut asking, 31, 12, &Message::BarrierReply), None, "said twice");
        assert_eq!(sent(&mut asking).unwrap().delay(), Nanos(10));
    }

    #[test]
    fn errors_are_counted_and_one_about_the_last_message_refuses_the_question() {
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
