//! Table configuration and table statistics.
//!
//! Source: OpenFlow switch specification 1.1.0, section A.3.3; 1.4.1, sections 7.3.4.1, 7.3.5.16
//! and 7.4.5. Only 1.1 and 1.2 configure the handling of table misses here. From 1.3 on these bits
//! have no meaning, and a table-miss entry decides.

use dataplane::pipeline::Pipeline;
use dataplane::table::{TableConfig, TableMiss, Vacancy};
use openflow::model::table::TABLE_ALL;
use openflow::model::table::{
    self, EvictionFlags, TableAbilities, TableDescription, TableMod, TableModProperty, TableStats,
    TableStatus, TableStatusReason,
};
use openflow::model::{ActionKinds, FieldSet, InstructionKinds, Message};
use openflow::version::{AsyncKind, ErrorCode, Version};
use packet::field::Field;

use crate::translate::action::is_writable;
use crate::translate::flow::{PARTS, part_up};

use super::{Agent, Datapath};

impl Agent {
    /// Configures one table, or all.
    pub(super) fn table_mod(
        &mut self,
        version: Version,
        change: &TableMod,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let count = datapath.pipeline.tables().count_tables();
        let chosen = match change.table {
            TABLE_ALL => 0..count,
            table if usize::from(table) < count => usize::from(table)..usize::from(table) + 1,
            _ => return Err(ErrorCode::TableModBadTable),
        };
        let mut changes = Vec::new();
        for table in chosen {
            let table = table as u8;
            let now = *datapath.pipeline.tables().config(table).expect("the table exists");
            changes.push((table, config_down(now, change, version)?));
        }
        for (table, config) in changes {
            datapath.pipeline.set_table(table, config);
        }
        Ok(())
    }

    /// Sends a table-status message when the free space of a table crosses a threshold.
    pub(super) fn tell_table(&mut self, table: u8, down: bool, datapath: &Datapath<'_>) {
        let reason = match down {
            true => TableStatusReason::VacancyDown,
            false => TableStatusReason::VacancyUp,
        };
        // Bit numbers of the reasons in the specification.
        let bit = if down { 3 } else { 4 };
        let table = description(table, datapath.pipeline);
        let news = Message::TableStatus(TableStatus { reason, table });
        self.tell_some(&news, |connection| connection.wants(AsyncKind::TableStatus, bit));
    }
}

/// Returns statistics of a table; before 1.3 with its capabilities.
pub fn stats(table: u8, version: Version, pipeline: &Pipeline) -> TableStats {
    let account = pipeline.tables().account(table);
    let config = pipeline.tables().config(table).expect("the table is there");
    let abilities = (version < Version::V1_3).then(|| TableAbilities {
        entries_max: account.entries_max as u32,
        config: table::TableConfig {
            miss: miss_up(config.on_miss),
            ..table::TableConfig::default()
        },
        ..abilities(&format!("table{table}"), version)
    });
    TableStats {
        table,
        entries: account.entries as u32,
        lookups: account.lookups,
        matched: account.matched,
        abilities,
    }
}

/// Returns statistics of the two parts of the first table, as plain 1.0 reports it.
pub fn parts(pipeline: &Pipeline) -> Vec<TableStats> {
    PARTS.map(|part| part_stats(part, pipeline)).to_vec()
}

fn part_stats(part: dataplane::flow::Part, pipeline: &Pipeline) -> TableStats {
    use dataplane::flow::Part;
    let account = pipeline.tables().part_account(0, part);
    let (name, wildcards) = match part {
        Part::Exact => ("exact", FieldSet::NONE),
        Part::Wildcard => ("wildcard", fields_of(Version::V1_0)),
    };
    TableStats {
        table: part_up(part),
        entries: account.entries as u32,
        lookups: account.lookups,
        matched: account.matched,
        abilities: Some(TableAbilities {
            wildcards,
            entries_max: account.entries_max as u32,
            ..abilities(name, Version::V1_0)
        }),
    }
}

