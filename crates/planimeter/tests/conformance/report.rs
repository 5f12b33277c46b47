//! Report of the suite as a page: features by version and subject, and each clause.
//!
//! The page is a function of the cases and their results; the test fails if the stored page differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use openflow::version::Version;

use crate::case::Case;
use crate::clauses::Clause;
use crate::differences::Differences;

/// Results of cases by subject and version.
#[derive(Default)]
pub struct Answers(BTreeMap<(&'static str, String, Version), bool>);

impl Answers {
    pub fn note(&mut self, subject: &'static str, case: &Case, version: Version, well: bool) {
        self.0.insert((subject, case.name.clone(), version), well);
    }

    fn get(&self, subject: &'static str, case: &Case, version: Version) -> Option<bool> {
        self.0.get(&(subject, case.name.clone(), version)).copied()
    }

    fn has(&self, subject: &str) -> bool {
        self.0.keys().any(|(of, ..)| *of == subject)
    }
}

/// Compares the stored page with the results, or writes it; returns the number of errors.
pub fn check(cases: &[Case], clauses: &[Clause], answers: &Answers, why: &Differences) -> usize {
    let covered = clauses.iter().filter(|clause| clause.reason.is_none()).count();
    println!(
        "{} cases; {} clauses, {covered} of them covered by a case",
        cases.len(),
        clauses.len()
    );
    if !answers.has("switch") || !answers.has("ovs") {
        println!("the page is not compared: it requires results of all three subjects");
        return 0;
    }
    let page = page(cases, clauses, answers, why);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openflow-conformance.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page).unwrap();
        return 0;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if stored == page {
        return 0;
    }
    println!("FAILED: {} is out of date (hint: run with UPDATE=1)", path.display());
    for (old, new) in stored.lines().zip(page.lines()).filter(|(old, new)| old != new).take(5) {
        println!("  - {old}\n  + {new}");
    }
    1
}

fn page(cases: &[Case], clauses: &[Clause], answers: &Answers, why: &Differences) -> String {
    let mut out = String::new();
    out.push_str(HEAD);
    let runs: usize = cases.iter().map(|case| case.versions.len()).sum();
    line(&mut out, &format!("{} cases, {runs} runs in simulation.\n", cases.len()));
    features(cases, answers, why, &mut out);
    differing(cases, answers, why, &mut out);
    requirements(cases, clauses, &mut out);
    out
}

const HEAD: &str = "# OpenFlow conformance\n
This page lists the requirements of the OpenFlow specifications that our switch meets. A suite of
cases tests them. A case sends entries, frames and messages, and checks the resulting frames,
messages and counters. The suite runs every case on three switches:

- our switch in virtual time, in each version of the case;
- our switch as a process over veth, in 1.0 and 1.3 (a case for neither: in its last version);
- Open vSwitch 3.1 of Debian 12 over veth, in the same versions, as a second implementation.

The suite generates this page: `UPDATE=1 cargo test -p planimeter --test conformance`. The test
fails if the page is out of date.\n
";

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

const LEGEND: &str = "\
- `sim`: passes in simulation; `live`: passes over veth too.
- `=`: Open vSwitch passes the same cases; `≠`: it fails some, explained below; `no peer`: it does
  not have the feature.
- `own`: tested on our switch only (configuration, limits, behaviour that the text leaves open).
";

/// Writes one row for each feature, one column for each version.
fn features(cases: &[Case], answers: &Answers, why: &Differences, out: &mut String) {
    line(out, "## Features by version\n");
    line(out, LEGEND);
    let names: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.covers.iter().map(String::as_str)).collect();
    line(out, "| feature | 1.0 | 1.1 | 1.2 | 1.3 | 1.4 | 1.5 |\n|---|---|---|---|---|---|---|");
    for name in names {
        let mut row = format!("| {name} |");
        for version in Version::ALL {
            let about = |case: &&Case| {
                case.versions.contains(&version) && case.covers.iter().any(|of| of == name)
            };
            let cell = cell(&cases.iter().filter(about).collect::<Vec<_>>(), version, answers, why);
            write!(row, " {cell} |").unwrap();
        }
        line(out, &row);
    }
}

