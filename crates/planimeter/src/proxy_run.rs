//! Record of a proxied control channel as a run: counters and times, in a folder that reports are
//! made from.
//!
//! Each switch is a target with one trial. Its values are a module's, named after the request.
//! Invariant: a message type that did not occur has no value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use channel::Url;
use os::clock;
use packet::time::Nanos;
use record::{
    ClockSource, Ended, Experiment, FrameClasses, Measured, Metric, ModuleRun, Name, Outcome,
    Point, Record, Role, SCHEMA, Series, Show, Technology, Tool, Trial,
};
use serde_json::{Value, json};
use store::{Histograms, Store, StoreError};
use tester::proxy::overhead::RoundTrips;
use tester::proxy::tally::{Answers, DelayKey, ProxyCounters};
use tester::trial::Histogram;

/// The experiment's name.
pub const ID: &str = "proxy";

/// Its axis, with one point for each switch.
const AXIS: &str = "connections_count";

/// Start of the recording.
#[derive(Debug, Clone)]
pub struct RecordingStart {
    /// On the monotonic clock.
    pub at: Nanos,
    /// In wall-clock time.
    pub created: String,
}

impl RecordingStart {
    /// Returns the current time.
    pub fn now() -> RecordingStart {
        RecordingStart { at: clock::now(), created: runner::environment::wall_clock() }
    }

    /// Returns the elapsed time.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(clock::now().since(self.at).0)
    }
}

/// Recorded traffic by switch.
#[derive(Debug)]
pub struct RecordedTraffic {
    /// Counters of each switch.
    pub tallies: BTreeMap<String, ProxyCounters>,
    /// Delay added by the proxy.
    pub added: RoundTrips,
    /// Start of the recording.
    pub begun: RecordingStart,
    /// Events that were lost because they were not processed in time.
    pub left_out: u64,
    /// Addresses of the controller side and of the switch side.
    pub sides: [Url; 2],
}

/// Returns the prefix of a request's values: `barrier`, or `echo_by_switch`.
pub fn word((asker, what): DelayKey) -> String {
    let what = what.strip_suffix("_request").unwrap_or(what);
    if asker == 0 { what.into() } else { format!("{what}_by_switch") }
}

/// Returns the median of the times, however few there are.
pub fn median(times: &Histogram) -> Option<u64> {
    (times.count() > 0).then(|| times.ns_at_rank(times.count().div_ceil(2)))
}

fn value(name: &str, value: f64, count: u64) -> Option<Measured> {
    let metric = Metric::Named(Name::read(name).ok()?);
    Some(Measured { metric, value, resolution: None, bound: None, count })
}

/// Returns median, 99th percentile if there are enough times, and maximum, as `NAME_ns_p50` and so
/// on.
fn times(name: &str, times: &Histogram) -> Vec<Measured> {
    let count = times.count();
    let of = |what: &str, ns: Option<u64>| value(&format!("{name}_ns_{what}"), ns? as f64, count);
    let found = [
        of("p50", median(times)),
        of("p99", times.ns_at_quantile(0.99)),
        of("max", times.ns_max()),
    ];
    found.into_iter().flatten().collect()
}

fn answers(key: DelayKey, answers: &Answers) -> Vec<Measured> {
    let word = word(key);
    let mut found = times(&word, &answers.took);
    let asked = answers.took.count() + answers.unanswered;
    let mut count = |name: String, of: u64| found.extend(value(&name, of as f64, asked));
    count(format!("{word}_answers_count"), answers.took.count());
    count(format!("{word}_unanswered_count"), answers.unanswered);
    if answers.parts_most > 1 {
        count(format!("{word}_parts_count_max"), answers.parts_most);
    }
    found.extend(times(&format!("{word}_first_part"), &answers.first));
    found
}

/// Returns all values of a switch's counters.
pub fn measured(tally: &ProxyCounters, added: &RoundTrips) -> Vec<Measured> {
    let mut found: Vec<Measured> = Vec::new();
    tally.answers.iter().for_each(|(key, it)| found.extend(answers(*key, it)));
    found.extend(times("update", &tally.updates));
    let flow_mods: u64 = tally.pairs.iter().map(|pair| u64::from(pair.flow_mods)).sum();
    let pairs = tally.pairs.len() as u64;
    if pairs > 0 {
        let mean = flow_mods as f64 / pairs as f64;
        found.extend(value("flow_mods_before_barrier_count_mean", mean, pairs));
    }
    for (key, count) in &tally.messages {
        let name = format!("{}_messages", word_of_message(*key));
        found.extend(value(&name, count.messages as f64, count.messages));
    }
    for (name, (count, delays)) in &tally.errors {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        found.extend(value(&format!("error_{name}_count"), *count as f64, *count));
        found.extend(times(&format!("error_{name}"), delays));
    }
    let errors = tally.errors_count();
    found.extend(value("errors_count", errors as f64, errors));
    let strange: u64 = tally.strange.iter().map(|count| count.messages).sum();
    found.extend(value("not_understood_messages", strange as f64, strange));
    let unread: u64 = tally.unread_bytes.iter().sum();
    found.extend(value("not_understood_bytes", unread as f64, unread));
    found.extend(value("sessions_broken_count", tally.broken as f64, tally.sessions));
    found.extend(times("held", &tally.held));
    found.extend(added.ns().and_then(|ns| value("added_ns_p50", ns, added.through.count())));
    found
}

