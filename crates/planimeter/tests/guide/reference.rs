//! Tests that the reference matches the program's own description; `cargo bless` rewrites it.
//!
//! Parameters and metrics come from the tables that runs use; the record's types come from the doc
//! comments of the files that declare them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use openflow::version::{ActionKind, InstructionKind, MessageKind, MultipartKind, Version};
use planimeter::cli::failure::EXIT_CODES;
use record::Metric;
use record::number;
use runner::python::forms;
use stats::direction::{self, Direction};
use workload::parameter::shared;

use crate::root;

/// First lines of each page.
const MADE: &str = "<!-- Written by `cargo bless`; what changes it is the code. -->\n\n";

/// Compares a page with the program's description, or writes it.
pub fn check(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    let text = format!("{MADE}{text}");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = there.lines().zip(text.lines()).position(|(old, new)| old != new);
    let line = differs.unwrap_or(there.lines().count().min(text.lines().count())) + 1;
    assert!(there == text, "docs/reference/{name}, line {line}: stale; `cargo bless` writes it");
}

/// Escapes a table cell.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn parameters_are_those_of_the_program() {
    let mut text = "# Parameters\n\nParameters that runs and experiments share. `--set KEY=VALUE` takes those of every run, of targets, of SNMP agents and of your own device always; any other only with an [experiment](experiments.md) that lists it, which may have another default.\n"
        .to_string();
    for (title, group) in shared::GROUPS {
        let _ =
            writeln!(text, "\n## {title}\n\n| key | takes | default | what |\n|---|---|---|---|");
        for it in *group {
            let (takes, help) = (cell(&it.takes.words(it.unit)), cell(it.help));
            let _ = writeln!(text, "| `{}` | {takes} | {} | {help} |", it.key, cell(it.default));
        }
    }
    check("parameters.md", &text);
}

#[test]
fn metrics_are_those_of_the_record() {
    let mut text = "# Metrics\n\nWhat cells of a record, gates and figures speak of. A value of several repeats is their mean, or the \
                    median where the last column says so. Modules tell further ones, under names that end in their unit.\n\n\
                    | metric | unit | what | better | of repeats |\n|---|---|---|---|---|\n"
        .to_string();
    for metric in Metric::ALL {
        let better = match direction::of(metric) {
            Some(Direction::Higher) => "more",
            Some(Direction::Lower) => "less",
            None => "",
        };
        let of = if metric.is_by_median() { "median" } else { "mean" };
        let (name, unit, title) = (metric.name(), metric.unit(), number::title(metric));
        let _ = writeln!(text, "| `{name}` | {unit} | {} | {better} | {of} |", cell(&title));
    }
    check("metrics.md", &text);
}

/// A type of the record: its name, its description, and its fields or variants with their
/// descriptions.
struct Declared {
    name: String,
    about: String,
    parts: Vec<(String, String, String)>,
}

/// Returns the public types of a file, parsed by lines, which the code's style permits.
fn declared(source: &str) -> Vec<Declared> {
    let mut all: Vec<Declared> = Vec::new();
    let mut about = String::new();
    let mut is_open = false;
    let mut stored = None;
    for line in source.lines() {
        let word = line.trim();
        if let Some(text) = word.strip_prefix("///") {
            about += text;
        } else if let Some(rest) = word.strip_prefix("#[serde(rename = \"") {
            stored = rest.split('"').next();
        } else if word.starts_with("#[") || word.starts_with("//") {
            // Other attributes do not change the stored name.
        } else if let Some(rest) =
            line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))
        {
            let name: String = rest.chars().take_while(|it| it.is_alphanumeric()).collect();
            is_open = rest.ends_with('{');
            let about = std::mem::take(&mut about);
            all.push(Declared { name, about: about.trim().into(), parts: Vec::new() });
        } else if line == "metrics! {" {
            // The macro declares the enumeration of metrics, with one row for each.
            is_open = true;
            let about = "A metric of a cell: one of these, or one that a module defines.".into();
            all.push(Declared { name: "Metric".into(), about, parts: Vec::new() });
        } else if is_open && line == "}" {
            is_open = false;
        } else if is_open && line.starts_with("    ") && !line.starts_with("     ") {
            let text = word.trim_end_matches([',', '{']).trim_start_matches("pub ").trim();
            let (name, kind) = text.split_once(':').unwrap_or((text, ""));
            let name =
                stored.take().unwrap_or(name.split(['(', ' ']).next().unwrap_or(name).trim());
            let about = std::mem::take(&mut about);
            if !about.is_empty()
                && let Some(last) = all.last_mut()
            {
                last.parts.push((name.into(), kind.trim().into(), about.trim().into()));
            }
        } else {
            about.clear();
        }
    }
    all.retain(|it| !it.parts.is_empty());
    all
}

fn prose(doc: &str) -> String {
    // Links of the code's documentation have no target here.
    let plain = doc.replace("[`", "`").replace("`]", "`");
    cell(&plain)
}

