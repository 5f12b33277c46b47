//! Meters: bands that drop or remark frames above a rate.
//!
//! Source: OpenFlow 1.3.5 section 7.3.4.4 (`ofp_meter_mod`), 1.5.1 section 7.3.4.5.

use std::fmt;

use packet::time::Nanos;

use super::action::Experimenter;
use super::bits::bits;
use super::text::list;
use crate::version::NO;

/// Maximum meter ID that a controller can use.
pub const METER_MAX: u32 = 0xffff_0000;
/// Meter of frames on the switch's slow path.
pub const METER_SLOWPATH: u32 = 0xffff_fffd;
/// Meter of frames to the controller.
pub const METER_CONTROLLER: u32 = 0xffff_fffe;
/// All meters, in deletions and requests.
pub const METER_ALL: u32 = 0xffff_ffff;

/// Command of a meter-mod (`ofp_meter_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MeterModCommand {
    /// Adds a new meter.
    #[default]
    Add,
    /// Modifies an existing meter.
    Modify,
    /// Deletes one meter or all.
    Delete,
}

bits! {
    /// Flags of a meter (`ofp_meter_flags`).
    MeterFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Rates are in kbit/s.
        KBPS "kbps"                                  [NO, NO, NO,  0,  0,  0];
        /// Rates are in packets/s.
        PKTPS "pktps"                                [NO, NO, NO,  1,  1,  1];
        /// Bands have a burst size.
        BURST "burst"                                [NO, NO, NO,  2,  2,  2];
        /// The meter collects statistics.
        STATS "stats"                                [NO, NO, NO,  3,  3,  3];
    }
}

/// A rate, and the action above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterBand {
    /// The rate above which the band applies, in kbit/s or packets/s.
    pub rate: u32,
    /// Burst size in kbit or packets, with [`MeterFlags::BURST`].
    pub burst: u32,
    /// What the band does.
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
    /// An experimenter band.
    Experimenter(Experimenter),
}

/// Adds, modifies or deletes a meter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterMod {
    /// The command.
    pub command: MeterModCommand,
    /// Flags.
    pub flags: MeterFlags,
    /// Meter ID, or [`METER_ALL`] in deletions.
    pub meter: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// An installed meter (`ofp_meter_config`, from 1.5 on `ofp_meter_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Flags.
    pub flags: MeterFlags,
    /// Meter ID.
    pub meter: u32,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A meter's counters (`ofp_meter_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterStats {
    /// Meter ID.
    pub meter: u32,
    /// Number of flow entries that refer to it.
    pub references: u32,
    /// Processed frames, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Processed bytes.
    pub bytes: u64,
    /// Time since the meter was installed.
    pub age: Nanos,
    /// The counters of each band, in order.
    pub bands: Vec<BandCounters>,
}

/// A band's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BandCounters {
    /// Frames that the band applied to.
    pub packets: u64,
    /// Bytes that the band applied to.
    pub bytes: u64,
}

bits! {
    /// A set of band types; bit n is for code n.
    MeterBandKinds {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// [`MeterBandKind::Drop`].
        DROP "drop"                                  [NO, NO, NO,  1,  1,  1];
        /// [`MeterBandKind::DscpRemark`].
        DSCP_REMARK "dscp_remark"                    [NO, NO, NO,  2,  2,  2];
    }
}

bits! {
    /// Where a meter action is allowed (`ofp_meter_feature_flags`, 1.5).
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

/// Meter features of a switch (`ofp_meter_features`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeterFeatures {
    /// Maximum number of meters.
    pub meters_max: u32,
    /// Supported band types.
    pub band_kinds: MeterBandKinds,
    /// Supported flags.
    pub capabilities: MeterFlags,
    /// Maximum number of bands in a meter.
    pub bands_max: u8,
    /// Maximum number of colours.
    pub colours_max: u8,
    /// Where a meter action is allowed (1.5).
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
