//! Bundles as JSON.

use openflow::model::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFeatureProperty, BundleFeaturesRequest,
    BundleProperty, WallTime,
};
use packet::time::Nanos;
use serde_json::{Value, json};

use super::super::commands::Names;
use super::keys::{Keys, ValueNames, experimenter_json, word};

/// Commands of bundle control.
pub const COMMANDS: &ValueNames<BundleCommand> = &[
    ("open", BundleCommand::Open),
    ("close", BundleCommand::Close),
    ("commit", BundleCommand::Commit),
    ("discard", BundleCommand::Discard),
];

/// Parses a bundle control message.
pub fn control(keys: &mut Keys<'_>) -> Result<BundleControl, String> {
    Ok(BundleControl {
        id: keys.number("bundle", 0)?,
        command: keys.word("command", BundleCommand::Open, COMMANDS)?,
        is_reply: keys.is("is_reply")?,
        flags: keys.bits("flags")?,
        properties: properties(keys)?,
    })
}

/// Parses a bundle add message; the message in it is an object like any other.
pub fn add(keys: &mut Keys<'_>, names: &Names, now: Nanos) -> Result<BundleAddMessage, String> {
    let message = keys.take("message").ok_or("message is missing")?;
    Ok(BundleAddMessage {
        id: keys.number("bundle", 0)?,
        flags: keys.bits("flags")?,
        message: Box::new(super::read(&message, names, now)?),
        properties: properties(keys)?,
    })
}

fn properties(keys: &mut Keys<'_>) -> Result<Vec<BundleProperty>, String> {
    let mut all = Vec::from_iter(keys.object("time", time)?.map(BundleProperty::Time));
    all.extend(keys.experimenters()?.into_iter().map(BundleProperty::Experimenter));
    Ok(all)
}

/// Writes a bundle control message as [`control`] reads it.
pub fn control_json(it: &BundleControl) -> Value {
    let mut value = json!({
        "bundle": it.id,
        "command": word(COMMANDS, &it.command),
        "is_reply": it.is_reply,
        "flags": it.flags.names(),
    });
    properties_json(&mut value, &it.properties);
    value
}

/// Writes a bundle add message as [`add`] reads it.
pub fn add_json(it: &BundleAddMessage) -> Value {
    let message = super::typed(&it.message);
    let mut value = json!({ "bundle": it.id, "flags": it.flags.names(), "message": message });
    properties_json(&mut value, &it.properties);
    value
}

fn properties_json(value: &mut Value, properties: &[BundleProperty]) {
    let mut others = Vec::new();
    for property in properties {
        match property {
            BundleProperty::Time(time) => value["time"] = time_json(time),
            BundleProperty::Experimenter(it) => others.push(experimenter_json(it)),
        }
    }
    value["experimenters"] = others.into();
}

/// Parses a request for the limits of scheduled bundles.
pub fn features_request(keys: &mut Keys<'_>) -> Result<BundleFeaturesRequest, String> {
    let limits = |keys: &mut Keys<'_>| {
        let mut of = |key: &str| Ok::<_, String>(keys.object(key, time)?.unwrap_or_default());
        Ok(BundleFeatureProperty::Time {
            accuracy: of("accuracy")?,
            future_max: of("future_max")?,
            past_max: of("past_max")?,
            timestamp: of("timestamp")?,
        })
    };
    let mut properties = Vec::from_iter(keys.object("time", limits)?);
    properties.extend(keys.experimenters()?.into_iter().map(BundleFeatureProperty::Experimenter));
    Ok(BundleFeaturesRequest { flags: keys.bits("flags")?, properties })
}

/// Writes the limits of scheduled bundles.
pub fn features_json(properties: &[BundleFeatureProperty]) -> Value {
    let one = |it: &BundleFeatureProperty| match it {
        BundleFeatureProperty::Time { accuracy, future_max, past_max, timestamp } => {
            json!({ "time": {
                "accuracy": time_json(accuracy),
                "future_max": time_json(future_max),
                "past_max": time_json(past_max),
                "timestamp": time_json(timestamp),
            } })
        }
        BundleFeatureProperty::Experimenter(it) => json!({ "experimenter": experimenter_json(it) }),
    };
    properties.iter().map(one).collect()
}

fn time(keys: &mut Keys<'_>) -> Result<WallTime, String> {
    Ok(WallTime { seconds: keys.number("s", 0)?, nanoseconds: keys.number("ns", 0)? })
}

fn time_json(it: &WallTime) -> Value {
    json!({ "s": it.seconds, "ns": it.nanoseconds })
}
