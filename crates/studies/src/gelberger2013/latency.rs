//! Figures 5, 6 and 8: latency by frame size for each workload, and its variation.
//!
//! Claim: ProGFE has slightly less latency than OpenFlow for routing and about the same for
//! tagging. Its delay varies hardly more than the kernel's; OpenFlow's varies much more. The
//! workload hardly changes this.
//!
//! Method: one flow of frames with send times, at a rate that every target can carry; the study does not state its
//! load. Figure 5 shows switching and routing, figure 8 VLAN tagging.
//!
//! Variation is that of RFC 5481: a frame's delay minus the minimum of its trial. The study states neither its
//! formula nor its percentile. The report therefore shows the mean, a percentile, the maximum, and RFC 3393's
//! difference between consecutive frames. The percentile is the highest of 99.9, 99, 90 and 50 with at least ten
//! frames above it on all targets. Parameters: `--set frame=` the sizes.

use record::{Metric, Name};
use tester::stream::Rate;
use tester::trial::{Trial, TrialReport};

use super::workload::{CURVE, RULES, Workload};
use experiments::show::Chart;
use experiments::sweep::{Reading, Sweep, SweepPoint};
use experiments::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Frame sizes of the latency figures.
const FRAMES: Parameter = shared::FRAMES.with_default("64,128,256,512,1024,1518");

/// Frame sizes of the variation figure.
const FRAMES_VARIED: Parameter = shared::FRAMES.with_default("64,512,1518");

/// Rate of the frames for latency, per second.
pub const RATE: Parameter = Parameter {
    key: "latency_pps",
    takes: ValueType::Number(1.0, 1e6),
    default: "20000",
    unit: "frames/s",
    help: "rate of the frames for the latency, at every size",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[RATE, FRAMES, RULES];

/// Parameters of the variation figure.
pub const PARAMETERS_VARIED: &[Parameter] = &[RATE, FRAMES_VARIED, RULES];

/// Metrics of the delay above the minimum: percentiles other than the 99.9th; then mean and maximum.
const PERCENTILES: [(f64, &str); 3] =
    [(0.99, "pdv_ns_p99"), (0.9, "pdv_ns_p90"), (0.5, "pdv_ns_p50")];

const VARIATION_MEAN: &str = "pdv_ns_mean";
const VARIATION_MOST: &str = "pdv_ns_max";

/// Metric of the mean difference between consecutive frames.
const DIFFERENCE_MEAN: &str = "ipdv_ns_mean";

/// Report values of figures 5 and 8.
pub const LATENCIES: &[Chart] = &[Chart {
    is_logarithmic: true,
    ..Chart::values(
        "Latency by frame size",
        &["latency_ns_p50"],
        &["latency_ns_mean", "latency_ns_p99", "latency_ns_max", "rate_pps_offered", "loss_ratio"],
    )
}];

/// Report values of figure 6.
pub const VARIATIONS: &[Chart] = &[
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Packet delay variation by frame size",
            &["pdv_ns_p999"],
            &[
                VARIATION_MEAN,
                VARIATION_MOST,
                DIFFERENCE_MEAN,
                "latency_ns_min",
                "rate_pps_offered",
            ],
        )
    },
    Chart {
        is_logarithmic: true,
        ..Chart::values(
            "Mean packet delay variation by frame size",
            &[VARIATION_MEAN],
            &["loss_ratio"],
        )
    },
];

/// Creates the method of figure 5.
pub fn routing(context: &Context) -> Box<dyn Method> {
    by_size(context, &FRAMES, |work| work != Workload::Tagging)
}

/// Creates the method of figure 8.
pub fn tagging(context: &Context) -> Box<dyn Method> {
    by_size(context, &FRAMES, |work| work == Workload::Tagging)
}

/// Creates the method of figure 6.
pub fn variation(context: &Context) -> Box<dyn Method> {
    by_size(context, &FRAMES_VARIED, |_| true)
}

fn by_size(
    context: &Context,
    sizes: &Parameter,
    is_meant: fn(Workload) -> bool,
) -> Box<dyn Method> {
    let pps = context.parameters.own.number(&RATE);
    let works = Workload::of(context.technology).iter().copied().filter(|work| is_meant(*work));
    let points = works.flat_map(|work| {
        let point = move |frame_bytes: u16| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((CURVE, work.number())),
            setup: work.setup(context),
            trial: {
                let rate = Rate::FramesPerSecond(pps.min(context.most_pps(frame_bytes)));
                context.trial(&work.setup(context), frame_bytes, rate)
            },
        };
        context.frames(sizes).into_iter().map(point)
    });
    let sweep = Sweep::new(AXIS, points.collect(), context.parameters.repeats);
    Box::new(sweep.reading(varied))
}

/// Reads the delays of a trial above their minimum.
fn varied(_: &Trial, report: &TrialReport) -> Vec<Reading> {
    let delays = &report.latency.from_sent;
    let Some((least, most)) = delays.ns_min().zip(delays.ns_max()) else { return Vec::new() };
    let Some(mean) = delays.ns_mean() else { return Vec::new() };
    let reading =
        |name, value| Reading { metric: Metric::Named(Name::of(name)), value, is_irregular: false };
    let above = |ns: f64| (ns - least as f64).max(0.0);
    let percentile = |(share, name): (f64, &'static str)| {
        Some((name, above(delays.ns_at_quantile(share)? as f64)))
    };
    let of_all = [(VARIATION_MEAN, above(mean)), (VARIATION_MOST, above(most as f64))];
    let of_all = of_all.into_iter().chain(PERCENTILES.into_iter().filter_map(percentile));
    let of_flow = report.streams.first().map(|flow| (DIFFERENCE_MEAN, flow.jitter.ipdv_ns_mean));
    of_all.chain(of_flow).map(|(name, value)| reading(name, value)).collect()
}
