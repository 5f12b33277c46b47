//! Conversion of records and trial lines of schema 1.
//!
//! Schema 2 renamed fields, words and metrics and changed no value. The tables list each former
//! name with the present one. Invariant: a conversion leaves a text of schema 2 as it is.

use serde_json::{Map, Value};

use crate::assignment;

/// A former name and the present one.
type RenamedField = (&'static str, &'static str);

/// Metrics.
pub const METRICS: &[RenamedField] = &[
    ("addresses_cached", "mac_addresses_learned"),
    ("flow_mods_changed_per_s", "flow_mods_add_delete_per_s"),
    ("flow_stats_ns_first", "flow_stats_ns_first_reply"),
    ("latency_ns_p99_extra", "latency_ns_p99_increase"),
    ("latency_scheduled_ns_p50", "latency_from_schedule_ns_p50"),
    ("latency_scheduled_ns_p99", "latency_from_schedule_ns_p99"),
    ("rate_cold_ratio", "rate_ratio_cold_cache"),
    ("reset_ns_by_loss", "reset_ns_frame_loss_method"),
    ("throughput_pps_lossy", "throughput_pps_loss_tolerated"),
];

const EXPERIMENT: &[RenamedField] =
    &[("left_out", "skipped"), ("shows", "charts"), ("trials_of", "shares_trials_with")];
const CHART: &[RenamedField] = &[("beside", "table_metrics"), ("drawn", "y_metrics")];
const TRIAL: &[RenamedField] = &[("orders", "controller_load"), ("witness", "snmp")];
const CONTROLLER_LOAD: &[RenamedField] = &[("deed", "command")];
const STREAM: &[RenamedField] =
    &[("frames_elsewhere", "frames_wrong_port"), ("silence_ns", "gap_ns_max")];
const MODULE: &[RenamedField] =
    &[("react_ns", "reaction_ns"), ("react_ns_longest", "reaction_ns_longest")];
const POINT: &[RenamedField] = &[("within", "series")];

/// Words of `controller_load.command`.
const COMMANDS: &[RenamedField] = &[("change", "add_delete"), ("tell", "flow_stats")];
/// Words of `module.ended`.
const ENDED: &[RenamedField] = &[("said", "completed")];
/// Words of `flags`, and kinds of warnings.
const CONDITIONS: &[RenamedField] = &[
    ("disturbed", "tester_interference"),
    ("left_out", "skipped"),
    ("not_warm", "cold_caches"),
    ("repeated", "retried"),
    ("wrong_frames", "misdelivered_frames"),
];
/// Answers of ratios.
const ANSWERS: &[RenamedField] = &[("alike", "equivalent"), ("unclear", "inconclusive")];
/// Verdicts on claims.
const VERDICTS: &[RenamedField] = &[("cannot_tell", "undecided"), ("does_not", "contradicted")];
/// Settings of the run that are parameters.
const SETTINGS: &[RenamedField] = &[("service_ns", "sim_service_time_ns")];

/// Returns the present name of a metric.
pub fn current_metric(name: &str) -> &str {
    present(METRICS, name).unwrap_or(name)
}

/// Converts a record of schema 1; changes no other.
pub fn convert_record(record: &mut Value) {
    let Some(fields) = record.as_object_mut().filter(|it| it.get("schema") == Some(&1.into()))
    else {
        return;
    };
    fields.insert("schema".into(), 2.into());
    if let Some(Value::Object(parameters)) = fields.get_mut("parameters") {
        rename_keys(parameters, SETTINGS);
        each(parameters, "set", convert_assignment);
    }
    each(fields, "experiments", convert_experiment);
    each(fields, "trials", convert_trial);
    each(fields, "outcomes", convert_result);
    each(fields, "cells", convert_result);
    each(fields, "ratios", convert_result);
    each(fields, "published", convert_result);
    each(fields, "claims", |claim| {
        within(claim, "verdict", |verdict| rename_word(verdict, "answer", VERDICTS));
    });
    each(fields, "warnings", |entry| {
        within(entry, "warning", |warning| rename_word(warning, "kind", CONDITIONS));
    });
}

/// Converts a line of `trials.jsonl`, of either schema. A line does not state its schema.
pub fn convert_line(line: &mut Value) {
    let Some(fields) = line.as_object_mut() else { return };
    match fields.get("line").and_then(Value::as_str) {
        Some("trial") => convert_trial(line),
        _ => convert_result(line),
    }
}

fn convert_assignment(text: &mut Value) {
    let parts = text.as_str().and_then(|text| text.split_once('='));
    if let Some((key, value)) = parts.and_then(|(key, value)| assignment::current(key, value)) {
        *text = format!("{key}={value}").into();
    }
}

fn convert_experiment(experiment: &mut Value) {
    let Some(fields) = experiment.as_object_mut() else { return };
    rename_keys(fields, EXPERIMENT);
    if let Some(Value::Object(parameters)) = fields.get_mut("parameters") {
        let converted = std::mem::take(parameters).into_iter().map(|(key, value)| {
            match value.as_str().and_then(|text| assignment::current(&key, text)) {
                Some((now, text)) => (now.to_string(), text.into()),
                None => (key, value),
            }
        });
        *parameters = converted.collect();
    }
    each(fields, "charts", |chart| {
        let Some(fields) = chart.as_object_mut() else { return };
        rename_keys(fields, CHART);
        for list in ["y_metrics", "table_metrics"] {
            each(fields, list, |name| rename(name, METRICS));
        }
    });
}

