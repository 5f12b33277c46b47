//! Tests of the schema: its description, and external records.

use serde_json::Value;

use record::*;

const DESCRIPTION: &str = include_str!("../../../docs/record-schema.md");

/// Collects the names of all fields in a value.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::Object(fields) => {
            for (name, item) in fields {
                // Users define the names inside these, not the schema.
                let is_free = matches!(name.as_str(), "parameters" | "settings" | "versions");
                if !found.contains(name) {
                    found.push(name.clone());
                }
                if !is_free {
                    names(item, found);
                }
            }
        }
        _ => {}
    }
}

/// The sample run with all optional parts.
fn full() -> Record {
    let mut record = sample::record();
    let point = Point::new("frame_bytes", 64.0);
    record.trials_planned = Some(1);
    record.environment.cpu_governor = Some("performance".into());
    record.experiments[2].shares_trials_with = Some("bianco2010/fig3".into());
    let classes = FrameClasses::default();
    let trial = &mut record.trials[0];
    trial.goal = Some("ndr".into());
    trial.memory_bytes = Some(1);
    trial.streams = vec![StreamCount {
        stream: 1,
        port_out: 0,
        port_in: 1,
        rate_pps_intended: 1.0,
        frames_intended: 1,
        frames_offered: 1,
        frames_refused: 1,
        classes,
        frames_wrong_port: 1,
        missed_ns_first: Some(1),
        missed_ns_last: Some(2),
        gap_ns_max: 3,
    }];
    trial.ports = vec![PortCount { port: 0, name: "a".into(), frames_sent: 1, frames_received: 0 }];
    trial.module = Some(ModuleRun {
        module: "echo-delay".into(),
        ended: Ended::Limit("time".into()),
        duration_ns: 1,
        measured: vec![Measured {
            metric: Metric::Named(Name::of("echo_ns_p50")),
            value: 1.0,
            resolution: Some(0.5),
            bound: None,
            count: 3,
        }],
        series: vec![Series {
            name: "delay_ns".into(),
            over: "sent_ns".into(),
            points: vec![[0.0, 1.0]],
        }],
        messages_sent: 1,
        messages_received: 1,
        errors_received: 1,
        events: 1,
        reaction_ns: 1,
        reaction_ns_longest: 1,
        turn_ns_p50: 1,
        turn_ns_p99: 1,
        notes: vec!["a note".into()],
        wire: Some(Wire {
            stamps: Some(ClockSource::Kernel),
            received: Some(Distribution::default()),
            sent: Some(Distribution::default()),
            unknown: 1,
            retransmitted: 1,
            gaps: 1,
            bytes_unseen: 1,
            why: Some("why".into()),
            file: Some("captures/1.pcapng".into()),
        }),
        log: Some("modules/1.jsonl".into()),
    });
    trial.witness = Some(SnmpReport {
        agent: "udp:192.0.2.1:161 (v2c)".into(),
        interfaces: vec![SnmpInterface { name: "eth1".into(), ..SnmpInterface::default() }],
        frames_in: Some(1),
        frames_out: Some(1),
        frames_sent: 1,
        frames_received: 1,
        load_percent: Some(1.0),
        loads: 1,
        values: vec![CounterChange { name: "1.3.6".into(), before: 0, after: 1 }],
        answer_ns: Some(1),
        problems: vec!["why".into()],
    });
    record.experiments[0].shows = vec![Show {
        title: "Echo delay".into(),
        drawn: vec![Metric::LossRatio],
        beside: vec![Metric::MemoryBytes],
        series: vec!["delay_ns".into()],
        is_logarithmic: true,
        range: Some(record::ShowRange::Repeats),
        implementation: Some(record::Implementation::Software),
    }];
    let latency = trial.latency.as_mut().expect("the sample has latencies");
    latency.file = Some("latency/00001.hgrm".into());
    let jitter = trial.jitter.as_mut().expect("the sample has jitter");
    (jitter.ipdv_ns_mean, jitter.ipdv_ns_max) = (Some(1.0), Some(2));
    jitter.ipdv_signed = Some(Differences { count: 1, ns_min: -1, ns_p50: 0, ns_max: 1 });
    record.outcomes = vec![Outcome {
        experiment: "throughput".into(),
        target: "switch".into(),
        link: None,
        repeat: 1,
        point: point.clone(),
        metric: Metric::ThroughputPps,
        value: 1.0,
        resolution: Some(0.5),
        bound: None,
        trials: vec![1],
        flags: vec![Flag::Irregular],
        goal: Some(GoalResult {
            goal: "ndr".into(),
            loss_ratio_allowed: 0.0,
            exceed_ratio: 0.5,
            width_ratio_wanted: 0.005,
            duration_ns_initial: 1,
            duration_ns_final: 1,
            duration_ns_sum: 1,
            rate_pps_lower: Some(1.0),
            rate_pps_upper: Some(2.0),
            rate_pps_conditional: Some(1.0),
            trials_chosen: 1,
            duration_ns_trials: 1,
            remarks: vec![Remark::CutShort],
        }),
    }];
    record.published = vec![Published {
        study: "s".into(),
        item: "fig1".into(),
        subject: "a".into(),
        point,
        metric: "rate_pps".into(),
        value: 1.0,
        text: Some("t".into()),
    }];
    record.claims[0].verdict = Verdict::Undecided("why".into());
    record.warnings.push(WarningEntry {
        about: "run".into(),
        warning: Warning::Partial { trials: 1, planned: Some(2) },
    });
    record
}

