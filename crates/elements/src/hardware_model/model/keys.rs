//! Keys of model files: one row for each number and each word.
//!
//! Invariant: every numeric or enumerated field of a model has one row, and its key ends in its
//! unit.

use super::Model;

/// Type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
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
    pub takes: ValueType,
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

const TIME: ValueType = ValueType::Number(TIME_NS_MAX);
const BATCH: ValueType = ValueType::Number(BATCH_MAX);
const RATE: ValueType = ValueType::Number(RATE_MAX);
const COUNT: ValueType = ValueType::Number(COUNT_MAX);
const BYTE: ValueType = ValueType::Number(BYTE_PS_MAX);
const RULE: ValueType = ValueType::Number(RULE_PS_MAX);
const PERCENT: ValueType = ValueType::Number(100);

keys! {
    "agent" {
        "message_ns" TIME, "time of a message that has no other key here", agent.message_ns;
        "flow_mod_ns" TIME, "time until the agent has accepted a flow-mod", agent.flow_mod_ns;
        "packet_out_ns" TIME, "time of a packet-out", agent.packet_out_ns;
        "flow_stats_ns" TIME, "time of a flow or aggregate statistics request", agent.flow_stats_ns;
        "flow_stats_rule_ns" TIME,
            "additional time of it for each flow entry", agent.flow_stats_rule_ns;
        "port_stats_ns" TIME, "time of a port statistics request", agent.port_stats_ns;
        "packet_ins_per_s" RATE, "packet-ins per second, 0 for no limit", agent.packet_ins_per_s;
    }
    "barrier" {
        "answers" ValueType::Word(&["acting", "written", "taken"]),
            "event that a barrier reply waits for: earlier entries are active, written or \
             accepted",
            barrier.answers;
        "delay_ns" TIME, "delay of the barrier reply after that event", barrier.delay_ns;
    }
    "hardware" {
        "insert_ns" TIME, "time to write a new entry", hardware.insert_ns;
        "move_ns" TIME, "time to move one entry, to make room", hardware.move_ns;
        "moves" ValueType::Word(&["lower", "higher"]),
            "which entries move: those of lower or of higher priority", hardware.moves;
        "modify_ns" TIME, "time to rewrite the instructions of an entry", hardware.modify_ns;
        "delete_ns" TIME, "time to delete an entry", hardware.delete_ns;
        "activation_ns" TIME,
            "time from writing an entry until it is active", hardware.activation_ns;
        "batch_rules" BATCH, "entries written in one batch, 0 for no batches", hardware.batch_rules;
        "batch_interval_ns" TIME,
            "interval between the starts of batches", hardware.batch_interval_ns;
        "order" ValueType::Word(&["sent", "random"]), "order within a batch", hardware.order;
        "counters_ns" TIME,
            "interval of counter updates, 0 for an update on each request", hardware.counters_ns;
    }
    "capacity" {
        "rules" COUNT, "maximum number of entries, 0 for no limit", capacity.rules;
        "exact_rules" COUNT,
            "of them, entries that match every field of OpenFlow 1.0", capacity.exact_rules;
        "wildcard_rules" COUNT,
            "of them, entries with a wildcard in one of these fields", capacity.wildcard_rules;
        "l2_rules" COUNT,
            "of the latter, entries that match no field above layer 2", capacity.l2_rules;
    }
    "tiers" {
        "in_hardware" ValueType::Word(&["all", "exact", "first", "used", "layer2", "layer3"]),
            "entries in hardware: all; those that match every field; the first that fit; those \
             that a frame has matched; those that match no field above layer 2; those that match \
             one",
            tiers.in_hardware;
        "software" ValueType::Word(&["forwards", "asks"]),
            "frames in software: forwarded, or they only request their entry while the hardware's \
             table-miss entry handles them",
            tiers.software;
        "hardware_rules" COUNT,
            "maximum number of entries in hardware, 0 for no limit", tiers.hardware_rules;
        "link_pps" RATE,
            "frames per second from hardware to software, 0 for no limit", tiers.link_pps;
        "link_queue_frames" COUNT, "queue length of that link, in frames", tiers.link_queue_frames;
    }
    "path_hardware" {
        "latency_ns" TIME, "minimum latency in hardware", paths.hardware.latency_ns;
        "byte_ps" BYTE, "additional latency for each byte, in picoseconds", paths.hardware.byte_ps;
        "rule_ps" RULE,
            "additional latency for each flow entry, in picoseconds", paths.hardware.rule_ps;
        "rewrite_ns" TIME,
            "additional latency of a frame that is rewritten", paths.hardware.rewrite_ns;
        "jitter_ns" TIME, "maximum random additional latency", paths.hardware.jitter_ns;
        "slow_percent" PERCENT, "percentage of frames that are slow", paths.hardware.slow_percent;
        "slow_ns" TIME, "additional latency of a slow frame", paths.hardware.slow_ns;
        "slow_byte_ps" BYTE,
            "additional latency of a slow frame for each byte, in picoseconds",
            paths.hardware.slow_byte_ps;
        "capacity_pps" RATE, "frames per second, 0 for no limit", paths.hardware.capacity_pps;
        "queue_frames" COUNT, "queue length, in frames", paths.hardware.queue_frames;
    }
    "path_software" {
        "latency_ns" TIME, "minimum latency in software", paths.software.latency_ns;
        "byte_ps" BYTE, "additional latency for each byte, in picoseconds", paths.software.byte_ps;
        "rule_ps" RULE,
            "additional latency for each flow entry, in picoseconds", paths.software.rule_ps;
        "rewrite_ns" TIME,
            "additional latency of a frame that is rewritten", paths.software.rewrite_ns;
        "jitter_ns" TIME, "maximum random additional latency", paths.software.jitter_ns;
        "slow_percent" PERCENT, "percentage of frames that are slow", paths.software.slow_percent;
        "slow_ns" TIME, "additional latency of a slow frame", paths.software.slow_ns;
        "slow_byte_ps" BYTE,
            "additional latency of a slow frame for each byte, in picoseconds",
            paths.software.slow_byte_ps;
        "capacity_pps" RATE, "frames per second, 0 for no limit", paths.software.capacity_pps;
        "queue_frames" COUNT, "queue length, in frames", paths.software.queue_frames;
    }
    "path_legacy" {
        "latency_ns" TIME, "minimum latency in legacy mode", paths.legacy.latency_ns;
        "byte_ps" BYTE, "additional latency for each byte, in picoseconds", paths.legacy.byte_ps;
        "jitter_ns" TIME, "maximum random additional latency", paths.legacy.jitter_ns;
        "slow_percent" PERCENT, "percentage of frames that are slow", paths.legacy.slow_percent;
        "slow_ns" TIME, "additional latency of a slow frame", paths.legacy.slow_ns;
        "slow_byte_ps" BYTE,
            "additional latency of a slow frame for each byte, in picoseconds",
            paths.legacy.slow_byte_ps;
        "capacity_pps" RATE, "frames per second, 0 for no limit", paths.legacy.capacity_pps;
        "queue_frames" COUNT, "queue length, in frames", paths.legacy.queue_frames;
    }
    "full" {
        "at_percent" PERCENT,
            "threshold as a percentage of capacity.rules, 0 for never", full.at_percent;
        "on" ValueType::Word(&["rule", "stats"]),
            "trigger: an added entry, or a statistics request", full.on;
        "does" ValueType::Word(&["silence", "disconnect"]), "effect: no replies, or closed connections",
            full.does;
        "lasts_ns" TIME, "duration without replies", full.lasts_ns;
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
            ValueType::Number(_) => value.to_string(),
            ValueType::Word(words) => {
                words.get(value as usize).copied().unwrap_or_default().to_string()
            }
        }
    }
}
