//! Flow tables: configuration, descriptions, statistics, and capabilities before 1.3.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 and 1.2 section A.3.5.3 (`ofp_table_stats`), 1.1.0 section
//! A.3.3 and 1.4.1 sections 7.3.4.1, 7.3.5.16 and 7.4.5 (`ofp_table_mod`, `ofp_table_desc`,
//! `ofp_table_status`).

pub mod features;

use std::fmt;

use packet::field::{Field, FieldSet};

use super::action::Experimenter;
use super::bits::bits;
use super::kinds::{ActionKinds, InstructionKinds};
use super::text::{Text, list};
use crate::version::NO;

/// All tables.
pub const TABLE_ALL: u8 = 0xff;

/// The emergency table, in a 1.0 request.
pub const TABLE_EMERGENCY: u8 = 0xfe;

/// Maximum table number (from 1.1 on).
pub const TABLE_MAX: u8 = 0xfe;

/// Fields that 1.0 can wildcard.
pub const FIELDS_1_0: FieldSet = FieldSet::NONE
    .with(Field::InPort)
    .with(Field::VlanVid)
    .with(Field::VlanPcp)
    .with(Field::EthSrc)
    .with(Field::EthDst)
    .with(Field::EthType)
    .with(Field::IpProto)
    .with(Field::ArpOp)
    .with(Field::IpDscp)
    .with(Field::Ipv4Src)
    .with(Field::ArpSpa)
    .with(Field::Ipv4Dst)
    .with(Field::ArpTpa)
    .with(Field::TcpSrc)
    .with(Field::UdpSrc)
    .with(Field::Icmpv4Type)
    .with(Field::TcpDst)
    .with(Field::UdpDst)
    .with(Field::Icmpv4Code)
    .with(Field::SctpSrc)
    .with(Field::SctpDst);

/// Handling of a table miss (`OFPTC_TABLE_MISS_*` of 1.1 and 1.2).
///
/// Later versions have a table-miss entry and ignore these bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TableMiss {
    /// Send the frame to the controller.
    #[default]
    Controller,
    /// Continue with the next table.
    Continue,
    /// Drop the frame.
    Drop,
}

/// Configuration of a table (`ofp_table_config`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// Handling of a table miss.
    pub miss: TableMiss,
    /// Whether the switch may evict entries for new ones (1.4).
    pub eviction: bool,
    /// Whether the switch sends vacancy events to the controllers (1.4).
    pub vacancy_events: bool,
}

bits! {
    /// Which entries the switch evicts first (`ofp_table_mod_prop_eviction_flag`).
    EvictionFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// By other criteria.
        OTHER "other"                                [NO, NO, NO, NO,  0,  0];
        /// By importance, the least important first.
        IMPORTANCE "importance"                      [NO, NO, NO, NO,  1,  1];
        /// By lifetime, those with the shortest remaining time first.
        LIFETIME "lifetime"                          [NO, NO, NO, NO,  2,  2];
    }
}

/// Property of a table-mod or table description (`ofp_table_mod_prop_type`, 1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableModProperty {
    /// Which entries the switch evicts first.
    Eviction(EvictionFlags),
    /// Thresholds of vacancy events.
    Vacancy {
        /// Notify when less than this percentage is free.
        down: u8,
        /// Notify when more than this percentage is free again.
        up: u8,
        /// Current free percentage; zero in a request.
        vacancy: u8,
    },
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// Modifies the configuration of a table (`ofp_table_mod`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableMod {
    /// Table number, or [`TABLE_ALL`].
    pub table: u8,
    /// Configuration.
    pub config: TableConfig,
    /// Properties.
    pub properties: Vec<TableModProperty>,
}

/// Description of a table (`ofp_table_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableDescription {
    /// Table number.
    pub table: u8,
    /// Configuration.
    pub config: TableConfig,
    /// Properties.
    pub properties: Vec<TableModProperty>,
}

/// Reason of a table-status message (`ofp_table_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableStatusReason {
    /// The vacancy fell below the lower threshold.
    VacancyDown,
    /// The vacancy rose above the upper threshold.
    VacancyUp,
}

