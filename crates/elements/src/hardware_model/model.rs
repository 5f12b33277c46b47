//! Models of hardware switches: numbers and words, each with its source.
//!
//! Every value of a model has a default. The default model (`honest`) adds no delays and replies to
//! barriers truthfully. [`keys`] lists the keys of model files, one row for each number or word.
//! The same rows read, check and print files. Invariant: every value of a model that was read is
//! within its range.

use std::collections::BTreeMap;

use packet::time::Nanos;

pub mod keys;
pub mod file;
pub mod known;

/// Model of a switch. Times are in nanoseconds, rates per second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// Name.
    pub name: String,
    /// One-line description of the device.
    pub about: String,
    /// Processor of the device, in one line; empty if unknown.
    pub processor: String,
    /// Whether the device is a software switch.
    pub is_software: bool,
    /// Source of each number or word, by key. A missing key means no limit or cost.
    pub sources: BTreeMap<&'static str, String>,
    /// Processor of the OpenFlow agent.
    pub agent: Agent,
    /// Barrier replies.
    pub barrier: Barrier,
    /// Writing of entries into the hardware.
    pub hardware: Hardware,
    /// Table capacity.
    pub capacity: Capacity,
    /// Placement of entries in hardware and software.
    pub tiers: Tiers,
    /// Forwarding paths: hardware, software, and as a bridge.
    pub paths: Paths,
    /// Special behaviour when the table is nearly full.
    pub full: Full,
}

/// Processor of the OpenFlow agent, which processes one message after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agent {
    /// Time of a message that has no other key here.
    pub message_ns: u64,
    /// Time until the agent has accepted a flow-mod.
    pub flow_mod_ns: u64,
    /// Time of a packet-out.
    pub packet_out_ns: u64,
    /// Time of a request for flow or aggregate statistics.
    pub flow_stats_ns: u64,
    /// Additional time of such a request for each flow entry.
    pub flow_stats_rule_ns: u64,
    /// Time of a request for port statistics.
    pub port_stats_ns: u64,
    /// Maximum rate of packet-ins, 0 for no limit.
    pub packet_ins_per_s: u64,
}

/// Barrier replies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Barrier {
    /// Event that a barrier reply waits for (an [`Answers`]).
    pub answers: u64,
    /// Delay after that event.
    pub delay_ns: u64,
}

/// Event that a barrier reply waits for. A reply before `Acting` is premature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// All earlier entries are active.
    Acting,
    /// All earlier entries are written, and become active after [`Hardware::activation_ns`].
    Written,
    /// The agent has accepted all earlier messages.
    Taken,
}

/// Writing of entries into the hardware, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    /// Time to write a new entry.
    pub insert_ns: u64,
    /// Time to move one entry, to make room in the order of priorities.
    pub move_ns: u64,
    /// Which entries are moved (0: those of lower priority, 1: those of higher).
    pub moves: u64,
    /// Time to rewrite the instructions of an entry whose match stays.
    pub modify_ns: u64,
    /// Time to delete an entry.
    pub delete_ns: u64,
    /// Time from writing an entry until it is active.
    pub activation_ns: u64,
    /// Entries that are written in one batch, 0 for no batches.
    pub batch_rules: u64,
    /// Interval between the starts of batches; nothing is written between batches.
    pub batch_interval_ns: u64,
    /// Order within a batch: as sent (0) or random (1).
    pub order: u64,
    /// Interval of counter updates, 0 for an update on each request.
    pub counters_ns: u64,
}

/// Table capacity; 0 for no limit. Further entries are rejected because the table is full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Entries of any kind.
    pub rules: u64,
    /// Entries that match every field of OpenFlow 1.0.
    pub exact_rules: u64,
    /// Entries with a wildcard in one of these fields.
    pub wildcard_rules: u64,
    /// Entries of the latter that match no field above layer 2.
    pub l2_rules: u64,
}

/// Placement of entries. Entries that are not in hardware are in software, which frames reach over
/// a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Which entries are in hardware (an [`InHardware`]).
    pub in_hardware: u64,
    /// Whether software forwards the frames that it receives (0), or these only request their entry
    /// while the hardware's table-miss entry handles them (1).
    pub software: u64,
    /// Maximum number of entries in hardware, 0 for no limit; further entries stay in software.
    pub hardware_rules: u64,
    /// Frame rate of the link to the software, 0 for no limit.
    pub link_pps: u64,
    /// Queue length of that link, 0 for only the emulation's own limit.
    pub link_queue_frames: u64,
}

/// Which entries are in hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InHardware {
    /// All; there is no software path.
    All,
    /// Entries that match every field of OpenFlow 1.0.
    Exact,
    /// The first entries, as many as fit.
    First,
    /// Entries that a frame has matched in software.
    Used,
    /// Entries that match no field above layer 2.
    Layer2,
    /// Entries that match a field above layer 2.
    Layer3,
}

/// Forwarding paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    /// The hardware.
    pub hardware: Path,
    /// The software behind the link.
    pub software: Path,
    /// The switch as a learning bridge (`mode=legacy`).
    pub legacy: Path,
}

