//! Configuration of the switch, its ports and tables, roles and asynchronous messages as JSON.

use openflow::model::{
    AsyncConfig, AsyncExperimenter, FragmentHandling, OpticalMod, PortMod, PortModProperty, Role,
    RoleRequest, SwitchConfig, TableConfig, TableMiss, TableMod, TableModProperty, reserved,
};
use openflow::version::AsyncKind;
use serde_json::{Map, Value, json};

use super::flows::TABLES;
use super::keys::{Keys, ValueNames, experimenter, experimenter_json, word};

/// Handling of IP fragments.
pub const FRAGMENTS: &ValueNames<FragmentHandling> = &[
    ("normal", FragmentHandling::Normal),
    ("drop", FragmentHandling::Drop),
    ("reassemble", FragmentHandling::Reassemble),
];

/// Handling of a table miss (1.1 and 1.2).
pub const MISSES: &ValueNames<TableMiss> = &[
    ("controller", TableMiss::Controller),
    ("continue", TableMiss::Continue),
    ("drop", TableMiss::Drop),
];

/// Roles of controllers.
pub const ROLES: &ValueNames<Role> = &[
    ("no_change", Role::NoChange),
    ("equal", Role::Equal),
    ("master", Role::Master),
    ("slave", Role::Slave),
];

/// Parses the switch configuration.
pub fn set_config(keys: &mut Keys<'_>) -> Result<SwitchConfig, String> {
    let plain = SwitchConfig::default();
    Ok(SwitchConfig {
        fragments: keys.word("fragments", plain.fragments, FRAGMENTS)?,
        invalid_ttl_to_controller: keys.is("invalid_ttl_to_controller")?,
        miss_send_bytes: keys.number("miss_send_len", plain.miss_send_bytes)?,
    })
}

/// Formats a switch configuration as JSON that [`set_config`] parses.
pub fn set_config_json(it: &SwitchConfig) -> Value {
    json!({
        "fragments": word(FRAGMENTS, &it.fragments),
        "invalid_ttl_to_controller": it.invalid_ttl_to_controller,
        "miss_send_len": it.miss_send_bytes,
    })
}

/// Parses a port-mod.
pub fn port_mod(keys: &mut Keys<'_>) -> Result<PortMod, String> {
    let optical = |keys: &mut Keys<'_>| {
        Ok(PortModProperty::Optical(OpticalMod {
            configure: keys.bits("configure")?,
            center: keys.number("center", 0)?,
            offset: keys.number("offset", 0)?,
            span: keys.number("span", 0)?,
            tx_power: keys.number("tx_power", 0)?,
        }))
    };
    let mut properties = Vec::from_iter(keys.object("optical", optical)?);
    properties.extend(keys.experimenters()?.into_iter().map(PortModProperty::Experimenter));
    Ok(PortMod {
        number: keys.port("port", reserved::NONE)?,
        mac: keys.mac("mac")?,
        config: keys.bits("config")?,
        mask: keys.bits("mask")?,
        advertise: keys.bits("advertise")?,
        properties,
    })
}

/// Parses a table-mod, which includes [`table_config`].
pub fn table_mod(keys: &mut Keys<'_>) -> Result<TableMod, String> {
    let vacancy = |keys: &mut Keys<'_>| {
        Ok(TableModProperty::Vacancy {
            down: keys.number("down", 0)?,
            up: keys.number("up", 0)?,
            vacancy: keys.number("vacancy", 0)?,
        })
    };
    let mut properties = Vec::new();
    if keys.look("eviction_flags").is_some() {
        properties.push(TableModProperty::Eviction(keys.bits("eviction_flags")?));
    }
    properties.extend(keys.object("vacancy", vacancy)?);
    properties.extend(keys.experimenters()?.into_iter().map(TableModProperty::Experimenter));
    Ok(TableMod {
        table: keys.number_or("table", 0, TABLES)?,
        config: table_config(keys)?,
        properties,
    })
}

