//! Maps values to positions on an axis, and places its ticks.
//!
//! Invariants:
//!
//! - Ticks are round numbers (1, 2 or 5 times a power of ten) or measured values.
//! - Both ends of a logarithmic axis have labels.

use super::AxisKind;
use record::number;

/// An axis with its range.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    kind: AxisKind,
    from: f64,
    to: f64,
    /// Values with a labelled tick.
    pub(super) ticks: Vec<f64>,
    /// Values with an unlabelled grid line.
    pub(super) minor: Vec<f64>,
}

impl Scale {
    /// Creates an axis for these values. Ignores values that it cannot show (zero on a logarithmic
    /// axis).
    pub(super) fn over(kind: AxisKind, values: &[f64], ticks_wanted: usize) -> Scale {
        let shows = |value: &&f64| value.is_finite() && (kind == AxisKind::Linear || **value > 0.0);
        let shown: Vec<f64> = values.iter().filter(shows).copied().collect();
        let top = shown.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let bottom = shown.iter().copied().fold(top, f64::min);
        match kind {
            AxisKind::Linear => linear(top, bottom.min(0.0), ticks_wanted),
            AxisKind::Log => log(bottom, top),
            AxisKind::LogAtPoints => log_at_points(&shown, bottom, top),
            AxisKind::Percentile => percentile(top),
            AxisKind::Groups => groups(&shown),
        }
    }

    /// Position of a value: 0 at the start of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.kind {
            AxisKind::Linear => (value - self.from) / (self.to - self.from),
            AxisKind::Groups => {
                let group = self.ticks.iter().position(|tick| *tick == value).unwrap_or(0);
                (group as f64 + 0.5) / self.to
            }
            _ => (value.max(self.from).ln() - self.from.ln()) / (self.to.ln() - self.from.ln()),
        };
        share.clamp(0.0, 1.0)
    }

    /// Kind and ends of the axis, as the page's script reads them.
    pub(super) fn ends(&self) -> String {
        let kind = match self.kind {
            AxisKind::Linear => "linear",
            AxisKind::Log | AxisKind::LogAtPoints => "log",
            AxisKind::Percentile => "percentile",
            AxisKind::Groups => "groups",
        };
        format!("{kind} {} {}", self.from, self.to)
    }

    /// Whether the axis can show the value.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.kind == AxisKind::Linear || value > 0.0)
    }

    /// Whether the axis ends above the value.
    pub(super) fn cuts(&self, value: f64) -> bool {
        value < self.from
    }
}

/// A group for each value.
fn groups(values: &[f64]) -> Scale {
    let mut ticks = values.to_vec();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let to = ticks.len().max(1) as f64;
    Scale { kind: AxisKind::Groups, from: 0.0, to, ticks, minor: Vec::new() }
}

fn linear(top: f64, bottom: f64, ticks_wanted: usize) -> Scale {
    // If all values are zero, any range is suitable.
    let top = if top - bottom > f64::MIN_POSITIVE { top } else { 1.0 };
    let step = round_step((top - bottom) / ticks_wanted as f64);
    let first = (bottom / step).floor() as i64;
    let last = (top / step - 1e-9).ceil() as i64;
    let ticks: Vec<f64> = (first..=last).map(|index| index as f64 * step).collect();
    Scale {
        kind: AxisKind::Linear,
        from: first as f64 * step,
        to: last as f64 * step,
        ticks,
        minor: Vec::new(),
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let fits = factors.iter().find(|&&factor| factor * decade >= step * (1.0 - 1e-9));
    fits.expect("ten decades up is more than any digit") * decade
}

fn log(bottom: f64, top: f64) -> Scale {
    let rounds: Vec<f64> = (bottom.log10().floor() as i32..=top.log10().ceil() as i32 + 1)
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(decade)))
        .collect();
    let start = rounds.iter().rposition(|&value| value <= bottom * 1.000_001).unwrap_or(0);
    let end = rounds.iter().position(|&value| value >= top * 0.999_999);
    let end = end.unwrap_or(rounds.len() - 1).max(start + 1);
    let (from, to) = (rounds[start], rounds[end]);
    // Few decades leave room for labels between the powers of ten. The ends always have labels.
    let is_labelled = |index: &usize| {
        let is_end = end - start <= LOG_ENDS && (*index == start || *index == end);
        end - start < LOG_LABELS || index.is_multiple_of(3) || is_end
    };
    let minor: Vec<f64> = rounds
        .iter()
        .step_by(3)
        .flat_map(|decade| (2..10).map(move |factor| decade * f64::from(factor)))
        .filter(|value| from < *value && *value < to)
        .collect();
    let mut ticks: Vec<f64> =
        (start..=end).filter(is_labelled).map(|index| rounds[index]).collect();
    if ticks.len() < 3 {
        // From one of these values to the next, also those between them.
        ticks.splice(1..1, minor.iter().copied());
    }
    Scale { kind: AxisKind::Log, from, to, ticks, minor }
}

/// Maximum number of labels at 1, 2 and 5 times powers of ten.
const LOG_LABELS: usize = 13;

/// Maximum number of such values between the ends of an axis whose ends have room for labels.
const LOG_ENDS: usize = 27;

/// Minimum distance of labels at measured values, as a share of the axis.
const LABELS_APART: f64 = 0.06;

