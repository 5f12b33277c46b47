//! Formats numbers for display: suitable units, four significant digits, thousands separators.
//!
//! Stored values keep their unit and all digits; only displayed values pass through this module.
//! Invariants: equal values give equal text on every machine; a count has all its digits.

use std::borrow::Cow;

use crate::{Bound, BoundCause, BoundSide, Cell, Interval, LEVEL_PERCENT, Metric, Name, Within};

/// A display unit and the conversion factor from the stored unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormattedNumber {
    /// The unit's name.
    pub unit: &'static str,
    /// Displayed value = stored value * factor.
    pub factor: f64,
}

/// The display unit of a metric.
pub fn shown(metric: Metric) -> FormattedNumber {
    match metric {
        Metric::LossRatioDifference => {
            return FormattedNumber { unit: "percentage points", factor: 100.0 };
        }
        Metric::FairnessIndexJain | Metric::MaxMinShareRatio => {
            return FormattedNumber { unit: "of 1", factor: 1.0 };
        }
        Metric::RecoveryNs | Metric::ResetNs | Metric::ResetNsFrameLossMethod => {
            return FormattedNumber { unit: "ms", factor: 1e-6 };
        }
        Metric::AddressesLearnedPerS => {
            return FormattedNumber { unit: "addresses/s", factor: 1.0 };
        }
        Metric::MemoryBytes => return FormattedNumber { unit: "MB", factor: 1e-6 },
        Metric::Named(name) => return shown_of(name),
        _ => {}
    }
    match metric.unit() {
        "pps" => FormattedNumber { unit: "frames/s", factor: 1.0 },
        "bps" => FormattedNumber { unit: "Mbit/s", factor: 1e-6 },
        "ratio" => FormattedNumber { unit: "%", factor: 100.0 },
        "cycles" => FormattedNumber { unit: "cycles", factor: 1.0 },
        "per_s" => FormattedNumber { unit: "flows/s", factor: 1.0 },
        "bytes" => FormattedNumber { unit: "bytes", factor: 1.0 },
        "frames" => FormattedNumber { unit: "frames", factor: 1.0 },
        "addresses" => FormattedNumber { unit: "addresses", factor: 1.0 },
        _ => FormattedNumber { unit: "µs", factor: 1e-3 },
    }
}

/// The display unit of a module's metric: microseconds for times of frames, milliseconds for those
/// of control messages.
fn shown_of(name: Name) -> FormattedNumber {
    let of_frames =
        |word| matches!(word, "latency" | "jitter" | "pdv" | "ipdv" | "frame" | "extra");
    match name.unit() {
        "ns" if name.text().split('_').any(of_frames) => {
            FormattedNumber { unit: "µs", factor: 1e-3 }
        }
        "ns" => FormattedNumber { unit: "ms", factor: 1e-6 },
        "per_s" => FormattedNumber { unit: per_second(name), factor: 1.0 },
        "pps" => FormattedNumber { unit: "frames/s", factor: 1.0 },
        "bps" => FormattedNumber { unit: "Mbit/s", factor: 1e-6 },
        "ratio" => FormattedNumber { unit: "%", factor: 100.0 },
        "percent" => FormattedNumber { unit: "%", factor: 1.0 },
        "index" => FormattedNumber { unit: "of 1", factor: 1.0 },
        unit => FormattedNumber { unit, factor: 1.0 },
    }
}

fn per_second(name: Name) -> &'static str {
    match name.counted() {
        Some("messages") => "messages/s",
        Some("frames") => "frames/s",
        Some("rules") => "rules/s",
        Some("rows") => "rows/s",
        _ => "1/s",
    }
}

/// The unit of a plain count, which is not displayed.
const COUNTED: &str = "count";

/// Whether a metric is a plain count.
pub fn is_mere_count(metric: Metric) -> bool {
    shown(metric).unit == COUNTED
}

/// The metric's name and unit, for a column heading or an axis.
pub fn heading(metric: Metric) -> String {
    match shown(metric).unit {
        COUNTED => title(metric).into_owned(),
        unit => format!("{}, {unit}", title(metric)),
    }
}

/// A value of this metric with its unit.
pub fn quantity(metric: Metric, stored: f64) -> String {
    match shown(metric).unit {
        COUNTED => value(metric, stored),
        unit => format!("{} {unit}", value(metric, stored)),
    }
}

/// The metric's name for display.
pub fn title(metric: Metric) -> Cow<'static, str> {
    metric.title()
}

