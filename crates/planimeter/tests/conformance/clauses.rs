//! Clauses of the specifications, and the cases that cover each.
//!
//! A line is `SECTION REQUIREMENT :: CASES`, where `*` matches any characters, or `:: not in
//! this suite: REASON`. Every named case must exist.

use std::path::Path;

use crate::case::Case;

/// One requirement.
pub struct Clause {
    /// The specification, such as `1.3.5`.
    pub text: String,
    /// Its section.
    pub section: String,
    /// The requirement, in our words.
    pub requirement: String,
    /// Indices of the cases that cover it; empty if there is a reason.
    pub cases: Vec<usize>,
    /// Why no case covers it.
    pub reason: Option<String>,
}

/// Reads all clauses in the folder's files.
pub fn read(folder: &Path, cases: &[Case]) -> Vec<Clause> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut clauses = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (number, line) in (1..).zip(std::fs::read_to_string(&path).unwrap().lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            clauses.push(clause(&name, line, cases).unwrap_or_else(|why| {
                panic!("{}:{number}: {why}", path.display());
            }));
        }
    }
    clauses
}

fn clause(text: &str, line: &str, cases: &[Case]) -> Result<Clause, String> {
    let (head, shown) = line.split_once(" :: ").ok_or("a clause ends with :: and its cases")?;
    let (section, requirement) = head.split_once(' ').ok_or("SECTION REQUIREMENT")?;
    let mut clause = Clause {
        text: text.to_owned(),
        section: section.to_owned(),
        requirement: requirement.to_owned(),
        cases: Vec::new(),
        reason: shown.strip_prefix("not in this suite: ").map(str::to_owned),
    };
    if clause.reason.is_none() {
        for pattern in shown.split_whitespace() {
            let fits = |(_, case): &(usize, &Case)| matches(pattern, &case.name);
            let found: Vec<usize> =
                cases.iter().enumerate().filter(fits).map(|(place, _)| place).collect();
            if found.is_empty() {
                return Err(format!("there is no case {pattern}"));
            }
            clause.cases.extend(found);
        }
    }
    Ok(clause)
}

/// Returns whether a name matches a pattern with `*` for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|after| {
            (0..=after.len()).any(|at| after.is_char_boundary(at) && matches(rest, &after[at..]))
        }),
    }
}