/// Parses a table's configuration without its properties.
pub fn table_config(keys: &mut Keys<'_>) -> Result<TableConfig, String> {
    Ok(TableConfig {
        miss: keys.word("miss", TableMiss::default(), MISSES)?,
        eviction: keys.is("eviction")?,
        vacancy_events: keys.is("vacancy_events")?,
    })
}

/// Formats a table-mod as JSON that [`table_mod`] parses.
pub fn table_mod_json(it: &TableMod) -> Value {
    let mut value = table_config_json(&it.config);
    value["table"] = it.table.into();
    let mut others = Vec::new();
    for property in &it.properties {
        match property {
            TableModProperty::Eviction(flags) => value["eviction_flags"] = flags.names().into(),
            TableModProperty::Vacancy { down, up, vacancy } => {
                value["vacancy"] = json!({ "down": down, "up": up, "vacancy": vacancy });
            }
            TableModProperty::Experimenter(it) => others.push(experimenter_json(it)),
        }
    }
    value["experimenters"] = others.into();
    value
}

/// Formats a table configuration as JSON that [`table_config`] parses.
pub fn table_config_json(it: &TableConfig) -> Value {
    json!({
        "miss": word(MISSES, &it.miss),
        "eviction": it.eviction,
        "vacancy_events": it.vacancy_events,
    })
}

/// Parses a role request.
pub fn role_request(keys: &mut Keys<'_>) -> Result<RoleRequest, String> {
    Ok(RoleRequest {
        role: keys.word("role", Role::NoChange, ROLES)?,
        short_id: keys.number("short_id", 0)?,
        generation: keys.number("generation", 0)?,
    })
}

/// Formats a role request as JSON that [`role_request`] parses.
pub fn role_request_json(it: &RoleRequest) -> Value {
    json!({
        "role": word(ROLES, &it.role),
        "short_id": it.short_id,
        "generation": it.generation,
    })
}

/// Parses the asynchronous configuration: sets of reasons by message, for masters and equals, and
/// for slaves.
pub fn async_config(keys: &mut Keys<'_>) -> Result<AsyncConfig, String> {
    let mut config = AsyncConfig::default();
    for (key, slave) in [("master", false), ("slave", true)] {
        let kinds = keys.object(key, |keys| {
            let masks = AsyncKind::ALL.iter().map(|kind| {
                let is_given = keys.look(kind.name()).is_some();
                Ok((*kind, is_given.then(|| reasons(keys, kind.name())).transpose()?))
            });
            masks.collect::<Result<Vec<_>, String>>()
        })?;
        for (kind, reasons) in kinds.into_iter().flatten() {
            if let Some(reasons) = reasons {
                config.set(kind, slave, reasons);
            }
        }
    }
    config.experimenter = keys.rows("experimenters", |keys| {
        Ok(AsyncExperimenter { slave: keys.is("slave")?, property: experimenter(keys)? })
    })?;
    Ok(config)
}

/// Takes a set of reasons as a list of their numbers.
fn reasons(keys: &mut Keys<'_>, key: &str) -> Result<u32, String> {
    let bit = |value: Value| {
        let number = value.as_u64().filter(|number| *number < 32);
        number.map(|number| 1u32 << number).ok_or_else(|| format!("{key}: unknown reason {value}"))
    };
    keys.values(key)?.into_iter().try_fold(0, |all, value| Ok(all | bit(value)?))
}

/// Formats an asynchronous configuration as JSON that [`async_config`] parses.
pub fn async_config_json(it: &AsyncConfig) -> Value {
    let of = |slave: bool| -> Map<String, Value> {
        let own = it.masks.iter().filter(|mask| mask.slave == slave);
        let numbers = |reasons: u32| -> Value {
            (0..32u32).filter(|bit| reasons & 1 << bit != 0).map(Value::from).collect()
        };
        own.map(|mask| (mask.kind.name().into(), numbers(mask.reasons))).collect()
    };
    let others = it.experimenter.iter().map(|it| {
        let mut value = experimenter_json(&it.property);
        value["slave"] = it.slave.into();
        value
    });
    json!({ "master": of(false), "slave": of(true), "experimenters": others.collect::<Vec<_>>() })
}
