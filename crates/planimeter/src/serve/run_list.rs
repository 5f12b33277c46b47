//! Stored runs: listed by the index, opened and compared.
//!
//! Invariants: an unreadable run is listed with the reason and hides no other run. Lists have
//! limits, and pages state how much is beyond them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use maud::{Markup, html};
use record::number;
use record::{Metric, Record};
use stats::comparison::{self, ComparedRun, Comparison, Verdict, words};
use stats::gate::Gate;
use store::index::{Filter, Index, RunRow};
use store::{StoreError, Stored};

use super::page::{NavigationPage, page};
use super::{ServerState, files, trend};
use studies::papers;

/// Row limit of the list.
const ROWS_MAX: usize = 500;

/// Limit of runs in one comparison.
pub(super) const COMPARED_MAX: usize = 12;

/// Limit of displayed cells in a comparison.
const CELLS_MAX: usize = 400;

/// Filters of the list: key, label, and the values if there are only a few.
const FILTERS: [(&str, &str, &[&str]); 9] = [
    ("experiment", "experiment", &[]),
    ("target", "target", &[]),
    ("link", "link", &[]),
    ("metric", "metric (with trend)", &[]),
    ("effort", "effort", &["quick", "standard", "full"]),
    ("since", "since", &[]),
    ("until", "until", &[]),
    ("partial", "ended early", &["yes", "no"]),
    ("doubtful", "doubtful", &["yes", "no"]),
];

/// Renders the list of runs that match these filters.
pub(super) fn runs(shared: &ServerState, asked: &[(String, String)]) -> Result<Markup, String> {
    let given = |key: &str| asked.iter().find(|(its, value)| its == key && !value.is_empty());
    let conditions = FILTERS.iter().filter_map(|(key, ..)| given(key));
    let texts: Vec<String> = conditions.map(|(key, value)| format!("{key}={value}")).collect();
    let filter = Filter::read(&texts).map_err(|error| {
        let line = error.to_string();
        line.strip_prefix("--filter ").map(str::to_string).unwrap_or(line)
    })?;
    let folder = shared.folder.as_path();
    let (mut index, refreshed) = Index::open(folder).map_err(|error| error.to_string())?;
    let told = |error: StoreError| error.to_string();
    let all = shared.elsewhere.as_ref().map(|it| it.runs(folder, &mut index, &filter));
    let (rows, values, place, trouble) = match all {
        Some(Ok(all)) => (all.rows, all.trend, all.place, all.trouble),
        other => {
            let rows = index.runs(&filter).map_err(told)?;
            let values = match filter.metric() {
                Some(_) => index.trend(&filter).map_err(told)?,
                None => Vec::new(),
            };
            let why = other.and_then(Result::err);
            (rows, values, folder.display().to_string(), why)
        }
    };
    // Only rows from a store have ids.
    let here = match &shared.elsewhere {
        Some(_) => index.folders_by_id().map_err(told)?,
        None => LocalFolders::default(),
    };
    let trend = filter.metric().map(|metric| (metric, values));
    Ok(page(
        NavigationPage::Runs,
        "runs",
        &html! {
            h1 { "Stored runs" }
            p.sub { (number::count(rows.len() as i64)) " in " code { (place) } }
            @if let Some(line) = &trouble { p.warn { (line) } }
            (filters(&given))
            @if let Some((metric, rows)) = &trend { (trend::trends(metric, rows, &here)) }
            @if rows.is_empty() { p { "No matching runs." } } @else { (list(&rows, &here)) }
            @if let Some(line) = &refreshed.remark { p.soft { (line) } }
            @if !refreshed.unreadable.is_empty() {
                section #unreadable {
                    h2 { "Unreadable runs" }
                    ul { @for (name, why) in refreshed.unreadable.iter().take(ROWS_MAX) { li { strong { (name) } ": " (why) } } }
                }
            }
        },
    ))
}

fn filters<'a>(given: &impl Fn(&str) -> Option<&'a (String, String)>) -> Markup {
    let value = |key: &str| given(key).map(|(_, value)| value.as_str()).unwrap_or_default();
    html! {
        form.filter method="get" action="/runs" {
            @for (key, label, words) in FILTERS {
                label { (label)
                    @if words.is_empty() {
                        @let kind = if matches!(key, "since" | "until") { "date" } else { "text" };
                        input name=(key) type=(kind) value=(value(key)) list=[(key == "metric").then_some("metrics")];
                    } @else {
                        select name=(key) {
                            option value="" { "all" }
                            @for word in words { option selected[value(key) == *word] { (word) } }
                        }
                    }
                }
            }
            datalist #metrics { @for metric in Metric::ALL { option value=(metric.name()) {} } }
            button { "filter" }
        }
    }
}