#[test]
fn every_written_field_is_documented() {
    let mut found = Vec::new();
    names(&serde_json::to_value(full()).unwrap(), &mut found);
    assert!(found.len() > 100, "the sample is too thin: {}", found.len());
    let missing: Vec<&String> =
        found.iter().filter(|name| !DESCRIPTION.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/record-schema.md: {missing:?}");
}

#[test]
fn every_written_word_is_documented() {
    let words = Metric::ALL.iter().map(|metric| metric.name());
    let missing: Vec<&str> =
        words.filter(|name| !DESCRIPTION.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/record-schema.md: {missing:?}");
}

#[test]
fn a_metric_is_stored_under_its_name() {
    for metric in Metric::ALL {
        assert_eq!(serde_json::to_value(metric).unwrap(), Value::from(metric.name()));
        assert!(metric.name().contains(metric.unit()), "{} has no unit", metric.name());
    }
}

#[test]
fn a_record_of_a_later_minor_version_is_read_and_a_truncated_one_is_not() {
    let mut value = serde_json::to_value(full()).unwrap();
    value["a_field_of_the_future"] = Value::from(1);
    let read: Record = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(read, full());
    value.as_object_mut().unwrap().remove("seed");
    assert!(serde_json::from_value::<Record>(value).is_err());
}

#[test]
fn unexplained_frames_are_the_remainder_of_the_account() {
    let record = sample::record();
    assert!(record.trials.iter().all(|trial| trial.unexplained() == trial.frames_unexplained));
    assert_eq!(record.trials.iter().map(Trial::unexplained).sum::<i64>(), 3);
}

#[test]
fn no_share_is_bounded_above_all() {
    let mut cell = sample::record().cells[0].clone();
    cell.metric = Metric::Named(Name::read("rules_premature_ratio").unwrap());
    (cell.value, cell.resolution) = (0.014, Some(1.0));
    cell.bound = Some(Bound { side: BoundSide::Upper, cause: BoundCause::Resolution });
    assert_eq!(number::quantity_of_cell(&cell), "< 100 %");
    cell.resolution = Some(0.016);
    assert_eq!(number::quantity_of_cell(&cell), "< 3 %");
}

#[test]
fn the_range_for_display_includes_the_resolution() {
    let mut cell = sample::record().cells[0].clone();
    let plain = cell.interval.unwrap();
    assert_eq!(cell.range(), Some(plain));
    cell.resolution = Some(plain.high);
    let range = cell.range().unwrap();
    assert_eq!((range.low, range.high), (0.0, 2.0 * plain.high), "no value is negative");
    cell.metric = Metric::Named(Name::read("rules_premature_ratio").unwrap());
    assert_eq!(cell.range().unwrap().high, plain.high.max(1.0), "a share is at most one");
    cell.interval = None;
    assert_eq!(cell.range(), None);
}
