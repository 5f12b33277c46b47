//! What passes on one connection, understood as far as it can be: requests, answers, errors and barriers.
//!
//! A request is known by its number and by who sent it; its answer is timed from when the one was read until the
//! other was. A barrier also ends the flow-mods before it. What cannot be understood is counted, and never stops
//! anything. Invariant: no more than [`OPEN_MAX`] messages are remembered.

use std::collections::{BTreeMap, HashMap};

use openflow::header::Xid;
use openflow::version::{End, ErrorCode, MessageKind, MultipartKind, Version};
use packet::time::Nanos;

use super::cutter::{Cutter, Head};
use super::relay::place;
use super::tally::{Pair, Tally};

/// Messages that are remembered until they are answered or a barrier is.
pub const OPEN_MAX: usize = 16_384;

/// The flag of a part that others follow (`OFPSF_REPLY_MORE`, `OFPMPF_REPLY_MORE`).
const MORE: u16 = 1;

/// What happened that is worth a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request was answered.
    Answered {
        /// Who asked.
        by: End,
        /// For what.
        what: &'static str,
        /// The number of both.
        xid: Xid,
        /// From the request to the last part of the answer.
        took: Nanos,
        /// Parts of the answer.
        parts: u64,
    },
    /// A barrier behind flow-mods was answered.
    Updated {
        /// The barrier's number.
        xid: Xid,
        /// Flow-mods since the barrier before.
        flow_mods: u32,
        /// From the first of them.
        took: Nanos,
        /// From the barrier.
        barrier: Nanos,
    },
    /// An error was sent.
    Failed {
        /// Who sent it.
        by: End,
        /// Which.
        error: String,
        /// The number of what it is about.
        xid: Xid,
        /// What that was and how long ago, if it is known.
        about: Option<(&'static str, Nanos)>,
    },
}

/// A message that may be answered.
#[derive(Debug, Clone, Copy)]
struct Open {
    number: u64,
    kind: MessageKind,
    what: &'static str,
    at: Nanos,
    first_at: Option<Nanos>,
    parts: u64,
    /// Of a barrier: the flow-mods before it, and when the first of them was read.
    behind: Option<(u32, Nanos)>,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Watch {
    cutters: [Cutter; 2],
    open: HashMap<(usize, Xid), Open>,
    /// The same by when they came.
    order: BTreeMap<u64, (usize, Xid)>,
    count: u64,
    /// Flow-mods since the last barrier, and when the first of them was read.
    behind: Option<(u32, Nanos)>,
    /// What the switch says that it is.
    pub datapath_id: Option<u64>,
    /// What was counted.
    pub tally: Tally,
}

impl Watch {
    /// A connection begins.
    pub fn new() -> Watch {
        Watch { tally: Tally { sessions: 1, ..Tally::default() }, ..Watch::default() }
    }

    /// These bytes came from an end and were read at this moment.
    pub fn take(&mut self, from: End, at: Nanos, bytes: &[u8], told: &mut impl FnMut(Event)) {
        let mut cutter = std::mem::take(&mut self.cutters[place(from)]);
        self.tally.bytes[place(from)] += bytes.len() as u64;
        cutter.take(bytes, &mut |head| self.message(from, at, head, told));
        self.tally.unread_bytes[place(from)] = cutter.lost_bytes;
        self.cutters[place(from)] = cutter;
    }

    fn message(&mut self, from: End, at: Nanos, head: Head<'_>, told: &mut impl FnMut(Event)) {
        let header = head.header;
        let bytes = u64::from(header.length);
        let version = Version::from_wire(header.version);
        let kind = version.and_then(|it| Some((it, MessageKind::from_code(it, header.kind)?)));
        let Some((version, kind)) = kind else {
            let strange = &mut self.tally.strange[place(from)];
            strange.messages += 1;
            strange.bytes += bytes;
            return;
        };
        let kind = match kind {
            MessageKind::Experimenter => {
                MessageKind::carried_by(version, head.body).unwrap_or(kind)
            }
            kind => kind,
        };
        self.tally.count(from, kind, bytes);
        match kind {
            MessageKind::Error => self.error(from, at, (version, header.xid), head.body, told),
            MessageKind::FlowMod if from == End::Controller => {
                let (count, first) = self.behind.unwrap_or((0, at));
                self.behind = Some((count.saturating_add(1), first));
                self.remember(from, (header.xid, kind, kind.name()), at, None);
            }
            MessageKind::BarrierRequest if from == End::Controller => {
                let behind = self.behind.take();
                self.remember(from, (header.xid, kind, kind.name()), at, behind);
            }
            MessageKind::MultipartRequest => {
                // The first part of a long request counts: later ones have its number.
                if !self.open.contains_key(&(place(from), header.xid)) {
                    let what = multipart(version, head.body);
                    self.remember(from, (header.xid, kind, what), at, None);
                }
            }
            _ => self.other(from, at, (header.xid, kind), head.body, told),
        }
    }

    /// An answer, or something that may be answered or be refused.
    fn other(
        &mut self,
        from: End,
        at: Nanos,
        (xid, kind): (Xid, MessageKind),
        body: &[u8],
        told: &mut impl FnMut(Event),
    ) {
        if kind == MessageKind::FeaturesReply {
            self.datapath_id = body.first_chunk().map(|id| u64::from_be_bytes(*id));
        }
        let asker = 1 - place(from);
        let is_answer = |open: &&mut Open| open.kind.reply() == Some(kind);
        if let Some(open) = self.open.get_mut(&(asker, xid)).filter(is_answer) {
            open.parts += 1;
            open.first_at.get_or_insert(at);
            let flags = body.get(2..4).map_or(0, |flags| u16::from_be_bytes([flags[0], flags[1]]));
            let is_last = kind != MessageKind::MultipartReply || flags & MORE == 0;
            if is_last {
                self.answered(from, asker, xid, at, told);
            }
            return;
        }
        // An answer to nothing that is known is not asked for itself.
        let is_reply = MessageKind::ALL.iter().any(|it| it.reply() == Some(kind) && *it != kind);
        if !is_reply && may_fail(kind) {
            self.remember(from, (xid, kind, kind.name()), at, None);
        }
    }