/// Returns the prefix of a message type's values; types that both ends send are distinguished by
/// sender.
fn word_of_message((sender, kind): DelayKey) -> String {
    let both = ["hello", "error", "echo_request", "echo_reply", "experimenter", "bundle_control"];
    let is_switch = sender == 1;
    if is_switch && both.contains(&kind) { format!("{kind}_by_switch") } else { kind.into() }
}

fn series(tally: &ProxyCounters) -> Vec<Series> {
    let row = |name: &str, pick: fn(&tester::proxy::tally::FlowModBarrier) -> u64| Series {
        name: name.into(),
        over: "flow_mods_before_barrier_count".into(),
        points: tally.pairs.iter().map(|it| [f64::from(it.flow_mods), pick(it) as f64]).collect(),
    };
    if tally.pairs.is_empty() {
        return Vec::new();
    }
    vec![row("barrier_ns", |it| it.barrier_ns), row("update_ns", |it| it.ns)]
}

fn trial(id: u64, name: &str, tally: &ProxyCounters, done: &RecordedTraffic) -> Trial {
    let span = clock::now().since(done.begun.at).0;
    let sum = |sender: usize| -> u64 {
        let of = tally.messages.iter().filter(|((who, _), _)| *who == sender);
        of.map(|(_, count)| count.messages).sum::<u64>() + tally.strange[sender].messages
    };
    let mut notes = Vec::new();
    if tally.unfollowed > 0 {
        notes.push(format!(
            "{} requests were not tracked: too many were outstanding",
            tally.unfollowed
        ));
    }
    if tally.lost_bytes > 0 {
        notes.push(format!("{} bytes could not be delivered after a reset", tally.lost_bytes));
    }
    let module = ModuleRun {
        module: ID.into(),
        ended: Ended::Completed,
        duration_ns: span,
        measured: measured(tally, &done.added),
        series: series(tally),
        messages_sent: sum(0),
        messages_received: sum(1),
        errors_received: tally.errors_count(),
        events: sum(0) + sum(1),
        reaction_ns: 0,
        reaction_ns_longest: 0,
        turn_ns_p50: 0,
        turn_ns_p99: 0,
        wire: None,
        notes,
        log: None,
    };
    Trial {
        id,
        experiment: ID.into(),
        target: name.into(),
        repeat: 1,
        role: Role::Measure,
        point: Point::new(AXIS, tally.sessions as f64),
        frame_bytes: None,
        rate_pps_intended: 0.0,
        frames_intended: 0,
        frames_offered: 0,
        bytes_offered: 0,
        frames_forwarded: 0,
        bytes_forwarded: 0,
        duration_ns_intended: span,
        duration_ns_warmup: 0,
        duration_ns_drain: 0,
        duration_ns_effective: span,
        duration_ns_receiving: None,
        classes: FrameClasses::default(),
        account_frames_offered: 0,
        account_frames_received: 0,
        drops: Vec::new(),
        frames_unexplained: 0,
        streams: Vec::new(),
        ports: Vec::new(),
        latency: None,
        latency_scheduled: None,
        jitter: None,
        pacing_error: None,
        stalls: None,
        clock: ClockSource::UserSpace,
        calibration: None,
        seed: 0,
        flags: Vec::new(),
        counters: Vec::new(),
        cpu: Vec::new(),
        work: None,
        orders: None,
        module: Some(module),
        witness: None,
        memory: None,
        memory_bytes: None,
        goal: None,
    }
}