#[test]
fn record_types_are_those_of_the_code() {
    let folder = root().join("crates/record/src");
    let mut files = vec![folder.join("lib.rs")];
    let mut others: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    others.sort();
    // These declare nothing that is stored.
    let skipped = ["assignment.rs", "lib.rs", "links.rs", "number.rs", "schema1.rs"];
    let is_stored = |path: &Path| skipped.iter().all(|it| !path.ends_with(it));
    files.extend(others.into_iter().filter(|path| is_stored(path)));
    let mut text = "# The record's types\n\nField by field as the code declares them, in Rust's notation: `Option` is what may be absent, \
                    `Vec` a list. The same in words, and what belongs together: [the record](../record-schema.md).\n"
        .to_string();
    let mut count = 0;
    for file in files {
        for it in declared(&fs::read_to_string(file).unwrap()) {
            count += 1;
            let _ = writeln!(text, "\n## {}\n\n{}\n", it.name, prose(&it.about));
            text += "| name | type | what |\n|---|---|---|\n";
            for (name, kind, about) in it.parts {
                let kind = if kind.is_empty() { String::new() } else { format!("`{kind}`") };
                let _ = writeln!(text, "| `{name}` | {} | {} |", cell(&kind), prose(&about));
            }
        }
    }
    assert!(count > 30, "only {count} types were found");
    check("record.md", &text);
}

/// Lists the versions that have a kind, by their codes for it.
fn versions(has: impl Fn(Version) -> bool) -> String {
    let own: Vec<String> =
        Version::ALL.into_iter().filter(|it| has(*it)).map(|it| it.to_string()).collect();
    match own.as_slice() {
        [] => "by extension".into(),
        [one] => one.clone(),
        [first, .., last] => format!("{first} to {last}"),
    }
}

#[test]
fn forms_of_messages_are_those_of_the_codec() {
    let mut text = "# OpenFlow messages of Python modules\n\nWhat [`Module.send`](../guide/module.md) and `Switch.send` take: every \
                    message that a controller sends, every action and instruction of the codec. A key that is left out has the \
                    value of the specification's default; a key that is not known is an error. Each example is complete as it is. \
                    What a switch sends has the same keys in `message.body`.\n"
        .to_string();
    let row = |out: &mut String, name: &str, versions: String, form: &str| {
        let _ = writeln!(out, "| `{name}` | {versions} | `{}` |", cell(form));
    };
    let head = "| name | versions | example |\n|---|---|---|\n";
    let _ = write!(text, "\n## Messages\n\n{head}");
    for kind in MessageKind::ALL {
        if let Some(form) = forms::message(*kind) {
            let extended = |it| kind.code(it).is_some() || kind.onf_type(it).is_some();
            row(&mut text, kind.name(), versions(extended), form);
        }
    }
    let _ = write!(text, "\n## Actions\n\n{head}");
    for kind in ActionKind::ALL {
        row(&mut text, kind.name(), versions(|it| kind.code(it).is_some()), forms::action(*kind));
    }
    let _ = write!(text, "\n## Instructions\n\n{head}");
    for kind in InstructionKind::ALL {
        let form = forms::instruction(*kind);
        row(&mut text, kind.name(), versions(|it| kind.code(it).is_some()), form);
    }
    let _ = write!(text, "\n## Multipart requests\n\n{head}");
    for kind in MultipartKind::ALL {
        let form = forms::multipart(*kind);
        row(&mut text, kind.name(), versions(|it| kind.code(it).is_some()), form);
    }
    check("messages.md", &text);
}

#[test]
fn the_index_links_to_all_pages() {
    check(
        "README.md",
        "# Reference\n\nWritten from the code by `cargo bless`, and checked by the tests:\n\n\
         - [experiments](experiments.md): what can be run; a page for each with source, method, parameters, an example, how to read it, and limits\n\
         - [parameters](parameters.md): what `--set` takes, with ranges and defaults\n\
         - [metrics](metrics.md): what comes out, with units, and which way is better\n\
         - [the record's types](record.md): `record.json`, field by field\n\
         - [OpenFlow messages](messages.md): what Python modules send, with an example of each form\n\
         - [exit codes](exit-codes.md): what commands return\n\n\
         Commands have man pages (`planimeter man DIR`) and `--help`.\n",
    );
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let mut text = "# Exit codes\n\nEvery command returns one of these codes. Of several gates, the worst outcome \
                    determines the code: failed, doubtful, inconclusive, passed.\n\n| code | meaning |\n|---|---|\n"
        .to_string();
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "| {code} | {} |", cell(meaning).replace("--strict", "`--strict`"));
    }
    text += "\nA CI job should fail on 1, 2 and 4, and warn on 5. Code 3 is a failure where results must be \
             complete, otherwise a warning. `planimeter man` writes the same list.\n";
    check("exit-codes.md", &text);
}
