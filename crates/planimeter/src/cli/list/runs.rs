//! `planimeter list runs`: the stored runs of a folder, and how a metric went over them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::number;
use results::record::{Metric, Name};
use results::store::index::{Filter, Index, RunRow, TrendRow};

use crate::cli::failure::Failure;
use crate::cli::out::{remark, say};

/// Where runs lie unless another folder is named.
const RUNS: &str = "runs";

/// Prints the runs.
pub(super) fn run(
    folder: Option<&PathBuf>,
    texts: &[String],
    json: bool,
) -> Result<ExitCode, Failure> {
    let filter = Filter::read(texts).map_err(|error| Failure::usage(error.to_string()))?;
    let usage = |error: results::store::StoreError| Failure::usage(error.to_string());
    let folder = folder.map_or(Path::new(RUNS), PathBuf::as_path);
    let (index, refreshed) = Index::open(folder).map_err(|error| {
        Failure::usage(format!(
            "{error}; name the folder in which runs lie: planimeter list runs DIR"
        ))
    })?;
    refreshed.remark.iter().for_each(|line| remark!("{line}"));
    for (name, why) in &refreshed.unreadable {
        remark!("left out: {name}: {why}");
    }
    let runs = index.runs(&filter).map_err(usage)?;
    let trend = match filter.metric() {
        Some(_) => index.trend(&filter).map_err(usage)?,
        None => Vec::new(),
    };
    if json {
        let unreadable: Vec<_> = (refreshed.unreadable.iter())
            .map(|(name, why)| serde_json::json!({ "folder": name, "why": why }))
            .collect();
        let mut all = serde_json::json!({ "runs": runs, "unreadable": unreadable });
        if filter.metric().is_some() {
            all["trend"] = serde_json::to_value(&trend).expect("rows are plain data");
        }
        say!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    runs.iter().for_each(|row| say!("{}", line(row)));
    if let Some(metric) = filter.metric() {
        shown(metric, &trend);
    }
    if runs.is_empty() {
        remark!("no run in {} is so", folder.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A run in one line; names come from outside.
fn line(row: &RunRow) -> String {
    let marks = [(row.partial, " (partial)"), (row.doubtful, " (doubtful)")];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let line = format!(
        "{}  {}: {} over {}, {}, {} trials{marks}",
        row.folder,
        row.experiments.join(" "),
        row.targets.join(", "),
        row.link,
        row.effort,
        row.trials
    );
    line.replace(char::is_control, " ")
}

/// How a metric went, each experiment, target and point by itself.
fn shown(name: &str, rows: &[TrendRow]) {
    let metric: Option<Metric> = serde_json::from_value(name.into()).ok();
    let metric = metric.unwrap_or(Metric::Named(Name::of("value_count")));
    let mut place = None;
    for row in rows {
        let here = (&row.experiment, &row.target, &row.point);
        if place != Some(here) {
            let unit = number::shown(metric).unit;
            let heading =
                format!("{}, {} at {}: {name}, {unit}", row.experiment, row.target, row.point);
            say!("\n{}", heading.replace(char::is_control, " "));
            place = Some(here);
        }
        let value = |value| number::value(metric, value);
        let ends = match (row.low, row.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", value(low), value(high)),
            _ => String::new(),
        };
        let line = format!("  {}  {}{ends}  {}", row.created, value(row.value), row.folder);
        say!("{}", line.replace(char::is_control, " "));
    }
}
