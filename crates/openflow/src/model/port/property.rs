//! Port properties: descriptions, configuration and statistics beyond Ethernet.
//!
//! Source: OpenFlow 1.4.1 sections 7.2.1, 7.3.4.3 and 7.3.5.6 (properties of `ofp_port`,
//! `ofp_port_mod` and `ofp_port_stats`), 1.5.1 section 7.2.1.2.
//!
//! Units: frequencies in MHz with the flag `USE_FREQUENCY`, otherwise wavelengths in nanometres
//! times 100; powers in dBm times 10.

use std::fmt;

use super::super::action::Experimenter;
use super::super::bits::bits;
use super::super::matching::field_id::FieldId;
use super::super::text::list;
use super::{PortNo, ShowPort};
use crate::version::NO;

bits! {
    /// Features of an optical port (`ofp_optical_port_features`).
    OpticalFeatures {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// The receiver is tunable.
        RX_TUNE "rx_tune"                            [NO, NO, NO, NO,  0,  0];
        /// The transmitter is tunable.
        TX_TUNE "tx_tune"                            [NO, NO, NO, NO,  1,  1];
        /// The transmit power is configurable.
        TX_POWER "tx_power"                          [NO, NO, NO, NO,  2,  2];
        /// Values are frequencies, not wavelengths.
        USE_FREQUENCY "use_frequency"                [NO, NO, NO, NO,  3,  3];
    }
}

bits! {
    /// Valid values of an optical port's statistics (`ofp_port_stats_optical_flags`).
    OpticalStatsFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Tuning of the receiver.
        RX_TUNE "rx_tune"                            [NO, NO, NO, NO,  0,  0];
        /// Tuning of the transmitter.
        TX_TUNE "tx_tune"                            [NO, NO, NO, NO,  1,  1];
        /// Transmit power.
        TX_POWER "tx_power"                          [NO, NO, NO, NO,  2,  2];
        /// Receive power.
        RX_POWER "rx_power"                          [NO, NO, NO, NO,  4,  4];
        /// Bias current of the laser.
        TX_BIAS "tx_bias"                            [NO, NO, NO, NO,  5,  5];
        /// Temperature of the laser.
        TX_TEMPERATURE "tx_temperature"              [NO, NO, NO, NO,  6,  6];
    }
}

/// Property of a port description (`ofp_port_desc_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortProperty {
    /// Optical features.
    Optical(OpticalPort),
    /// Pipeline fields that the port provides for received frames (1.5).
    PipelineInput(Vec<FieldId>),
    /// Pipeline fields that the port consumes of sent frames (1.5).
    PipelineOutput(Vec<FieldId>),
    /// Ports on which frames sent to this port re-enter the switch (1.5).
    Recirculate(Vec<PortNo>),
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// Optical features of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalPort {
    /// Supported features.
    pub supported: OpticalFeatures,
    /// Tuning range of the transmitter: minimum, maximum, grid spacing.
    pub tx: [u32; 3],
    /// Tuning range of the receiver: minimum, maximum, grid spacing.
    pub rx: [u32; 3],
    /// Minimum transmit power.
    pub tx_power_min: u16,
    /// Maximum transmit power.
    pub tx_power_max: u16,
}

/// Property of a port-mod (`ofp_port_mod_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortModProperty {
    /// Optical configuration.
    Optical(OpticalMod),
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// Optical configuration of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalMod {
    /// The features to configure.
    pub configure: OpticalFeatures,
    /// Center frequency or wavelength.
    pub center: u32,
    /// Signed offset from the center.
    pub offset: i32,
    /// Spectral width.
    pub span: u32,
    /// Transmit power.
    pub tx_power: u32,
}

/// Property of port statistics (`ofp_port_stats_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortStatsProperty {
    /// Optical statistics.
    Optical(OpticalStats),
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// Optical statistics of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalStats {
    /// The valid values.
    pub flags: OpticalStatsFlags,
    /// Transmitter: center, offset, width.
    pub tx: [u32; 3],
    /// Receiver: center, offset, width.
    pub rx: [u32; 3],
    /// Transmit power.
    pub tx_power: u16,
    /// Receive power.
    pub rx_power: u16,
    /// Bias current in milliamperes times 10.
    pub bias_current: u16,
    /// Temperature in degrees Celsius times 10.
    pub temperature: u16,
}

fn show_range(f: &mut fmt::Formatter<'_>, name: &str, numbers: [u32; 3]) -> fmt::Result {
    let [a, b, c] = numbers;
    write!(f, " {name}={a}/{b}/{c}")
}

impl fmt::Display for PortProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortProperty::Optical(optical) => {
                write!(f, "optical({}", optical.supported)?;
                show_range(f, "tx", optical.tx)?;
                show_range(f, "rx", optical.rx)?;
                write!(f, " tx_power={}..{})", optical.tx_power_min, optical.tx_power_max)
            }
            PortProperty::PipelineInput(ids) => {
                f.write_str("pipeline_input=")?;
                list(f, ids)
            }
            PortProperty::PipelineOutput(ids) => {
                f.write_str("pipeline_output=")?;
                list(f, ids)
            }
            PortProperty::Recirculate(ports) => {
                f.write_str("recirculate=")?;
                let shown: Vec<_> = ports.iter().map(|port| ShowPort(*port)).collect();
                list(f, &shown)
            }
            PortProperty::Experimenter(body) => write!(f, "experimenter={body}"),
        }
    }
}

impl fmt::Display for PortModProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortModProperty::Optical(optical) => {
                write!(f, "optical({} center={}", optical.configure, optical.center)?;
                write!(f, " offset={} span={}", optical.offset, optical.span)?;
                write!(f, " tx_power={})", optical.tx_power)
            }
            PortModProperty::Experimenter(body) => write!(f, "experimenter={body}"),
        }
    }
}

impl fmt::Display for PortStatsProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortStatsProperty::Optical(optical) => {
                write!(f, "optical({}", optical.flags)?;
                show_range(f, "tx", optical.tx)?;
                show_range(f, "rx", optical.rx)?;
                write!(f, " tx_power={} rx_power={}", optical.tx_power, optical.rx_power)?;
                write!(f, " bias_current={}", optical.bias_current)?;
                write!(f, " temperature={})", optical.temperature)
            }
            PortStatsProperty::Experimenter(body) => write!(f, "experimenter={body}"),
        }
    }
}
