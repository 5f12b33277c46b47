//! Table features as JSON.

use openflow::model::{
    ActionId, ActionInstruction, Experimenter, Field, FieldId, InstructionId, TableFeatures,
    TableFeaturesCommand, TableProperty, Text,
};
use openflow::version::{ActionKind, InstructionKind};
use serde_json::{Value, json};

use super::flows::TABLES;
use super::keys::{Keys, ValueNames, experimenter, experimenter_json, word};
use super::settings::{table_config, table_config_json};

const COMMANDS: &ValueNames<TableFeaturesCommand> = &[
    ("replace", TableFeaturesCommand::Replace),
    ("modify", TableFeaturesCommand::Modify),
    ("enable", TableFeaturesCommand::Enable),
    ("disable", TableFeaturesCommand::Disable),
];

const WHENS: &ValueNames<ActionInstruction> =
    &[("write", ActionInstruction::Write), ("apply", ActionInstruction::Apply)];

/// Suffix of a field's name that has a mask.
const MASKED: &str = "/mask";

/// Parses the features of one table.
pub fn features(keys: &mut Keys<'_>) -> Result<TableFeatures, String> {
    let name = keys.take("name");
    Ok(TableFeatures {
        table: keys.number_or("table", 0, TABLES)?,
        command: keys.word("command", TableFeaturesCommand::Replace, COMMANDS)?,
        flags: keys.bits("flags")?,
        name: Text::from(name.as_ref().and_then(Value::as_str).unwrap_or_default()),
        metadata_match: keys.number("metadata_match", 0)?,
        metadata_write: keys.number("metadata_write", 0)?,
        capabilities: table_config(keys)?,
        entries_max: keys.number("entries_max", 0)?,
        properties: keys.rows("properties", property)?,
    })
}

fn property(keys: &mut Keys<'_>) -> Result<TableProperty, String> {
    let kinds: Vec<(&str, &str)> = KINDS.iter().map(|kind| (*kind, *kind)).collect();
    let miss = keys.is("miss")?;
    let when = keys.word("when", ActionInstruction::Apply, WHENS)?;
    Ok(match keys.word("property", "", &kinds)? {
        "instructions" => TableProperty::Instructions { miss, ids: ids(keys, instruction_id)? },
        "next_tables" => TableProperty::NextTables { miss, tables: ids(keys, number)? },
        "actions" => TableProperty::Actions { when, miss, ids: ids(keys, action_id)? },
        "match" => TableProperty::Match(ids(keys, field_id)?),
        "wildcards" => TableProperty::Wildcards(ids(keys, field_id)?),
        "set_field" => TableProperty::SetField { when, miss, ids: ids(keys, field_id)? },
        "copy_field" => TableProperty::CopyField { when, miss, ids: ids(keys, field_id)? },
        "synchronized_from" => TableProperty::SynchronizedFrom(ids(keys, number)?),
        "packet_types" => TableProperty::PacketTypes(ids(keys, number)?),
        "experimenter" => TableProperty::Experimenter { miss, body: experimenter(keys)? },
        _ => return Err(format!("a property has no name (hint: use {})", KINDS.join(", "))),
    })
}

/// Names of properties.
const KINDS: [&str; 10] = [
    "instructions",
    "next_tables",
    "actions",
    "match",
    "wildcards",
    "set_field",
    "copy_field",
    "synchronized_from",
    "packet_types",
    "experimenter",
];

fn ids<T>(keys: &mut Keys<'_>, read: fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    keys.values("ids")?.iter().map(read).collect()
}

fn number<T: TryFrom<u64>>(value: &Value) -> Result<T, String> {
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| format!("{value} is not an integer in range"))
}

fn others(value: &Value) -> Result<Experimenter, String> {
    let mut keys = Keys::of(value, "an id")?;
    let found = experimenter(&mut keys)?;
    keys.all_taken()?;
    Ok(found)
}

fn instruction_id(value: &Value) -> Result<InstructionId, String> {
    let known = InstructionKind::ALL.iter().find(|kind| value == kind.name());
    known.map_or_else(
        || others(value).map(InstructionId::Experimenter),
        |kind| Ok(InstructionId::Known(*kind)),
    )
}