fn log_at_points(values: &[f64], bottom: f64, top: f64) -> Scale {
    let mut ticks = values.to_vec();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    // A margin on both sides keeps markers inside the frame.
    let (from, to) = (bottom / 1.12, top * 1.12);
    // From the largest down, so that the end of the range always has a label.
    let apart = (to / from).ln() * LABELS_APART;
    let (mut labelled, mut minor): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for &value in ticks.iter().rev() {
        let has_room = labelled.last().is_none_or(|next| (next / value).ln() >= apart);
        if has_room { &mut labelled } else { &mut minor }.push(value);
    }
    labelled.reverse();
    Scale { kind: AxisKind::LogAtPoints, from, to, ticks: labelled, minor }
}

/// Axis up to the highest available percentile: 0, 50, 90, 99 % and so on.
fn percentile(top: f64) -> Scale {
    let to = if top.is_finite() { top.clamp(2.0, 1e15) } else { 2.0 };
    let nines = (1..=15).map(|decade| 10f64.powi(decade));
    let ticks = [1.0, 2.0, 4.0].into_iter().chain(nines).filter(|tick| *tick <= to * 1.000_001);
    Scale { kind: AxisKind::Percentile, from: 1.0, to, ticks: ticks.collect(), minor: Vec::new() }
}

impl AxisKind {
    /// Formats a value for this axis.
    pub fn label(self, value: f64) -> String {
        match self {
            AxisKind::Percentile => {
                let decimals = (value.log10().floor() as i32 - 1).clamp(0, 12) as usize;
                let percent = format!("{:.decimals$}", 100.0 - 100.0 / value);
                let percent = match percent.contains('.') {
                    true => percent.trim_end_matches('0').trim_end_matches('.'),
                    false => &percent,
                };
                format!("{percent} %")
            }
            _ => number::setting(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_start_at_zero() {
        let scale = Scale::over(AxisKind::Linear, &[123.0, 987.0], 5);
        assert_eq!(scale.ticks, [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!((scale.place(0.0), scale.place(500.0), scale.place(1000.0)), (0.0, 0.5, 1.0));
    }

    #[test]
    fn an_axis_of_zeros_has_distinct_ticks() {
        let scale = Scale::over(AxisKind::Linear, &[0.0, 0.0], 5);
        assert_eq!(scale.ticks.first(), Some(&0.0));
        assert!(scale.ticks.windows(2).all(|pair| pair[1] - pair[0] >= 0.1), "{:?}", scale.ticks);
        assert_eq!(scale.place(0.0), 0.0);
        let below = Scale::over(AxisKind::Linear, &[-0.2, 0.0], 5);
        assert!(below.place(-0.2) < 1e-9 && below.place(0.0) > 0.99);
    }

    #[test]
    fn percentile_ticks_are_equidistant_by_nines() {
        let scale = Scale::over(AxisKind::Percentile, &[1.0, 5000.0], 5);
        let labels: Vec<String> = scale.ticks.iter().map(|&it| scale.kind.label(it)).collect();
        assert_eq!(labels, ["0 %", "50 %", "75 %", "90 %", "99 %", "99.9 %"]);
        assert!((scale.place(100.0) - 2.0 * scale.place(10.0)).abs() < 1e-12);
        assert_eq!(AxisKind::Percentile.label(1.25), "20 %");
        assert_eq!(AxisKind::Percentile.label(1e5), "99.999 %");
    }

    #[test]
    fn log_ticks_are_decades_and_equal_ratios_are_equidistant() {
        let scale = Scale::over(AxisKind::Log, &[15.0, 8000.0, 0.0], 5);
        assert_eq!(scale.ticks, [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4]);
        assert!((scale.place(100.0) - 1.0 / 3.0).abs() < 1e-12);
        let wide = Scale::over(AxisKind::Log, &[2.0, 8e5], 5);
        assert_eq!(wide.ticks, [2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        // Microseconds to tens of milliseconds: labels at every 1, 2 and 5.
        let latency = Scale::over(AxisKind::Log, &[1.3, 9_000.0], 5);
        assert_eq!(latency.ticks[..5], [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert!(!scale.shows(0.0));
        let next = Scale::over(AxisKind::Log, &[2.7, 2.8], 5);
        assert_eq!(next.ticks, [2.0, 3.0, 4.0, 5.0]);
        let narrow = Scale::over(AxisKind::Log, &[20.0, 90.0], 5);
        assert_eq!(narrow.ticks, [20.0, 50.0, 100.0]);
    }

    #[test]
    fn groups_are_equidistant_in_the_order_of_their_values() {
        let scale = Scale::over(AxisKind::Groups, &[1500.0, 96.0, 96.0, 128.0], 5);
        assert_eq!(scale.ticks, [96.0, 128.0, 1500.0]);
        let places = [96.0, 128.0, 1500.0].map(|value| (scale.place(value) * 6.0).round());
        assert_eq!(places, [1.0, 3.0, 5.0]);
    }

    #[test]
    fn labels_at_points_do_not_overlap() {
        let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0];
        let scale = Scale::over(AxisKind::LogAtPoints, &sizes, 5);
        assert_eq!(scale.ticks, [64.0, 128.0, 256.0, 512.0, 1024.0, 1518.0]);
        assert_eq!(scale.minor, [1280.0]);
    }

    #[test]
    fn an_empty_axis_and_one_with_a_single_value_have_a_length() {
        for kind in AxisKind::ALL {
            for values in [&[][..], &[0.0], &[5.0], &[f64::NAN]] {
                let scale = Scale::over(kind, values, 5);
                assert!(scale.to > scale.from, "{kind:?} {values:?}");
            }
        }
    }
}