/// The value with four significant digits and narrow spaces as thousands separators.
pub fn text(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9);
    let step = 10f64.powi((magnitude - 3).max(0));
    let rounded = (value / step).round() * step;
    let number = if step > 1.0 { rounded } else { value };
    let plain = format!("{number:.*}", decimals as usize);
    let plain = match plain.contains('.') {
        true => plain.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => plain,
    };
    grouped(&plain)
}

/// A setting such as a number of entries: all digits of a whole number.
pub fn setting(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => count(value as i64),
        false => text(value),
    }
}

/// A count with thousands separators.
pub fn count(value: i64) -> String {
    grouped(&value.to_string())
}

/// A count with its noun: `1 trial`, `2 trials`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {}", inflected(count, [noun, &format!("{noun}s")]))
}

/// The first of two forms for one thing, the second for any other count.
pub fn inflected(count: u64, [one, many]: [&str; 2]) -> &str {
    if count == 1 { one } else { many }
}

/// The value in the metric's display unit, without the unit. Counts keep all digits.
pub fn value(metric: Metric, stored: f64) -> String {
    let FormattedNumber { unit, factor } = shown(metric);
    of_unit(stored * factor, unit)
}

/// Units of counts, which are exact when whole.
const COUNTED_UNITS: [&str; 8] =
    [COUNTED, "frames", "addresses", "rules", "rows", "messages", "bytes", "entries"];

/// A value in this unit: all digits of a count, four significant digits otherwise.
pub fn of_unit(value: f64, unit: &str) -> String {
    if COUNTED_UNITS.contains(&unit) { setting(value) } else { text(value) }
}

/// The value of a cell in the display unit, without the unit. A bound has a sign before it.
pub fn of_cell(cell: &Cell) -> String {
    let (sign, stored) = bounded(cell);
    format!("{sign}{}", value(cell.metric, stored))
}

/// The value of a cell that is already in this unit, with the same sign.
pub fn of_cell_in(cell: &Cell, unit: &str) -> String {
    let (sign, stored) = bounded(cell);
    format!("{sign}{}", of_unit(stored, unit))
}

/// The value of a cell with the unit.
pub fn quantity_of_cell(cell: &Cell) -> String {
    let (sign, stored) = bounded(cell);
    format!("{sign}{}", quantity(cell.metric, stored))
}

/// The value of a cell with interval and unit, for running text: `1.34 [1.21, 1.48] µs`. A bound is in
/// words and has no interval.
pub fn quantity_in_words(cell: &Cell) -> String {
    let (sign, stored) = bounded(cell);
    let words = match sign {
        "" => {
            let Some(range) = cell.range() else {
                return format!("{} (measured once)", quantity(cell.metric, stored));
            };
            let unit = shown(cell.metric).unit;
            let unit = if unit == COUNTED { String::new() } else { format!(" {unit}") };
            let number = value(cell.metric, stored);
            let usual = Interval { level_percent: LEVEL_PERCENT, ..range };
            let level = match range.level_percent < LEVEL_PERCENT {
                true => format!(" at {} %", text(range.level_percent)),
                false => String::new(),
            };
            return format!("{number} {}{unit}{level}", interval(cell.metric, &usual));
        }
        "< " => "less than",
        "\u{2264} " => "at most",
        _ => "at least",
    };
    format!("{words} {}", quantity(cell.metric, stored))
}

/// The sign of a bound and the value. For a value below its resolution, the largest possible value.
fn bounded(cell: &Cell) -> (&'static str, f64) {
    match cell.bound {
        Some(Bound { cause: BoundCause::Resolution, .. }) => {
            let most = if cell.metric.is_at_most_one() { 1.0 } else { f64::INFINITY };
            ("< ", (cell.value.abs() + cell.resolution.unwrap_or(0.0)).min(most))
        }
        Some(Bound { side: BoundSide::Lower, .. }) => ("\u{2265} ", cell.value),
        Some(Bound { side: BoundSide::Upper, .. }) => ("\u{2264} ", cell.value),
        None => ("", cell.value),
    }
}

/// The interval in the display unit: `[1.21, 1.48]`.
pub fn interval(metric: Metric, interval: &Interval) -> String {
    range(interval, |end| value(metric, end))
}

/// The ends of an interval, with the confidence level if it is below the usual one.
pub fn range(interval: &Interval, shown: impl Fn(f64) -> String) -> String {
    let ends = format!("[{}, {}]", shown(interval.low), shown(interval.high));
    match interval.level_percent < LEVEL_PERCENT {
        true => format!("{ends} at {} %", text(interval.level_percent)),
        false => ends,
    }
}

