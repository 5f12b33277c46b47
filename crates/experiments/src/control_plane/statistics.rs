//! Types of statistics requests, independent of the OpenFlow version.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.3.5 section 7.3.5, 1.5.1 section 7.3.5.
//!
//! Invariant: types that a version does not support are not emulated by other requests.

use openflow::model::group::GROUP_ALL;
use openflow::model::message::Message;
use openflow::model::meter::METER_ALL;
use openflow::model::multipart::{FlowStatsRequest, MultipartReplyBody, MultipartRequestBody};
use openflow::model::port::stats::COUNTER_UNKNOWN;
use openflow::model::queue::QUEUE_ALL;
use openflow::model::{Match, reserved};
use openflow::version::Version;

use targets::flow_setup::PORT_OUT;

/// A type of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Individual flow statistics.
    Flow,
    /// Aggregate flow statistics.
    Aggregate,
    /// Table statistics.
    Table,
    /// Port statistics.
    Port,
    /// Queue statistics.
    Queue,
    /// Group statistics.
    Group,
    /// Meter statistics.
    Meter,
}

impl Statistic {
    /// All types; frames of the fifth and later ones are not counted here.
    pub const ALL: [Statistic; 7] = [
        Statistic::Flow,
        Statistic::Aggregate,
        Statistic::Table,
        Statistic::Port,
        Statistic::Queue,
        Statistic::Group,
        Statistic::Meter,
    ];

    /// Names of the types, in the same order.
    pub const WORDS: &'static [&'static str] =
        &["flow", "aggregate", "table", "port", "queue", "group", "meter"];

    /// Parses a name of [`Statistic::WORDS`].
    pub fn of(word: &str) -> Option<Statistic> {
        let place = Statistic::WORDS.iter().position(|known| *known == word)?;
        Some(Statistic::ALL[place])
    }

    /// Returns its name.
    pub fn word(self) -> &'static str {
        Statistic::WORDS[self as usize]
    }

    /// Returns whether the reply contains every entry.
    pub fn counts_rules(self) -> bool {
        matches!(self, Statistic::Flow | Statistic::Aggregate)
    }

    /// Builds the request: for all items, or for the entries within a match.
    pub fn ask(self, version: Version, matching: Match) -> Message {
        let within = FlowStatsRequest { matching, ..FlowStatsRequest::default() };
        // Only OpenFlow 1.0 has a separate number for every port in this request.
        let every_port = if version == Version::V1_0 { reserved::ALL } else { reserved::NONE };
        Message::ask(match self {
            Statistic::Flow => MultipartRequestBody::Flow(within),
            Statistic::Aggregate => MultipartRequestBody::Aggregate(within),
            Statistic::Table => MultipartRequestBody::Table,
            Statistic::Port => MultipartRequestBody::Port(reserved::NONE),
            Statistic::Queue => MultipartRequestBody::Queue { port: every_port, queue: QUEUE_ALL },
            Statistic::Group => MultipartRequestBody::Group(GROUP_ALL),
            Statistic::Meter => MultipartRequestBody::Meter(METER_ALL),
        })
    }
}

/// Returns the number of items in a part of a reply.
pub fn rows(body: &MultipartReplyBody) -> u64 {
    let count = match body {
        MultipartReplyBody::Flow(rows) => rows.len(),
        MultipartReplyBody::Table(rows) => rows.len(),
        MultipartReplyBody::Port(rows) => rows.len(),
        MultipartReplyBody::Queue(rows) => rows.len(),
        MultipartReplyBody::Group(rows) => rows.len(),
        MultipartReplyBody::Meter(rows) => rows.len(),
        _ => 1,
    };
    count as u64
}

/// Returns the number of frames that a part of a reply counts.
///
/// These are frames that entries or tables matched, or that left by the output port of the entries. A counter that
/// the switch does not support counts as 0.
pub fn frames(body: &MultipartReplyBody) -> u64 {
    let known = |count: u64| if count == COUNTER_UNKNOWN { 0 } else { count };
    match body {
        MultipartReplyBody::Flow(rows) => rows.iter().map(|row| known(row.packets)).sum(),
        MultipartReplyBody::Aggregate(sum) => known(sum.packets),
        MultipartReplyBody::Table(rows) => rows.iter().map(|row| known(row.matched)).sum(),
        MultipartReplyBody::Port(rows) => rows
            .iter()
            .filter(|row| row.port == u32::from(PORT_OUT))
            .map(|row| known(row.tx_packets))
            .sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_word() {
        for statistic in Statistic::ALL {
            assert_eq!(Statistic::of(statistic.word()), Some(statistic));
        }
        assert_eq!(Statistic::of("weather"), None);
    }
}
