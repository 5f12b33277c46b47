//! Parsers for the statistics of Open vSwitch's userspace datapath, from the text of its commands.
//!
//! Each thread of the datapath counts in which cache it found a frame, and the cycles spent on
//! frames and on polling. A peer's counters contain the totals. Comparisons of cycles per frame use
//! the values per thread.
//!
//! Source: `ovs-vswitchd(8)` (dpif-netdev commands, upcall/show), `dpctl(8)`, `ovs-appctl(8)`
//! (coverage/show); texts of Open vSwitch 3.1.
//!
//! Invariant: parsing never panics for any text; unknown lines are skipped.

use std::collections::BTreeMap;

/// Counters of one datapath thread (`dpif-netdev/pmd-stats-show`), in frames unless stated
/// otherwise.
///
/// Every received frame is a hit in one of the five lookups or an upcall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// The core of a PMD thread; none for the main thread.
    pub core: Option<usize>,
    /// Frames received from ports.
    pub packets_received: u64,
    /// Number of recirculations of frames.
    pub recirculations: u64,
    /// Hits by partial hardware offload, the hint of the receiving interface.
    pub phwol_hits: u64,
    /// Hits of simple matches, for rules that match only the port.
    pub simple_match_hits: u64,
    /// Hits in the exact-match cache.
    pub emc_hits: u64,
    /// Hits in the signature-match cache.
    pub smc_hits: u64,
    /// Hits in the datapath classifier (megaflows).
    pub megaflow_hits: u64,
    /// Misses for which an upcall created a flow.
    pub upcalls: u64,
    /// Misses that were dropped because no flow could be created.
    pub upcalls_lost: u64,
    /// Cycles of the time-stamp counter spent polling without frames.
    pub cycles_idle: u64,
    /// Cycles of the time-stamp counter spent on frames.
    pub cycles_busy: u64,
}

impl ThreadStats {
    /// Returns the difference from an earlier reading of the same thread.
    pub fn since(&self, earlier: &ThreadStats) -> ThreadStats {
        let mut passed = *self;
        for (_, field) in FIELDS {
            *field(&mut passed) = passed_by(field, self, earlier);
        }
        passed
    }
}

fn passed_by(field: Field, now: &ThreadStats, earlier: &ThreadStats) -> u64 {
    let (mut now, mut earlier) = (*now, *earlier);
    field(&mut now).saturating_sub(*field(&mut earlier))
}

type Field = fn(&mut ThreadStats) -> &mut u64;

/// All counters by their names in Open vSwitch.
const FIELDS: [(&str, Field); 11] = [
    ("packets received", |stats| &mut stats.packets_received),
    ("packet recirculations", |stats| &mut stats.recirculations),
    ("phwol hits", |stats| &mut stats.phwol_hits),
    ("simple match hits", |stats| &mut stats.simple_match_hits),
    ("emc hits", |stats| &mut stats.emc_hits),
    ("smc hits", |stats| &mut stats.smc_hits),
    ("megaflow hits", |stats| &mut stats.megaflow_hits),
    ("miss with success upcall", |stats| &mut stats.upcalls),
    ("miss with failed upcall", |stats| &mut stats.upcalls_lost),
    ("idle cycles", |stats| &mut stats.cycles_idle),
    ("processing cycles", |stats| &mut stats.cycles_busy),
];

/// Parses the threads of `dpif-netdev/pmd-stats-show`: PMD threads and the main one.
pub fn parse_threads(text: &str) -> Vec<ThreadStats> {
    let mut threads = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_suffix(':').filter(|head| head.contains("thread")) {
            let core = head.split_once("core_id ").and_then(|(_, core)| core.trim().parse().ok());
            threads.push(ThreadStats { core, ..ThreadStats::default() });
            continue;
        }
        let (Some(thread), Some((name, value))) = (threads.last_mut(), line.split_once(':')) else {
            continue;
        };
        let field = FIELDS.iter().find(|(theirs, _)| *theirs == name.trim());
        if let (Some((_, field)), Some(count)) = (field, first_number(value)) {
            *field(thread) = count;
        }
    }
    threads
}

/// Parses the number of addresses in a bridge's MAC table (`fdb/stats-show`), if reported.
pub fn parse_addresses(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once("MAC entries in the table:"));
    let (_, value) = line.filter(|(name, _)| name.trim_start().starts_with("Current/maximum"))?;
    first_number(value)
}

/// Statistics of PMD threads (`dpif-netdev/pmd-perf-show`), summed over the threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Polling {
    /// Iterations over all ports.
    pub iterations: u64,
    /// Iterations with frames.
    pub iterations_busy: u64,
    /// Frames sent to ports.
    pub packets_sent: u64,
    /// Bursts sent to ports.
    pub bursts_sent: u64,
    /// Mean duration of an upcall in microseconds, of the last thread that had one.
    pub upcall_us_mean: f64,
}

