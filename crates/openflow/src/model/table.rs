//! Tables: how they behave, how full they are, and what earlier versions say they can do.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 and 1.2 section A.3.5.3 (`ofp_table_stats`), 1.1.0 section
//! A.3.3 and 1.4.1 sections 7.3.4.1, 7.3.5.16 and 7.4.5 (`ofp_table_mod`, `ofp_table_desc`,
//! `ofp_table_status`).

/// What tables can do, from 1.3 on.
pub mod features;

use std::fmt;

use packet::field::{Field, FieldSet};

use super::action::Experimenter;
use super::bits::bits;
use super::kinds::{ActionKinds, InstructionKinds};
use super::text::{Text, list};
use crate::version::NO;

/// Table number that means all tables.
pub const TABLE_ALL: u8 = 0xff;

/// Table number in a 1.0 request that means the emergency table.
pub const TABLE_EMERGENCY: u8 = 0xfe;

/// Highest number of a table (from 1.1 on).
pub const TABLE_MAX: u8 = 0xfe;

/// The fields that 1.0 can leave open.
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

/// What becomes of a frame that no entry matches (`OFPTC_TABLE_MISS_*` of 1.1 and 1.2; later
/// versions have an entry for it and pass these bits over).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TableMiss {
    /// The controller gets it.
    #[default]
    Controller,
    /// The next table looks at it.
    Continue,
    /// Nothing.
    Drop,
}

/// How a table behaves (`ofp_table_config`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableConfig {
    /// What becomes of a frame that no entry matches.
    pub miss: TableMiss,
    /// Whether entries make room for new ones (1.4).
    pub eviction: bool,
    /// Whether the controllers are told how full the table is (1.4).
    pub vacancy_events: bool,
}

bits! {
    /// Which entries make room first (`ofp_table_mod_prop_eviction_flag`).
    EvictionFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// By something else.
        OTHER "other"                                [NO, NO, NO, NO,  0,  0];
        /// The least important.
        IMPORTANCE "importance"                      [NO, NO, NO, NO,  1,  1];
        /// Those that have least time left.
        LIFETIME "lifetime"                          [NO, NO, NO, NO,  2,  2];
    }
}

/// More about how a table behaves (`ofp_table_mod_prop_type`, 1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableModProperty {
    /// Which entries make room first.
    Eviction(EvictionFlags),
    /// When the controllers are told how full the table is.
    Vacancy {
        /// Tell when less than this many per cent are free.
        down: u8,
        /// Tell when more than this many per cent are free again.
        up: u8,
        /// So many per cent are free; zero in a request.
        vacancy: u8,
    },
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// Sets how a table behaves (`ofp_table_mod`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableMod {
    /// Which table, or [`TABLE_ALL`].
    pub table: u8,
    /// How.
    pub config: TableConfig,
    /// More.
    pub properties: Vec<TableModProperty>,
}

/// How a table behaves, as the switch tells it (`ofp_table_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableDescription {
    /// Which table.
    pub table: u8,
    /// How.
    pub config: TableConfig,
    /// More.
    pub properties: Vec<TableModProperty>,
}

/// Why a table's status is told (`ofp_table_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableStatusReason {
    /// Fewer are free than the lower threshold.
    VacancyDown,
    /// More are free than the upper threshold.
    VacancyUp,
}

/// A table has become full or empty enough to tell (`ofp_table_status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStatus {
    /// Which of these.
    pub reason: TableStatusReason,
    /// The table.
    pub table: TableDescription,
}

/// One table and its counters (`ofp_table_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Its number; lower ones are looked up first.
    pub table: u8,
    /// Entries that it holds.
    pub entries: u32,
    /// Frames looked up in it.
    pub lookups: u64,
    /// Frames that matched one of its entries.
    pub matched: u64,
    /// What it can do: before 1.3 a part of this message, later one of its own
    /// ([`super::table::features::TableFeatures`]).
    pub abilities: Option<TableAbilities>,
}

/// What a table can do, as the versions before 1.3 say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAbilities {
    /// Its name, at most 31 bytes.
    pub name: Text,
    /// Fields that its entries may leave open. 1.0 and 1.1 have one bit for fields of several
    /// headers (transport ports, addresses, protocols): it is set if one of them is named, and
    /// names all.
    pub wildcards: FieldSet,
    /// Entries that it can hold.
    pub entries_max: u32,
    /// Fields that its entries may ask for (1.1 and 1.2).
    pub matches: FieldSet,
    /// Its entries' instructions (1.1 and 1.2).
    pub instructions: InstructionKinds,
    /// Actions that may be put into the action set (1.1 and 1.2).
    pub write_actions: ActionKinds,
    /// Actions that may be done at once (1.1 and 1.2).
    pub apply_actions: ActionKinds,
    /// Fields that the action set may set (1.2).
    pub write_fields: FieldSet,
    /// Fields that may be set at once (1.2).
    pub apply_fields: FieldSet,
    /// Bits of the metadata that may be asked for (1.2).
    pub metadata_match: u64,
    /// Bits of the metadata that may be written (1.2).
    pub metadata_write: u64,
    /// How it behaves (1.1 and 1.2).
    pub config: TableConfig,
}

/// A table's number as text: reserved ones by name.
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
