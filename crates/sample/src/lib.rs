//! An invented run for tests. None of its values was measured.
//!
//! Six targets with invented capacities repeat figures 2, 3 and 4 of bianco2010 three times.
//! Invariant: every call returns the same record.

use record::{
    Calibration, Claim, ClockSource, CounterChange, CpuUse, Distribution, Drop, DropPlace, Effort,
    Environment, Experiment, Flag, FrameClasses, Jitter, Point, Record, Role, SCHEMA, Target,
    Technology, Tool, Trial,
};
use report::claims;

/// Name, kind, owner, frames per second at 64 bytes, cost per byte in ns, latency in us.
type InventedTarget = (&'static str, Technology, &'static str, f64, f64, f64);

const TARGETS: [InventedTarget; 6] = [
    ("switch", Technology::Openflow, "planimeter", 905_000.0, 0.16, 21.0),
    ("bridge", Technology::Bridging, "planimeter", 1_120_000.0, 0.14, 20.0),
    ("router", Technology::Routing, "planimeter", 1_010_000.0, 0.15, 20.5),
    ("ovs", Technology::Openflow, "system", 760_000.0, 0.3, 27.0),
    ("linux-bridge", Technology::Bridging, "system", 415_000.0, 0.2, 33.0),
    ("linux-router", Technology::Routing, "system", 690_000.0, 0.22, 29.0),
];

const SIZES: [u32; 7] = [64, 96, 128, 256, 512, 1024, 1500];
const LOADS_PERCENT: [f64; 8] = [10.0, 20.0, 40.0, 50.0, 60.0, 70.0, 80.0, 100.0];
const REPEATS: u32 = 3;
const DURATION_NS: u64 = 1_000_000_000;
const CEILING_PPS: f64 = 1_450_000.0;

/// The studies' claims from the project's files.
pub fn claims() -> Vec<Claim> {
    let text = include_str!("../../studies/src/papers/claims.csv");
    claims::parse(text).expect("the project's claims can be read")
}

/// The whole run, finished.
pub fn record() -> Record {
    let mut record = Record {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: "0.0.0 (made up)".into() },
        created: "2026-01-31T12:00:00Z".into(),
        command_line: "planimeter run bianco2010/fig2 bianco2010/fig3 bianco2010/fig4 --on switch \
                       --on bridge --on router --on ovs --on linux-bridge --on linux-router \
                       --effort quick --seed 7"
            .into(),
        seed: 7,
        effort: Effort::Quick,
        partial: false,
        failure: None,
        trials_planned: None,
        link: "veth:afpacket".into(),
        environment: environment(),
        parameters: [
            ("capacity_bps".to_string(), 1_000_000_000u64.into()),
            ("seconds".to_string(), 1.into()),
        ]
        .into_iter()
        .collect(),
        calibrations: vec![calibration()],
        targets: TARGETS.iter().map(target).collect(),
        experiments: experiments(),
        trials: Vec::new(),
        outcomes: Vec::new(),
        cells: Vec::new(),
        ratios: Vec::new(),
        published: Vec::new(),
        claims: Vec::new(),
        warnings: Vec::new(),
    };
    for repeat in 1..=REPEATS {
        for size in SIZES {
            let point = ("frame_bytes", f64::from(size));
            add_round(&mut record, 0, point, size, nominal_pps(size), repeat);
        }
        for experiment in [1, 2] {
            for percent in LOADS_PERCENT {
                let load = nominal_pps(64) * percent / 100.0;
                add_round(&mut record, experiment, ("load_percent", percent), 64, load, repeat);
            }
        }
    }
    report::finish(&mut record, &claims());
    record
}

/// Frames per second on a full link of 1 Gbit/s.
fn nominal_pps(size: u32) -> f64 {
    1e9 / (8.0 * f64::from(size + 20))
}

fn add_round(
    record: &mut Record,
    experiment: usize,
    point: (&str, f64),
    size: u32,
    load: f64,
    repeat: u32,
) {
    for invented in &TARGETS {
        let id = record.trials.len() as u64 + 1;
        let mut trial = trial(invented, id, size, load, repeat);
        trial.experiment = record.experiments[experiment].id.clone();
        trial.point = Point::new(point.0, point.1);
        record.trials.push(trial);
    }
}

/// Deterministic noise of a few per mille.
fn wobble(id: u64) -> f64 {
    let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    1.0 + (mixed as f64 / (1u64 << 24) as f64 - 0.5) * 0.02
}

