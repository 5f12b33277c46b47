//! Table features: reports them to controllers, and restricts tables as controllers request.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.3.5.5; 1.5.1, section 7.3.5.18.
//!
//! - A table initially has all features.
//! - A request describes the whole pipeline. Each table in it gets the listed features, which must
//!   be among those that the table supports. A table that is not in it is disabled.
//! - From 1.5 on a request may also change some tables only.
//!
//! Invariant: a request takes effect completely or not at all. A flow entry that violates the
//! features is rejected with the error for the violation.

use std::sync::Arc;

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use openflow::header::Xid;
use openflow::model::matching::field_id::FieldId;
use openflow::model::multipart::MultipartReplyBody;
use openflow::model::table::TableConfig;
use openflow::model::table::features::{
    ActionId, ActionInstruction, InstructionId, TableFeatureFlags, TableFeatures,
    TableFeaturesCommand, TableProperty,
};
use openflow::model::{Action, FieldSet, FlowMod, FlowModCommand, Instruction, Match};
use openflow::version::{ActionKind, ErrorCode, InstructionKind, Version};
use packet::field::Field;

use crate::config::OpenFlowConfig;
use crate::translate::action::is_writable;
use crate::translate::downgrade;

use super::multipart_reply::Dump;
use super::ongoing::OngoingChange;
use super::tables::fields_of;
use super::ways::FeaturesChange;
use super::{Agent, Datapath};

/// Highest table number.
const TABLE_NO_MAX: u8 = 0xfe;

/// Packet type of Ethernet.
const ETHERNET: u32 = 0;

/// Configured features of the tables.
#[derive(Debug, Clone)]
pub struct Features {
    tables: Vec<Table>,
}

#[derive(Debug, Clone)]
struct Table {
    in_use: bool,
    /// Features that a controller has set, or `None` for all.
    set: Option<Arc<TableFeatures>>,
}

impl Agent {
    /// Replies with the table features. First sets them if the request has any, over as many turns
    /// as that takes.
    pub(super) fn table_features(
        &mut self,
        at: usize,
        xid: Xid,
        wanted: Vec<TableFeatures>,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        if wanted.is_empty() {
            self.tell_features(at, xid, datapath);
            return Ok(());
        }
        self.check_not_slave(at)?;
        let version = self.connections[at].version();
        let change = FeaturesChange::new(wanted, version, &self.features)?;
        self.ongoing = Some(OngoingChange::features(self.who(at, xid), change));
        Ok(())
    }

    /// Sets the table features to `after`, and the first egress table if it changes.
    pub(super) fn set_features(
        &mut self,
        after: Features,
        egress: Option<Option<u8>>,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        // Frames enter at the first table.
        if !after.has(0) {
            return Err(ErrorCode::TableFeaturesBadTable);
        }
        after.check_entries(datapath.pipeline)?;
        if let Some(first) = egress
            && !datapath.pipeline.set_first_egress(first)
        {
            return Err(ErrorCode::TableFeaturesBadFeatures);
        }
        self.features = after;
        Ok(())
    }

    /// Replies with the table features.
    pub(super) fn tell_features(&mut self, at: usize, xid: Xid, datapath: &mut Datapath<'_>) {
        let version = self.connections[at].version();
        let body = MultipartReplyBody::TableFeatures(Vec::new());
        let tables = (0, TABLE_NO_MAX.into());
        self.begin(at, Dump::resources(xid, version, tables, body), datapath);
    }
}

impl Features {
    /// Creates the features of the configured tables: all enabled, with all features.
    pub fn new(config: &OpenFlowConfig) -> Self {
        Features { tables: vec![Table { in_use: true, set: None }; config.tables] }
    }

    /// Whether the table exists and is enabled.
    pub fn has(&self, table: u8) -> bool {
        self.tables.get(usize::from(table)).is_some_and(|table| table.in_use)
    }

    /// Returns the features of a table in the version's terms.
    pub fn row(&self, number: u8, version: Version, pipeline: &Pipeline) -> TableFeatures {
        let set = self.tables.get(usize::from(number)).and_then(|table| table.set.as_deref());
        let set = set.filter(|set| can_say(version, set));
        let row = set.cloned().unwrap_or_else(|| full(number, version, pipeline));
        TableFeatures { flags: flags(number, version, pipeline), ..row }
    }

    /// Disables all tables, for a request that describes the whole pipeline.
    pub(super) fn clear(&mut self) {
        self.tables.iter_mut().for_each(|table| table.in_use = false);
    }

