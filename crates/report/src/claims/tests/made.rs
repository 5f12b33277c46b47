//! Handmade runs: values of five repeats that differ by a few per mille, and their verdicts.

use crate::analysis::gelberger2013::named;
use crate::claims::judge;
use record::{Cell, ClaimVerdict, Metric, Point, Record, Target, Technology, Verdict};
use stats::interval::{self, LEVEL_PERCENT};

/// Relative deviations of the five repeats.
const SPREAD: [f64; 5] = [0.998, 0.999, 1.0, 1.001, 1.002];

/// A run of one item of a study.
pub(super) struct Made {
    pub(super) record: Record,
    experiment: String,
}

impl Made {
    /// Creates a run of this item without values, with the targets of the sample run.
    pub(super) fn of(study: &str, item: &str) -> Made {
        let mut record = sample::record();
        record.experiments.truncate(1);
        record.experiments[0].id = format!("{study}/{item}");
        record.experiments[0].study = Some(study.into());
        record.experiments[0].item = Some(item.into());
        record.cells.clear();
        Made { record, experiment: format!("{study}/{item}") }
    }

    /// Adds an OpenFlow switch with these settings.
    pub(super) fn switch(&mut self, name: &str, settings: &[(&str, &str)]) {
        let settings = settings.iter().map(|(key, text)| ((*key).into(), (*text).into())).collect();
        self.record.targets.retain(|target| target.name != name);
        self.record.targets.push(Target {
            name: name.into(),
            spec: name.into(),
            technology: Technology::Openflow,
            family: "planimeter".into(),
            link: None,
            version: None,
            settings,
        });
    }

    /// Adds a model of a switch of costa2017.
    pub(super) fn model(&mut self, name: &str) -> String {
        let target = format!("switch:model={name}");
        let kind =
            if ["ovs-2.3", "linksys-wrt54gl"].contains(&name) { "software" } else { "hardware" };
        self.switch(&target, &[("model", name), ("implementation", kind)]);
        target
    }

    /// Adds a value.
    pub(super) fn add(&mut self, target: &str, metric: Metric, point: Point, value: f64) {
        let samples = SPREAD.map(|by| by * value);
        self.add_samples(target, metric, point, &samples);
    }

    /// Adds a value with these repeats.
    pub(super) fn add_samples(
        &mut self,
        target: &str,
        metric: Metric,
        point: Point,
        samples: &[f64],
    ) {
        let repeats = (1..=samples.len() as u32).collect();
        self.record.cells.push(Cell {
            experiment: self.experiment.clone(),
            target: target.into(),
            link: None,
            point,
            metric,
            unit: metric.unit().into(),
            value: samples.iter().sum::<f64>() / samples.len() as f64,
            n: samples.len() as u32,
            interval: interval::of_mean(samples, LEVEL_PERCENT),
            interval_99: None,
            resolution: None,
            samples: samples.into(),
            repeats,
            trials: Vec::new(),
            limit: None,
            bound: None,
            disturbances: Vec::new(),
            exclusion: None,
            warnings: Vec::new(),
        });
    }

    /// Adds a value of a module at a position of the axis.
    pub(super) fn tell(&mut self, target: &str, name: &'static str, x: f64, value: f64) {
        self.add(target, named(name), Point::new("x", x), value);
    }

    /// Adds the same value to another item of the study.
    pub(super) fn tell_elsewhere(
        &mut self,
        item: &str,
        (target, name): (&str, &'static str),
        x: f64,
        value: f64,
    ) {
        let here = std::mem::replace(&mut self.experiment, format!("oflops2018/{item}"));
        self.tell(target, name, x, value);
        self.experiment = here;
    }

    /// Returns the verdicts of all claims.
    pub(super) fn lines(&self) -> Vec<ClaimVerdict> {
        judge(&self.record, &sample::claims())
    }

    /// Returns the only verdict of a claim with this text, including its subject, for these
    /// targets.
    pub(super) fn line(&self, text: &str, targets: &[&str]) -> ClaimVerdict {
        let words = |line: &ClaimVerdict| {
            format!(
                "{}: {}: {} {}",
                line.claim.subject, line.claim.condition, line.claim.claim, line.claim.value
            )
        };
        let lines = self.lines();
        let mut found =
            lines.iter().filter(|line| line.targets == targets && words(line).contains(text));
        let one = found.next();
        let known: Vec<(String, &Vec<String>)> =
            lines.iter().map(|line| (words(line), &line.targets)).collect();
        let one = one.unwrap_or_else(|| panic!("no line for {text} on {targets:?}: {known:#?}"));
        assert!(found.next().is_none(), "{text} on {targets:?} is not one line: {known:#?}");
        one.clone()
    }

    /// Returns the verdict itself.
    pub(super) fn verdict(&self, text: &str, targets: &[&str]) -> Verdict {
        self.line(text, targets).verdict
    }
}

/// Whether a verdict is open for a reason with this text.
pub(super) fn is_open(verdict: &Verdict, words: &str) -> bool {
    matches!(verdict, Verdict::Undecided(why) if why.contains(words))
}
