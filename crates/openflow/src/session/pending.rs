//! Bounded queue of requests that wait for their replies.
//!
//! A reply repeats its request's transaction ID. Peers mostly reply in order, so the search starts
//! at the oldest request.

use std::collections::VecDeque;

use packet::time::Nanos;

use crate::header::Xid;
use crate::model::message::Message;
use crate::version::MessageKind;

/// The request that a message replies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// Its message type.
    pub kind: MessageKind,
    /// When it was queued for sending.
    pub sent_at: Nanos,
    /// Whether this message is the last part of the reply.
    pub last: bool,
}

#[derive(Debug)]
struct Request {
    xid: Xid,
    kind: MessageKind,
    sent_at: Nanos,
    /// Whether the session itself sent it; its reply raises no event.
    own: bool,
}

#[derive(Debug)]
pub(super) struct PendingReply {
    requests: VecDeque<Request>,
    max: usize,
}

impl PendingReply {
    pub fn new(max: usize) -> PendingReply {
        PendingReply { requests: VecDeque::new(), max }
    }

    pub fn len(&self) -> usize {
        self.requests.iter().filter(|request| !request.own).count()
    }

    /// Returns whether no further request fits. The session's single own echo request does not
    /// count.
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.max && self.len() >= self.max
    }

    /// Adds a sent message, if it is a request.
    pub fn add(&mut self, xid: Xid, kind: MessageKind, sent_at: Nanos) {
        if kind.reply().is_some() {
            self.requests.push_back(Request { xid, kind, sent_at, own: false });
        }
    }

    /// Adds the session's own echo request; it replaces an earlier one.
    pub fn add_own_echo(&mut self, xid: Xid, sent_at: Nanos) {
        self.requests.retain(|request| !request.own);
        let kind = MessageKind::EchoRequest;
        self.requests.push_back(Request { xid, kind, sent_at, own: true });
    }

    /// Finds the request that this message replies to, and whether the session itself sent it.
    ///
    /// The last part of a reply removes the request.
    pub fn answered(&mut self, xid: Xid, message: &Message) -> (Option<AnsweredRequest>, bool) {
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
        (Some(AnsweredRequest { kind, sent_at, last }), own)
    }

    pub fn clear(&mut self) {
        self.requests.clear();
    }
}
