//! A fixed list of points, each repeated several times: repeat by repeat, point by point.
//!
//! Repeats are the outer loop for every axis, including table sizes. Drift of the machine therefore appears between
//! repeats, where the confidence intervals show it, and not between points. Every second repeat runs backwards, so
//! that a steady drift affects all points alike. The table that is full at the end of a repeat is the first of the
//! next one.

use record::{Metric, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::trial::{Trial, TrialReport};

use super::{Finding, Method, Tag};
use workload::Setup;

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Value on the axis.
    pub x: f64,
    /// Curve of the point, if the target has several: the name and the value of the variable.
    pub curve: Option<(&'static str, f64)>,
    /// Setup of the target.
    pub setup: Setup,
    /// Trial of the point.
    pub trial: Trial,
}

/// A value derived from a trial, in addition to the trial's own values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Metric of the value.
    pub metric: Metric,
    /// Value.
    pub value: f64,
    /// Whether the trial failed to show what it should.
    pub is_irregular: bool,
}

/// Derives values from a trial and its report.
pub type Derivation = fn(&Trial, &TrialReport) -> Vec<Reading>;

/// State of a sweep.
#[derive(Debug)]
pub struct Sweep {
    axis: &'static str,
    points: Vec<SweepPoint>,
    /// Order of the points, each with its repeat, from 1.
    order: Vec<(usize, u32)>,
    /// Whether the target's table is filled again for each repeat.
    renews: bool,
    /// Number of yielded trials.
    yielded: usize,
    installed: Option<Setup>,
    /// Function that derives values, and the values so far.
    read: Option<Derivation>,
    findings: Vec<Finding>,
}

impl Sweep {
    /// Creates a sweep of these points with `repeats` repeats.
    pub fn new(axis: &'static str, points: Vec<SweepPoint>, repeats: u32) -> Self {
        let order = there_and_back(points.len(), repeats).collect();
        Sweep::of(axis, points, order)
    }

    fn of(axis: &'static str, points: Vec<SweepPoint>, order: Vec<(usize, u32)>) -> Self {
        let (renews, yielded, installed, read) = (false, 0, None, None);
        Sweep { axis, points, order, renews, yielded, installed, read, findings: Vec::new() }
    }

    /// Creates a sweep that runs all repeats of a point before the next point.
    pub fn point_by_point(axis: &'static str, points: Vec<SweepPoint>, repeats: u32) -> Self {
        let repeated = |point| (1..=repeats).map(move |repeat| (point, repeat));
        let order = (0..points.len()).flat_map(repeated).collect();
        Sweep::of(axis, points, order)
    }

    /// Derives additional values from each trial.
    #[must_use]
    pub fn reading(self, read: Derivation) -> Self {
        Sweep { read: Some(read), ..self }
    }

    /// Fills each table again for each repeat if the flag is set.
    #[must_use]
    pub fn renewing(self, renews: bool) -> Self {
        Sweep { renews, ..self }
    }
}

impl Sweep {
    /// Takes the derived values of the last trial.
    fn take(&mut self, last: Option<&Outcome>) {
        let Some((read, Outcome::Trial { report, .. })) = self.read.zip(last) else { return };
        let Some(&(place, repeat)) = self.yielded.checked_sub(1).and_then(|at| self.order.get(at))
        else {
            return;
        };
        let SweepPoint { x, curve, trial, .. } = &self.points[place];
        let limited = report.is_tester_limited();
        self.findings.extend(read(trial, report).into_iter().map(|found| Finding {
            curve: *curve,
            irregular: found.is_irregular,
            tester_limited: limited,
            ..Finding::new(repeat, self.axis, *x, found.metric, found.value)
        }));
    }
}

/// Returns the points forwards and backwards alternately, with the number of the repeat.
fn there_and_back(points: usize, repeats: u32) -> impl Iterator<Item = (usize, u32)> {
    let last = points.saturating_sub(1);
    (1..=repeats).flat_map(move |repeat| {
        (0..points).map(move |place| (if repeat % 2 == 1 { place } else { last - place }, repeat))
    })
}

impl Procedure for Sweep {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        self.take(last);
        let Some(&(place, repeat)) = self.order.get(self.yielded) else { return Step::Done };
        let point = &self.points[place];
        let shift = if self.renews { repeat } else { point.setup.shift };
        let setup = Setup { shift, ..point.setup };
        if self.installed != Some(setup) {
            self.installed = Some(setup);
            return Step::Install(setup);
        }
        self.yielded += 1;
        let axes: Vec<_> = [(self.axis, point.x)].into_iter().chain(point.curve).collect();
        Step::Trial { point: Point::new(&axes), trial: point.trial.clone() }
    }
}

impl Method for Sweep {
    fn tag(&self) -> Tag {
        let last = self.order.get(self.yielded.saturating_sub(1));
        Tag { role: Role::Measure, repeat: last.map_or(1, |&(_, repeat)| repeat) }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::time::Nanos;

    #[test]
    fn repeats_are_the_outer_loop_and_every_second_one_is_reversed() {
        let point = |entries: u32, x| SweepPoint {
            x,
            curve: None,
            setup: Setup { entries, ..Setup::single(1) },
            trial: Trial::new(Vec::new(), Nanos::ZERO, Nanos::ZERO, Nanos::ZERO),
        };
        let points = vec![point(8, 1.0), point(8, 2.0), point(64, 1.0)];
        let walk = |mut sweep: Sweep| {
            let (mut installs, mut seen) = (0, Vec::new());
            loop {
                match sweep.next(None) {
                    Step::Install(_) => installs += 1,
                    Step::Trial { point, .. } => {
                        seen.push((point.0[0].value as u32, sweep.tag().repeat));
                    }
                    Step::Module { .. } => panic!("a sweep has trials only"),
                    Step::Done => return (installs, seen),
                }
            }
        };
        let (installs, seen) = walk(Sweep::new("x", points, 2));
        assert_eq!(installs, 3, "the table at the end of a repeat serves the next one");
        assert_eq!(seen, [(1, 1), (2, 1), (1, 1), (1, 2), (2, 2), (1, 2)]);
        assert_eq!(walk(Sweep::new("x", Vec::new(), 2)), (0, Vec::new()));
        let one = vec![point(8, 1.0), point(8, 2.0)];
        assert_eq!(walk(Sweep::new("x", one.clone(), 3)).0, 1);
        assert_eq!(walk(Sweep::new("x", one, 3).renewing(true)).0, 3);
    }
}
