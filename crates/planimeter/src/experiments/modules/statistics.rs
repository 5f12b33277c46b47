//! Kinds of statistics that a switch is asked for, the same in every version of OpenFlow.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.3.5 section 7.3.5, 1.5.1 section 7.3.5. Invariant: what a
//! version does not know is never asked in another way.

use openflow::model::group::GROUP_ALL;
use openflow::model::message::Message;
use openflow::model::meter::METER_ALL;
use openflow::model::multipart::{FlowStatsRequest, MultipartReplyBody, MultipartRequestBody};
use openflow::model::port::stats::COUNTER_UNKNOWN;
use openflow::model::queue::QUEUE_ALL;
use openflow::model::{Match, reserved};
use openflow::version::Version;

use crate::target::program::PORT_OUT;

/// A kind of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Every rule.
    Flow,
    /// The sum over rules.
    Aggregate,
    /// Every table.
    Table,
    /// Every port.
    Port,
    /// Every queue.
    Queue,
    /// Every group.
    Group,
    /// Every meter.
    Meter,
}

impl Statistic {
    /// All of them; from the fifth on their frames are not counted here.
    pub const ALL: [Statistic; 7] = [
        Statistic::Flow,
        Statistic::Aggregate,
        Statistic::Table,
        Statistic::Port,
        Statistic::Queue,
        Statistic::Group,
        Statistic::Meter,
    ];

    /// The words for them, in the same order.
    pub const WORDS: &'static [&'static str] =
        &["flow", "aggregate", "table", "port", "queue", "group", "meter"];

    /// The kind of a word of [`Statistic::WORDS`].
    pub fn of(word: &str) -> Option<Statistic> {
        let place = Statistic::WORDS.iter().position(|known| *known == word)?;
        Some(Statistic::ALL[place])
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        Statistic::WORDS[self as usize]
    }

    /// Whether the answer tells of every rule.
    pub fn counts_rules(self) -> bool {
        matches!(self, Statistic::Flow | Statistic::Aggregate)
    }

    /// Asks for it: of all there are, or of rules within a match where it is about rules.
    pub fn ask(self, version: Version, matching: Match) -> Message {
        let within = FlowStatsRequest { matching, ..FlowStatsRequest::default() };
        // Only 1.0 has a number that means every port to this request.
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

/// How many things a part of a reply tells of.
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

/// The frames that a part of a reply tells of: those that rules or tables matched, or that left by the
/// port to which rules send. What the switch does not count is none.
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
    fn every_kind_has_its_word() {
        for statistic in Statistic::ALL {
            assert_eq!(Statistic::of(statistic.word()), Some(statistic));
        }
        assert_eq!(Statistic::of("weather"), None);
    }
}
