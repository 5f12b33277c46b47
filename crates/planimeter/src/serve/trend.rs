//! Trends of stored runs: how a metric changed over time, in pictures and lists.
//!
//! Invariants: values of other links, parameters, efforts, kinds of hosts or version families are
//! never in one picture; runs lie along the axis where their time is; what is beyond a limit is
//! mentioned.

use maud::{Markup, html};
use record::Metric;
use record::number;
use stats::change::{self, Change};
use stats::comparison::words;
use store::index::TrendRow;

use super::run_list::{LocalFolders, address, name};

/// Curves of a trend, and runs in each.
const CURVES_MAX: usize = 60;
const VALUES_MAX: usize = 400;

/// Renders the trend of a metric: a picture and a list for each series.
pub(super) fn trends(named: &str, rows: &[TrendRow], here: &LocalFolders) -> Markup {
    let metric: Option<Metric> = serde_json::from_value(named.into()).ok();
    // One value has not gone anywhere yet.
    let (curves, single): (Vec<&[TrendRow]>, Vec<_>) =
        rows.chunk_by(TrendRow::is_of_series).partition(|curve| curve.len() > 1);
    let common = rows.first().map(|row| &row.conditions);
    html! {
        section #trend {
            h2 { "Trend of " @match metric { Some(metric) => (number::title(metric)), None => (named) } }
            @if rows.is_empty() { p { "No stored values." } }
            @if !curves.is_empty() {
                p.soft { "A series has one experiment, target, version family, link, effort, kind \
                          of host and set of parameters. A dashed line marks a change, by \
                          Pettitt's test from " (change::VALUES_MIN) " runs, with at most "
                    (change::FALSE_ALARM_PERCENT) " % false alarms in a series without a change. \
                                                   The test does not use values that are \
                                                   unreliable or only bounds (empty marks)." }
            }
            @for curve in curves.iter().take(CURVES_MAX) {
                h3 { (curve[0].experiment) ", " (curve[0].target) " at " (curve[0].point) }
                p.soft { (curve[0].conditions.words(common)) }
                (drawn(metric, &curve[curve.len().saturating_sub(VALUES_MAX)..], here))
            }
            @if curves.len() > CURVES_MAX { p.soft { "and " (curves.len() - CURVES_MAX) " more (use the filter)" } }
            @if !single.is_empty() {
                p.soft { (single.len()) " further series have one value each, see the \
                                               reports of their runs." }
            }
        }
    }
}

/// Size of a trend's picture, and the room for its axes.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 90.0;
const BELOW: f64 = 40.0;

/// Dates along the axis of time.
const DATES: usize = 5;