fn action_id(value: &Value) -> Result<ActionId, String> {
    let known = ActionKind::ALL.iter().find(|kind| value == kind.name());
    known.map_or_else(
        || others(value).map(ActionId::Experimenter),
        |kind| Ok(ActionId::Known(*kind)),
    )
}

fn field_id(value: &Value) -> Result<FieldId, String> {
    if let Some(text) = value.as_str() {
        let (name, masked) = text.strip_suffix(MASKED).map_or((text, false), |name| (name, true));
        let field = Field::from_name(name);
        let field = field.ok_or_else(|| format!("unknown field {name:?}"))?;
        return Ok(FieldId::Known { field, masked });
    }
    let mut keys = Keys::of(value, "a field")?;
    let experimenter = keys.look("experimenter").is_some();
    let experimenter = experimenter.then(|| keys.number("experimenter", 0)).transpose()?;
    let found = FieldId::Other { header: keys.number("header", 0)?, experimenter };
    keys.all_taken()?;
    Ok(found)
}

/// Writes the features of one table as [`features`] reads them.
pub fn features_json(it: &TableFeatures) -> Value {
    let mut value = table_config_json(&it.capabilities);
    value["table"] = it.table.into();
    value["command"] = word(COMMANDS, &it.command).into();
    value["flags"] = it.flags.names().into();
    value["name"] = it.name.to_string().into();
    value["metadata_match"] = it.metadata_match.into();
    value["metadata_write"] = it.metadata_write.into();
    value["entries_max"] = it.entries_max.into();
    value["properties"] = it.properties.iter().map(property_json).collect();
    value
}

fn property_json(it: &TableProperty) -> Value {
    let fields = |ids: &[FieldId]| ids.iter().map(field_json).collect::<Vec<_>>();
    match it {
        TableProperty::Instructions { miss, ids } => {
            let one = |id: &InstructionId| match id {
                InstructionId::Known(kind) => kind.name().into(),
                InstructionId::Experimenter(it) => experimenter_json(it),
            };
            let ids: Vec<Value> = ids.iter().map(one).collect();
            json!({ "property": "instructions", "miss": miss, "ids": ids })
        }
        TableProperty::NextTables { miss, tables } => {
            json!({ "property": "next_tables", "miss": miss, "ids": tables })
        }
        TableProperty::Actions { when, miss, ids } => {
            let one = |id: &ActionId| match id {
                ActionId::Known(kind) => kind.name().into(),
                ActionId::Experimenter(it) => experimenter_json(it),
            };
            let (when, ids) = (word(WHENS, when), ids.iter().map(one).collect::<Vec<Value>>());
            json!({ "property": "actions", "when": when, "miss": miss, "ids": ids })
        }
        TableProperty::Match(ids) => json!({ "property": "match", "ids": fields(ids) }),
        TableProperty::Wildcards(ids) => json!({ "property": "wildcards", "ids": fields(ids) }),
        TableProperty::SetField { when, miss, ids } => json!({
            "property": "set_field", "when": word(WHENS, when), "miss": miss, "ids": fields(ids),
        }),
        TableProperty::CopyField { when, miss, ids } => json!({
            "property": "copy_field", "when": word(WHENS, when), "miss": miss, "ids": fields(ids),
        }),
        TableProperty::SynchronizedFrom(tables) => {
            json!({ "property": "synchronized_from", "ids": tables })
        }
        TableProperty::PacketTypes(types) => json!({ "property": "packet_types", "ids": types }),
        TableProperty::Experimenter { miss, body } => {
            let mut value = experimenter_json(body);
            (value["property"], value["miss"]) = ("experimenter".into(), (*miss).into());
            // The number has the same key as in any other experimenter object.
            value
        }
    }
}

/// Returns the name of a field, as tables and ports list it.
pub fn field_json(id: &FieldId) -> Value {
    match id {
        FieldId::Known { field, masked: false } => field.name().into(),
        FieldId::Known { field, masked: true } => format!("{}{MASKED}", field.name()).into(),
        FieldId::Other { header, experimenter } => {
            json!({ "header": header, "experimenter": experimenter })
        }
    }
}