    fn answered(
        &mut self,
        from: End,
        asker: usize,
        xid: Xid,
        at: Nanos,
        told: &mut impl FnMut(Event),
    ) {
        let Some(open) = self.open.remove(&(asker, xid)) else { return };
        self.order.remove(&open.number);
        let answers = self.tally.answers.entry((asker, open.what)).or_default();
        let took = at.since(open.at);
        answers.took.record(took.0);
        answers.parts += open.parts;
        answers.parts_most = answers.parts_most.max(open.parts);
        if let Some(first) = open.first_at.filter(|_| open.parts > 1) {
            answers.first.record(first.since(open.at).0);
        }
        let by = if from == End::Switch { End::Controller } else { End::Switch };
        told(Event::Answered { by, what: open.what, xid, took, parts: open.parts });
        if open.kind == MessageKind::BarrierRequest {
            // What came before it is done, and can be refused no more.
            self.forget_before(asker, open.number);
            if let Some((flow_mods, first)) = open.behind {
                let pair = Pair { flow_mods, ns: at.since(first).0, barrier_ns: took.0 };
                self.tally.pair(pair);
                told(Event::Updated { xid, flow_mods, took: at.since(first), barrier: took });
            }
        }
    }

    fn error(
        &mut self,
        from: End,
        at: Nanos,
        (version, xid): (Version, Xid),
        body: &[u8],
        told: &mut impl FnMut(Event),
    ) {
        let word =
            |from: usize| body.get(from..from + 2).map(|it| u16::from_be_bytes([it[0], it[1]]));
        let error = match (word(0), word(2)) {
            (Some(family), Some(code)) => ErrorCode::from_wire(version, family, code).to_string(),
            _ => "without a type".to_string(),
        };
        let about = self.open.remove(&(1 - place(from), xid));
        if let Some(open) = &about {
            self.order.remove(&open.number);
        }
        let about = about.map(|open| (open.what, at.since(open.at)));
        self.tally.error(error.clone(), about.map(|(_, after)| after.0));
        told(Event::Failed { by: from, error, xid, about });
    }

    fn remember(
        &mut self,
        from: End,
        (xid, kind, what): (Xid, MessageKind, &'static str),
        at: Nanos,
        behind: Option<(u32, Nanos)>,
    ) {
        let key = (place(from), xid);
        if let Some(old) = self.open.remove(&key) {
            self.order.remove(&old.number);
            self.missed(place(from), &old);
        }
        if self.open.len() >= OPEN_MAX
            && let Some((_, oldest)) = self.order.pop_first()
            && let Some(old) = self.open.remove(&oldest)
            && old.kind.reply().is_some()
        {
            self.tally.unfollowed += 1;
        }
        let number = self.count;
        self.count += 1;
        let open = Open { number, kind, what, at, first_at: None, parts: 0, behind };
        self.open.insert(key, open);
        self.order.insert(number, key);
    }

    /// A request will not be answered.
    fn missed(&mut self, asker: usize, open: &Open) {
        if open.kind.reply().is_some() {
            self.tally.answers.entry((asker, open.what)).or_default().unanswered += 1;
        }
    }

    /// Whatever came before and has no answer of its own was not refused.
    fn forget_before(&mut self, asker: usize, number: u64) {
        let before: Vec<(u64, (usize, Xid))> =
            self.order.range(..number).map(|(number, key)| (*number, *key)).collect();
        for (number, key) in before {
            let is_silent = self.open.get(&key).is_some_and(|it| it.kind.reply().is_none());
            if key.0 == asker && is_silent {
                self.open.remove(&key);
                self.order.remove(&number);
            }
        }
    }

    /// The connection is over: what is still asked for will not be answered.
    pub fn finish(mut self) -> Tally {
        for ((asker, _), open) in std::mem::take(&mut self.open) {
            self.missed(asker, &open);
        }
        self.tally
    }

    /// Requests that are not answered yet.
    pub fn under_way(&self) -> usize {
        self.open.values().filter(|open| open.kind.reply().is_some()).count()
    }
}

/// Whether a message without an answer may be refused, so that it is worth remembering.
fn may_fail(kind: MessageKind) -> bool {
    !matches!(
        kind,
        MessageKind::PacketIn
            | MessageKind::FlowRemoved
            | MessageKind::PortStatus
            | MessageKind::RoleStatus
            | MessageKind::TableStatus
            | MessageKind::RequestForward
            | MessageKind::ControllerStatus
    )
}

/// What a multipart request asks for.
fn multipart(version: Version, body: &[u8]) -> &'static str {
    let kind = body.first_chunk().map(|kind| u16::from_be_bytes(*kind));
    let kind = kind.and_then(|kind| MultipartKind::from_code(version, kind));
    kind.map_or(MessageKind::MultipartRequest.name(), |kind| match kind {
        MultipartKind::Desc => "desc_stats",
        MultipartKind::Flow | MultipartKind::FlowStats => "flow_stats",
        MultipartKind::Aggregate => "aggregate_stats",
        MultipartKind::Table => "table_stats",
        MultipartKind::Port => "port_stats",
        MultipartKind::Queue => "queue_stats",
        MultipartKind::Group => "group_stats",
        MultipartKind::Meter => "meter_stats",
        MultipartKind::Experimenter => "experimenter_stats",
        other => other.name(),
    })
}
