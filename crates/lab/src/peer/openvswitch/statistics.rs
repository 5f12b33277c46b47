//! What Open vSwitch's userspace datapath tells of itself, read from the text made for people.
//!
//! Each thread of the datapath counts which of its caches a frame was found in, and how many
//! cycles it spent on frames and on looking for some. Totals go into a peer's counters; the threads
//! one by one are what a comparison of cycles per frame needs.
//!
//! Source: `ovs-vswitchd(8)` (dpif-netdev commands, upcall/show), `dpctl(8)`, `ovs-appctl(8)`
//! (coverage/show); texts of Open vSwitch 3.1.
//! Invariant: parsing never panics, whatever the text; a line not understood is left out.

use std::collections::BTreeMap;

/// What one thread of the datapath counted (`dpif-netdev/pmd-stats-show`), in frames but where
/// said otherwise. Every frame received is found at one of the five places or is an upcall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// The core of a polling thread; none for the main thread.
    pub core: Option<usize>,
    /// Frames taken from ports.
    pub packets_received: u64,
    /// Times that a frame was sent through the datapath again.
    pub recirculations: u64,
    /// Found by the hint of the network interface that received it.
    pub phwol_hits: u64,
    /// Found where a rule names nothing but the port.
    pub simple_match_hits: u64,
    /// Found in the exact-match cache.
    pub emc_hits: u64,
    /// Found in the signature-match cache.
    pub smc_hits: u64,
    /// Found by the classifier of the datapath's flows.
    pub megaflow_hits: u64,
    /// Not found: a flow was made for it.
    pub upcalls: u64,
    /// Not found, and dropped because no flow could be made.
    pub upcalls_lost: u64,
    /// Cycles of the time-stamp counter spent polling in vain.
    pub cycles_idle: u64,
    /// Cycles of the time-stamp counter spent on frames.
    pub cycles_busy: u64,
}

impl ThreadStats {
    /// Cycles spent on frames, per frame; none where there were no frames.
    pub fn cycles_busy_per_packet(&self) -> Option<f64> {
        let packets = self.packets_received;
        (packets > 0).then(|| self.cycles_busy as f64 / packets as f64)
    }

    /// What came to pass between an earlier reading of the same thread and this one.
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

/// Every counter by the name that Open vSwitch gives it.
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

/// The threads of `dpif-netdev/pmd-stats-show`, polling threads and the main one.
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

/// How many addresses a bridge knows (`fdb/stats-show`), if it says so.
pub fn parse_addresses(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once("MAC entries in the table:"));
    let (_, value) = line.filter(|(name, _)| name.trim_start().starts_with("Current/maximum"))?;
    first_number(value)
}

/// How the polling threads worked (`dpif-netdev/pmd-perf-show`), added over the threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Polling {
    /// Rounds over all ports.
    pub iterations: u64,
    /// Rounds in which there were frames.
    pub iterations_busy: u64,
    /// Frames given to ports.
    pub packets_sent: u64,
    /// Bursts in which they were given.
    pub bursts_sent: u64,
    /// The time of an upcall in microseconds, the mean over the last thread that had one.
    pub upcall_us_mean: f64,
}

/// Reads `dpif-netdev/pmd-perf-show`.
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

/// The flows of the datapath (`upcall/show`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flows {
    /// Flows there are now.
    pub current: u64,
    /// The most there have been.
    pub most: u64,
    /// How many there may be: Open vSwitch lowers it while its revalidators cannot follow.
    pub limit: u64,
    /// How long the revalidators took for their last round over them, in milliseconds.
    pub round_ms: u64,
}

/// Reads `upcall/show` of one datapath.
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

/// The counters of `dpctl/show -s` by port, as `port.N.NAME` with `ports` numbered from 1:
/// received and sent frames, and those dropped or in error either way. Ports that listen for
/// vhost-user have none in this version.
pub fn parse_ports(text: &str, ports: &[String]) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut port = None;
    for line in text.lines().map(str::trim) {
        // Where a port has no counters, the next one's head stands behind the complaint.
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
            // A driver that does not count something has "?" there.
            if let Some(value) = word.split_once(':').and_then(|(_, value)| value.parse().ok()) {
                counters.insert(format!("port.{}.{name}", index + 1), value);
            }
        }
    }
    counters
}

/// The totals of `coverage/show`, as `coverage.NAME`: lines like
/// "netdev_sent  0.0/sec 1.2/sec 0.3/sec  total: 1234". Open vSwitch gathers them from its threads
/// now and then, so they may lag.
pub fn parse_coverage(text: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (head, total) = line.split_once("total:")?;
        let name = head.split_ascii_whitespace().next()?;
        Some((format!("coverage.{name}"), total.trim().parse().ok()?))
    };
    text.lines().filter_map(parse).collect()
}

/// The counts of `dpif-netdev/pmd-stats-show`, added over the threads, as `datapath.NAME`: lines
/// like "  miss with failed upcall: 5" or "  idle cycles: 7 (12.00%)". Averages are left out.
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

/// The whole number that a text begins with: 5 of " 5 (12 %)" and of "5ms", nothing of "0.50".
fn first_number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if rest.starts_with('.') { None } else { number.parse().ok() }
}

#[cfg(test)]
mod tests;
