//! Requests that wait for their replies, bounded.
//!
//! A reply repeats its request's transaction id. Peers answer mostly in order, so the row is
//! searched from its oldest end.

use std::collections::VecDeque;

use packet::time::Nanos;

use crate::header::Xid;
use crate::model::message::Message;
use crate::version::MessageKind;

/// The request that a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Its kind.
    pub kind: MessageKind,
    /// When it was queued for sending.
    pub sent_at: Nanos,
    /// Whether this is the last message that answers it.
    pub last: bool,
}

#[derive(Debug)]
struct Request {
    xid: Xid,
    kind: MessageKind,
    sent_at: Nanos,
    /// The session's own, of which nobody else hears.
    own: bool,
}

#[derive(Debug)]
pub(super) struct Pending {
    requests: VecDeque<Request>,
    max: usize,
}

impl Pending {
    pub fn new(max: usize) -> Pending {
        Pending { requests: VecDeque::new(), max }
    }

    pub fn len(&self) -> usize {
        self.requests.iter().filter(|request| !request.own).count()
    }

    /// The session's own echo, of which there is one, does not count against the limit.
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.max && self.len() >= self.max
    }

    /// Remembers a message that has been sent, if it asks for a reply.
    pub fn add(&mut self, xid: Xid, kind: MessageKind, sent_at: Nanos) {
        if kind.reply().is_some() {
            self.requests.push_back(Request { xid, kind, sent_at, own: false });
        }
    }

    /// Remembers the session's own echo request instead of an earlier one.
    pub fn add_own_echo(&mut self, xid: Xid, sent_at: Nanos) {
        self.requests.retain(|request| !request.own);
        let kind = MessageKind::EchoRequest;
        self.requests.push_back(Request { xid, kind, sent_at, own: true });
    }

    /// The request that this message answers, forgotten if it is the last to do so, and whether
    /// that was the session's own.
    pub fn answered(&mut self, xid: Xid, message: &Message) -> (Option<Answered>, bool) {
        let kind = message.kind();
        let answers = |request: &Request| {
            request.xid == xid && (kind == MessageKind::Error || request.kind.reply() == Some(kind))
        };
        let Some(place) = self.requests.iter().position(answers) else { return (None, false) };
        let last = !matches!(message, Message::MultipartReply(reply) if reply.more);
        let Request { kind, sent_at, own, .. } = self.requests[place];
        if last {
            self.requests.remove(place);
        }
        (Some(Answered { kind, sent_at, last }), own)
    }

    pub fn clear(&mut self) {
        self.requests.clear();
    }
}