    /// Replaces the features of a table.
    pub(super) fn set(
        &mut self,
        row: &TableFeatures,
        version: Version,
        pipeline: &Pipeline,
    ) -> Result<(), ErrorCode> {
        let table = self.tables.get_mut(usize::from(row.table));
        let table = table.ok_or(ErrorCode::TableFeaturesBadTable)?;
        match row.command {
            TableFeaturesCommand::Replace | TableFeaturesCommand::Modify => {
                check_row(row, version, pipeline)?;
                table.in_use = true;
                // The complete features of one version do not restrict other versions, which may
                // have more.
                let all = full(row.table, version, pipeline);
                let (command, flags) = (all.command, all.flags);
                let is_all = TableFeatures { command, flags, ..row.clone() } == all;
                table.set = (!is_all).then(|| Arc::new(row.clone()));
            }
            TableFeaturesCommand::Enable => table.in_use = true,
            TableFeaturesCommand::Disable => table.in_use = false,
        }
        Ok(())
    }

    /// Checks that no table with flow entries is disabled or made smaller than its number of
    /// entries.
    fn check_entries(&self, pipeline: &Pipeline) -> Result<(), ErrorCode> {
        for (number, table) in self.tables.iter().enumerate() {
            let entries = pipeline.tables().account(number as u8).entries;
            let fit = table.set.as_ref().map_or(usize::MAX, |set| set.entries_max as usize);
            if (!table.in_use && entries > 0) || entries > fit {
                return Err(ErrorCode::TableFeaturesPermission);
            }
        }
        Ok(())
    }

    /// Checks whether a flow entry may be added or modified.
    pub fn check(
        &self,
        change: &FlowMod,
        table: u8,
        same: &FlowFilter,
        pipeline: &Pipeline,
    ) -> Result<(), ErrorCode> {
        let to = change.instructions.iter().find_map(|instruction| match instruction {
            Instruction::GotoTable(to) => Some(*to),
            _ => None,
        });
        // Frames reach egress tables only through output.
        let egress = |at: u8| pipeline.tables().first_egress().is_some_and(|first| at >= first);
        if to.is_some_and(|to| !self.has(to) || egress(to) != egress(table)) {
            return Err(ErrorCode::InstructionBadTable);
        }
        let set = self.tables.get(usize::from(table)).and_then(|table| table.set.as_deref());
        let Some(features) = set else { return Ok(()) };
        check_match(&change.matching, features)?;
        let miss = change.matching.is_any() && change.priority == 0;
        check_instructions(&change.instructions, features, miss)?;
        let full = pipeline.tables().account(table).entries >= features.entries_max as usize;
        let adds = change.command == FlowModCommand::Add;
        if adds && full && pipeline.tables().totals(same).entries == 0 {
            return Err(ErrorCode::FlowModTableFull);
        }
        Ok(())
    }
}

/// Returns the new first egress table, if the request changes it. Only 1.5 can.
pub(super) fn first_egress(
    wanted: &[TableFeatures],
    version: Version,
) -> Result<Option<Option<u8>>, ErrorCode> {
    if version < Version::V1_5 {
        return Ok(None);
    }
    let first = |it: &&TableFeatures| it.flags.contains(TableFeatureFlags::FIRST_EGRESS);
    let mut flagged = wanted.iter().filter(first).map(|row| row.table);
    let replaces = wanted.iter().any(|it| it.command == TableFeaturesCommand::Replace);
    match (flagged.next(), flagged.next()) {
        (_, Some(_)) => Err(ErrorCode::TableFeaturesBadFeatures),
        (Some(first), None) => Ok(Some(Some(first))),
        (None, None) => Ok(replaces.then_some(None)),
    }
}

fn can_say(version: Version, row: &TableFeatures) -> bool {
    let body = MultipartReplyBody::TableFeatures(vec![row.clone()]);
    downgrade::can_say(version, &openflow::model::Message::MultipartReply(body.into()))
}

