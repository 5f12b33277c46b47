//! Analysis of one connection's messages: requests, replies, errors and barriers.
//!
//! A request is identified by its transaction id and its sender. The reply's delay runs from the
//! read of the request to the read of the reply. A barrier reply also completes the flow-mods
//! before it. Messages that cannot be parsed are counted.
//!
//! Invariant: at most [`OPEN_MAX`] messages are tracked.

use std::collections::{BTreeMap, HashMap};

use openflow::header::Xid;
use openflow::version::{End, ErrorCode, MessageKind, MultipartKind, Version};
use packet::time::Nanos;

use super::framing::{Head, MessageFramer};
use super::relay::place;
use super::tally::{FlowModBarrier, ProxyCounters};

/// Maximum number of messages to track until their reply or the next barrier reply.
pub const OPEN_MAX: usize = 16_384;

/// Flag of a multipart reply with more parts to follow (`OFPSF_REPLY_MORE`, `OFPMPF_REPLY_MORE`).
const MORE: u16 = 1;

/// A message event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request was answered.
    Answered {
        /// The requester.
        by: End,
        /// Kind of the request.
        what: &'static str,
        /// Transaction id.
        xid: Xid,
        /// Delay from the request to the last part of the reply.
        took: Nanos,
        /// Number of parts of the reply.
        parts: u64,
    },
    /// A barrier after flow-mods was answered.
    Updated {
        /// Transaction id of the barrier.
        xid: Xid,
        /// Number of flow-mods since the previous barrier.
        flow_mods: u32,
        /// Delay from the first flow-mod.
        took: Nanos,
        /// Delay from the barrier request.
        barrier: Nanos,
    },
    /// An error was sent.
    Failed {
        /// The sender.
        by: End,
        /// Type and code.
        error: String,
        /// Transaction id of the failed request.
        xid: Xid,
        /// Kind of the failed request and the delay after it, if known.
        about: Option<(&'static str, Nanos)>,
    },
}

/// A message that can have a reply or an error.
#[derive(Debug, Clone, Copy)]
struct OpenMessage {
    number: u64,
    kind: MessageKind,
    what: &'static str,
    at: Nanos,
    first_at: Option<Nanos>,
    parts: u64,
    /// For a barrier: the number of flow-mods before it, and when the first one was read.
    behind: Option<(u32, Nanos)>,
}

/// Analysis of one connection.
#[derive(Debug, Default)]
pub struct ConnectionAnalysis {
    cutters: [MessageFramer; 2],
    open: HashMap<(usize, Xid), OpenMessage>,
    /// The same messages by their order of arrival.
    order: BTreeMap<u64, (usize, Xid)>,
    count: u64,
    /// Number of flow-mods since the last barrier, and when the first one was read.
    behind: Option<(u32, Nanos)>,
    /// Datapath id from the switch's features reply.
    pub datapath_id: Option<u64>,
    /// Counters and delays.
    pub tally: ProxyCounters,
}

impl ConnectionAnalysis {
    /// Creates the analysis of a new connection.
    pub fn new() -> ConnectionAnalysis {
        ConnectionAnalysis {
            tally: ProxyCounters { sessions: 1, ..ProxyCounters::default() },
            ..ConnectionAnalysis::default()
        }
    }

    /// Parses bytes that were read from an end at this time.
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
                // Only the first part of a multipart request counts: later parts have the same
                // transaction id.
                if !self.open.contains_key(&(place(from), header.xid)) {
                    let what = multipart(version, head.body);
                    self.remember(from, (header.xid, kind, what), at, None);
                }
            }
            _ => self.other(from, at, (header.xid, kind), head.body, told),
        }
    }

    /// Processes a reply, or a message that can have a reply or an error.
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
        let is_answer = |open: &&mut OpenMessage| open.kind.reply() == Some(kind);
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
        // A reply without a known request is not itself a request.
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
            // Messages before the barrier are done and cannot fail any more.
            self.forget_before(asker, open.number);
            if let Some((flow_mods, first)) = open.behind {
                let pair = FlowModBarrier { flow_mods, ns: at.since(first).0, barrier_ns: took.0 };
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
        let open = OpenMessage { number, kind, what, at, first_at: None, parts: 0, behind };
        self.open.insert(key, open);
        self.order.insert(number, key);
    }

    /// Counts a request without a reply.
    fn missed(&mut self, asker: usize, open: &OpenMessage) {
        if open.kind.reply().is_some() {
            self.tally.answers.entry((asker, open.what)).or_default().unanswered += 1;
        }
    }

    /// Stops tracking earlier messages without a reply of their own: they did not fail.
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

    /// Ends the analysis. Outstanding requests count as unanswered.
    pub fn finish(mut self) -> ProxyCounters {
        for ((asker, _), open) in std::mem::take(&mut self.open) {
            self.missed(asker, &open);
        }
        self.tally
    }

    /// Returns the number of outstanding requests.
    pub fn under_way(&self) -> usize {
        self.open.values().filter(|open| open.kind.reply().is_some()).count()
    }
}

/// Returns whether a message without a reply can cause an error, and must be tracked.
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

/// Returns the kind of a multipart request.
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
