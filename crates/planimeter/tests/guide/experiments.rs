//! Tests that each study and experiment has a page in the reference with its source, method,
//! parameters, an example with its output, how to read it and its limits; `cargo bless` writes them.
//!
//! Texts and parameters are those of the catalog. The examples run in virtual time, where the
//! output is the same on every machine, so the tests compare it. An example with a real link runs
//! only when its command line changes; its output is that of one machine.

use std::fmt::Write;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use record::number;
use studies::CatalogEntry;
use studies::pages::Page;
use workload::Technology;

use crate::common::{Folder, planimeter};
use crate::reference::{cell, check};
use crate::root;

/// Number of examples that run in parallel.
const AT_ONCE: usize = 2;

/// Columns of a command line; longer ones are folded.
const COLUMNS: usize = 96;

/// Tables of the output in a page, and rows of each.
const TABLES_MAX: usize = 2;
const ROWS_MAX: usize = 12;

/// Sections of the output that a page leaves out: they do not explain the experiment.
const LEFT_OUT: [&str; 4] =
    ["Warnings", "Claims of the study", "Account of frames", "Reproduce this run"];

/// Sentence before the output in a page.
const PRINTS: &str = "It prints (shortened):\n\n";

/// Heading after the output in a page.
const AFTER: &str = "\n\n## How to read it";

/// Returns the experiments of each set, in the order of the catalog.
fn sets() -> Vec<Vec<&'static CatalogEntry>> {
    let all: Vec<&'static CatalogEntry> = studies::entries().collect();
    all.chunk_by(|a, b| a.set() == b.set()).map(<[_]>::to_vec).collect()
}

/// Returns the output of an example: sentences, and its first tables.
fn shortened(output: &str) -> String {
    let mut sections = output.split("\n### ");
    let head = sections.next().unwrap_or_default();
    // The first line of the run has its date.
    let head = head.split_once("\n## Run of ").and_then(|(_, rest)| rest.split_once('\n'));
    let mut text = head.unwrap_or_default().1.trim().to_owned();
    let is_wanted = |title: &str| !LEFT_OUT.contains(&title);
    let is_row = |line: &&str| line.starts_with('|');
    let titled = sections.filter_map(|section| section.split_once('\n'));
    let tables =
        titled.filter(|(title, body)| is_wanted(title) && body.lines().any(|it| is_row(&it)));
    for (title, body) in tables.take(TABLES_MAX) {
        let table = body.lines().skip_while(|line| !is_row(line)).take_while(is_row);
        let table: Vec<&str> = table.take(2 + ROWS_MAX).collect();
        let title = title.rsplit_once(" (").map_or(title, |(title, _)| title);
        let _ = write!(text, "\n\n{title}:\n\n{}", table.join("\n"));
    }
    text
}

/// Runs an example and returns what its page shows.
fn output(page: Page) -> String {
    let folder = Folder::new();
    let command = page.command();
    let words: Vec<&str> = std::iter::once("run").chain(command.split(' ')).collect();
    let result = planimeter(&folder.0, &words);
    assert_eq!(result.code, Some(0), "planimeter run {command}: {}", result.errors);
    let text = shortened(&result.output);
    assert!(text.contains("\n|---"), "planimeter run {command}: no table in {}", result.output);
    text
}

/// Formats a command line, broken before options.
fn shown_command(command: &str) -> String {
    let mut lines = vec!["planimeter run".to_owned()];
    for part in command.replace(" --", "\n--").split('\n') {
        let last = lines.last_mut().expect("there is a first line");
        match last.len() + part.len() + 3 <= COLUMNS {
            true => *last += &format!(" {part}"),
            false => lines.push(format!("    {part}")),
        }
    }
    lines.join(" \\\n")
}

/// Formats an experiment: axis, targets, method, metrics.
fn description(out: &mut String, entry: &CatalogEntry) {
    let _ = writeln!(out, "{}\n", entry.method);
    // A controller needs an OpenFlow switch.
    let technologies =
        if entry.flows.is_some() { &[Technology::OpenFlow] } else { entry.technologies };
    let about: Vec<&str> = technologies.iter().map(|it| it.plural()).collect();
    let _ = writeln!(out, "- Axis: {}", number::axis(entry.axis));
    let _ = writeln!(out, "- Targets: {}", about.join(", "));
    if let Some((study, item)) = entry.paper {
        let _ = writeln!(out, "- Repeats: {study}, {item}");
    }
    if let Some(other) = entry.shares_trials_of {
        let _ = writeln!(out, "- Shares the trials of `{other}` if both run together");
    }
    let drawn = entry.shows.iter().flat_map(|show| show.drawn.iter().chain(show.beside));
    let mut drawn: Vec<String> = drawn.map(|name| format!("`{name}`")).collect();
    drawn.dedup();
    if !drawn.is_empty() {
        let _ = writeln!(out, "- Metrics: {}", drawn.join(", "));
    }
    out.push('\n');
}

/// Formats the table of parameters.
fn parameters(entry: &CatalogEntry) -> String {
    let mut out = String::from("| `--set` | takes | default | what |\n|---|---|---|---|\n");
    for it in entry.declared() {
        let takes = it.takes.words(it.unit);
        let (takes, help) = (cell(&takes), cell(it.help));
        let _ = writeln!(out, "| `{}` | {takes} | {} | {help} |", it.key, cell(it.default));
    }
    out += "\nParameters of [every run](../parameters.md) apply too.\n\n";
    out
}