/// Returns all features of a table.
fn full(table: u8, version: Version, pipeline: &Pipeline) -> TableFeatures {
    let fields = fields_of(version);
    let written: FieldSet = fields.iter().filter(|field| is_writable(*field, version)).collect();
    let kinds = InstructionKind::ALL.iter().copied();
    let kinds =
        kinds.filter(|kind| kind.code(version).is_some() && *kind != InstructionKind::Experimenter);
    let actions = ActionKind::ALL.iter().copied();
    let actions: Vec<ActionId> = actions
        .filter(|kind| kind.code(version).is_some() && *kind != ActionKind::Experimenter)
        .map(ActionId::Known)
        .collect();
    let count = pipeline.tables().count_tables() as u8;
    let mut properties = vec![
        TableProperty::Instructions { miss: false, ids: kinds.map(InstructionId::Known).collect() },
        TableProperty::NextTables { miss: false, tables: (table + 1..count).collect() },
    ];
    for when in [ActionInstruction::Write, ActionInstruction::Apply] {
        properties.push(TableProperty::Actions { when, miss: false, ids: actions.clone() });
    }
    properties.push(TableProperty::Match(FieldId::maskable(fields)));
    properties.push(TableProperty::Wildcards(FieldId::plain(fields)));
    for when in [ActionInstruction::Write, ActionInstruction::Apply] {
        let ids = FieldId::plain(written);
        properties.push(TableProperty::SetField { when, miss: false, ids });
    }
    if version >= Version::V1_5 {
        for when in [ActionInstruction::Write, ActionInstruction::Apply] {
            let ids = FieldId::plain(written);
            properties.push(TableProperty::CopyField { when, miss: false, ids });
        }
        properties.push(TableProperty::PacketTypes(vec![ETHERNET]));
    }
    TableFeatures {
        table,
        command: TableFeaturesCommand::Replace,
        flags: flags(table, version, pipeline),
        name: format!("table{table}").as_str().into(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        capabilities: TableConfig {
            eviction: version >= Version::V1_4,
            vacancy_events: version >= Version::V1_4,
            ..TableConfig::default()
        },
        entries_max: pipeline.tables().account(table).entries_max as u32,
        properties,
    }
}

/// Returns the position of a table in the pipeline (1.5).
fn flags(table: u8, version: Version, pipeline: &Pipeline) -> TableFeatureFlags {
    let first = pipeline.tables().first_egress();
    match first {
        _ if version < Version::V1_5 => TableFeatureFlags::NONE,
        Some(first) if first == table => {
            TableFeatureFlags::EGRESS | TableFeatureFlags::FIRST_EGRESS
        }
        Some(first) if first < table => TableFeatureFlags::EGRESS,
        _ => TableFeatureFlags::INGRESS,
    }
}

/// Checks that a table supports these features.
fn check_row(row: &TableFeatures, version: Version, pipeline: &Pipeline) -> Result<(), ErrorCode> {
    let all = full(row.table, version, pipeline);
    if row.entries_max > all.entries_max {
        return Err(ErrorCode::TableFeaturesBadEntriesMax);
    }
    for property in &row.properties {
        check_property(property, row.table, &all, version)?;
    }
    Ok(())
}

fn check_property(
    property: &TableProperty,
    table: u8,
    all: &TableFeatures,
    version: Version,
) -> Result<(), ErrorCode> {
    let fits = match property {
        TableProperty::Instructions { ids, .. } => {
            let known = instructions(all, false);
            ids.iter().all(|id| matches!(id, InstructionId::Known(kind) if known.contains(kind)))
        }
        TableProperty::NextTables { tables, .. } => tables.iter().all(|next| *next > table),
        TableProperty::Actions { when, ids, .. } => {
            let known = actions(all, *when, false);
            ids.iter().all(|id| matches!(id, ActionId::Known(kind) if known.contains(kind)))
        }
        TableProperty::Match(ids) | TableProperty::Wildcards(ids) => {
            let field = |id: &FieldId| {
                matches!(id, FieldId::Known { field, masked }
                if !masked || field.maskable())
            };
            ids.iter().all(field)
        }
        TableProperty::SetField { ids, .. } | TableProperty::CopyField { ids, .. } => {
            let field = |id: &FieldId| {
                matches!(id, FieldId::Known { field, .. }
                if is_writable(*field, version))
            };
            ids.iter().all(field)
        }
        // Each table has its own entries, and every frame has an Ethernet header.
        TableProperty::SynchronizedFrom(tables) => tables.is_empty(),
        TableProperty::PacketTypes(types) => types.iter().all(|kind| *kind == ETHERNET),
        TableProperty::Experimenter { .. } => false,
    };
    if fits { Ok(()) } else { Err(ErrorCode::TableFeaturesBadFeatures) }
}

/// Returns the property for table-miss entries if there is one, else the one for regular entries.
fn of<'a, T: ?Sized>(
    features: &'a TableFeatures,
    miss: bool,
    get: impl Fn(&'a TableProperty, bool) -> Option<&'a T>,
) -> Option<&'a T> {
    let find = |miss: bool| features.properties.iter().find_map(|property| get(property, miss));
    if miss { find(true).or_else(|| find(false)) } else { find(false) }
}

fn instructions(features: &TableFeatures, miss: bool) -> Vec<InstructionKind> {
    let ids = of(features, miss, |property, wanted| match property {
        TableProperty::Instructions { miss, ids } if *miss == wanted => Some(&ids[..]),
        _ => None,
    });
    let kind = |id: &InstructionId| match id {
        InstructionId::Known(kind) => Some(*kind),
        InstructionId::Experimenter(_) => None,
    };
    ids.unwrap_or_default().iter().filter_map(kind).collect()
}