/// Parses `dpif-netdev/pmd-perf-show`.
pub fn parse_polling(text: &str) -> Polling {
    let mut polling = Polling::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let count = first_number(value).unwrap_or(0);
        let total = match name.trim().trim_start_matches("- ") {
            "Iterations" => &mut polling.iterations,
            "busy iterations" => &mut polling.iterations_busy,
            "Tx packets" => &mut polling.packets_sent,
            "Tx batches" => &mut polling.bursts_sent,
            "Upcalls" if count > 0 => {
                let time = value.split_once(',').and_then(|(_, rest)| rest.split_once("us/upcall"));
                let time = time.and_then(|(time, _)| time.trim().parse().ok());
                polling.upcall_us_mean = time.unwrap_or(polling.upcall_us_mean);
                continue;
            }
            _ => continue,
        };
        *total = total.saturating_add(count);
    }
    polling
}

/// Flows of the datapath (`upcall/show`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flows {
    /// Current number of flows.
    pub current: u64,
    /// Highest number of flows so far.
    pub most: u64,
    /// Limit of flows: Open vSwitch lowers it while its revalidators are too slow.
    pub limit: u64,
    /// Duration of the revalidators' last dump in milliseconds.
    pub round_ms: u64,
}

/// Parses `upcall/show` of one datapath.
pub fn parse_flows(text: &str) -> Flows {
    let mut flows = Flows::default();
    for line in text.lines() {
        let after = |name: &str| line.split_once(name).and_then(|(_, rest)| first_number(rest));
        if line.trim_start().starts_with("flows ") {
            flows.current = after("(current ").unwrap_or(0);
            flows.most = after("(max ").unwrap_or(0);
            flows.limit = after("(limit ").unwrap_or(0);
        } else if line.trim_start().starts_with("dump duration") {
            flows.round_ms = after(":").unwrap_or(0);
        }
    }
    flows
}

/// Parses the port counters of `dpctl/show -s`, as `port.N.NAME` with `ports` numbered from 1.
///
/// These are received and sent frames, drops and errors. Ports of type dpdkvhostuser have none in
/// this version.
pub fn parse_ports(text: &str, ports: &[String]) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut port = None;
    for line in text.lines().map(str::trim) {
        // If a port has no counters, the next port's header follows the error on the same line.
        let head = line.rsplit_once("  port ").map(|(_, head)| head);
        if let Some(head) = head.or_else(|| line.strip_prefix("port ")) {
            let name = head.split_once(": ").and_then(|(_, rest)| rest.split(' ').next());
            port = ports.iter().position(|port| Some(port.as_str()) == name);
        }
        let (Some(index), Some((way, rest))) = (port, line.split_once(' ')) else {
            continue;
        };
        let (count, before) = match way {
            "RX" => ("received", "receive"),
            "TX" => ("sent", "transmit"),
            _ => continue,
        };
        for word in rest.split_ascii_whitespace() {
            let name = match word.split_once(':') {
                Some(("packets", _)) => count.to_owned(),
                Some((name @ ("errors" | "dropped"), _)) => format!("{before}_{name}"),
                _ => continue,
            };
            // A driver that lacks a counter shows "?".
            if let Some(value) = word.split_once(':').and_then(|(_, value)| value.parse().ok()) {
                counters.insert(format!("port.{}.{name}", index + 1), value);
            }
        }
    }
    counters
}

/// Parses the totals of `coverage/show`, as `coverage.NAME`: lines like "netdev_sent  0.0/sec
/// 1.2/sec 0.3/sec  total: 1234".
///
/// Open vSwitch collects them from its threads at intervals, so they may lag.
pub fn parse_coverage(text: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (head, total) = line.split_once("total:")?;
        let name = head.split_ascii_whitespace().next()?;
        Some((format!("coverage.{name}"), total.trim().parse().ok()?))
    };
    text.lines().filter_map(parse).collect()
}

/// Parses the counts of `dpif-netdev/pmd-stats-show`, summed over the threads, as `datapath.NAME`.
///
/// The lines are like "  miss with failed upcall: 5" or "  idle cycles: 7 (12.00%)". Averages are
/// skipped.
pub fn parse_datapath(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let name = name.trim();
        let count = match name.ends_with("cycles") {
            true => first_number(value),
            false => value.trim().parse().ok(),
        };
        if let Some(count) = count {
            let name = format!("datapath.{}", name.replace(' ', "_"));
            let total: &mut u64 = counters.entry(name).or_default();
            *total = total.saturating_add(count);
        }
    }
    counters
}

/// Returns the whole number at the start of a text: 5 of " 5 (12 %)" and of "5ms", none of "0.50".
fn first_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if rest.starts_with('.') { None } else { number.parse().ok() }
}

#[cfg(test)]
mod tests;
