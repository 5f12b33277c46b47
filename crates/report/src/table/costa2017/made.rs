//! Runs of one item and one target, made by hand.

use record::{Cell, Metric, Name, Point, Record};
use stats::interval::{self, LEVEL_PERCENT};
use stats::series;

/// A run of this item without values.
pub(super) fn run(item: &str) -> Record {
    let mut record = sample::record();
    record.experiments.truncate(1);
    record.targets.truncate(1);
    let experiment = &mut record.experiments[0];
    experiment.id = format!("costa2017/{item}");
    (experiment.study, experiment.item) = (Some("costa2017".into()), Some(item.into()));
    record
}

/// Replaces the run's values by these: names, places on the axis, and repeats.
pub(super) fn tell(mut record: Record, values: &[(&'static str, f64, &[f64])]) -> Record {
    let like = record.cells.first().expect("the sample has cells").clone();
    let cell = |(name, x, samples): &(&'static str, f64, &[f64])| {
        let metric = Metric::Named(Name::of(name));
        Cell {
            experiment: record.experiments[0].id.clone(),
            target: record.targets[0].name.clone(),
            point: Point::new("x", *x),
            metric,
            unit: metric.unit().into(),
            value: series::mean(samples).expect("there is a repeat"),
            n: samples.len() as u32,
            interval: interval::of_mean(samples, LEVEL_PERCENT),
            repeats: (1..).take(samples.len()).collect(),
            samples: samples.to_vec(),
            bound: None,
            disturbances: Vec::new(),
            exclusion: None,
            ..like.clone()
        }
    };
    record.cells = values.iter().map(cell).collect();
    record
}
