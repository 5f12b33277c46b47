//! What was counted and timed of the messages between a controller and a switch.
//!
//! Invariant: tallies can be added up, and hold no more than their limits however long they run.

use std::collections::BTreeMap;

use openflow::version::{End, MessageKind};

use super::relay::place;
use crate::trial::Histogram;

/// Pairs of flow-mods and barriers that are kept one by one.
pub const PAIRS_MAX: usize = 8192;

/// Kinds of errors that are told apart.
pub const ERRORS_MAX: usize = 256;

/// What is timed: who asked, and for what (a message's or a multipart's kind).
pub type Asked = (usize, &'static str);

/// Messages and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Answers to one kind of request.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// From the request until the last part of its answer.
    pub took: Histogram,
    /// Until the first part, of those in several.
    pub first: Histogram,
    /// Parts of all answers.
    pub parts: u64,
    /// The most of one.
    pub parts_most: u64,
    /// Requests that were never answered.
    pub unanswered: u64,
}

/// Flow-mods and the barrier behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Flow-mods since the barrier before.
    pub flow_mods: u32,
    /// From the first of them until the barrier was answered.
    pub ns: u64,
    /// From the barrier until then.
    pub barrier_ns: u64,
}

/// Everything that was counted.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Connections.
    pub sessions: u64,
    /// Of those, ended by a reset or a failure.
    pub broken: u64,
    /// Messages by who sent them and their kind.
    pub messages: BTreeMap<Asked, Count>,
    /// Bytes of each end, whatever they were.
    pub bytes: [u64; 2],
    /// Messages of each end that are of no known version or kind.
    pub strange: [Count; 2],
    /// Bytes of each end in which no messages can be told.
    pub unread_bytes: [u64; 2],
    /// Answers by who asked for what.
    pub answers: BTreeMap<Asked, Answers>,
    /// Errors by type and code, and how long after what they are about.
    pub errors: BTreeMap<String, (u64, Histogram)>,
    /// Errors of more kinds than are told apart.
    pub errors_other: u64,
    /// From the first flow-mod behind a barrier until the next one was answered.
    pub updates: Histogram,
    /// Such pairs, the first of them.
    pub pairs: Vec<Pair>,
    /// Requests that were not followed, because too many were under way.
    pub unfollowed: u64,
    /// How long the relay held bytes.
    pub held: Histogram,
    /// Bytes that could not be delivered.
    pub lost_bytes: u64,
}

impl Tally {
    /// A message of this kind came from an end.
    pub fn count(&mut self, from: End, kind: MessageKind, bytes: u64) {
        let count = self.messages.entry((place(from), kind.name())).or_default();
        count.messages += 1;
        count.bytes += bytes;
    }

    /// An error came, so long after the message that it is about, if that is known.
    pub fn error(&mut self, name: String, after_ns: Option<u64>) {
        if self.errors.len() >= ERRORS_MAX && !self.errors.contains_key(&name) {
            self.errors_other += 1;
            return;
        }
        let (count, delays) = self.errors.entry(name).or_default();
        *count += 1;
        after_ns.into_iter().for_each(|ns| delays.record(ns));
    }

    /// A barrier behind flow-mods was answered.
    pub fn pair(&mut self, pair: Pair) {
        self.updates.record(pair.ns);
        if self.pairs.len() < PAIRS_MAX {
            self.pairs.push(pair);
        }
    }

    /// All errors.
    pub fn errors_count(&self) -> u64 {
        self.errors.values().map(|(count, _)| count).sum::<u64>() + self.errors_other
    }

    /// Adds everything that another one counted.
    pub fn merge(&mut self, other: &Tally) {
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
