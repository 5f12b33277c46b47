//! Keys of model files: one row for each number and each word.
//!
//! Invariant: every numeric or enumerated field of a model has one row, and its key ends in its
//! unit.

use super::Model;

/// Type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// An integer from 0 to this.
    Number(u64),
    /// One of these words; the first is the default.
    Word(&'static [&'static str]),
}

/// One key of a model file.
pub struct Key {
    /// Its section.
    pub section: &'static str,
    /// Its name in the section.
    pub name: &'static str,
    /// Section and name, as the key of its source.
    pub path: &'static str,
    /// Type of its value.
    pub takes: Takes,
    /// Description.
    pub about: &'static str,
    /// Returns its field in a model.
    pub at: fn(&mut Model) -> &mut u64,
}

/// Maximum time: ten minutes.
pub const TIME_NS_MAX: u64 = 600_000_000_000;
/// Maximum rate.
pub const RATE_MAX: u64 = 1_000_000_000;
/// Maximum number of entries or frames.
pub const COUNT_MAX: u64 = 1 << 20;
/// Maximum batch size.
pub const BATCH_MAX: u64 = 4096;
/// Maximum time for each byte: a microsecond.
pub const BYTE_PS_MAX: u64 = 1_000_000;
/// Maximum time for each entry: a millisecond.
pub const RULE_PS_MAX: u64 = 1_000_000_000;

macro_rules! keys {
    ($($section:literal { $($name:literal $takes:expr, $about:literal, $($field:ident).+;)* })*) => {
        /// All keys of a model file other than `name`, `about`, `processor` and `kind`.
        pub const KEYS: &[Key] = &[$($(Key {
            section: $section,
            name: $name,
            path: concat!($section, ".", $name),
            takes: $takes,
            about: $about,
            at: |model| &mut model.$($field).+,
        },)*)*];
    };
}

const TIME: Takes = Takes::Number(TIME_NS_MAX);
const BATCH: Takes = Takes::Number(BATCH_MAX);
const RATE: Takes = Takes::Number(RATE_MAX);
const COUNT: Takes = Takes::Number(COUNT_MAX);
const BYTE: Takes = Takes::Number(BYTE_PS_MAX);
const RULE: Takes = Takes::Number(RULE_PS_MAX);
const PERCENT: Takes = Takes::Number(100);

