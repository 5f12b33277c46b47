//! Meters: how fast the frames that are led through one come, and what is done with those too many.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.7 (meter table) and 7.3.4.4 (meter
//! modification). A meter has bands; each measures the rate on its own, by a bucket of tokens
//! ([`band`]). Among the bands whose rate a frame exceeds the one with the highest rate says what
//! is done with it, and bands of lower rates do not count that frame (as the two rates of RFC 2698),
//! so that what is dropped above one rate takes nothing from what may pass below another.
//!
//! Invariant: what a meter lets pass depends on the frames' lengths and times alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::Nanos;
use shared::Shared;

use crate::counter::{SharedTraffic, Traffic};

/// One band's bucket of tokens.
pub mod band;

pub use band::{Band, BandKind, Unit};

use band::Bucket;

/// The number by which a meter is known.
pub type MeterNo = u32;

/// Highest number of a meter that flows can name; the lowest is 1.
pub const METER_NO_MAX: MeterNo = 0xffff_0000;
/// The meter of the slow path. Here every frame takes the same path, so it measures none.
pub const SLOWPATH: MeterNo = 0xffff_fffd;
/// The meter through which frames for the control plane go.
pub const CONTROLLER: MeterNo = 0xffff_fffe;
/// All meters, in commands and questions.
pub const METERS_ALL: MeterNo = 0xffff_ffff;

/// How much a table of meters holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterLimits {
    /// Meters, without the slow path's and the controller's.
    pub meters_max: usize,
    /// Bands of one meter.
    pub bands_max: usize,
}

impl Default for MeterLimits {
    fn default() -> Self {
        MeterLimits { meters_max: 4096, bands_max: 16 }
    }
}

/// A meter as the control plane describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterSpec {
    /// Its number.
    pub number: MeterNo,
    /// What rates and bursts count.
    pub unit: Unit,
    /// Whether the bands' bursts are to be used.
    pub burst: bool,
    /// Whether the control plane wants counters. They cost nothing and are kept in any case.
    pub stats: bool,
    /// The bands, in any order.
    pub bands: Vec<Band>,
}

/// A meter and its counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterRecord {
    /// The meter as it was described.
    pub spec: MeterSpec,
    /// Frames and bytes that went into it.
    pub traffic: Traffic,
    /// Frames and bytes that each band was applied to, in the order of the bands.
    pub bands: Vec<Traffic>,
    /// Time since it was added.
    pub age: Nanos,
}

/// What a meter decides about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterVerdict {
    /// It goes on.
    Pass,
    /// It goes on with its drop precedence raised by so many levels.
    Remark(u8),
    /// It is dropped.
    Drop,
}

/// Why a command about meters is refused. The table gives those that depend on what it holds;
/// the others are for whoever translates a protocol into [`MeterSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeterError {
    /// There is a meter of this number already.
    MeterExists(MeterNo),
    /// No meter can have this number, or none can be added under it.
    InvalidMeter(MeterNo),
    /// There is no meter of this number.
    UnknownMeter(MeterNo),
    /// No command has this number.
    BadCommand(u16),
    /// These flags contradict each other or are not known.
    BadFlags(u16),
    /// No band can have this rate.
    BadRate(u32),
    /// No band can have this burst.
    BadBurst(u32),
    /// No band is of this type.
    BadBand(u16),
    /// A band of this type cannot have this value.
    BadBandValue(u32),
    /// The table holds as many meters as it may.
    OutOfMeters(usize),
    /// A meter may not have more bands than this.
    OutOfBands(usize),
}

/// The meters, by number. A clone costs little however many there are; what both have in common measures for both.
#[derive(Debug, Clone)]
pub struct MeterTable {
    limits: MeterLimits,
    meters: Shared<MeterNo, Arc<Mutex<Meter>>>,
}

#[derive(Debug)]
struct Meter {
    spec: MeterSpec,
    buckets: Vec<Bucket>,
    /// Places of the bands, highest rate first.
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
    /// No meters yet.
    pub fn new(limits: MeterLimits) -> MeterTable {
        MeterTable { limits, meters: Shared::new() }
    }

    /// How much fits.
    pub fn limits(&self) -> MeterLimits {
        self.limits
    }

    /// How many meters there are, without the slow path's and the controller's.
    pub fn count(&self) -> usize {
        let unnumbered = [SLOWPATH, CONTROLLER];
        self.meters.len() - unnumbered.iter().filter(|number| self.contains(**number)).count()
    }

    /// How many meters there are, the slow path's and the controller's included.
    pub(crate) fn len(&self) -> usize {
        self.meters.len()
    }

    /// Whether there is a meter of this number.
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

    /// Puts another description in the place of a meter's. Its own counters and its age go on,
    /// the bands begin anew.
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

    /// Deletes a meter, or all for [`METERS_ALL`], and returns a table of those that went:
    /// entries that lead through them have to go too. A meter that does not exist is no error.
    pub fn delete(&mut self, number: MeterNo) -> MeterTable {
        let mut gone = MeterTable::new(self.limits);
        if number == METERS_ALL {
            std::mem::swap(&mut gone, self);
        } else if let Some(meter) = self.meters.remove(&number) {
            gone.meters.insert(number, meter);
        }
        gone
    }

    /// The meter of this number, or all for [`METERS_ALL`], in the order of their numbers.
    pub fn records(&self, number: MeterNo, now: Nanos) -> Vec<MeterRecord> {
        let record = |meter: &Arc<Mutex<Meter>>| lock(meter).record(now);
        match number {
            METERS_ALL => self.meters.iter().map(|(_, meter)| record(meter)).collect(),
            _ => self.meters.get(&number).map(record).into_iter().collect(),
        }
    }

    /// The first meter whose number is not below `from`.
    pub fn next(&self, from: MeterNo) -> Option<MeterNo> {
        self.meters.range(from..).next().map(|(number, _)| *number)
    }

    /// Frees what it holds, a step of the budget for each meter, but for what clones hold too. Returns whether
    /// nothing is left.
    pub(crate) fn free_some(&mut self, budget: &mut usize) -> bool {
        self.meters.clear_some(|_| 0, budget)
    }

    /// Leads a frame of so many bytes (without frame check sequence) through a meter. One that
    /// does not exist lets everything pass.
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
            MeterError::MeterExists(number) => write!(f, "there is a meter {number} already"),
            MeterError::InvalidMeter(number) => write!(f, "no meter can have the number {number}"),
            MeterError::UnknownMeter(number) => write!(f, "there is no meter {number}"),
            MeterError::BadCommand(command) => {
                write!(f, "no meter command has the number {command}")
            }
            MeterError::BadFlags(flags) => write!(f, "a meter cannot have the flags {flags:#x}"),
            MeterError::BadRate(rate) => write!(f, "a band cannot have the rate {rate}"),
            MeterError::BadBurst(burst) => write!(f, "a band cannot have the burst {burst}"),
            MeterError::BadBand(kind) => write!(f, "no band is of type {kind}"),
            MeterError::BadBandValue(value) => write!(f, "a band cannot have the value {value}"),
            MeterError::OutOfMeters(max) => write!(f, "the table holds {max} meters"),
            MeterError::OutOfBands(max) => write!(f, "a meter has at most {max} bands"),
        }
    }
}

impl std::error::Error for MeterError {}

#[cfg(test)]
mod tests;
