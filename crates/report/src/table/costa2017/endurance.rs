//! Control message rate of a target, and its stability near and above that rate.
//!
//! Source: costa2017, section IV-E: some switches become unstable near their limits, others crash
//! at them, and others process a limited number of messages per second. Invariant: without a
//! measurement there is no row, and an unreached share is empty.

use super::{Entry, Table, run_of};
use record::links::Naming;
use record::number;
use record::{Cell, Metric, Name, Record};

/// Explanation of the table.
pub(super) const READING: &str = "The maximum message rate is measured with 64 outstanding messages. Then the tester \
                                  sends at 90 % and at 120 % of that rate, independent of replies, up to \
                                  the parameter messages_max. At 120 % a queue grows, and its replies \
                                  arrive afterwards. Stable: every message got a reply, without an \
                                  error, on the same connection.";

/// Text for a target that stays stable under the full load.
const STABLE: &str = "stable";

/// Below this share of the target's maximum, the message rate is not near the limit.
const NEAR_MIN: f64 = 0.8;

/// The messages: their names, and the prefixes of their cells.
const MESSAGES: [(&str, &str); 3] =
    [("echo", "echo_"), ("flow-mod with barrier", "flow_mod_"), ("port statistics", "port_stats_")];

/// A row per target and kind of message.
pub(super) fn table(record: &Record) -> Table {
    let columns = [
        "target",
        "message",
        "messages/s",
        "replies at 90 %",
        "errors",
        "replies at 120 %",
        "errors",
        "connection closed",
        "verdict",
    ];
    let mut rows = Vec::new();
    let Some(experiment) = run_of(record, "messages") else { return Table::default() };
    let naming = Naming::within(record, &experiment.id);
    for target in &record.targets {
        for (word, prefix) in MESSAGES {
            let of = |what: &str| -> Option<&Cell> {
                let metric = Metric::Named(Name::read(&format!("{prefix}{what}")).ok()?);
                record.cells_of(&experiment.id, &target.name, metric).next()
            };
            let Some(lost) = of("lost_count") else { continue };
            let value = |what: &str| of(what).map(|cell| cell.value);
            let percent = |what: &str| {
                let share = value(what).map(|it| number::text(it * 100.0));
                share.map_or_else(Entry::default, |it| Entry::number(format!("{it} %")))
            };
            let shown = |what: &str| of(what).map_or_else(Entry::default, Entry::cell);
            let closed = lost.samples.iter().filter(|it| **it > 0.0).count();
            let near_per_s = value("taken_per_s").zip(value("near_per_s"));
            let is_spared = near_per_s.is_some_and(|(taken, near)| near < NEAR_MIN * taken);
            let at = |share: &str| Share {
                answered: value(&format!("{share}_answered_ratio")),
                errors: value(&format!("{share}_errors_count")).unwrap_or(0.0),
            };
            rows.push(vec![
                Entry::word(naming.of(&target.name)),
                Entry::word(word),
                shown("taken_per_s"),
                percent("near_answered_ratio"),
                shown("near_errors_count"),
                percent("beyond_answered_ratio"),
                shown("beyond_errors_count"),
                Entry::word(format!("in {closed} of {}", lost.samples.len())),
                Entry::word(match verdict(at("near"), at("beyond"), closed > 0) {
                    STABLE if is_spared => "stable up to the tested rate",
                    verdict => verdict,
                }),
            ]);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

/// Result at a share of the target's maximum message rate.
struct Share {
    answered: Option<f64>,
    errors: f64,
}

impl Share {
    fn is_whole(&self) -> bool {
        self.answered == Some(1.0) && self.errors == 0.0
    }
}

fn verdict(near: Share, beyond: Share, is_closed: bool) -> &'static str {
    match (is_closed, near.answered, near.is_whole(), beyond.is_whole()) {
        (true, None, ..) => "closes the connection before the limit is found",
        (true, _, false, _) => "closes the connection near its limit",
        (true, ..) => "closes the connection beyond its limit",
        (false, None, ..) => "no reply",
        (false, _, false, _) => "unstable near its limit",
        (false, _, true, false) => "stable up to its limit, not beyond",
        (false, _, true, true) => STABLE,
    }
}
