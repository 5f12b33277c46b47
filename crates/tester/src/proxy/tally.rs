//! Counters and delays of the messages between a controller and a switch.
//!
//! Invariant: tallies can be added, and the limits here bound their memory.

use std::collections::BTreeMap;

use openflow::version::{End, MessageKind};

use super::relay::place;
use crate::trial::Histogram;

/// Maximum number of stored pairs of flow-mods and barrier.
pub const PAIRS_MAX: usize = 8192;

/// Maximum number of error kinds with their own counter.
pub const ERRORS_MAX: usize = 256;

/// Key of a delay: index of the requester, and kind of the message or multipart.
pub type DelayKey = (usize, &'static str);

/// Count of messages and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCount {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Replies to one kind of request.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// Delay from the request to the last part of the reply.
    pub took: Histogram,
    /// Delay to the first part, for replies of several parts.
    pub first: Histogram,
    /// Number of parts of all replies.
    pub parts: u64,
    /// Maximum number of parts of one reply.
    pub parts_most: u64,
    /// Requests without a reply.
    pub unanswered: u64,
}

/// Flow-mods and the barrier after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowModBarrier {
    /// Number of flow-mods since the previous barrier.
    pub flow_mods: u32,
    /// Delay from the first flow-mod to the barrier reply.
    pub ns: u64,
    /// Delay from the barrier request to the barrier reply.
    pub barrier_ns: u64,
}

/// All counters and delays.
#[derive(Debug, Clone, Default)]
pub struct ProxyCounters {
    /// Connections.
    pub sessions: u64,
    /// Connections that ended by a reset or a failure.
    pub broken: u64,
    /// Messages by sender and kind.
    pub messages: BTreeMap<DelayKey, MessageCount>,
    /// Bytes by sender, of all kinds.
    pub bytes: [u64; 2],
    /// Messages by sender with unknown version or type.
    pub strange: [MessageCount; 2],
    /// Bytes by sender without message boundaries.
    pub unread_bytes: [u64; 2],
    /// Replies by requester and kind.
    pub answers: BTreeMap<DelayKey, Answers>,
    /// Errors by type and code, with the delay after the failed request.
    pub errors: BTreeMap<String, (u64, Histogram)>,
    /// Errors of further kinds.
    pub errors_other: u64,
    /// Delay from the first flow-mod after a barrier to the next barrier reply.
    pub updates: Histogram,
    /// The first such pairs.
    pub pairs: Vec<FlowModBarrier>,
    /// Requests that were not tracked because too many were outstanding.
    pub unfollowed: u64,
    /// Time that the relay held bytes.
    pub held: Histogram,
    /// Bytes that could not be delivered.
    pub lost_bytes: u64,
}

impl ProxyCounters {
    /// Counts a message.
    pub fn count(&mut self, from: End, kind: MessageKind, bytes: u64) {
        let count = self.messages.entry((place(from), kind.name())).or_default();
        count.messages += 1;
        count.bytes += bytes;
    }

    /// Counts an error, with the delay after its request if known.
    pub fn error(&mut self, name: String, after_ns: Option<u64>) {
        if self.errors.len() >= ERRORS_MAX && !self.errors.contains_key(&name) {
            self.errors_other += 1;
            return;
        }
        let (count, delays) = self.errors.entry(name).or_default();
        *count += 1;
        after_ns.into_iter().for_each(|ns| delays.record(ns));
    }

    /// Records a barrier reply after flow-mods.
    pub fn pair(&mut self, pair: FlowModBarrier) {
        self.updates.record(pair.ns);
        if self.pairs.len() < PAIRS_MAX {
            self.pairs.push(pair);
        }
    }

    /// Returns the number of all errors.
    pub fn errors_count(&self) -> u64 {
        self.errors.values().map(|(count, _)| count).sum::<u64>() + self.errors_other
    }

    /// Adds the counts of another tally.
    pub fn merge(&mut self, other: &ProxyCounters) {
        self.sessions += other.sessions;
        self.broken += other.broken;
        for (key, count) in &other.messages {
            let mine = self.messages.entry(*key).or_default();
            mine.messages += count.messages;
            mine.bytes += count.bytes;
        }
        for end in 0..2 {
            self.bytes[end] += other.bytes[end];
            self.strange[end].messages += other.strange[end].messages;
            self.strange[end].bytes += other.strange[end].bytes;
            self.unread_bytes[end] += other.unread_bytes[end];
        }
        for (key, answers) in &other.answers {
            let mine = self.answers.entry(*key).or_default();
            mine.took.merge(&answers.took);
            mine.first.merge(&answers.first);
            mine.parts += answers.parts;
            mine.parts_most = mine.parts_most.max(answers.parts_most);
            mine.unanswered += answers.unanswered;
        }
        for (name, (count, delays)) in &other.errors {
            if self.errors.len() >= ERRORS_MAX && !self.errors.contains_key(name) {
                self.errors_other += count;
                continue;
            }
            let mine = self.errors.entry(name.clone()).or_default();
            mine.0 += count;
            mine.1.merge(delays);
        }
        self.errors_other += other.errors_other;
        self.updates.merge(&other.updates);
        let room = PAIRS_MAX.saturating_sub(self.pairs.len());
        self.pairs.extend(other.pairs.iter().take(room));
        self.unfollowed += other.unfollowed;
        self.held.merge(&other.held);
        self.lost_bytes += other.lost_bytes;
    }
}
