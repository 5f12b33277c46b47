//! Meters: how many frames or bits pass in a second before a band drops or marks them.
//!
//! Source: OpenFlow 1.3.5 section 7.3.4.4 (`ofp_meter_mod`), 1.5.1 section 7.3.4.5.

use std::fmt;

use packet::time::Nanos;

use super::action::Experimenter;
use super::bits::bits;
use super::text::list;
use crate::version::NO;

/// The greatest number that a meter of a controller's can have.
pub const METER_MAX: u32 = 0xffff_0000;
/// The meter of frames on the switch's slow path.
pub const METER_SLOWPATH: u32 = 0xffff_fffd;
/// The meter of frames to the controller.
pub const METER_CONTROLLER: u32 = 0xffff_fffe;
/// Stands for all meters when deleting and asking.
pub const METER_ALL: u32 = 0xffff_ffff;

/// What to do with a meter (`ofp_meter_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MeterModCommand {
    /// Adds one that is not there yet.
    #[default]
    Add,
    /// Changes one that is there.
    Modify,
    /// Deletes one, or all.
    Delete,
}

bits! {
    /// What a meter counts (`ofp_meter_flags`).
    MeterFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Rates are in kbit/s.
        KBPS "kbps"                                  [NO, NO, NO,  0,  0,  0];
        /// Rates are in packets/s.
        PKTPS "pktps"                                [NO, NO, NO,  1,  1,  1];
        /// Bursts may be as long as said.
        BURST "burst"                                [NO, NO, NO,  2,  2,  2];
        /// Counts.
        STATS "stats"                                [NO, NO, NO,  3,  3,  3];
    }
}

/// From which rate on, and what is done then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterBand {
    /// The rate above which the band acts, in kbit/s or packets/s.
    pub rate: u32,
    /// How much may come at once, in kbit or packets, with [`MeterFlags::BURST`].
    pub burst: u32,
    /// What is done.
    pub kind: MeterBandKind,
}

/// What a band does (`ofp_meter_band_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeterBandKind {
    /// Drops the frame.
    Drop,
    /// Raises the drop precedence in the DSCP by this many levels.
    DscpRemark {
        /// Levels, 1 or 2.
        levels: u8,
    },
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Adds, changes or deletes a meter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterMod {
    /// What to do.
    pub command: MeterModCommand,
    /// What it counts.
    pub flags: MeterFlags,
    /// Its number, or [`METER_ALL`] when deleting.
    pub meter: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A meter as it is installed (`ofp_meter_config`, from 1.5 on `ofp_meter_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// What it counts.
    pub flags: MeterFlags,
    /// Its number.
    pub meter: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A meter's counters (`ofp_meter_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterStats {
    /// Its number.
    pub meter: u32,
    /// How many entries send to it.
    pub references: u32,
    /// Frames that it saw, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// How long it has been there.
    pub age: Nanos,
    /// The counters of each band, in order.
    pub bands: Vec<BandCounters>,
}

/// A band's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BandCounters {
    /// Frames that it acted on.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
}

bits! {
    /// A set of kinds of bands; bit n for the kind with code n.
    MeterBandKinds {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// [`MeterBandKind::Drop`].
        DROP "drop"                                  [NO, NO, NO,  1,  1,  1];
        /// [`MeterBandKind::DscpRemark`].
        DSCP_REMARK "dscp_remark"                    [NO, NO, NO,  2,  2,  2];
    }
}

bits! {
    /// Where the meter action can stand (`ofp_meter_feature_flags`, 1.5).
    MeterFeatureFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// In an action set.
        ACTION_SET "action_set"                      [NO, NO, NO, NO, NO,  0];
        /// Anywhere in a list of actions.
        ANY_POSITION "any_position"                  [NO, NO, NO, NO, NO,  1];
        /// More than once in a list of actions.
        MULTI_LIST "multi_list"                      [NO, NO, NO, NO, NO,  2];
    }
}

/// What meters a switch can have (`ofp_meter_features`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeterFeatures {
    /// How many.
    pub meters_max: u32,
    /// Which bands.
    pub band_kinds: MeterBandKinds,
    /// What they count.
    pub capabilities: MeterFlags,
    /// How many bands each.
    pub bands_max: u8,
    /// How many colours.
    pub colours_max: u8,
    /// Where the action can stand (1.5).
    pub flags: MeterFeatureFlags,
}

struct ShowMeter(u32);

impl fmt::Display for ShowMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            METER_SLOWPATH => f.write_str("slowpath"),
            METER_CONTROLLER => f.write_str("controller"),
            METER_ALL => f.write_str("all"),
            number => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for MeterBand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            MeterBandKind::Drop => f.write_str("drop")?,
            MeterBandKind::DscpRemark { levels } => write!(f, "dscp_remark:{levels}")?,
            MeterBandKind::Experimenter(vendor) => write!(f, "experimenter:{vendor}")?,
        }
        write!(f, ":rate={}:burst={}", self.rate, self.burst)
    }
}

fn show_meter(
    f: &mut fmt::Formatter<'_>,
    meter: u32,
    flags: MeterFlags,
    bands: &[MeterBand],
) -> fmt::Result {
    write!(f, "meter={} flags={flags} bands=", ShowMeter(meter))?;
    if bands.is_empty() { f.write_str("none") } else { list(f, bands) }
}

impl fmt::Display for MeterMod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.command {
            MeterModCommand::Add => "add ",
            MeterModCommand::Modify => "modify ",
            MeterModCommand::Delete => "delete ",
        })?;
        show_meter(f, self.meter, self.flags, &self.bands)
    }
}

impl fmt::Display for MeterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_meter(f, self.meter, self.flags, &self.bands)
    }
}

impl fmt::Display for MeterStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "meter={} references={}", ShowMeter(self.meter), self.references)?;
        write!(f, " packets={} bytes={} age={}ns", self.packets, self.bytes, self.age.0)?;
        self.bands.iter().try_for_each(|band| {
            write!(f, "\n    band packets={} bytes={}", band.packets, band.bytes)
        })
    }
}

impl fmt::Display for MeterFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "meters_max={} bands={}", self.meters_max, self.band_kinds)?;
        write!(f, " capabilities={} bands_max={}", self.capabilities, self.bands_max)?;
        write!(f, " colours_max={} flags={}", self.colours_max, self.flags)
    }
}