fn actions(features: &TableFeatures, when: ActionInstruction, miss: bool) -> Vec<ActionKind> {
    let ids = of(features, miss, |property, wanted| match property {
        TableProperty::Actions { when: at, miss, ids } if *at == when && *miss == wanted => {
            Some(&ids[..])
        }
        _ => None,
    });
    let kind = |id: &ActionId| match id {
        ActionId::Known(kind) => Some(*kind),
        ActionId::Experimenter(_) => None,
    };
    ids.unwrap_or_default().iter().filter_map(kind).collect()
}

fn copied_fields(features: &TableFeatures, when: ActionInstruction, miss: bool) -> FieldSet {
    let ids = of(features, miss, |property, wanted| match property {
        TableProperty::CopyField { when: at, miss, ids } if *at == when && *miss == wanted => {
            Some(&ids[..])
        }
        _ => None,
    });
    FieldId::known(ids.unwrap_or_default())
}

fn set_fields(features: &TableFeatures, when: ActionInstruction, miss: bool) -> FieldSet {
    let ids = of(features, miss, |property, wanted| match property {
        TableProperty::SetField { when: at, miss, ids } if *at == when && *miss == wanted => {
            Some(&ids[..])
        }
        _ => None,
    });
    FieldId::known(ids.unwrap_or_default())
}

fn next_tables(features: &TableFeatures, miss: bool) -> &[u8] {
    let tables = of(features, miss, |property, wanted| match property {
        TableProperty::NextTables { miss, tables } if *miss == wanted => Some(&tables[..]),
        _ => None,
    });
    tables.unwrap_or_default()
}

/// Checks that the table has the match fields, and that the other fields may be wildcards.
fn check_match(matching: &Match, features: &TableFeatures) -> Result<(), ErrorCode> {
    let (mut fields, mut masked, mut open) = (FieldSet::NONE, FieldSet::NONE, FieldSet::NONE);
    for property in &features.properties {
        match property {
            TableProperty::Match(ids) => {
                fields = FieldId::known(ids);
                let with_mask = ids.iter().filter_map(|id| match id {
                    FieldId::Known { field, masked: true } => Some(*field),
                    _ => None,
                });
                masked = with_mask.collect();
            }
            TableProperty::Wildcards(ids) => open = FieldId::known(ids),
            _ => {}
        }
    }
    for row in matching.fields() {
        if !fields.has(row.field) {
            return Err(ErrorCode::MatchBadField);
        }
        let metadata = row.field == Field::Metadata;
        let of_metadata = u128::from(features.metadata_match);
        // Table features cannot express masks that only Nicira's format has.
        let masks = masked.has(row.field) || row.field.maskable_by_nicira();
        if (!row.is_exact() && !masks) || (metadata && row.mask & !of_metadata != 0) {
            return Err(ErrorCode::MatchBadMask);
        }
    }
    let left_out = fields.iter().find(|field| !open.has(*field) && !matching.names().has(*field));
    match left_out {
        // The table-miss entry wildcards all fields in any table.
        Some(_) if !matching.is_any() => Err(ErrorCode::MatchBadWildcards),
        _ => Ok(()),
    }
}

/// Checks that the table has these instructions with these actions.
fn check_instructions(
    from: &[Instruction],
    features: &TableFeatures,
    miss: bool,
) -> Result<(), ErrorCode> {
    let known = instructions(features, miss);
    for instruction in from {
        if !known.contains(&instruction.kind()) {
            return Err(ErrorCode::InstructionUnsupported);
        }
        match instruction {
            Instruction::GotoTable(to) if !next_tables(features, miss).contains(to) => {
                return Err(ErrorCode::InstructionBadTable);
            }
            Instruction::WriteMetadata { mask, .. } if mask & !features.metadata_write != 0 => {
                return Err(ErrorCode::InstructionUnsupportedMetadataMask);
            }
            Instruction::ApplyActions(list) => {
                check_actions(list, features, ActionInstruction::Apply, miss)?
            }
            Instruction::WriteActions(list) => {
                check_actions(list, features, ActionInstruction::Write, miss)?
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_actions(
    from: &[Action],
    features: &TableFeatures,
    when: ActionInstruction,
    miss: bool,
) -> Result<(), ErrorCode> {
    let (known, fields) = (actions(features, when, miss), set_fields(features, when, miss));
    for action in from {
        if !known.contains(&action.kind()) {
            return Err(ErrorCode::ActionBadType);
        }
        if matches!(action, Action::SetField(set) if !fields.has(set.field)) {
            return Err(ErrorCode::ActionBadSetType);
        }
        let copied = || copied_fields(features, when, miss);
        if matches!(action, Action::CopyField(copy) if !copied().has(copy.dst)) {
            return Err(ErrorCode::ActionBadSetType);
        }
    }
    Ok(())
}
