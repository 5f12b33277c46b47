//! `planimeter list runs`: lists the stored runs of a folder or a team store, and the trend of a
//! metric.

use std::path::Path;
use std::process::ExitCode;

use record::number;
use record::{Metric, Name};
use stats::comparison::words;
use store::StoreError;
use store::database::address::Address;
use store::index::{Filter, Index, RunRow, TrendRow};
use store::postgres::TeamError;

use super::Arguments;
use crate::cli::failure::Failure;
use crate::cli::output::{remark, say};
use crate::cli::team_store;

/// Default folder of runs.
const RUNS: &str = "runs";

/// Prints the runs.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let filter = Filter::read(&arguments.filters);
    let filter = filter.map_err(|error| Failure::usage(error.to_string()))?;
    let folder = arguments.folder.as_deref().unwrap_or(Path::new(RUNS));
    let store = team_store::asked(arguments.store.as_ref())?;
    let FoundRuns { runs, trend, unreadable, place } = match &store {
        Some(address) => of_team(address, folder, arguments.folder.is_some(), &filter)?,
        None => of_folder(folder, &filter)?,
    };
    if arguments.json {
        let unreadable: Vec<_> = (unreadable.iter())
            .map(|(name, why)| serde_json::json!({ "folder": name, "why": why }))
            .collect();
        let mut all = serde_json::json!({ "runs": runs, "unreadable": unreadable });
        if filter.metric().is_some() {
            all["trend"] = rows_with_changes(&trend);
        }
        say!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    runs.iter().for_each(|row| say!("{}", line(row)));
    if let Some(metric) = filter.metric() {
        shown(metric, &trend);
    }
    if runs.is_empty() {
        remark!("no matching run in {place}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs that were found, and their location.
struct FoundRuns {
    runs: Vec<RunRow>,
    trend: Vec<TrendRow>,
    unreadable: Vec<(String, String)>,
    place: String,
}

fn of_folder(folder: &Path, filter: &Filter) -> Result<FoundRuns, Failure> {
    let usage = |error: StoreError| Failure::usage(error.to_string());
    let (mut index, refreshed) = Index::open(folder).map_err(|error| no_runs(&error))?;
    refreshed.remark.iter().for_each(|line| remark!("{line}"));
    for (name, why) in &refreshed.unreadable {
        remark!("skipped {name}: {why}");
    }
    let runs = index.runs(filter).map_err(usage)?;
    let trend = match filter.metric() {
        Some(_) => index.trend(filter).map_err(usage)?,
        None => Vec::new(),
    };
    let place = folder.display().to_string();
    Ok(FoundRuns { runs, trend, unreadable: refreshed.unreadable, place })
}

/// Reads the runs of a team store, after the runs of this folder are sent to it.
fn of_team(
    address: &Address,
    folder: &Path,
    is_named: bool,
    filter: &Filter,
) -> Result<FoundRuns, Failure> {
    let failed = |error: TeamError| Failure::need(format!("store {address}: {error}"));
    if is_named && !folder.is_dir() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Failure::usage(format!("{}: {missing}", folder.display())));
    }
    let mut team = team_store::opened(address, folder)?;
    let runs = team.runs(filter).map_err(failed)?;
    let trend = match filter.metric() {
        Some(_) => team.trend(filter).map_err(failed)?,
        None => Vec::new(),
    };
    Ok(FoundRuns { runs, trend, unreadable: Vec::new(), place: address.to_string() })
}

fn no_runs(error: &StoreError) -> Failure {
    Failure::usage(format!(
        "{error} (hint: run 'planimeter list runs DIR' with the folder of runs)"
    ))
}

/// Formats a run as a line. Names may contain control characters.
fn line(row: &RunRow) -> String {
    let marks = [(row.partial, " (partial)"), (row.doubtful, " (doubtful)")];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let id = row.id.iter().map(|id| format!("{id}  ")).collect::<String>();
    let origin = row.origin.iter().map(|who| format!(", by {who}")).collect::<String>();
    let line = format!(
        "{id}{}  {}: {} over {}, {}, {} trials{marks}{origin}",
        row.folder,
        row.experiments.join(" "),
        row.targets.join(", "),
        row.link,
        row.effort,
        row.trials
    );
    line.replace(char::is_control, " ")
}

/// Converts the values of a metric to JSON; the first one after a change point has a
/// `change_ratio`.
fn rows_with_changes(rows: &[TrendRow]) -> serde_json::Value {
    let series = rows.chunk_by(TrendRow::is_of_series).map(|series| {
        let mut all = serde_json::to_value(series).expect("rows are plain data");
        for change in TrendRow::changes(series) {
            all[change.at]["change_ratio"] = change.ratio.into();
        }
        all.as_array().cloned().unwrap_or_default()
    });
    series.flatten().collect()
}

/// Prints the trend of a metric: each series with its change points.
fn shown(name: &str, rows: &[TrendRow]) {
    let metric: Option<Metric> = serde_json::from_value(name.into()).ok();
    let metric = metric.unwrap_or(Metric::Named(Name::of("value_count")));
    let unit = number::shown(metric).unit;
    let value = |value| number::value(metric, value);
    let common = rows.first().map(|row| &row.conditions);
    for series in rows.chunk_by(TrendRow::is_of_series) {
        let first = &series[0];
        let conditions = first.conditions.words(common);
        let place = format!("{}, {} at {}", first.experiment, first.target, first.point);
        let heading = format!("{place}: {name}, {unit} ({conditions})");
        say!("\n{}", heading.replace(char::is_control, " "));
        let changes = TrendRow::changes(series);
        for (at, row) in series.iter().enumerate() {
            if let Some(change) = changes.iter().find(|change| change.at == at) {
                say!("  -- change point: {}", words::change(change.ratio));
            }
            let ends = match (row.low, row.high) {
                (Some(low), Some(high)) => format!(" [{}, {}]", value(low), value(high)),
                _ => String::new(),
            };
            let why = row.reason.iter().map(|why| format!("  (not used: {why})"));
            let why: String = why.collect();
            let line =
                format!("  {}  {}{ends}  {}{why}", row.created, value(row.value), row.folder);
            say!("{}", line.replace(char::is_control, " "));
        }
    }
}