/// The display unit of an axis whose largest stored value is `top`.
pub fn shown_on_axis(metric: Metric, top: f64) -> FormattedNumber {
    match metric.unit() {
        "pps" if top >= 1e4 => FormattedNumber { unit: "thousand frames/s", factor: 1e-3 },
        _ => shown(metric),
    }
}

/// Display name of an experiment's variable, with its unit.
pub fn axis(name: &str) -> String {
    match name {
        "frame_bytes" => "packet size, bytes".into(),
        "load_percent" => "load, %".into(),
        "entries" => "table entries".into(),
        "rate_pps_intended" => "intended load, frames/s".into(),
        "linear_percent" => "traffic for the linear table, %".into(),
        "f2_percent" => "load of F2, % of C".into(),
        "time_s" => "time, s".into(),
        "flow_mods_per_answer" => "flow-mods per reply".into(),
        "rules" => "rules".into(),
        "window_bytes" => "window, bytes".into(),
        other => other.replace('_', " "),
    }
}

/// Display name of one of several curves.
pub fn curve(within: &Within) -> String {
    let value = setting(within.value);
    match within.name.as_str() {
        "entries" => format!("{value} entries"),
        "frame_bytes" => format!("{value} bytes"),
        "load_mbps" => format!("{value} Mbit/s"),
        "open_loop_pps" if within.value == 0.0 => "one packet at a time".into(),
        "open_loop_pps" => format!("{value} packets/s"),
        "hash_entries" => format!("hash table, {value}"),
        "linear_entries" => format!("linear table, {value}"),
        WORKLOAD => workload(within.value).into(),
        OFFLOAD => match within.value {
            1.0 => "learning".into(),
            2.0 => "inspection".into(),
            _ => "answering OAM".into(),
        },
        "trial_load" if within.value == 0.0 => "low load".into(),
        "trial_load" => "full load".into(),
        other => format!("{} {value}", other.replace('_', " ")),
    }
}

/// Name of the workload variable of curves. Its numbers identify workloads.
pub const WORKLOAD: &str = "workload";

/// Name of the offload variable of curves: a task that an element or its controller performs.
pub const OFFLOAD: &str = "offload";

/// Name of a gelberger2013 workload by its number.
pub fn workload(number: f64) -> &'static str {
    match number {
        1.0 => "switching",
        2.0 => "routing",
        3.0 => "VLAN tagging",
        _ => "another workload",
    }
}

fn grouped(plain: &str) -> String {
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain), |rest| ("−", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 && whole.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_separated_thousands() {
        for (value, want) in [
            (0.0, "0"),
            (12.0, "12"),
            (28.183, "28.18"),
            (0.0012347, "0.001235"),
            (1488.4, "1488"),
            (1_488_095.2, "1\u{202f}488\u{202f}000"),
            (99_995.0, "100\u{202f}000"),
            (-0.5, "−0.5"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(text(value), want);
        }
        assert_eq!(count(-1_234_567), "−1\u{202f}234\u{202f}567");
        assert_eq!(setting(131_072.0), "131\u{202f}072", "parameter values are not rounded");
        assert_eq!(setting(33.333_33), "33.33");
    }

    #[test]
    fn counts_are_exact_in_every_unit_of_counts() {
        let named = |name: &str| Metric::Named(Name::read(name).unwrap());
        for metric in [
            Metric::MacAddressesLearned,
            Metric::BurstFrames,
            named("capacity_rules"),
            named("answers_count"),
            named("python_bytes"),
            named("lost_frames"),
            named("sent_messages"),
            named("seen_rows"),
        ] {
            let wanted = "32\u{202f}768";
            assert_eq!(value(metric, 32_768.0), wanted, "{}", metric.name());
            assert!(quantity(metric, 32_768.0).starts_with(wanted), "{}", metric.name());
        }
        assert_eq!(
            value(named("answers_count"), 32_768.25),
            "32\u{202f}770",
            "a mean is not a count"
        );
        assert_eq!(value(Metric::RatePpsForwarded, 1_488_095.0), "1\u{202f}488\u{202f}000");
    }

    #[test]
    fn units_are_readable() {
        assert_eq!(value(Metric::LatencyNsMean, 28_180.0), "28.18");
        assert_eq!(value(Metric::RateBpsForwarded, 762e6), "762");
        assert_eq!(value(Metric::LossRatio, 0.25), "25");
        // Percentiles of one quantity have one unit.
        assert_eq!(quantity(Metric::PdvNsP999, 1_500.0), "1.5 µs");
        assert_eq!(quantity(Metric::Named(Name::of("pdv_ns_p99")), 1_500.0), "1.5 µs");
    }
}
