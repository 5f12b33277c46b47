//! Quality of the tester's clock over a run: resolution, rate and comparison with a reference.
//!
//! All times of a run, of frames and of control messages, use the kernel's monotonic clock.
//! Invariant: an unknown value is absent.

use serde::{Deserialize, Serialize};

/// Properties of the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Properties of the time-stamp counter, as the processor reports them.
    pub counter: String,
    /// Time to read the clock.
    pub reading_ns: u64,
    /// Observation time for the following values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Frequency offset from the raw clock, which is not disciplined, in parts in 10^9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb: Option<f64>,
    /// Uncertainty of the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb_error: Option<f64>,
    /// Largest deviation from a constant rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wander_ns: Option<f64>,
    /// Frequency of the time-stamp counter, measured with the raw clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_hz: Option<f64>,
    /// Uncertainty of the frequency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_hz_error: Option<f64>,
    /// An external reference clock, if present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ClockReference>,
}

/// An external clock that the tester's clock is compared with. Untested on hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClockReference {
    /// Its device.
    pub name: String,
    /// Offset of the reference from the tester's clock; absent before the second reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Uncertainty of the offset; absent before the control loop has settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns_error: Option<f64>,
    /// Frequency offset in parts in 10^9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppb: Option<f64>,
    /// Accepted readings.
    pub readings: u64,
    /// Rejected implausible readings.
    pub ignored: u64,
}

impl ClockFacts {
    /// The properties as text.
    pub fn words(&self) -> String {
        let drift = self.drift_ppb.zip(self.drift_ppb_error).map_or_else(String::new, |it| {
            format!(", {:+.0} ppb (± {:.0}) against the raw clock", it.0, it.1)
        });
        let counter =
            self.counter_hz.map_or_else(String::new, |hz| format!(" at {:.3} MHz", hz / 1e6));
        let reference = match &self.reference {
            None => "no PPS or PTP device".to_string(),
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
            None => format!("{}: read {} times, too few to use it", self.name, self.readings),
        }
    }
}
