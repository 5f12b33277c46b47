//! Table features, as reported and as configured.
//!
//! Source: OpenFlow 1.3.5, 1.4.1 and 1.5.1 section 7.3.5.5 (`ofp_table_features`).
//!
//! Most properties exist twice: for flow entries in general and for the table-miss entry. Without
//! the second, the first applies to both.

use std::fmt;

use super::super::action::Experimenter;
use super::super::bits::bits;
use super::super::matching::field_id::FieldId;
use super::super::text::{Hex, Text, list};
use super::{ShowTable, TableConfig};
use crate::version::{ActionKind, InstructionKind, NO};

/// Command of a table features request (`ofp_table_features_command`, 1.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TableFeaturesCommand {
    /// Replaces the whole pipeline with these tables.
    #[default]
    Replace,
    /// Modifies the features of these tables.
    Modify,
    /// Enables these tables.
    Enable,
    /// Disables these tables.
    Disable,
}

bits! {
    /// Position of a table in the pipeline (`ofp_table_feature_flag`, 1.5).
    TableFeatureFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// The table can be an ingress table.
        INGRESS "ingress"                            [NO, NO, NO, NO, NO,  0];
        /// The table can be an egress table.
        EGRESS "egress"                              [NO, NO, NO, NO, NO,  1];
        /// The table is the first egress table.
        FIRST_EGRESS "first_egress"                  [NO, NO, NO, NO, NO,  4];
    }
}

/// Features of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFeatures {
    /// Table number.
    pub table: u8,
    /// Command of the request (1.5).
    pub command: TableFeaturesCommand,
    /// Position in the pipeline (1.5).
    pub flags: TableFeatureFlags,
    /// Its name, at most 31 bytes.
    pub name: Text,
    /// Metadata bits that entries may match.
    pub metadata_match: u64,
    /// Metadata bits that entries may write.
    pub metadata_write: u64,
    /// Supported configuration.
    pub capabilities: TableConfig,
    /// Maximum number of flow entries.
    pub entries_max: u32,
    /// Properties of its flow entries.
    pub properties: Vec<TableProperty>,
}

/// Property of the table features (`ofp_table_feature_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableProperty {
    /// Supported instructions.
    Instructions {
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// The instructions.
        ids: Vec<InstructionId>,
    },
    /// Tables for goto-table.
    NextTables {
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// Table numbers.
        tables: Vec<u8>,
    },
    /// Supported actions.
    Actions {
        /// The instruction that contains them.
        when: ActionInstruction,
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// The actions.
        ids: Vec<ActionId>,
    },
    /// Fields that entries may match.
    Match(Vec<FieldId>),
    /// Fields that entries may wildcard.
    Wildcards(Vec<FieldId>),
    /// Fields that set-field actions may set.
    SetField {
        /// The instruction that contains the actions.
        when: ActionInstruction,
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// The fields.
        ids: Vec<FieldId>,
    },
    /// Fields that copy-field actions may write (1.5).
    CopyField {
        /// The instruction that contains the actions.
        when: ActionInstruction,
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// The fields.
        ids: Vec<FieldId>,
    },
    /// Tables whose entries the switch synchronizes to this table (1.4).
    SynchronizedFrom(Vec<u8>),
    /// Supported packet types (1.5).
    PacketTypes(Vec<u32>),
    /// An experimenter property.
    Experimenter {
        /// Whether it is for the table-miss entry.
        miss: bool,
        /// The property.
        body: Experimenter,
    },
}

/// The instruction that contains actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionInstruction {
    /// Write-actions: merges them into the action set.
    Write,
    /// Apply-actions: executes them immediately.
    Apply,
}

/// ID of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstructionId {
    /// An instruction of the specification.
    Known(InstructionKind),
    /// An experimenter instruction.
    Experimenter(Experimenter),
}

/// ID of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionId {
    /// An action of the specification.
    Known(ActionKind),
    /// An experimenter action.
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

impl fmt::Display for ActionInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ActionInstruction::Write => "write",
            ActionInstruction::Apply => "apply",
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