fn convert_trial(trial: &mut Value) {
    let Some(fields) = trial.as_object_mut() else { return };
    rename_keys(fields, TRIAL);
    each(fields, "flags", |flag| rename(flag, CONDITIONS));
    each(fields, "streams", |stream| {
        stream.as_object_mut().into_iter().for_each(|fields| rename_keys(fields, STREAM));
    });
    within(trial, "point", |point| rename_keys(point, POINT));
    within(trial, "controller_load", |load| {
        rename_keys(load, CONTROLLER_LOAD);
        rename_word(load, "command", COMMANDS);
    });
    within(trial, "module", |module| {
        rename_keys(module, MODULE);
        rename_word(module, "ended", ENDED);
        each(module, "measured", convert_result);
    });
}

/// Converts an outcome, a cell, a ratio, a published value or a value of a module.
fn convert_result(result: &mut Value) {
    within(result, "point", |point| rename_keys(point, POINT));
    let Some(fields) = result.as_object_mut() else { return };
    rename_word(fields, "metric", METRICS);
    rename_word(fields, "answer", ANSWERS);
    each(fields, "flags", |flag| rename(flag, CONDITIONS));
    each(fields, "warnings", |warning| {
        let fields = warning.as_object_mut().into_iter();
        fields.for_each(|fields| rename_word(fields, "kind", CONDITIONS));
    });
}

fn present(table: &[RenamedField], name: &str) -> Option<&'static str> {
    table.iter().find(|(was, _)| *was == name).map(|(_, now)| *now)
}

fn rename(word: &mut Value, table: &[RenamedField]) {
    if let Some(now) = word.as_str().and_then(|text| present(table, text)) {
        *word = now.into();
    }
}

fn rename_word(fields: &mut Map<String, Value>, key: &str, table: &[RenamedField]) {
    fields.get_mut(key).into_iter().for_each(|word| rename(word, table));
}

fn rename_keys(fields: &mut Map<String, Value>, table: &[RenamedField]) {
    for (was, now) in table {
        if let Some(value) = fields.remove(*was) {
            fields.insert((*now).into(), value);
        }
    }
}

fn within(parent: &mut Value, key: &str, convert: impl Fn(&mut Map<String, Value>)) {
    parent.get_mut(key).and_then(Value::as_object_mut).into_iter().for_each(convert);
}

fn each(fields: &mut Map<String, Value>, key: &str, convert: impl Fn(&mut Value)) {
    fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(convert);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_converted_by_place_and_only_once() {
        let mut line = json!({
            "line": "trial", "witness": {"agent": "within"}, "flags": ["not_warm", "stall"],
            "point": {"name": "within", "value": 1.0, "within": {"name": "deed", "value": 2.0}},
            "orders": {"deed": "tell"}, "streams": [{"silence_ns": 1, "frames_elsewhere": 2}],
            "module": {"ended": "said", "react_ns": 3, "react_ns_longest": 4,
                "measured": [{"metric": "rate_cold_ratio", "value": 1.5}]},
        });
        let converted = json!({
            "line": "trial", "snmp": {"agent": "within"}, "flags": ["cold_caches", "stall"],
            "point": {"name": "within", "value": 1.0, "series": {"name": "deed", "value": 2.0}},
            "controller_load": {"command": "flow_stats"},
            "streams": [{"gap_ns_max": 1, "frames_wrong_port": 2}],
            "module": {"ended": "completed", "reaction_ns": 3, "reaction_ns_longest": 4,
                "measured": [{"metric": "rate_ratio_cold_cache", "value": 1.5}]},
        });
        for _ in 0..2 {
            convert_line(&mut line);
            assert_eq!(line, converted);
        }
    }

    #[test]
    fn a_record_is_converted_by_place() {
        let mut record = json!({
            "schema": 1, "parameters": {"set": ["rig=sim", "frame=64"], "service_ns": "0"},
            "experiments": [{"trials_of": "a", "left_out": {"b": "c"},
                "parameters": {"patience": "3", "buffer": "whole,kept"},
                "shows": [{"title": "deed", "drawn": ["addresses_cached"], "beside": ["x_ns"]}]}],
            "outcomes": [{"metric": "throughput_pps_lossy", "flags": ["repeated"]}],
            "cells": [{"metric": "reset_ns_by_loss", "warnings": [{"kind": "wrong_frames"}]}],
            "ratios": [{"answer": "alike"}, {"answer": "unclear"}],
            "claims": [{"verdict": {"answer": "cannot_tell", "why": "said"}}],
            "warnings": [{"about": "run", "warning": {"kind": "left_out", "why": "disturbed"}}],
        });
        convert_record(&mut record);
        assert_eq!(
            record,
            json!({
                "schema": 2,
                "parameters": {"set": ["simulate=true", "frame=64"], "sim_service_time_ns": "0"},
                "experiments": [{"shares_trials_with": "a", "skipped": {"b": "c"},
                    "parameters": {"timeout_s": "3", "buffer": "no_buffer,buffered"},
                    "charts": [{"title": "deed", "y_metrics": ["mac_addresses_learned"],
                        "table_metrics": ["x_ns"]}]}],
                "outcomes": [{"metric": "throughput_pps_loss_tolerated", "flags": ["retried"]}],
                "cells": [{"metric": "reset_ns_frame_loss_method",
                    "warnings": [{"kind": "misdelivered_frames"}]}],
                "ratios": [{"answer": "equivalent"}, {"answer": "inconclusive"}],
                "claims": [{"verdict": {"answer": "undecided", "why": "said"}}],
                "warnings": [{"about": "run", "warning": {"kind": "skipped", "why": "disturbed"}}],
            })
        );
    }
}