keys! {
    "agent" {
        "message_ns" TIME, "the agent's time for a message that has no other number here", agent.message_ns;
        "flow_mod_ns" TIME, "its time for taking a flow-mod", agent.flow_mod_ns;
        "packet_out_ns" TIME, "its time for a packet-out", agent.packet_out_ns;
        "flow_stats_ns" TIME, "its time for a request for flow or aggregate statistics", agent.flow_stats_ns;
        "flow_stats_rule_ns" TIME, "the same for each entry that there is", agent.flow_stats_rule_ns;
        "port_stats_ns" TIME, "its time for a request for port statistics", agent.port_stats_ns;
        "packet_ins_per_s" RATE, "packet-ins in a second, 0 for no limit", agent.packet_ins_per_s;
    }
    "barrier" {
        "answers" Takes::Word(&["acting", "written", "taken"]),
            "what has happened to all entries before a barrier when it is answered", barrier.answers;
        "delay_ns" TIME, "so long after that it is answered", barrier.delay_ns;
    }
    "hardware" {
        "insert_ns" TIME, "writing an entry that is new", hardware.insert_ns;
        "move_ns" TIME, "moving one entry to make room for it", hardware.move_ns;
        "moves" Takes::Word(&["lower", "higher"]),
            "whether entries of lower or of higher priority are moved", hardware.moves;
        "modify_ns" TIME, "writing what an entry does, where its match stays", hardware.modify_ns;
        "delete_ns" TIME, "taking an entry out", hardware.delete_ns;
        "activation_ns" TIME, "from having been written until it acts on frames", hardware.activation_ns;
        "batch_rules" BATCH, "entries that are written together, 0 for each as it comes", hardware.batch_rules;
        "batch_interval_ns" TIME, "batches begin at multiples of this", hardware.batch_interval_ns;
        "order" Takes::Word(&["sent", "random"]), "the order within a batch", hardware.order;
        "counters_ns" TIME, "counters are fetched so often, 0 for when asked for", hardware.counters_ns;
    }
    "capacity" {
        "rules" COUNT, "entries that fit, 0 for no limit", capacity.rules;
        "exact_rules" COUNT, "entries that name every field of OpenFlow 1.0", capacity.exact_rules;
        "wildcard_rules" COUNT, "entries that leave a field of OpenFlow 1.0 open", capacity.wildcard_rules;
        "l2_rules" COUNT, "those of them that look at nothing above layer 2", capacity.l2_rules;
    }
    "tiers" {
        "in_hardware" Takes::Word(&["all", "exact", "first", "used", "layer2", "layer3"]),
            "the entries in hardware: all; those that name every field; as many as fit; those that a frame met; those that look at nothing above layer 2; those that do",
            tiers.in_hardware;
        "software" Takes::Word(&["forwards", "asks"]),
            "what becomes of frames that come to software: it forwards them, or they only ask for their entry to be put into hardware, which treats them by its last entry for all frames meanwhile",
            tiers.software;
        "hardware_rules" COUNT, "entries that fit into hardware, 0 for no limit", tiers.hardware_rules;
        "link_pps" RATE, "frames in a second from hardware to software, 0 for no limit", tiers.link_pps;
        "link_queue_frames" COUNT, "frames that may wait for that", tiers.link_queue_frames;
    }
    "path_hardware" {
        "latency_ns" TIME, "the least time of a frame in hardware", paths.hardware.latency_ns;
        "byte_ps" BYTE, "more for each byte, in picoseconds", paths.hardware.byte_ps;
        "rule_ps" RULE, "more for each entry there is, in picoseconds", paths.hardware.rule_ps;
        "rewrite_ns" TIME, "more for a frame that leaves otherwise than it came", paths.hardware.rewrite_ns;
        "jitter_ns" TIME, "up to so much more", paths.hardware.jitter_ns;
        "slow_percent" PERCENT, "of so many in a hundred frames", paths.hardware.slow_percent;
        "slow_ns" TIME, "each takes so much more", paths.hardware.slow_ns;
        "slow_byte_ps" BYTE, "and so much more for each byte", paths.hardware.slow_byte_ps;
        "capacity_pps" RATE, "frames in a second, 0 for no limit", paths.hardware.capacity_pps;
        "queue_frames" COUNT, "frames that may wait", paths.hardware.queue_frames;
    }
    "path_software" {
        "latency_ns" TIME, "the least time of a frame in software", paths.software.latency_ns;
        "byte_ps" BYTE, "more for each byte, in picoseconds", paths.software.byte_ps;
        "rule_ps" RULE, "more for each entry there is, in picoseconds", paths.software.rule_ps;
        "rewrite_ns" TIME, "more for a frame that leaves otherwise than it came", paths.software.rewrite_ns;
        "jitter_ns" TIME, "up to so much more", paths.software.jitter_ns;
        "slow_percent" PERCENT, "of so many in a hundred frames", paths.software.slow_percent;
        "slow_ns" TIME, "each takes so much more", paths.software.slow_ns;
        "slow_byte_ps" BYTE, "and so much more for each byte", paths.software.slow_byte_ps;
        "capacity_pps" RATE, "frames in a second, 0 for no limit", paths.software.capacity_pps;
        "queue_frames" COUNT, "frames that may wait", paths.software.queue_frames;
    }
    "path_legacy" {
        "latency_ns" TIME, "the least time of a frame as by a bridge", paths.legacy.latency_ns;
        "byte_ps" BYTE, "more for each byte, in picoseconds", paths.legacy.byte_ps;
        "jitter_ns" TIME, "up to so much more", paths.legacy.jitter_ns;
        "slow_percent" PERCENT, "of so many in a hundred frames", paths.legacy.slow_percent;
        "slow_ns" TIME, "each takes so much more", paths.legacy.slow_ns;
        "slow_byte_ps" BYTE, "and so much more for each byte", paths.legacy.slow_byte_ps;
        "capacity_pps" RATE, "frames in a second, 0 for no limit", paths.legacy.capacity_pps;
        "queue_frames" COUNT, "frames that may wait", paths.legacy.queue_frames;
    }
    "full" {
        "at_percent" PERCENT, "from so many percent of capacity.rules on, 0 for never", full.at_percent;
        "on" Takes::Word(&["rule", "stats"]), "when an entry comes, or when statistics are asked for", full.on;
        "does" Takes::Word(&["silence", "disconnect"]), "nothing is answered, or connections are dropped",
            full.does;
        "lasts_ns" TIME, "for how long nothing is answered", full.lasts_ns;
    }
}

/// Returns the key with this section and name.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

impl Key {
    /// Formats a value as in a file.
    pub fn show(&self, value: u64) -> String {
        match self.takes {
            Takes::Number(_) => value.to_string(),
            Takes::Word(words) => {
                words.get(value as usize).copied().unwrap_or_default().to_string()
            }
        }
    }
}
