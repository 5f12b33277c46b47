//! Summary of the forwarded messages as a table.

use std::fmt::Write;

use tester::proxy::tally::ProxyCounters;
use tester::trial::Histogram;

use super::added_words;
use crate::proxy_run::{RecordedTraffic, median, word};

/// Formats the summary.
pub fn words(done: &RecordedTraffic) -> String {
    let mut text = String::new();
    for (name, tally) in &done.tallies {
        one(&mut text, name, tally).expect("writing to a String cannot fail");
    }
    text += &added_words(&done.added);
    text.push('\n');
    text
}

fn us(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e3))
}

fn row(text: &mut String, name: &str, times: &Histogram, more: &str) -> std::fmt::Result {
    let [p50, p99, max] = [median(times), times.ns_at_quantile(0.99), times.ns_max()].map(us);
    writeln!(text, "  {name:28} {:>8} {p50:>11} {p99:>11} {max:>11}  {more}", times.count())
}

fn one(text: &mut String, name: &str, tally: &ProxyCounters) -> std::fmt::Result {
    let broken = match tally.broken {
        0 => String::new(),
        count => format!(", {count} of them reset or failed"),
    };
    writeln!(text, "{name}: {} connection(s){broken}", tally.sessions)?;
    writeln!(text, "  {:28} {:>8} {:>11} {:>11} {:>11}", "us", "count", "median", "p99", "max")?;
    for (key, answers) in &tally.answers {
        let mut more = Vec::new();
        if answers.unanswered > 0 {
            more.push(format!("{} without reply", answers.unanswered));
        }
        if answers.parts_most > 1 {
            more.push(format!("up to {} parts", answers.parts_most));
        }
        row(text, &word(*key), &answers.took, &more.join(", "))?;
    }
    let flow_mods: u64 = tally.pairs.iter().map(|pair| u64::from(pair.flow_mods)).sum();
    if tally.updates.count() > 0 {
        let mean = flow_mods as f64 / tally.pairs.len().max(1) as f64;
        let more = format!("{mean:.1} flow-mods before a barrier");
        row(text, "first flow-mod to barrier", &tally.updates, &more)?;
    }
    for (error, (count, delays)) in &tally.errors {
        let known = delays.count();
        let more = match count - known {
            0 => String::new(),
            others => format!("{others} for unknown requests"),
        };
        row(text, &format!("error {error}"), delays, &more)?;
    }
    if tally.errors_other > 0 {
        writeln!(text, "  {} errors of other types", tally.errors_other)?;
    }
    row(text, "delay in the proxy", &tally.held, "")?;
    let senders = ["controller", "switch"];
    for (place, sender) in senders.into_iter().enumerate() {
        let of = tally.messages.iter().filter(|((who, _), _)| *who == place);
        let of: Vec<String> =
            of.map(|((_, kind), count)| format!("{kind} {}", count.messages)).collect();
        let bytes = tally.bytes[place];
        writeln!(text, "  sent by the {sender}: {bytes} bytes; {}", of.join(", "))?;
        let (strange, unread) = (tally.strange[place], tally.unread_bytes[place]);
        if strange.messages + unread > 0 {
            writeln!(
                text,
                "  sent by the {sender}, not decoded: {} messages and {unread} further bytes",
                strange.messages
            )?;
        }
    }
    Ok(())
}