/// Properties of a path. Frames keep their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// Minimum latency.
    pub latency_ns: u64,
    /// Additional latency for each byte, in picoseconds.
    pub byte_ps: u64,
    /// Additional latency for each flow entry that is searched, in picoseconds.
    pub rule_ps: u64,
    /// Additional latency of a frame that is rewritten.
    pub rewrite_ns: u64,
    /// Maximum additional latency with uniform distribution.
    pub jitter_ns: u64,
    /// Percentage of frames that are slow.
    pub slow_percent: u64,
    /// Additional latency of a slow frame.
    pub slow_ns: u64,
    /// Additional latency of a slow frame for each byte, in picoseconds.
    pub slow_byte_ps: u64,
    /// Maximum frame rate, 0 for no limit.
    pub capacity_pps: u64,
    /// Queue length, 0 for only the emulation's own limit.
    pub queue_frames: u64,
}

/// Special behaviour when the table is nearly full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Full {
    /// Threshold as a percentage of `capacity.rules`, 0 for never.
    pub at_percent: u64,
    /// Trigger (0: an added entry reaches the threshold, 1: a request for statistics).
    pub on: u64,
    /// Effect (0: the agent stops replying, 1: the connections are dropped).
    pub does: u64,
    /// Duration for which the agent does not reply.
    pub lasts_ns: u64,
}

impl Model {
    /// Returns the event that barrier replies wait for.
    pub fn answers(&self) -> Answers {
        match self.barrier.answers {
            0 => Answers::Acting,
            1 => Answers::Written,
            _ => Answers::Taken,
        }
    }

    /// Returns which entries are in hardware.
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

    /// Whether frames without a hardware entry go to the software.
    pub fn has_software(&self) -> bool {
        self.in_hardware() != InHardware::All
    }

    /// Whether frames that reach the software only request entries.
    pub fn only_asks(&self) -> bool {
        self.tiers.software == 1
    }

    /// Whether the entries of a batch are written in random order.
    pub fn shuffles(&self) -> bool {
        self.hardware.order == 1
    }

    /// Whether a barrier reply may be sent before the entries act.
    pub fn acknowledges_early(&self) -> bool {
        match self.answers() {
            Answers::Acting => false,
            Answers::Written => self.hardware.activation_ns > 0,
            Answers::Taken => true,
        }
    }

    /// Returns the approximate time until this many new entries act, each of which moves this share
    /// of the entries before it.
    pub fn insert_time(&self, count: u32, moved_share: f64) -> Nanos {
        let hardware = &self.hardware;
        let moves = |before: u32| (moved_share * f64::from(before)) as u64;
        self.write_time(count, |before| hardware.insert_ns + hardware.move_ns * moves(before))
    }

    /// Returns the approximate time until modifications of this many entries act.
    pub fn modify_time(&self, count: u32) -> Nanos {
        self.write_time(count, |_| self.hardware.modify_ns)
    }

    /// Returns the approximate time until deletions of this many entries act.
    pub fn delete_time(&self, count: u32) -> Nanos {
        self.write_time(count, |_| self.hardware.delete_ns)
    }

    /// Returns the approximate time of changes with this cost by number of earlier changes. The
    /// first batch begins after half an interval on average.
    fn write_time(&self, count: u32, cost_ns: impl Fn(u32) -> u64) -> Nanos {
        let Hardware { batch_rules, batch_interval_ns, activation_ns, .. } = self.hardware;
        let sum = |from: u32, to: u32| (from..to).map(&cost_ns).sum::<u64>();
        let written = match batch_rules as u32 {
            0 => sum(0, count),
            batch => {
                let last = count.saturating_sub(1) / batch * batch;
                let cost = |from: u32| sum(from, from + batch).max(batch_interval_ns);
                let full = (0..last).step_by(batch as usize).map(cost).sum::<u64>();
                batch_interval_ns / 2 + full + sum(last, count)
            }
        };
        Nanos(written.max(self.agent.flow_mod_ns * u64::from(count)) + activation_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_takes_the_sum_of_its_writes_or_whole_batch_intervals() {
        let hardware = Hardware {
            insert_ns: 1_000,
            move_ns: 10,
            modify_ns: 300,
            activation_ns: 5,
            ..Hardware::default()
        };
        let mut model = Model { hardware, ..Model::default() };
        assert_eq!(model.insert_time(3, 1.0), Nanos(3_000 + 10 + 20 + 5));
        assert_eq!(model.insert_time(3, 0.0), Nanos(3_005));
        assert_eq!(model.modify_time(4), Nanos(1_205));
        // Two intervals, of which the writes fill neither, and the rest.
        (model.hardware.batch_rules, model.hardware.batch_interval_ns) = (2, 10_000);
        assert_eq!(model.modify_time(5), Nanos(5_000 + 2 * 10_000 + 300 + 5));
        // A slow agent determines the time.
        model.agent.flow_mod_ns = 1_000_000;
        assert_eq!(model.delete_time(2), Nanos(2_000_005));
    }
}
