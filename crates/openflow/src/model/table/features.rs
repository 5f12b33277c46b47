//! What each table can do, to be looked at and to be set.
//!
//! Source: OpenFlow 1.3.5, 1.4.1 and 1.5.1 section 7.3.5.5 (`ofp_table_features`). Most properties
//! come twice: for entries in general and for the table-miss entry; without the second, the first
//! holds for both.

use std::fmt;

use super::super::action::Experimenter;
use super::super::bits::bits;
use super::super::matching::field_id::FieldId;
use super::super::text::{Hex, Text, list};
use super::{ShowTable, TableConfig};
use crate::version::{ActionKind, InstructionKind, NO};

/// What a request does with the tables that it names (`ofp_table_features_command`, 1.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TableFeaturesCommand {
    /// They are the whole pipeline.
    #[default]
    Replace,
    /// They get these features.
    Modify,
    /// They are in use.
    Enable,
    /// They are out of use.
    Disable,
}

bits! {
    /// Where in the pipeline a table may stand (`ofp_table_feature_flag`, 1.5).
    TableFeatureFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Before output.
        INGRESS "ingress"                            [NO, NO, NO, NO, NO,  0];
        /// After output.
        EGRESS "egress"                              [NO, NO, NO, NO, NO,  1];
        /// It is the first after output.
        FIRST_EGRESS "first_egress"                  [NO, NO, NO, NO, NO,  4];
    }
}

/// What a table can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFeatures {
    /// Its number.
    pub table: u8,
    /// What a request does with it (1.5).
    pub command: TableFeaturesCommand,
    /// Where it may stand (1.5).
    pub flags: TableFeatureFlags,
    /// Its name, at most 31 bytes.
    pub name: Text,
    /// Bits of the metadata that may be asked for.
    pub metadata_match: u64,
    /// Bits of the metadata that may be written.
    pub metadata_write: u64,
    /// How it can behave.
    pub capabilities: TableConfig,
    /// Entries that it can hold.
    pub entries_max: u32,
    /// What its entries can do.
    pub properties: Vec<TableProperty>,
}

/// What the entries of a table can do (`ofp_table_feature_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableProperty {
    /// Instructions.
    Instructions {
        /// Of the table-miss entry.
        miss: bool,
        /// Which.
        ids: Vec<InstructionId>,
    },
    /// Tables to go on to.
    NextTables {
        /// From the table-miss entry.
        miss: bool,
        /// Which.
        tables: Vec<u8>,
    },
    /// Actions.
    Actions {
        /// In which instruction.
        when: When,
        /// Of the table-miss entry.
        miss: bool,
        /// Which.
        ids: Vec<ActionId>,
    },
    /// Fields that may be asked for.
    Match(Vec<FieldId>),
    /// Fields that may be left open.
    Wildcards(Vec<FieldId>),
    /// Fields that may be set.
    SetField {
        /// In which instruction.
        when: When,
        /// By the table-miss entry.
        miss: bool,
        /// Which.
        ids: Vec<FieldId>,
    },
    /// Fields that may be copied (1.5).
    CopyField {
        /// In which instruction.
        when: When,
        /// By the table-miss entry.
        miss: bool,
        /// Which.
        ids: Vec<FieldId>,
    },
    /// Tables whose entries become this table's too (1.4).
    SynchronizedFrom(Vec<u8>),
    /// Packet types that may come in (1.5).
    PacketTypes(Vec<u32>),
    /// What somebody else says.
    Experimenter {
        /// Of the table-miss entry.
        miss: bool,
        /// What.
        body: Experimenter,
    },
}

/// In which instruction actions stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// Write-actions: they are put into the action set.
    Write,
    /// Apply-actions: they are done at once.
    Apply,
}

/// An instruction, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstructionId {
    /// One that the specification defines.
    Known(InstructionKind),
    /// Somebody else's.
    Experimenter(Experimenter),
}

/// An action, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionId {
    /// One that the specification defines.
    Known(ActionKind),
    /// Somebody else's.
    Experimenter(Experimenter),
}

impl fmt::Display for TableFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match self.command {
            TableFeaturesCommand::Replace => "replace",
            TableFeaturesCommand::Modify => "modify",
            TableFeaturesCommand::Enable => "enable",
            TableFeaturesCommand::Disable => "disable",
        };
        write!(f, "table={} command={command} flags={}", ShowTable(self.table), self.flags)?;
        write!(f, " name={:?} metadata_match={:#x}", self.name, self.metadata_match)?;
        write!(f, " metadata_write={:#x}", self.metadata_write)?;
        write!(f, " capabilities={} entries_max={}", self.capabilities, self.entries_max)?;
        self.properties.iter().try_for_each(|property| write!(f, " {property}"))
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Write => "write",
            When::Apply => "apply",
        })
    }
}

impl fmt::Display for TableProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_miss = |miss: &bool| if *miss { "_miss" } else { "" };
        match self {
            TableProperty::Instructions { miss, ids } => {
                write!(f, "instructions{}=", on_miss(miss))?;
                list(f, ids)
            }
            TableProperty::NextTables { miss, tables } => {
                write!(f, "next_tables{}=", on_miss(miss))?;
                list(f, tables)
            }
            TableProperty::Actions { when, miss, ids } => {
                write!(f, "{when}_actions{}=", on_miss(miss))?;
                list(f, ids)
            }
            TableProperty::Match(ids) => {
                f.write_str("match=")?;
                list(f, ids)
            }
            TableProperty::Wildcards(ids) => {
                f.write_str("wildcards=")?;
                list(f, ids)
            }
            TableProperty::SetField { when, miss, ids } => {
                write!(f, "{when}_set_field{}=", on_miss(miss))?;
                list(f, ids)
            }
            TableProperty::CopyField { when, miss, ids } => {
                write!(f, "{when}_copy_field{}=", on_miss(miss))?;
                list(f, ids)
            }
            TableProperty::SynchronizedFrom(tables) => {
                f.write_str("synchronized_from=")?;
                list(f, tables)
            }
            TableProperty::PacketTypes(types) => {
                f.write_str("packet_types=")?;
                let bytes: Vec<u8> = types.iter().flat_map(|kind| kind.to_be_bytes()).collect();
                write!(f, "{}", Hex(&bytes))
            }
            TableProperty::Experimenter { miss, body } => {
                write!(f, "experimenter{}={body}", on_miss(miss))
            }
        }
    }
}

impl fmt::Display for InstructionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstructionId::Known(kind) => write!(f, "{kind}"),
            InstructionId::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActionId::Known(kind) => write!(f, "{kind}"),
            ActionId::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}
