//! The tester's clock over a run: how finely it is read, how evenly it went, and what it was held
//! against.
//!
//! All times of a run, of frames and of control messages, are on one line, the kernel's monotonic
//! clock. Invariant: what could not be found out is absent.

use serde::{Deserialize, Serialize};

/// How the clock went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// What the processor says of its time-stamp counter.
    pub counter: String,
    /// What asking for the time takes.
    pub reading_ns: u64,
    /// Time over which the following was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// By how much the clock goes faster than the raw one, which nobody steers; parts in 10^9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb: Option<f64>,
    /// How far off that may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb_error: Option<f64>,
    /// The farthest that it strayed from going evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wander_ns: Option<f64>,
    /// Speed of the time-stamp counter by the raw clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_hz: Option<f64>,
    /// How far off that may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_hz_error: Option<f64>,
    /// A clock outside the machine, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ClockReference>,
}

/// A clock outside the machine, which the tester's was held against. Untested on hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockReference {
    /// Its device.
    pub name: String,
    /// By how much it is ahead of the tester's; absent before it was met twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// How far off that may be; absent before the loop that follows it has come to rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns_error: Option<f64>,
    /// By how much it goes faster; parts in 10^9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb: Option<f64>,
    /// Readings that were believed.
    pub readings: u64,
    /// Readings that could not be true.
    pub ignored: u64,
}

impl ClockFacts {
    /// The facts in words.
    pub fn words(&self) -> String {
        let drift = self.drift_ppb.zip(self.drift_ppb_error).map_or_else(String::new, |it| {
            format!(", {:+.0} ppb (within {:.0}) beside the raw clock", it.0, it.1)
        });
        let counter =
            self.counter_hz.map_or_else(String::new, |hz| format!(" at {:.3} MHz", hz / 1e6));
        let reference = match &self.reference {
            None => "no PPS or PTP device to follow".to_string(),
            Some(it) => it.words(),
        };
        format!(
            "read in {} ns{drift}; time-stamp counter {}{counter}; {reference}",
            self.reading_ns, self.counter
        )
    }
}

impl ClockReference {
    fn words(&self) -> String {
        match self.offset_ns.zip(self.offset_ns_error) {
            Some((ns, error)) => {
                format!("{} is {ns} ns ahead, within {error:.0} ns", self.name)
            }
            None => format!("{}: met {} times, too few to follow it", self.name, self.readings),
        }
    }
}