fn cell(cases: &[&Case], version: Version, answers: &Answers, why: &Differences) -> String {
    if cases.is_empty() {
        return String::new();
    }
    let all = |subject| {
        let got: Vec<bool> =
            cases.iter().filter_map(|case| answers.get(subject, case, version)).collect();
        (!got.is_empty()).then(|| got.iter().all(|well| *well))
    };
    if all("sim") != Some(true) {
        return "**fails**".to_owned();
    }
    let live = match all("switch") {
        Some(true) => "live",
        Some(false) => return "**fails live**".to_owned(),
        None => return "sim".to_owned(),
    };
    let tested: Vec<&&Case> =
        cases.iter().filter(|case| answers.get("ovs", case, version).is_some()).collect();
    let reason = |case: &&&Case| {
        (answers.get("ovs", case, version) == Some(false))
            .then(|| why.why(&case.name, version).unwrap_or("unexplained"))
    };
    let reasons: Vec<&str> = tested.iter().filter_map(reason).collect();
    let peer = match (tested.len(), reasons.len()) {
        (0, _) => "own",
        (_, 0) => "=",
        (tested, differ)
            if tested == differ && reasons.iter().all(|why| why.starts_with("no peer")) =>
        {
            "no peer"
        }
        _ => "≠",
    };
    format!("{live} {peer}")
}

/// Writes every case in which Open vSwitch differs, with the reason.
fn differing(cases: &[Case], answers: &Answers, why: &Differences, out: &mut String) {
    line(out, "\n## Where Open vSwitch differs\n");
    line(out, "| cases | versions | difference |\n|---|---|---|");
    for one in &why.0 {
        let mut names = Vec::new();
        let mut versions = BTreeSet::new();
        for case in cases.iter().filter(|case| crate::clauses::matches(&one.pattern, &case.name)) {
            let differ = |version: &&Version| {
                answers.get("ovs", case, **version) == Some(false)
                    && why.why(&case.name, **version) == Some(&one.reason)
            };
            let differ: Vec<_> = case.versions.iter().filter(differ).collect();
            if !differ.is_empty() {
                names.push(case.name.as_str());
                versions.extend(differ.into_iter().map(|version| version.to_string()));
            }
        }
        if names.is_empty() {
            continue;
        }
        let versions: Vec<String> = versions.into_iter().collect();
        let listed = match names.len() {
            1..=3 => names.join(", "),
            count => format!("{} and {} more like `{}`", names[0], count - 1, one.pattern),
        };
        line(out, &format!("| {listed} | {} | {} |", versions.join(", "), one.reason));
    }
}

/// Writes every clause with the cases that cover it.
fn requirements(cases: &[Case], clauses: &[Clause], out: &mut String) {
    let mut text = "";
    for clause in clauses {
        if clause.text != text {
            text = &clause.text;
            let count = clauses.iter().filter(|one| one.text == text).count();
            line(out, &format!("\n## Clauses of {text}: {count}\n"));
            line(out, SOURCES.iter().find(|(of, _)| *of == text).map_or("", |(_, note)| note));
            line(out, "\n| section | requirement | cases |\n|---|---|---|");
        }
        let covered = match &clause.reason {
            Some(reason) => format!("not in this suite: {reason}"),
            None => {
                let names: Vec<&str> =
                    clause.cases.iter().map(|place| cases[*place].name.as_str()).collect();
                match names.len() {
                    0..=4 => names.join(", "),
                    count => format!("{}, {} and {} more", names[0], names[1], count - 2),
                }
            }
        };
        line(out, &format!("| {} | {} | {covered} |", clause.section, clause.requirement));
    }
}

const SOURCES: [(&str, &str); 2] = [
    (
        "1.0.1",
        "Source: the text of 1.0.0, which 1.0.1 restates with the same section numbers, not \
         1.0.1 itself.",
    ),
    (
        "1.3.5",
        "Source: the published headers and knowledge of the text, not the text; a clause may \
         be missing.",
    ),
];
