//! What an SNMP agent said of a trial: an account of frames and load that is not the tester's.
//!
//! Source: IF-MIB (RFC 2863), HOST-RESOURCES-MIB (RFC 2790). Counts are differences of its counters around the
//! whole trial, of those interfaces that the tester's frames pass.

use serde::{Deserialize, Serialize};

/// A witness's account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Witness {
    /// Where the agent is, and by which version and level of security it was asked. No secret.
    pub agent: String,
    /// Its interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Seen>,
    /// Frames that came in at them, all together; absent if it did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_in: Option<u64>,
    /// Frames that went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_out: Option<u64>,
    /// Frames that the tester's ports sent meanwhile.
    pub frames_sent: u64,
    /// Frames that they received.
    pub frames_received: u64,
    /// Mean load of its processors, each over the minute before it was asked, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// How often it told the load.
    #[serde(default)]
    pub loads: u64,
    /// Further objects before and after, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<super::CounterChange>,
    /// How long it took to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ns: Option<u64>,
    /// Why something is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// An interface by a witness's account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Frames in.
    pub frames_in: u64,
    /// Frames out.
    pub frames_out: u64,
    /// Frames discarded on the way in and out.
    pub frames_discarded: [u64; 2],
    /// Frames with errors on the way in and out.
    pub frames_with_errors: [u64; 2],
    /// Bits of its counters: those of 32 bits may have gone round.
    pub bits: u32,
}

impl Witness {
    /// Frames that the tester sent and the witness did not count; below zero if it counted more.
    pub fn frames_missing(&self) -> Option<i64> {
        Some(self.frames_sent as i64 - self.frames_in? as i64)
    }
}