/// A trend's picture over time, and the same as a list.
fn drawn(metric: Option<Metric>, rows: &[TrendRow], here: &LocalFolders) -> Markup {
    let shown = |value: f64| match metric {
        Some(metric) => number::value(metric, value),
        None => number::text(value),
    };
    let unit = metric.map_or("", |it| number::shown(it).unit);
    let ends =
        rows.iter().flat_map(|row| [row.low.unwrap_or(row.value), row.high.unwrap_or(row.value)]);
    let ends = ends.filter(|end| end.is_finite());
    let (low, high) =
        ends.fold((f64::MAX, f64::MIN), |(low, high), end| (low.min(end), high.max(end)));
    let span = if high > low { high - low } else { high.abs().max(1.0) };
    let (low, high) = (low - span * 0.08, high + span * 0.08);
    let bottom = HEIGHT - BELOW;
    let y = |value: f64| 10.0 + (bottom - 10.0) * (high - value) / (high - low);
    let axis = TimeAxis::of(rows);
    let x = |at: usize| LEFT + 15.0 + (WIDTH - LEFT - 30.0) * axis.share(at);
    let line: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| format!("{:.1},{:.1}", x(at), y(row.value)))
        .collect();
    let value = |row: &TrendRow| {
        let range = match (row.low, row.high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", shown(low), shown(high)),
            _ => String::new(),
        };
        let reason = row.reason.iter().map(|why| format!(" (not used: {why})"));
        let reason: String = reason.collect();
        format!("{} {unit}{range}{reason}, {}, {}", shown(row.value), row.created, row.folder)
    };
    let changes = TrendRow::changes(rows);
    let told = |change: &Change| {
        format!("change of {} at {}", words::change(change.ratio), rows[change.at].created)
    };
    // A change is between the last run before it and the first after it.
    let between = |change: &Change| f64::midpoint(x(change.at - 1), x(change.at));
    let label = format!("{} values over time, listed below", rows.len());
    html! {
        div.wide tabindex="0" role="group" aria-label="values over time" { svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for end in [low + span * 0.08, high - span * 0.08] {
                line.grid x1=(LEFT) x2=(WIDTH) y1=(format!("{:.1}", y(end))) y2=(format!("{:.1}", y(end))) {}
                text.soft x=(LEFT - 6.0) y=(format!("{:.1}", y(end) + 4.0)) text-anchor="end" { (shown(end)) }
            }
            text.soft x="4" y=(HEIGHT - 6.0) { (unit) }
            line.grid x1=(LEFT) x2=(WIDTH) y1=(bottom) y2=(bottom) {}
            @for (share, date) in axis.dates() {
                @let at = LEFT + 15.0 + (WIDTH - LEFT - 30.0) * share;
                line.grid x1=(format!("{at:.1}")) x2=(format!("{at:.1}")) y1=(bottom) y2=(bottom + 5.0) {}
                text.soft x=(format!("{at:.1}")) y=(bottom + 19.0) text-anchor="middle" { (date) }
            }
            @for change in &changes {
                line.change x1=(format!("{:.1}", between(change))) x2=(format!("{:.1}", between(change))) y1="4" y2=(bottom)
                    stroke="currentColor" stroke-dasharray="5 4" { title { (told(change)) } }
                text.soft x=(format!("{:.1}", between(change) + 4.0)) y="14" { (words::change(change.ratio)) }
            }
            polyline.line.s0 points=(line.join(" ")) {}
            @for (at, row) in rows.iter().enumerate() {
                @if let (Some(low), Some(high)) = (row.low, row.high) {
                    line.line.s0 x1=(format!("{:.1}", x(at))) x2=(format!("{:.1}", x(at))) y1=(format!("{:.1}", y(low))) y2=(format!("{:.1}", y(high))) {}
                }
                circle class=(if row.reason.is_none() { "tried" } else { "unused" }) cx=(format!("{:.1}", x(at))) cy=(format!("{:.1}", y(row.value))) r="4" { title { (value(row)) } }
            }
        } }
        @for change in &changes { p.short { (told(change)) } }
        details {
            summary { "list with runs" }
            ul { @for row in rows.iter().rev() { li { a href={ "/runs/" (address(&name(row.id.as_ref(), &row.folder, here))) "/report.html" } { (value(row)) } } } }
        }
    }
}

/// Positions of runs on a time axis.
struct TimeAxis {
    /// When each run began, in seconds since 1970; its number where a record does not say.
    moments: Vec<f64>,
}

impl TimeAxis {
    fn of(rows: &[TrendRow]) -> TimeAxis {
        let moments: Option<Vec<f64>> = rows.iter().map(|row| seconds(&row.created)).collect();
        TimeAxis {
            moments: moments.unwrap_or_else(|| (0..rows.len()).map(|at| at as f64).collect()),
        }
    }

    fn ends(&self) -> (f64, f64) {
        let first = self.moments.first().copied().unwrap_or(0.0);
        (first, self.moments.last().copied().unwrap_or(0.0).max(first + 1.0))
    }

    /// Returns the position of a run on the axis, from 0 to 1.
    fn share(&self, at: usize) -> f64 {
        let (first, last) = self.ends();
        ((self.moments[at] - first) / (last - first)).clamp(0.0, 1.0)
    }

    /// Dates along the axis, each once, with their places.
    fn dates(&self) -> Vec<(f64, String)> {
        let (first, last) = self.ends();
        let mut dates: Vec<(f64, String)> = Vec::new();
        for at in 0..DATES {
            let share = at as f64 / (DATES - 1) as f64;
            let text = date(first + share * (last - first), last - first < DAY_S * DATES as f64);
            if dates.last().is_none_or(|(_, known)| *known != text) {
                dates.push((share, text));
            }
        }
        dates
    }
}

