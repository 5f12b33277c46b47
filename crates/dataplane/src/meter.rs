//! Meters: rate measurement and bands.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.7 (meter table) and 7.3.4.4 (meter
//! modification). Each band of a meter measures the rate with its own token bucket ([`band`]).
//! Among the bands whose rate a frame exceeds, the one with the highest rate applies. Bands with
//! lower rates do not count that frame, as with the two rates of RFC 2698. So frames dropped above
//! one rate do not use tokens of a lower rate.
//!
//! Invariant: the result of a meter depends only on the lengths and times of frames.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::Nanos;
use shared::Shared;

use crate::counter::{SharedTraffic, Traffic};

pub mod band;

pub use band::{Band, BandKind, Unit};

use band::Bucket;

/// Number of a meter.
pub type MeterNo = u32;

/// Highest number of a meter that flow entries can use; the lowest is 1.
pub const METER_NO_MAX: MeterNo = 0xffff_0000;
/// Meter of the slow path. There is no slow path here, so it measures no frames.
pub const SLOWPATH: MeterNo = 0xffff_fffd;
/// Meter of frames for the controller.
pub const CONTROLLER: MeterNo = 0xffff_fffe;
/// All meters, in commands and requests.
pub const METERS_ALL: MeterNo = 0xffff_ffff;

/// Limits of a meter table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterLimits {
    /// Maximum number of meters, without those of the slow path and the controller.
    pub meters_max: usize,
    /// Maximum number of bands in a meter.
    pub bands_max: usize,
}

impl Default for MeterLimits {
    fn default() -> Self {
        MeterLimits { meters_max: 4096, bands_max: 16 }
    }
}

/// Description of a meter, as requested by the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterSpec {
    /// The meter number.
    pub number: MeterNo,
    /// The unit of rates and bursts.
    pub unit: Unit,
    /// Whether to use the bands' bursts.
    pub burst: bool,
    /// Whether the control plane requests counters. They are free and always maintained.
    pub stats: bool,
    /// The bands, in any order.
    pub bands: Vec<Band>,
}

/// A meter and its counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterRecord {
    /// The meter's description.
    pub spec: MeterSpec,
    /// Frames and bytes measured.
    pub traffic: Traffic,
    /// Frames and bytes to which each band was applied, in the order of the bands.
    pub bands: Vec<Traffic>,
    /// Time since the meter was added.
    pub age: Nanos,
}

/// Result of measuring a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterVerdict {
    /// The frame passes.
    Pass,
    /// The frame passes, and its drop precedence is raised by this many levels.
    Remark(u8),
    /// The frame is dropped.
    Drop,
}

/// Error of a meter command. The table returns the errors that depend on its contents; protocol
/// decoders return the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeterError {
    /// A meter with this number exists already.
    MeterExists(MeterNo),
    /// The meter number is invalid, or invalid for adding a meter.
    InvalidMeter(MeterNo),
    /// No meter has this number.
    UnknownMeter(MeterNo),
    /// The command is unknown.
    BadCommand(u16),
    /// The flags are contradictory or unknown.
    BadFlags(u16),
    /// The rate is invalid.
    BadRate(u32),
    /// The burst is invalid.
    BadBurst(u32),
    /// The band type is unknown.
    BadBand(u16),
    /// The value is invalid for a band of this type.
    BadBandValue(u32),
    /// The table is full; this is its capacity.
    OutOfMeters(usize),
    /// The meter would have more bands than this.
    OutOfBands(usize),
}

/// The meters, by number. A clone is cheap, regardless of the number of meters; shared meters
/// measure for both clones.
#[derive(Debug, Clone)]
pub struct MeterTable {
    limits: MeterLimits,
    meters: Shared<MeterNo, Arc<Mutex<Meter>>>,
}

#[derive(Debug)]
struct Meter {
    spec: MeterSpec,
    buckets: Vec<Bucket>,
    /// Indexes of the bands, highest rate first.
    order: Vec<usize>,
    traffic: SharedTraffic,
    added_at: Nanos,
}

impl Default for MeterTable {
    fn default() -> Self {
        MeterTable::new(MeterLimits::default())
    }
}

impl MeterTable {
    /// Creates an empty table.
    pub fn new(limits: MeterLimits) -> MeterTable {
        MeterTable { limits, meters: Shared::new() }
    }

    /// Returns the limits.
    pub fn limits(&self) -> MeterLimits {
        self.limits
    }

    /// Returns the number of meters, without those of the slow path and the controller.
    pub fn count(&self) -> usize {
        let unnumbered = [SLOWPATH, CONTROLLER];
        self.meters.len() - unnumbered.iter().filter(|number| self.contains(**number)).count()
    }

    /// Returns the number of meters, including those of the slow path and the controller.
    pub(crate) fn len(&self) -> usize {
        self.meters.len()
    }

    /// Whether a meter with this number exists.
    pub fn contains(&self, number: MeterNo) -> bool {
        self.meters.contains_key(&number)
    }

    /// Adds a meter.
    pub fn add(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        let is_virtual = matches!(spec.number, SLOWPATH | CONTROLLER);
        if !is_virtual && !(1..=METER_NO_MAX).contains(&spec.number) {
            return Err(MeterError::InvalidMeter(spec.number));
        }
        if self.contains(spec.number) {
            return Err(MeterError::MeterExists(spec.number));
        }
        if !is_virtual && self.count() >= self.limits.meters_max {
            return Err(MeterError::OutOfMeters(self.limits.meters_max));
        }
        self.check(&spec)?;
        self.meters.insert(spec.number, Arc::new(Mutex::new(Meter::new(spec, now))));
        Ok(())
    }