/// Returns the page of a set, with this output of its example.
fn page(entries: &[&CatalogEntry], page: Page, output: &str) -> String {
    let (set, first) = (entries[0].set(), entries[0]);
    let mut out =
        format!("# {set}: {}\n\n{}\n\n", page.title().unwrap_or(first.title), page.source());
    if let [entry] = entries {
        description(&mut out, entry);
    }
    if !page.description().is_empty() {
        let _ = writeln!(out, "{}\n", page.description());
    }
    if entries.len() > 1 {
        out += "| experiment | measures |\n|---|---|\n";
        for entry in entries {
            let anchor = entry.id.replace('/', "");
            let _ = writeln!(out, "| [`{}`](#{anchor}) | {} |", entry.id, cell(entry.title));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Example\n\n```sh\n{}\n```\n", shown_command(&page.command()));
    let _ = writeln!(out, "{PRINTS}{output}{AFTER}\n\n{}\n", page.reading());
    let _ = writeln!(out, "## Limits\n\n{}\n", page.limits());
    if let [entry] = entries {
        out += "## Parameters\n\n";
        out += &parameters(entry);
        return out.trim_end().to_owned() + "\n";
    }
    let mut tables: Vec<(String, &str)> = Vec::new();
    for entry in entries {
        let _ = writeln!(out, "## {}\n\n{}.\n", entry.id, entry.title.trim_end_matches('.'));
        description(&mut out, entry);
        if let Some(text) = page.item(entry) {
            let _ = writeln!(out, "{text}\n");
        }
        let table = parameters(entry);
        match tables.iter().find(|(known, _)| *known == table) {
            Some((_, other)) => {
                let anchor = other.replace('/', "");
                let _ = writeln!(out, "It has the parameters of [`{other}`](#{anchor}).\n");
            }
            None => {
                out += &table;
                tables.push((table, entry.id));
            }
        }
    }
    out.trim_end().to_owned() + "\n"
}

/// Returns the output in the existing page of a set, if the page has this command line.
fn existing_output(set: &str, command: &str) -> Option<String> {
    let path = root().join(format!("docs/reference/experiments/{set}.md"));
    let text = fs::read_to_string(path).unwrap_or_default();
    let rest = text.contains(&shown_command(command)).then(|| text.split_once(PRINTS)).flatten()?.1;
    rest.split_once(AFTER).map(|(output, _)| output.to_owned())
}

#[test]
fn each_experiment_has_a_page_with_an_example() {
    let waiting = Mutex::new(sets());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some(entries) = { waiting.lock().unwrap().pop() } {
            let set = entries[0].set();
            let texts = Page::of(set).unwrap_or_else(|| panic!("{set} has no texts"));
            let done = catch_unwind(AssertUnwindSafe(|| {
                let existing = match texts.is_simulated() {
                    true => None,
                    false => existing_output(set, &texts.command()),
                };
                let printed = existing.unwrap_or_else(|| output(texts));
                check(&format!("experiments/{set}.md"), &page(&entries, texts, &printed));
            }));
            if done.is_err() {
                wrong.lock().unwrap().push(set);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "wrong pages: {wrong:?}");
}

#[test]
fn no_page_is_about_an_unknown_experiment() {
    let folder = root().join("docs/reference/experiments");
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap().replace(".md", ""));
    let known: Vec<&str> = sets().iter().map(|entries| entries[0].set()).collect();
    let unknown: Vec<String> = names.filter(|name| !known.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_index_names_every_experiment() {
    let mut text = "# Experiments\n\nThese are the names that `planimeter run` takes. A study or a standard runs \
                    all of its experiments. `planimeter list EXPERIMENT` prints the same texts. [How experiments \
                    work](../experiments.md) describes what they have in common.\n"
        .to_string();
    let (many, single): (Vec<_>, Vec<_>) = sets().into_iter().partition(|it| it.len() > 1);
    text += "\n## Studies and standards\n\n| name | experiments | contents |\n|---|---|---|\n";
    for entries in many {
        let set = entries[0].set();
        let title = Page::of(set).and_then(Page::title).unwrap_or_default();
        let items = entries.iter().map(|it| it.id.split('/').nth(1).unwrap_or_default());
        let items: Vec<String> = items.map(|it| format!("`{it}`")).collect();
        let _ =
            writeln!(text, "| [`{set}`](experiments/{set}.md) | {} | {title} |", items.join(", "));
    }
    text += "\n## Single experiments\n\n| name | measures |\n|---|---|\n";
    for entries in single {
        let (set, title) = (entries[0].set(), entries[0].title);
        let _ = writeln!(text, "| [`{set}`](experiments/{set}.md) | {} |", cell(title));
    }
    check("experiments.md", &text);
}

#[test]
fn an_output_is_shortened_to_sentences_and_tables() {
    let rows = "| 1 |\n".repeat(ROWS_MAX + 1);
    let output = format!(
        "# planimeter report\n\n## Run of 2026\n\nHead.\n\n### Warnings\n\n- x\n\n### A delay (a)\n\n\
         <details>\n\n| n |\n|---|\n{rows}\n</details>\n\n### Reproduce this run\n\n| no |\n"
    );
    let shown = format!("Head.\n\nA delay:\n\n| n |\n|---|\n{}", "| 1 |\n".repeat(ROWS_MAX));
    assert_eq!(shortened(&output), shown.trim_end());
}

#[test]
fn a_command_line_is_broken_before_options() {
    assert_eq!(shown_command("a --set b=1"), "planimeter run a --set b=1");
    let long = format!("a{}", " --set name=value".repeat(8));
    let shown = shown_command(&long);
    assert!(shown.lines().all(|line| line.len() <= COLUMNS), "{shown}");
    assert_eq!(shown.replace(" \\\n   ", ""), format!("planimeter run {long}"));
}
