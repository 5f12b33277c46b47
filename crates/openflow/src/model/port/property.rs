//! What ports are, count and can be told beyond Ethernet.
//!
//! Source: OpenFlow 1.4.1 sections 7.2.1, 7.3.4.3 and 7.3.5.6 (properties of `ofp_port`,
//! `ofp_port_mod` and `ofp_port_stats`), 1.5.1 section 7.2.1.2. Frequencies are in MHz or, unless
//! the flag says so, wavelengths in nanometres times 100; powers in dBm times 10.

use std::fmt;

use super::super::action::Experimenter;
use super::super::bits::bits;
use super::super::matching::field_id::FieldId;
use super::super::text::list;
use super::{PortNo, ShowPort};
use crate::version::NO;

bits! {
    /// What an optical port can do (`ofp_optical_port_features`).
    OpticalFeatures {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Its receiver can be tuned.
        RX_TUNE "rx_tune"                            [NO, NO, NO, NO,  0,  0];
        /// Its transmitter can be tuned.
        TX_TUNE "tx_tune"                            [NO, NO, NO, NO,  1,  1];
        /// Its power can be set.
        TX_POWER "tx_power"                          [NO, NO, NO, NO,  2,  2];
        /// Light is given as a frequency.
        USE_FREQUENCY "use_frequency"                [NO, NO, NO, NO,  3,  3];
    }
}

bits! {
    /// What an optical port measures (`ofp_port_stats_optical_flags`).
    OpticalStatsFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// To what its receiver is tuned.
        RX_TUNE "rx_tune"                            [NO, NO, NO, NO,  0,  0];
        /// To what its transmitter is tuned.
        TX_TUNE "tx_tune"                            [NO, NO, NO, NO,  1,  1];
        /// The power that it sends.
        TX_POWER "tx_power"                          [NO, NO, NO, NO,  2,  2];
        /// The power that it receives.
        RX_POWER "rx_power"                          [NO, NO, NO, NO,  4,  4];
        /// The bias current of the laser.
        TX_BIAS "tx_bias"                            [NO, NO, NO, NO,  5,  5];
        /// The temperature of the laser.
        TX_TEMPERATURE "tx_temperature"              [NO, NO, NO, NO,  6,  6];
    }
}

/// What a port is beyond Ethernet (`ofp_port_desc_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortProperty {
    /// Its light.
    Optical(OpticalPort),
    /// Pipeline fields that it gives to frames (1.5).
    PipelineInput(Vec<FieldId>),
    /// Pipeline fields that it uses of frames (1.5).
    PipelineOutput(Vec<FieldId>),
    /// Ports that frames sent here come in on again (1.5).
    Recirculate(Vec<PortNo>),
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// Light of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalPort {
    /// What the port can do.
    pub supported: OpticalFeatures,
    /// Range and step of the transmitter: lowest, highest, grid.
    pub tx: [u32; 3],
    /// Range and step of the receiver: lowest, highest, grid.
    pub rx: [u32; 3],
    /// Lowest power.
    pub tx_power_min: u16,
    /// Highest power.
    pub tx_power_max: u16,
}

/// How a port is to behave beyond Ethernet (`ofp_port_mod_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortModProperty {
    /// Its light.
    Optical(OpticalMod),
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// Light that a port is to send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalMod {
    /// What is to be set.
    pub configure: OpticalFeatures,
    /// The centre.
    pub center: u32,
    /// How far off it.
    pub offset: i32,
    /// The width.
    pub span: u32,
    /// The power.
    pub tx_power: u32,
}

/// What a port measures beyond Ethernet (`ofp_port_stats_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortStatsProperty {
    /// Its light.
    Optical(OpticalStats),
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// Light that a port measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpticalStats {
    /// What is measured.
    pub flags: OpticalStatsFlags,
    /// Of the transmitter: centre, offset, width.
    pub tx: [u32; 3],
    /// Of the receiver: centre, offset, width.
    pub rx: [u32; 3],
    /// Power sent.
    pub tx_power: u16,
    /// Power received.
    pub rx_power: u16,
    /// Bias current in milliampere times 10.
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