/// Folders of local runs by the id that a team store gives them.
pub(super) type LocalFolders = BTreeMap<String, String>;

/// Returns a run's name on this server: a remote run is addressed by its id, because a local folder
/// may have the same name.
pub(super) fn name(id: Option<&String>, folder: &str, here: &LocalFolders) -> String {
    match id {
        Some(id) => here.get(id).unwrap_or(id).clone(),
        None => folder.to_string(),
    }
}

fn list(rows: &[RunRow], here: &LocalFolders) -> Markup {
    let name = |row: &RunRow| name(row.id.as_ref(), &row.folder, here);
    html! {
        form method="get" action="/compare" {
            div.wide {
                table.runs {
                    thead { tr {
                        th scope="col" { span.visuallyhidden { "compare" } } th scope="col" { "run" } th scope="col" { "experiments" }
                        th scope="col" { "targets" } th.hideable scope="col" { "link" } th.hideable scope="col" { "effort" }
                        th.n scope="col" { "trials" } th.hideable scope="col" { "version" }
                    } }
                    tbody {
                        @for row in rows.iter().take(ROWS_MAX) {
                            tr {
                                td { input type="checkbox" name="run" value=(name(row)) aria-label={ "compare " (row.folder) }; }
                                td { a href={ "/runs/" (address(&name(row))) "/report.html" } { (row.folder) }
                                    span.range { (row.created) @if let Some(who) = &row.origin { " by " (who) } }
                                    @if row.partial { span.chip.no { "partial" } }
                                    @if row.doubtful { " " span.chip.open { "doubtful" } }
                                }
                                td { (row.experiments.join(", ")) }
                                td { (row.targets.join(", ")) }
                                td.hideable { (row.link) }
                                td.hideable { (row.effort) }
                                td.n { (row.trials) }
                                td.hideable { (row.version) }
                            }
                        }
                    }
                }
            }
            @if rows.len() > ROWS_MAX { p.soft { "and " (rows.len() - ROWS_MAX) " earlier runs (use the filter)" } }
            p { button.main { "compare selected runs" } " " span.hint { "the earliest run is the base" } }
        }
    }
}

/// Returns a run's name in an address; the two names of a campaign's run stay separate.
pub(super) fn address(name: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let part =
        |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// Renders the comparison of runs with the earliest of them.
pub(super) fn compare(shared: &ServerState, names: &[String]) -> Result<Markup, String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.dedup();
    // Targets of runs are compared in the given order, whole runs with the earliest one.
    let mut is_as_named = false;
    if !(2..=COMPARED_MAX).contains(&names.len()) {
        return Err(format!("select 2 to {COMPARED_MAX} runs: {} are selected", names.len()));
    }
    let mut read = Vec::new();
    for name in names {
        let (path, target) = match (named(&shared.folder, name), &shared.elsewhere) {
            (Some(found), _) => found,
            (None, Some(elsewhere)) => {
                let (run, target) = name.split_once(':').unwrap_or((name, ""));
                let brought = elsewhere.brought(run).map_err(|why| format!("{name}: {why}"))?;
                (brought.0.join(brought.1), Some(target).filter(|target| !target.is_empty()))
            }
            (None, None) => return Err(format!("{name}: no such run")),
        };
        let record = record_of(&path).map_err(|why| format!("{name}: {why}"))?;
        if let Some(target) = target
            && record.target(target).is_none()
        {
            let known: Vec<&str> = record.targets.iter().map(|it| it.name.as_str()).collect();
            return Err(format!(
                "{name}: no such target in the run (hint: use one of {})",
                known.join(", ")
            ));
        }
        is_as_named |= target.is_some();
        read.push((name.as_str(), target, record));
    }
    if !is_as_named {
        read.sort_by(|(name, _, one), (other_name, _, other)| {
            (&one.created, name).cmp(&(&other.created, other_name))
        });
    }
    let (base, others) = read.split_first().expect("there are two at least");
    let (base_name, base_target, base_record) = base;
    let against = others.iter().map(|(name, target, record)| {
        let base = ComparedRun { name: base_name, record: base_record, target: *base_target };
        let new = ComparedRun { name, record, target: *target };
        (*name, comparison::contrast(&base, &new, &Gate::by_default(), false))
    });
    let against: Vec<_> = against.collect();
    Ok(page(
        NavigationPage::Runs,
        "comparison",
        &html! {
            h1 { "Comparison with " (base_name) }
            p.sub { code { (base_record.command_line) } }
            @for (name, found) in &against {
                section.compared {
                    h2 { (name) }
                    @match found {
                        Ok(found) => (contrasted(found)),
                        Err(why) => p.warn { (why) },
                    }
                }
            }
            (single(&read))
        },
    ))
}