/// Returns the charts of a report: round trips, counters, and barrier times over flow-mods.
fn shows(trials: &[Trial]) -> Vec<Show> {
    let mut known: Vec<Metric> = Vec::new();
    for measured in
        trials.iter().filter_map(|trial| trial.module.as_ref()).flat_map(|it| &it.measured)
    {
        if !known.contains(&measured.metric) {
            known.push(measured.metric);
        }
    }
    let of = |is: &dyn Fn(&str) -> bool| -> Vec<Metric> {
        known.iter().copied().filter(|metric| is(metric.name())).collect()
    };
    let show = |title: &str, drawn: Vec<Metric>, beside: Vec<Metric>| Show {
        title: title.into(),
        drawn,
        beside,
        ..Show::default()
    };
    let is_error = |name: &str| name.starts_with("error");
    let is_time = |name: &str| name.contains("_ns_");
    let mut shows = vec![
        show(
            "Reply time of requests, and time from flow-mods to the barrier reply",
            of(&|name| name.ends_with("_ns_p50") && !is_error(name)),
            of(&|name| is_time(name) && !name.ends_with("_ns_p50") && !is_error(name)),
        ),
        show("Errors", of(&is_error), Vec::new()),
        show(
            "Messages and requests",
            of(&|name| name.ends_with("_messages")),
            of(&|name| name.contains("_count") && !is_error(name)),
        ),
    ];
    shows.retain(|show| !show.drawn.is_empty());
    for (title, name) in [
        ("Barrier reply time by flow-mods before the barrier", "barrier_ns"),
        ("Time from the first flow-mod to the barrier reply, by flow-mods", "update_ns"),
    ] {
        shows.push(Show { series: vec![name.into()], ..show(title, Vec::new(), Vec::new()) });
    }
    shows
}

/// Returns the run's record.
pub fn record(done: &RecordedTraffic) -> Record {
    let [controller, switch] = &done.sides;
    let trials: Vec<Trial> =
        (1..).zip(&done.tallies).map(|(id, (name, tally))| trial(id, name, tally, done)).collect();
    let outcome = |trial: &Trial| -> Vec<Outcome> {
        let measured = trial.module.iter().flat_map(|module| &module.measured);
        let one = |measured: &Measured| Outcome {
            experiment: ID.into(),
            target: trial.target.clone(),
            link: None,
            repeat: 1,
            point: trial.point.clone(),
            metric: measured.metric,
            value: measured.value,
            resolution: None,
            bound: None,
            trials: vec![trial.id],
            flags: Vec::new(),
            goal: None,
        };
        measured.map(one).collect()
    };
    let target = |name: &String| record::Target {
        name: name.clone(),
        spec: switch.to_string(),
        technology: Technology::Openflow,
        family: "system".into(),
        link: None,
        version: None,
        settings: BTreeMap::new(),
    };
    let mut record = Record {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: crate::VERSION.into() },
        created: done.begun.created.clone(),
        command_line: format!("planimeter proxy --controller {controller} --switch {switch}"),
        seed: 0,
        effort: record::Effort::Standard,
        partial: false,
        failure: None,
        trials_planned: None,
        link: format!("control channel: {switch} and {controller}"),
        environment: runner::environment::read(),
        parameters: serde_json::Map::new(),
        calibrations: Vec::new(),
        targets: done.tallies.keys().map(target).collect(),
        experiments: vec![Experiment {
            parameters: Default::default(),
            left_out: Default::default(),
            id: ID.into(),
            title: "Messages between a controller and its switches".into(),
            study: None,
            item: None,
            x_name: AXIS.into(),
            method: Some(
                "The proxy forwards bytes as they arrive. It stamps messages when it reads them, \
                 so that a round trip is that of the switch and its channel. The delay that the \
                 proxy adds is measured over loopback first."
                    .into(),
            ),
            shares_trials_with: None,
            shows: shows(&trials),
        }],
        outcomes: trials.iter().flat_map(outcome).collect(),
        trials,
        cells: Vec::new(),
        ratios: Vec::new(),
        published: Vec::new(),
        claims: Vec::new(),
        warnings: Vec::new(),
    };
    report::finish(&mut record, &[]);
    record
}

/// Creates the run's folder with its report.
pub fn store(done: &RecordedTraffic, parent: &Path) -> Result<PathBuf, StoreError> {
    let record = record(done);
    let day = done.begun.created.split('T').next().unwrap_or_default();
    let mut store = Store::create(parent, day, ID)?;
    for trial in &record.trials {
        store.append_trial(&mut trial.clone(), Histograms::default())?;
    }
    for outcome in &record.outcomes {
        store.append_outcome(outcome)?;
    }
    store.write_record(&record)?;
    let outputs = report::build(&[record.into()]);
    store::write_outputs(store.folder(), &outputs)?;
    Ok(store.folder().to_path_buf())
}

/// Returns the summary as JSON.
pub fn json(done: &RecordedTraffic, folder: Option<&Path>) -> Value {
    let switch = |(name, tally): (&String, &ProxyCounters)| {
        let values: serde_json::Map<String, Value> = measured(tally, &done.added)
            .into_iter()
            .map(|it| (it.metric.name().to_string(), it.value.into()))
            .collect();
        json!({ "switch": name, "connections": tally.sessions, "values": values })
    };
    json!({
        "event": "summary",
        "seconds": done.begun.elapsed().as_secs_f64(),
        "added_ns": done.added.ns(),
        "lines_left_out": done.left_out,
        "switches": done.tallies.iter().map(switch).collect::<Vec<_>>(),
        "run": folder,
    })
}