/// Notifies that a table's vacancy passed a threshold (`ofp_table_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStatus {
    /// The reason.
    pub reason: TableStatusReason,
    /// The table.
    pub table: TableDescription,
}

/// A table and its counters (`ofp_table_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Table number; the switch looks up lower ones first.
    pub table: u8,
    /// Number of flow entries.
    pub entries: u32,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that matched a flow entry.
    pub matched: u64,
    /// Capabilities, in versions before 1.3; later in [`super::table::features::TableFeatures`].
    pub abilities: Option<TableAbilities>,
}

/// Capabilities of a table, in versions before 1.3.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAbilities {
    /// Its name, at most 31 bytes.
    pub name: Text,
    /// Fields that entries may wildcard.
    ///
    /// 1.0 and 1.1 have one bit for the fields of several headers (transport ports, addresses,
    /// protocols). Encoding sets it if the set has one of them; decoding adds all of them.
    pub wildcards: FieldSet,
    /// Maximum number of flow entries.
    pub entries_max: u32,
    /// Fields that entries may match (1.1 and 1.2).
    pub matches: FieldSet,
    /// Supported instructions (1.1 and 1.2).
    pub instructions: InstructionKinds,
    /// Actions supported in write-actions (1.1 and 1.2).
    pub write_actions: ActionKinds,
    /// Actions supported in apply-actions (1.1 and 1.2).
    pub apply_actions: ActionKinds,
    /// Fields that write-actions may set (1.2).
    pub write_fields: FieldSet,
    /// Fields that apply-actions may set (1.2).
    pub apply_fields: FieldSet,
    /// Metadata bits that entries may match (1.2).
    pub metadata_match: u64,
    /// Metadata bits that entries may write (1.2).
    pub metadata_write: u64,
    /// Configuration (1.1 and 1.2).
    pub config: TableConfig,
}

/// A table number as text; reserved ones by name.
pub(crate) struct ShowTable(pub u8);

impl fmt::Display for ShowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TABLE_ALL => f.write_str("all"),
            TABLE_EMERGENCY => f.write_str("emergency"),
            number => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for TableConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.miss {
            TableMiss::Controller => "miss_to_controller",
            TableMiss::Continue => "miss_continues",
            TableMiss::Drop => "miss_drops",
        })?;
        f.write_str(if self.eviction { "|eviction" } else { "" })?;
        f.write_str(if self.vacancy_events { "|vacancy_events" } else { "" })
    }
}

impl fmt::Display for TableModProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableModProperty::Eviction(flags) => write!(f, "eviction:{flags}"),
            TableModProperty::Vacancy { down, up, vacancy } => {
                write!(f, "vacancy:{vacancy}%:{down}%..{up}%")
            }
            TableModProperty::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}

impl fmt::Display for TableMod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} config={} properties=", ShowTable(self.table), self.config)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for TableDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} config={} properties=", self.table, self.config)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for TableStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            TableStatusReason::VacancyDown => "vacancy_down",
            TableStatusReason::VacancyUp => "vacancy_up",
        };
        write!(f, "{reason} {}", self.table)
    }
}

impl fmt::Display for TableStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} entries={}", self.table, self.entries)?;
        if let Some(abilities) = &self.abilities {
            write!(f, "/{}", abilities.entries_max)?;
        }
        write!(f, " lookups={} matched={}", self.lookups, self.matched)?;
        match &self.abilities {
            Some(abilities) => write!(f, " {abilities}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TableAbilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name={:?} wildcards={} matches={}", self.name, self.wildcards, self.matches)?;
        write!(f, " instructions={}", self.instructions)?;
        write!(f, " write_actions={}", self.write_actions)?;
        write!(f, " apply_actions={}", self.apply_actions)?;
        write!(f, " write_fields={} apply_fields={}", self.write_fields, self.apply_fields)?;
        write!(f, " metadata_match={:#x}", self.metadata_match)?;
        write!(f, " metadata_write={:#x} config={}", self.metadata_write, self.config)
    }
}
