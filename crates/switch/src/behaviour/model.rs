//! What is known of a hardware switch: numbers and words, each with its source.
//!
//! A model is a value with a default for everything: the default is a switch that is as fast as ours and honest
//! (`honest`). What a file may say stands in [`keys`], one row for each number or word; the same rows read files,
//! check them and print them. Invariant: a model that was read has every value within its range.

use std::collections::BTreeMap;

/// What a file may say.
pub mod keys;
/// Models in files.
pub mod file;
/// Models that come with the program.
pub mod known;

/// A model of a switch. Times are in nanoseconds, rates per second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// What it is a model of, in one line.
    pub about: String,
    /// The processor of what it is a model of, in one line; empty where nobody knows.
    pub processor: String,
    /// Whether it is a model of a software switch.
    pub is_software: bool,
    /// Where each number or word is from, by key; what is missing here is as if there were no such limit or cost.
    pub sources: BTreeMap<&'static str, String>,
    /// The processor that speaks OpenFlow.
    pub agent: Agent,
    /// When a barrier is answered.
    pub barrier: Barrier,
    /// How entries reach the hardware.
    pub hardware: Hardware,
    /// How many entries it takes.
    pub capacity: Capacity,
    /// Which entries are in hardware.
    pub tiers: Tiers,
    /// What frames meet that are forwarded by hardware, by software, and as by a bridge.
    pub paths: Paths,
    /// What happens near the end of its room.
    pub full: Full,
}

/// The processor that speaks OpenFlow: one message after the other, each for so long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agent {
    /// A message that has no other number here.
    pub message_ns: u64,
    /// A flow-mod, until the agent has taken it.
    pub flow_mod_ns: u64,
    /// A packet-out.
    pub packet_out_ns: u64,
    /// A request for flow or aggregate statistics.
    pub flow_stats_ns: u64,
    /// The same for each entry that there is.
    pub flow_stats_rule_ns: u64,
    /// A request for port statistics.
    pub port_stats_ns: u64,
    /// Packet-ins, 0 for as many as there are.
    pub packet_ins_per_s: u64,
}

/// When a barrier is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Barrier {
    /// By which event (an [`Answers`]).
    pub answers: u64,
    /// So long after it.
    pub delay_ns: u64,
}

/// By which event a barrier is answered: one that comes before the last of these lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// All entries before it act on frames.
    Acting,
    /// They are written, and will act after [`Hardware::activation_ns`].
    Written,
    /// The agent has taken them.
    Taken,
}

/// How entries reach the hardware: one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    /// Writing an entry that is new.
    pub insert_ns: u64,
    /// Moving one entry to make room for it in the order of priorities.
    pub move_ns: u64,
    /// Which entries are moved (0: those of lower priority, 1: those of higher).
    pub moves: u64,
    /// Writing what an entry does, where its match stays.
    pub modify_ns: u64,
    /// Taking an entry out.
    pub delete_ns: u64,
    /// From having been written until it acts on frames.
    pub activation_ns: u64,
    /// Entries that are written together, 0 for each as it comes.
    pub batch_rules: u64,
    /// A batch is begun so often at most; between batches nothing is written.
    pub batch_interval_ns: u64,
    /// Whether those of a batch are written as they were sent (0) or in random order (1).
    pub order: u64,
    /// Counters are fetched so often, 0 for whenever they are asked for.
    pub counters_ns: u64,
}

/// How many entries it takes; 0 for no such limit. One more is refused because the table is full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Entries of any kind.
    pub rules: u64,
    /// Those that name every field of OpenFlow 1.0.
    pub exact_rules: u64,
    /// Those that leave one of them open.
    pub wildcard_rules: u64,
    /// Those of them that look at nothing above layer 2.
    pub l2_rules: u64,
}

/// Which entries are in hardware. All others are in software, which frames reach by a link from the hardware.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tiers {
    /// By which rule (an [`InHardware`]).
    pub in_hardware: u64,
    /// Whether software forwards the frames that come to it (0), or these only ask for their entry, and are treated by
    /// the hardware's last entry for all frames (1).
    pub software: u64,
    /// Entries that fit into hardware at most, 0 for no limit; the next ones stay in software.
    pub hardware_rules: u64,
    /// Frames that the link to the software carries, 0 for as many as there are.
    pub link_pps: u64,
    /// Frames that may wait for it, 0 for no limit but the model's own.
    pub link_queue_frames: u64,
}

/// Which entries are in hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InHardware {
    /// All: there is no software path.
    All,
    /// Those that name every field of OpenFlow 1.0.
    Exact,
    /// The first ones, as many as fit.
    First,
    /// Those that a frame has met in software.
    Used,
    /// Those that look at nothing above layer 2.
    Layer2,
    /// Those that look at something above it.
    Layer3,
}

/// What frames meet, by who forwards them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    /// The hardware.
    pub hardware: Path,
    /// The software behind the link.
    pub software: Path,
    /// The switch as a learning bridge (`mode=legacy`).
    pub legacy: Path,
}

/// What frames meet on a path. They keep their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// The least that a frame takes.
    pub latency_ns: u64,
    /// More for each byte, in picoseconds.
    pub byte_ps: u64,
    /// More for each entry there is to be gone through, in picoseconds.
    pub rule_ps: u64,
    /// More for a frame that leaves otherwise than it came.
    pub rewrite_ns: u64,
    /// Up to so much more, any amount equally likely.
    pub jitter_ns: u64,
    /// Of so many in a hundred frames ...
    pub slow_percent: u64,
    /// ... each takes so much more ...
    pub slow_ns: u64,
    /// ... and so much for each byte, in picoseconds.
    pub slow_byte_ps: u64,
    /// Frames that it forwards, 0 for as many as there are.
    pub capacity_pps: u64,
    /// Frames that may wait for it, 0 for no limit but the model's own.
    pub queue_frames: u64,
}

/// What happens near the end of its room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Full {
    /// From so many percent of `capacity.rules` on, 0 for never.
    pub at_percent: u64,
    /// At which occasion (0: an entry is added that reaches it, 1: statistics are asked for).
    pub on: u64,
    /// What happens (0: nothing is answered, 1: the connections are dropped).
    pub does: u64,
    /// For how long nothing is answered.
    pub lasts_ns: u64,
}

impl Model {
    /// By which event a barrier is answered.
    pub fn answers(&self) -> Answers {
        match self.barrier.answers {
            0 => Answers::Acting,
            1 => Answers::Written,
            _ => Answers::Taken,
        }
    }

    /// Which entries are in hardware.
    pub fn in_hardware(&self) -> InHardware {
        match self.tiers.in_hardware {
            0 => InHardware::All,
            1 => InHardware::Exact,
            2 => InHardware::First,
            3 => InHardware::Used,
            4 => InHardware::Layer2,
            _ => InHardware::Layer3,
        }
    }

    /// Whether frames that the hardware has no entry for go on to the software.
    pub fn has_software(&self) -> bool {
        self.in_hardware() != InHardware::All
    }

    /// Whether frames that come to software only ask for entries.
    pub fn only_asks(&self) -> bool {
        self.tiers.software == 1
    }

    /// Whether entries of a batch are written in random order.
    pub fn shuffles(&self) -> bool {
        self.hardware.order == 1
    }
}