/// Returns the run that a name selects, and its target: `RUN` or `RUN:TARGET`, as `planimeter
/// compare` takes them.
fn named<'a>(folder: &Path, name: &'a str) -> Option<(PathBuf, Option<&'a str>)> {
    if let Some(run) = files::run(folder, name) {
        return Some((run, None));
    }
    let parts = name.match_indices(':').map(|(at, _)| (&name[..at], &name[at + 1..]));
    let mut parts = parts.filter(|(_, target)| !target.is_empty());
    parts.find_map(|(run, target)| Some((files::run(folder, run)?, Some(target))))
}

/// Renders a form that compares single targets of these runs.
fn single(read: &[(&str, Option<&str>, Record)]) -> Markup {
    let mut choices: Vec<String> = Vec::new();
    for (name, target, record) in read {
        let suffix = target.map(|target| format!(":{target}")).unwrap_or_default();
        let run = name.strip_suffix(&suffix).unwrap_or(name);
        let targets = record.targets.iter().map(|it| format!("{run}:{}", it.name));
        for choice in std::iter::once(run.to_string()).chain(targets) {
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
    }
    let chosen = |at: usize| read.get(at).map(|(name, ..)| *name).unwrap_or_default();
    html! {
        section #single {
            h2 { "Single targets" }
            form.filter method="get" action="/compare" {
                @for (at, label) in [(0, "base"), (1, "new")] {
                    label { (label)
                        select.long name="run" {
                            @for choice in &choices { option selected[choice == chosen(at)] { (choice) } }
                        }
                    }
                }
                button { "compare" }
            }
        }
    }
}

fn contrasted(found: &Comparison) -> Markup {
    html! {
        p.short { (words::headline(found)) }
        p.soft { (words::method(found)) }
        @if !found.remarks.is_empty() { ul { @for remark in &found.remarks { li { (remark) } } } }
        div.wide tabindex="0" role="group" aria-label="results of both" { table {
            thead { tr { th { "metric" } th { "place" } th { "verdict" } th.n { "base" } th.n { "new" } th { "change (95 %)" } th { "warnings" } } }
            tbody {
                @for cell in found.cells.iter().take(CELLS_MAX) {
                    @let [base, new] = words::values(cell);
                    tr {
                        td { (number::title(cell.metric)) span.range { (number::shown(cell.metric).unit) } }
                        td { (words::place(cell)) }
                        td { span class={ "chip " (look(cell.verdict)) } { (words::verdict(cell.verdict)) } }
                        td.n { (base) } td.n { (new) }
                        td { (words::effect(cell)) }
                        td { @for doubt in &cell.doubts { span.why { "⚠ " (doubt) } } }
                    }
                }
            }
        } }
        @if found.cells.len() > CELLS_MAX { p.soft { "and " (found.cells.len() - CELLS_MAX) " more (see planimeter compare)" } }
        @for (side, names) in [("base", &found.only_base), ("new run", &found.only_new)] {
            @if !names.is_empty() { p.soft { "Only the " (side) " has " (names.iter().take(CELLS_MAX).cloned().collect::<Vec<_>>().join("; ")) "." } }
        }
        p.soft { "Command line: " code { "planimeter compare " (found.base.name) " " (found.new.name) } ", in the folder of runs." }
    }
}

fn look(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "yes",
        Verdict::Worse => "no",
        Verdict::Same | Verdict::Inconclusive => "open",
    }
}

/// Reads a run's results, also of one that ended early or is still active.
fn record_of(folder: &Path) -> Result<Record, String> {
    let record = store::read_results(folder).map_err(|error| error.to_string())?;
    if !record.partial {
        return Ok(record);
    }
    let Stored { mut record, is_behind, .. } =
        store::read_run(folder).map_err(|error| error.to_string())?;
    if is_behind {
        report::finish(&mut record, &papers::claims()?);
    }
    Ok(record)
}
