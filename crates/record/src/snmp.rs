//! Counters that an SNMP agent reports for a trial, independent of the tester.
//!
//! Source: IF-MIB (RFC 2863), HOST-RESOURCES-MIB (RFC 2790). Values are counter differences over
//! the whole trial, for the interfaces that the tester's frames pass.

use serde::{Deserialize, Serialize};

/// Report of an SNMP agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SnmpReport {
    /// Address of the agent, SNMP version and security level. Contains no secret.
    pub agent: String,
    /// Interfaces of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<SnmpInterface>,
    /// Frames received by all interfaces; absent if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_in: Option<u64>,
    /// Frames sent by all interfaces; absent if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_out: Option<u64>,
    /// Frames that the tester's ports sent during the trial.
    pub frames_sent: u64,
    /// Frames that the tester's ports received during the trial.
    pub frames_received: u64,
    /// Mean load of the agent's processors in percent. Each value covers the minute before the
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    /// Number of load reports.
    #[serde(default)]
    pub loads: u64,
    /// Further objects before and after the trial, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<super::CounterChange>,
    /// Reply time of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_ns: Option<u64>,
    /// Reasons for missing values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// An interface as the agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnmpInterface {
    /// Its name.
    pub name: String,
    /// Frames received.
    pub frames_in: u64,
    /// Frames sent.
    pub frames_out: u64,
    /// Discarded frames, received and sent.
    pub frames_discarded: [u64; 2],
    /// Frames with errors, received and sent.
    pub frames_with_errors: [u64; 2],
    /// Width of the counters in bits. 32-bit counters may have wrapped.
    pub bits: u32,
}

impl SnmpReport {
    /// Frames that the tester sent and the agent did not count. Negative if it counted more.
    pub fn frames_missing(&self) -> Option<i64> {
        Some(self.frames_sent as i64 - self.frames_in? as i64)
    }
}
