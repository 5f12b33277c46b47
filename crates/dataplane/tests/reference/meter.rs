//! Meters by the specification text: a token bucket for each band.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.7. Of the bands whose rate is exceeded,
//! only the one with the highest rate applies. A band's bucket has the size of its burst and fills
//! at its rate. A frame takes its tokens if there are enough, and otherwise exceeds the rate. Bands
//! with lower rates do not measure frames to which a higher one was applied. RFC 2597, section 6,
//! defines drop precedences. Only bands with a burst are tested, because the specification does not
//! define a rate without one.

use std::collections::BTreeMap;

use dataplane::meter::{BandKind, MeterSpec, Unit};
use packet::time::Nanos;

/// Assured forwarding: the code points of each class, by drop precedence.
const ASSURED: [[u8; 3]; 4] = [[10, 12, 14], [18, 20, 22], [26, 28, 30], [34, 36, 38]];

/// A meter and its counters.
#[derive(Debug, Clone)]
pub struct Meter {
    pub spec: MeterSpec,
    /// Frames and bytes.
    pub traffic: (u64, u64),
    /// Frames and bytes to which each band was applied.
    pub done: Vec<(u64, u64)>,
    /// Fill level of each band's bucket, in billionths of a bit or of a frame.
    level: Vec<u128>,
    at: Nanos,
}

/// The meters, by number.
pub type Meters = BTreeMap<u32, Meter>;

/// Result of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    Raise(u8),
}

const BILLION: u128 = 1_000_000_000;

impl Meter {
    /// Creates a meter with full buckets.
    pub fn new(spec: MeterSpec, now: Nanos) -> Meter {
        let level = spec.bands.iter().map(|band| depth(&spec, band.burst)).collect();
        let done = vec![(0, 0); spec.bands.len()];
        Meter { spec, traffic: (0, 0), done, level, at: now }
    }

    /// Measures a frame of `bytes` bytes.
    pub fn measure(&mut self, bytes: u64, now: Nanos) -> Verdict {
        count(&mut self.traffic, bytes);
        let worth = match self.spec.unit {
            Unit::Packets => BILLION,
            Unit::Kilobits => u128::from(bytes) * 8 * BILLION,
        };
        let span = u128::from(now.0 - self.at.0);
        self.at = now;
        for (band, level) in self.spec.bands.iter().zip(&mut self.level) {
            let rate = u128::from(band.rate) * thousand(&self.spec);
            *level = (*level + span * rate).min(depth(&self.spec, band.burst));
        }
        let mut falling: Vec<usize> = (0..self.spec.bands.len()).collect();
        falling.sort_by_key(|at| u32::MAX - self.spec.bands[*at].rate);
        for at in falling {
            if self.level[at] >= worth {
                self.level[at] -= worth;
                continue;
            }
            count(&mut self.done[at], bytes);
            return match self.spec.bands[at].kind {
                BandKind::Drop => Verdict::Drop,
                BandKind::DscpRemark { levels } => Verdict::Raise(levels),
            };
        }
        Verdict::Pass
    }
}

/// Counts one frame.
pub fn count(of: &mut (u64, u64), bytes: u64) {
    of.0 += 1;
    of.1 += bytes;
}

fn thousand(spec: &MeterSpec) -> u128 {
    if spec.unit == Unit::Kilobits { 1000 } else { 1 }
}

fn depth(spec: &MeterSpec, burst: u32) -> u128 {
    u128::from(burst) * thousand(spec) * BILLION
}

/// Returns the code point with a higher drop precedence, if it is one of assured forwarding.
pub fn raised(dscp: u8, levels: u8) -> Option<u8> {
    let class = ASSURED.iter().find(|class| class.contains(&dscp))?;
    let at = class.iter().position(|one| *one == dscp)?;
    Some(class[(at + usize::from(levels)).min(2)])
}
