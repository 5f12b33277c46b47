//! Groups and meters as JSON.

use openflow::model::group::{BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST};
use openflow::model::{
    Bucket, GROUP_ALL, GROUP_ANY, GroupKind, GroupMod, GroupModCommand, METER_ALL,
    METER_CONTROLLER, METER_SLOWPATH, MeterBand, MeterBandKind, MeterMod, MeterModCommand,
};
use serde_json::{Value, json};

use super::super::flow;
use super::flows::GROUPS_ANY;
use super::keys::{Keys, ValueNames, experimenter, experimenter_json, experimenters_json, word};

/// Commands of group-mods.
pub const GROUP_COMMANDS: &ValueNames<GroupModCommand> = &[
    ("add", GroupModCommand::Add),
    ("modify", GroupModCommand::Modify),
    ("delete", GroupModCommand::Delete),
    ("insert_bucket", GroupModCommand::InsertBucket),
    ("remove_bucket", GroupModCommand::RemoveBucket),
];

/// Types of groups.
pub const GROUP_KINDS: &ValueNames<GroupKind> = &[
    ("all", GroupKind::All),
    ("select", GroupKind::Select),
    ("indirect", GroupKind::Indirect),
    ("fast_failover", GroupKind::FastFailover),
];

/// Commands of meter-mods.
pub const METER_COMMANDS: &ValueNames<MeterModCommand> = &[
    ("add", MeterModCommand::Add),
    ("modify", MeterModCommand::Modify),
    ("delete", MeterModCommand::Delete),
];

/// Named group numbers.
pub const GROUPS: &ValueNames<u32> = &[("all", GROUP_ALL)];

/// Named meter numbers.
pub const METERS: &ValueNames<u32> =
    &[("all", METER_ALL), ("slowpath", METER_SLOWPATH), ("controller", METER_CONTROLLER)];

const BUCKETS: &ValueNames<u32> =
    &[("first", BUCKET_FIRST), ("last", BUCKET_LAST), ("all", BUCKET_ALL)];

/// Names of band types, including experimenter bands.
const BANDS: [&str; 3] = ["drop", "dscp_remark", "experimenter"];

/// Parses a group-mod.
pub fn group_mod(keys: &mut Keys<'_>) -> Result<GroupMod, String> {
    let plain = GroupMod::default();
    Ok(GroupMod {
        command: keys.word("command", plain.command, GROUP_COMMANDS)?,
        kind: keys.word("group_type", plain.kind, GROUP_KINDS)?,
        group: keys.number_or("group", plain.group, GROUPS)?,
        command_bucket: keys.number_or("command_bucket", plain.command_bucket, BUCKETS)?,
        buckets: keys.rows("buckets", bucket)?,
        experimenter: keys.experimenters()?,
    })
}

fn bucket(keys: &mut Keys<'_>) -> Result<Bucket, String> {
    let plain = Bucket::default();
    Ok(Bucket {
        id: keys.number("id", plain.id)?,
        weight: keys.number("weight", plain.weight)?,
        watch_port: keys.port("watch_port", plain.watch_port)?,
        watch_group: keys.number_or("watch_group", GROUP_ANY, GROUPS_ANY)?,
        actions: keys.take("actions").as_ref().map(flow::actions).transpose()?.unwrap_or_default(),
        experimenter: keys.experimenters()?,
    })
}

/// Writes a group-mod as [`group_mod`] reads it.
pub fn group_mod_json(it: &GroupMod) -> Value {
    let mut value = group_json(it.group, it.kind, &it.buckets);
    value["command"] = word(GROUP_COMMANDS, &it.command).into();
    value["command_bucket"] = it.command_bucket.into();
    value["experimenters"] = experimenters_json(&it.experimenter);
    value
}

/// Writes a group: its number, type and buckets.
pub fn group_json(group: u32, kind: GroupKind, buckets: &[Bucket]) -> Value {
    json!({
        "group": group,
        "group_type": word(GROUP_KINDS, &kind),
        "buckets": buckets.iter().map(bucket_json).collect::<Vec<_>>(),
    })
}

fn bucket_json(it: &Bucket) -> Value {
    json!({
        "id": it.id,
        "weight": it.weight,
        "watch_port": flow::port_told(it.watch_port),
        "watch_group": it.watch_group,
        "actions": flow::actions_told(&it.actions),
        "experimenters": experimenters_json(&it.experimenter),
    })
}

/// Parses a meter-mod.
pub fn meter_mod(keys: &mut Keys<'_>) -> Result<MeterMod, String> {
    Ok(MeterMod {
        command: keys.word("command", MeterModCommand::Add, METER_COMMANDS)?,
        flags: keys.bits("flags")?,
        meter: keys.number_or("meter", 1, METERS)?,
        bands: keys.rows("bands", band)?,
    })
}

fn band(keys: &mut Keys<'_>) -> Result<MeterBand, String> {
    let kinds: Vec<(&str, usize)> = BANDS.into_iter().zip(0..).collect();
    let kind = match keys.word("band", 0, &kinds)? {
        0 => MeterBandKind::Drop,
        1 => MeterBandKind::DscpRemark { levels: keys.number("levels", 1)? },
        _ => MeterBandKind::Experimenter(
            keys.object("body", experimenter)?.ok_or("body of the band is missing")?,
        ),
    };
    Ok(MeterBand { rate: keys.number("rate", 0)?, burst: keys.number("burst", 0)?, kind })
}

/// Writes a meter-mod as [`meter_mod`] reads it.
pub fn meter_mod_json(it: &MeterMod) -> Value {
    let mut value = meter_json(it.meter, &it.flags.names(), &it.bands);
    value["command"] = word(METER_COMMANDS, &it.command).into();
    value
}

/// Writes a meter: its number, flags and bands.
pub fn meter_json(meter: u32, flags: &[&str], bands: &[MeterBand]) -> Value {
    let band = |it: &MeterBand| {
        let mut value = json!({ "rate": it.rate, "burst": it.burst });
        match &it.kind {
            MeterBandKind::Drop => value["band"] = BANDS[0].into(),
            MeterBandKind::DscpRemark { levels } => {
                value["band"] = BANDS[1].into();
                value["levels"] = (*levels).into();
            }
            MeterBandKind::Experimenter(body) => {
                value["band"] = BANDS[2].into();
                value["body"] = experimenter_json(body);
            }
        }
        value
    };
    json!({ "meter": meter, "flags": flags, "bands": bands.iter().map(band).collect::<Vec<_>>() })
}