    /// Replaces a meter's description. The meter's counters and age continue; the bands are reset.
    pub fn modify(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        self.check(&spec)?;
        let unknown = MeterError::UnknownMeter(spec.number);
        let known = lock(self.meters.get(&spec.number).ok_or(unknown)?);
        let (traffic, added_at) = (known.traffic.clone(), known.added_at);
        drop(known);
        let number = spec.number;
        let meter = Meter { traffic, added_at, ..Meter::new(spec, now) };
        self.meters.insert(number, Arc::new(Mutex::new(meter)));
        Ok(())
    }

    /// Deletes a meter, or all with [`METERS_ALL`], and returns the deleted meters, so that the
    /// caller can delete entries that use them. A meter that does not exist is not an error.
    pub fn delete(&mut self, number: MeterNo) -> MeterTable {
        let mut gone = MeterTable::new(self.limits);
        if number == METERS_ALL {
            std::mem::swap(&mut gone, self);
        } else if let Some(meter) = self.meters.remove(&number) {
            gone.meters.insert(number, meter);
        }
        gone
    }

    /// Returns the meter with this number, or all with [`METERS_ALL`], ordered by number.
    pub fn records(&self, number: MeterNo, now: Nanos) -> Vec<MeterRecord> {
        let record = |meter: &Arc<Mutex<Meter>>| lock(meter).record(now);
        match number {
            METERS_ALL => self.meters.iter().map(|(_, meter)| record(meter)).collect(),
            _ => self.meters.get(&number).map(record).into_iter().collect(),
        }
    }

    /// Returns the first meter with a number from `from` on.
    pub fn next(&self, from: MeterNo) -> Option<MeterNo> {
        self.meters.range(from..).next().map(|(number, _)| *number)
    }

    /// Frees meters, one step each, except those that clones share. Returns whether nothing is
    /// left.
    pub(crate) fn free_some(&mut self, budget: &mut usize) -> bool {
        self.meters.clear_some(|_| 0, budget)
    }

    /// Measures a frame of `bytes` bytes (without frame check sequence). A meter that does not
    /// exist passes all frames.
    pub fn measure(&mut self, number: MeterNo, bytes: usize, now: Nanos) -> MeterVerdict {
        let meter = self.meters.get(&number);
        meter.map_or(MeterVerdict::Pass, |meter| lock(meter).measure(bytes, now))
    }

    fn check(&self, spec: &MeterSpec) -> Result<(), MeterError> {
        if spec.bands.len() > self.limits.bands_max {
            return Err(MeterError::OutOfBands(self.limits.bands_max));
        }
        for band in &spec.bands {
            if band.rate == 0 {
                return Err(MeterError::BadRate(band.rate));
            }
            if band.kind == (BandKind::DscpRemark { levels: 0 }) {
                return Err(MeterError::BadBandValue(0));
            }
        }
        Ok(())
    }
}

fn lock(meter: &Mutex<Meter>) -> MutexGuard<'_, Meter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Meter {
    fn new(spec: MeterSpec, now: Nanos) -> Meter {
        let bucket = |band: &Band| Bucket::new(band, spec.unit, spec.burst, now);
        let buckets = spec.bands.iter().map(bucket).collect();
        let mut order: Vec<usize> = (0..spec.bands.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(spec.bands[*place].rate));
        Meter { spec, buckets, order, traffic: SharedTraffic::default(), added_at: now }
    }

    fn measure(&mut self, bytes: usize, now: Nanos) -> MeterVerdict {
        self.traffic.add(bytes);
        let buckets = &mut self.buckets;
        let exceeded = self.order.iter().find(|place| !buckets[**place].take(bytes, now));
        let Some(&place) = exceeded else { return MeterVerdict::Pass };
        self.buckets[place].traffic.add(bytes);
        match self.spec.bands[place].kind {
            BandKind::Drop => MeterVerdict::Drop,
            BandKind::DscpRemark { levels } => MeterVerdict::Remark(levels),
        }
    }

    fn record(&self, now: Nanos) -> MeterRecord {
        MeterRecord {
            spec: self.spec.clone(),
            traffic: self.traffic.get(),
            bands: self.buckets.iter().map(|bucket| bucket.traffic).collect(),
            age: now.since(self.added_at),
        }
    }
}

impl std::fmt::Display for MeterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MeterError::MeterExists(number) => write!(f, "meter {number} exists already"),
            MeterError::InvalidMeter(number) => write!(f, "invalid meter number {number}"),
            MeterError::UnknownMeter(number) => write!(f, "there is no meter {number}"),
            MeterError::BadCommand(command) => {
                write!(f, "invalid meter command {command}")
            }
            MeterError::BadFlags(flags) => write!(f, "invalid meter flags {flags:#x}"),
            MeterError::BadRate(rate) => write!(f, "invalid band rate {rate}"),
            MeterError::BadBurst(burst) => write!(f, "invalid band burst {burst}"),
            MeterError::BadBand(kind) => write!(f, "invalid band type {kind}"),
            MeterError::BadBandValue(value) => write!(f, "invalid band value {value}"),
            MeterError::OutOfMeters(max) => {
                write!(f, "the meter table is full: at most {max} meters")
            }
            MeterError::OutOfBands(max) => write!(f, "too many bands: at most {max}"),
        }
    }
}

impl std::error::Error for MeterError {}

#[cfg(test)]
mod tests;