/// Returns the capabilities of every table, as versions before 1.3 express them.
fn abilities(name: &str, version: Version) -> TableAbilities {
    let fields = fields_of(version);
    let set = fields.iter().filter(|field| is_writable(*field, version)).collect();
    let actions = ActionKinds::of(version);
    TableAbilities {
        name: name.into(),
        wildcards: fields,
        entries_max: 0,
        matches: fields,
        instructions: InstructionKinds::of(version),
        write_actions: actions,
        apply_actions: actions,
        write_fields: set,
        apply_fields: set,
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: table::TableConfig::default(),
    }
}

/// Returns the match fields of a version.
pub fn fields_of(version: Version) -> FieldSet {
    let after = |field: Field| match field {
        Field::PbbUca => Version::V1_4,
        Field::TcpFlags | Field::ActsetOutput | Field::PacketType => Version::V1_5,
        Field::MplsBos | Field::PbbIsid | Field::TunnelId | Field::Ipv6Exthdr => Version::V1_3,
        Field::Ipv6Src
        | Field::Ipv6Dst
        | Field::Ipv6Flabel
        | Field::Icmpv6Type
        | Field::Icmpv6Code
        | Field::Ipv6NdTarget
        | Field::Ipv6NdSll
        | Field::Ipv6NdTll
        | Field::InPhyPort
        | Field::IpEcn
        | Field::ArpSha
        | Field::ArpTha => Version::V1_2,
        Field::Metadata | Field::SctpSrc | Field::SctpDst | Field::MplsLabel | Field::MplsTc => {
            Version::V1_1
        }
        _ => Version::V1_0,
    };
    Field::ALL.into_iter().filter(|field| after(*field) <= version).collect()
}

/// Returns the new configuration of a table.
fn config_down(
    now: TableConfig,
    change: &TableMod,
    version: Version,
) -> Result<TableConfig, ErrorCode> {
    let mut config = now;
    if version < Version::V1_3 {
        config.on_miss = match change.config.miss {
            table::TableMiss::Controller => TableMiss::Controller,
            table::TableMiss::Continue => TableMiss::Continue,
            table::TableMiss::Drop => TableMiss::Drop,
        };
    }
    if version < Version::V1_4 {
        return Ok(config);
    }
    config.eviction = change.config.eviction;
    let mut limits = now.vacancy;
    for property in &change.properties {
        match property {
            // Eviction is by importance, then by remaining lifetime. Other kinds are not supported.
            TableModProperty::Eviction(flags) if flags.contains(EvictionFlags::OTHER) => {
                return Err(ErrorCode::TableModBadConfig);
            }
            TableModProperty::Eviction(_) => {}
            TableModProperty::Vacancy { down, up, .. } => {
                if *down > 100 || *up > 100 || down > up {
                    return Err(ErrorCode::PropertyBadValue);
                }
                limits = Some(Vacancy { down: *down, up: *up });
            }
            TableModProperty::Experimenter(_) => return Err(ErrorCode::PropertyBadExperimenter),
        }
    }
    config.vacancy = limits.filter(|_| change.config.vacancy_events);
    if change.config.vacancy_events && config.vacancy.is_none() {
        return Err(ErrorCode::TableModBadConfig);
    }
    Ok(config)
}

fn miss_up(miss: TableMiss) -> table::TableMiss {
    match miss {
        TableMiss::Pipeline | TableMiss::Controller => table::TableMiss::Controller,
        TableMiss::Continue => table::TableMiss::Continue,
        TableMiss::Drop => table::TableMiss::Drop,
    }
}

/// Returns the description of a table.
pub fn description(table: u8, pipeline: &Pipeline) -> TableDescription {
    let config = pipeline.tables().config(table).expect("the table is there");
    let account = pipeline.tables().account(table);
    let free = account.entries_max.saturating_sub(account.entries);
    let vacancy = (free.saturating_mul(100) / account.entries_max.max(1)) as u8;
    let eviction = EvictionFlags::IMPORTANCE | EvictionFlags::LIFETIME;
    let evicts = config.eviction.then_some(TableModProperty::Eviction(eviction));
    let tells = config.vacancy.map(|limits| TableModProperty::Vacancy {
        down: limits.down,
        up: limits.up,
        vacancy,
    });
    TableDescription {
        table,
        config: table::TableConfig {
            eviction: config.eviction,
            vacancy_events: config.vacancy.is_some(),
            ..table::TableConfig::default()
        },
        properties: evicts.into_iter().chain(tells).collect(),
    }
}