fn trial(invented: &InventedTarget, id: u64, size: u32, load: f64, repeat: u32) -> Trial {
    let &(name, _, _, capacity, ns_per_byte, base_us) = invented;
    let offered_pps = load.min(CEILING_PPS);
    let cost_ns = 1e9 / capacity + f64::from(size - 64) * ns_per_byte;
    let possible = 1e9 / cost_ns * wobble(id);
    let overloaded = possible < offered_pps;
    let offered = offered_pps as u64;
    let forwarded = offered_pps.min(possible) as u64;
    let unexplained = if id == 20 { 3 } else { 0 };
    let lost = offered - forwarded;
    let (low_ns, spread) = match overloaded {
        true => (1e12 / possible, 0.2),
        false => (base_us * 1e3 * wobble(id + 1) * (1.0 + offered_pps / possible * 0.12), 0.6),
    };
    Trial {
        id,
        experiment: String::new(),
        target: name.into(),
        repeat,
        role: Role::Measure,
        point: Point::new("", 0.0),
        frame_bytes: Some(size),
        rate_pps_intended: load,
        frames_intended: load as u64,
        frames_offered: offered,
        bytes_offered: offered * u64::from(size),
        frames_forwarded: forwarded - unexplained.min(forwarded),
        bytes_forwarded: (forwarded - unexplained) * u64::from(size),
        duration_ns_intended: DURATION_NS,
        duration_ns_warmup: 0,
        duration_ns_drain: DURATION_NS / 10,
        duration_ns_effective: DURATION_NS,
        duration_ns_receiving: Some(DURATION_NS - 50_000),
        classes: FrameClasses { correct: forwarded - unexplained, ..FrameClasses::default() },
        account_frames_offered: offered,
        account_frames_received: forwarded - unexplained,
        drops: match lost {
            0 => Vec::new(),
            frames => vec![Drop {
                place: DropPlace::Target,
                at: "port 1".into(),
                reason: "receive ring full".into(),
                frames,
            }],
        },
        frames_unexplained: unexplained as i64,
        streams: Vec::new(),
        ports: Vec::new(),
        latency: Some(spread_from(low_ns, spread, forwarded)),
        latency_scheduled: Some(spread_from(low_ns + 400.0, spread * 1.1, forwarded)),
        jitter: Some(Jitter {
            jitter_ns_rfc3550: low_ns * spread / 10.0,
            pdv_ns_p999: Some((low_ns * spread * 3.0) as u64),
            ipdv_ns_mean: None,
            ipdv_ns_max: None,
            ipdv_signed: None,
        }),
        pacing_error: Some(spread_from(180.0, 1.0, offered)),
        stalls: None,
        clock: ClockSource::Kernel,
        calibration: Some("veth-64".into()),
        seed: 7 + id,
        flags: if offered_pps < load { vec![Flag::TesterLimited] } else { Vec::new() },
        counters: vec![CounterChange {
            name: "frames forwarded".into(),
            before: 0,
            after: forwarded,
        }],
        cpu: vec![CpuUse { name: name.into(), core: Some(1), busy_ratio: 0.5 }],
        work: None,
        orders: None,
        module: None,
        witness: None,
        memory: None,
        memory_bytes: None,
        goal: None,
    }
}

fn spread_from(low_ns: f64, spread: f64, count: u64) -> Distribution {
    let at = |share: f64| Some((low_ns * (1.0 + spread * share)) as u64);
    Distribution {
        count,
        ns_min: low_ns as u64,
        ns_mean: low_ns * (1.0 + spread * 0.35),
        ns_p50: at(0.3),
        ns_p90: at(0.7),
        ns_p99: at(1.4),
        ns_p999: at(3.0),
        ns_p9999: at(6.0),
        ns_max: (low_ns * (1.0 + spread * 12.0)) as u64,
        ranges: Vec::new(),
        file: None,
    }
}

fn target(&(name, technology, family, ..): &InventedTarget) -> Target {
    Target {
        name: name.into(),
        spec: name.into(),
        technology,
        family: family.into(),
        link: None,
        version: Some("0 (made up)".into()),
        settings: [("entries".to_string(), "1".to_string())].into_iter().collect(),
    }
}

fn experiments() -> Vec<Experiment> {
    let one = |item: &str, title: &str, x_name: &str| Experiment {
        parameters: Default::default(),
        left_out: Default::default(),
        id: format!("bianco2010/{item}"),
        title: title.into(),
        study: Some("bianco2010".into()),
        item: Some(item.into()),
        x_name: x_name.into(),
        method: Some("One flow at full nominal load, one trial of a second a point.".into()),
        shares_trials_with: None,
        shows: Vec::new(),
    };
    vec![
        one("fig2", "Forwarding rate of one flow against packet size", "frame_bytes"),
        one("fig3", "Forwarding rate of 64-byte packets against load", "load_percent"),
        one("fig4", "Latency of 64-byte packets against load", "load_percent"),
    ]
}

fn environment() -> Environment {
    Environment {
        system: Some("an invented system".into()),
        kernel: Some("0.0.0-made-up".into()),
        cpu_model: Some("an invented processor".into()),
        cpu_cores: Some(2),
        cpu_governor: None,
        clock_source: Some("tsc".into()),
        clock: None,
        memory_bytes: Some(4 << 30),
        virtualised: Some("an invented hypervisor".into()),
        simulated: false,
        versions: [("ovs-vswitchd".to_string(), "0.0 (made up)".to_string())].into_iter().collect(),
    }
}

fn calibration() -> Calibration {
    Calibration {
        id: "veth-64".into(),
        link: "veth:afpacket".into(),
        frame_bytes: 64,
        rate_pps_ceiling: CEILING_PPS as u64,
        bound: None,
        rate_pps_saturated: CEILING_PPS as u64,
        latency: Some(spread_from(9_000.0, 0.5, 100_000)),
        latency_ns_error: Some(120.0),
        pacing_error: Some(spread_from(150.0, 1.0, 100_000)),
        frames_dropped: Some(0),
        stalls: None,
        cores: Vec::new(),
        clock: ClockSource::Kernel,
        controller: None,
    }
}