/// Seconds of a day.
const DAY_S: f64 = 86_400.0;

/// Seconds since 1970 of a moment in UTC as records have it: `2026-01-31T12:00:00Z`.
fn seconds(text: &str) -> Option<f64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // Days from civil dates, by Howard Hinnant's algorithm: years begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
}

/// The date of a moment, and its time of the day where dates alone would say too little.
fn date(seconds: f64, with_time: bool) -> String {
    let whole = seconds as i64;
    let (days, of_day) = (whole.div_euclid(86_400) + 719_468, whole.rem_euclid(86_400));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + next;
    match with_time {
        true => format!("{month:02}-{day:02} {:02}:{:02}", of_day / 3600, of_day % 3600 / 60),
        false => format!("{year}-{month:02}-{day:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_records_are_parsed_and_printed() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0.0));
        let leap = seconds("2024-02-29T12:30:00Z").unwrap();
        assert_eq!((leap, date(leap, false)), (1_709_209_800.0, "2024-02-29".into()));
        assert_eq!(date(leap, true), "02-29 12:30");
        assert_eq!(date(seconds("2026-01-01T00:00:00Z").unwrap(), false), "2026-01-01");
        assert_eq!(seconds("yesterday"), None);
    }

    fn row(created: &str, value: f64) -> TrendRow {
        let conditions = store::index::Conditions {
            link: "veth:afpacket".into(),
            version_family: Some("3.1".into()),
            effort: "quick".into(),
            host: "a processor".into(),
            parameters: Some("{\"set\":{\"frame\":\"64\"}}".into()),
        };
        let text = |text: &str| text.to_string();
        TrendRow {
            id: None,
            folder: text("run"),
            created: text(created),
            experiment: text("throughput"),
            target: text("switch"),
            point: text("frame_bytes=64"),
            conditions,
            value,
            low: None,
            high: None,
            reason: None,
        }
    }

    #[test]
    fn a_trend_is_drawn_over_time_with_its_change_points() {
        let value = |day: usize| if day > 8 { 90.0 } else { 100.0 } + (day % 3) as f64 / 10.0;
        let mut rows: Vec<TrendRow> =
            (1..=16).map(|day| row(&format!("2026-01-{day:02}T00:00:00Z"), value(day))).collect();
        rows.push(row("2026-03-31T00:00:00Z", 90.0));
        let axis = TimeAxis::of(&rows);
        assert!(
            axis.share(8) < 0.12 && axis.share(16) == 1.0,
            "runs are at the position of their time"
        );
        let dates: Vec<String> = axis.dates().into_iter().map(|(_, date)| date).collect();
        assert_eq!((dates[0].as_str(), dates[4].as_str()), ("2026-01-01", "2026-03-31"));
        let page = trends("throughput_pps", &rows, &LocalFolders::new()).into_string();
        assert!(
            page.contains("stroke-dasharray") && page.contains("at 2026-01-09T00:00:00Z"),
            "{page}"
        );
        assert!(page.contains("veth:afpacket, version 3.1, quick, a processor"), "{page}");
        // Unused values cause no change point.
        let mut unused = rows.clone();
        unused[9..].iter_mut().for_each(|row| row.reason = Some("a value is a bound".into()));
        let page_of_unused = trends("throughput_pps", &unused, &LocalFolders::new()).into_string();
        assert!(!page_of_unused.contains("change of"), "{page_of_unused}");
        assert!(page_of_unused.contains("not used: a value is a bound"), "{page_of_unused}");
        // Another link is another series, in a separate picture.
        let mut others: Vec<TrendRow> = rows.clone();
        others.iter_mut().for_each(|row| row.conditions.link = "memif".into());
        let both =
            trends("throughput_pps", &[rows, others].concat(), &LocalFolders::new()).into_string();
        assert_eq!(both.matches("<svg").count(), 2);
    }
}
