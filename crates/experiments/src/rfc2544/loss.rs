//! Frame loss rate (RFC 2544, 26.3): loss at decreasing loads.
//!
//! Method: for each frame size, trials at 100 % of the nominal link, at 90 % and so on, until two consecutive ones
//! have no loss. The whole curve is repeated. Frames that the tester did not send do not count as offered, and the
//! trial is marked. Parameters: `--set load=` other shares, in decreasing order.

use record::Role;
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::bracket::{Bracket, SearchQuantity};

use super::super::sequence::TaskSequence;
use super::super::{Context, Method, Tag};
use super::FRAMES;
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "load_percent";

/// Name of the variable of the curves.
pub const CURVE: &str = "frame_bytes";

/// Loads: steps of 10 %, the largest step that the standard allows.
const LOADS: Parameter = Parameter {
    default: "100,90,80,70,60,50,40,30,20,10",
    help: "offered loads in percent of the nominal link, the highest first; two consecutive loads \
           without loss end a curve",
    ..shared::LOADS
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, LOADS, shared::REPEATS_OF_SEARCHES];

/// Consecutive trials without loss that end a curve.
const ZEROS: u32 = 2;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frames: Vec<u16> = context.frames(&FRAMES).into_iter().collect();
    Box::new(LossCurves {
        row: TaskSequence::new(context.setup(), frames.len(), context.searches()),
        frames,
        loads: context.loads(&LOADS).into_iter().collect(),
        context: context.clone(),
        next: 0,
        zeros: 0,
    })
}

/// Curves that run one after another.
struct LossCurves {
    context: Context,
    frames: Vec<u16>,
    loads: Vec<f64>,
    row: TaskSequence,
    /// Index of the next load of this curve.
    next: usize,
    /// Consecutive trials without loss.
    zeros: u32,
}

impl Procedure for LossCurves {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(install) = self.row.begin() {
            return install;
        }
        if let Some(Outcome::Trial { report, .. }) = last {
            let is_whole = report.total.forwarded >= report.total.offered;
            self.zeros = if is_whole { self.zeros + 1 } else { 0 };
        }
        if self.zeros == ZEROS || self.next == self.loads.len() {
            (self.next, self.zeros) = (0, 0);
            self.row.next();
        }
        let Some(curve) = self.row.task() else { return Step::Done };
        let frame_bytes = self.frames[curve];
        let percent = self.loads[self.next];
        self.next += 1;
        let rate = self.context.link_percent(percent);
        let point = Point::new(&[(AXIS, percent), (CURVE, f64::from(frame_bytes))]);
        Step::Trial { point, trial: self.context.trial(self.row.setup(), frame_bytes, rate) }
    }
}

impl Method for LossCurves {
    fn tag(&self) -> Tag {
        Tag { role: Role::Measure, repeat: self.row.repeat() }
    }

    /// Loads decrease until two consecutive ones have no loss.
    fn brackets(&self) -> Vec<Bracket> {
        let Some(tried) = self.next.checked_sub(1) else { return Vec::new() };
        let load = |place: usize| self.loads.get(place).copied();
        let clean = self.zeros as usize;
        vec![Bracket {
            sought: SearchQuantity::new(
                "load without loss",
                "two consecutive loads without loss",
                "% of the link",
            ),
            tried: load(tried).unwrap_or_default(),
            met: tried.checked_sub(clean).filter(|_| clean > 0).and_then(load),
            missed: tried.checked_sub(clean + 1).and_then(load),
            most: load(0).unwrap_or_default(),
            width: None,
        }]
    }
}
