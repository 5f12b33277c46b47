//! Import circles: top-level modules of a crate that import each other.
//!
//! A module's imports are the names after `crate::` in its files. Imports of tests do not count, and
//! neither do those of the crate's root, which joins all modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::tidy::{is_crate_root, is_test, read, shown, without_tests};

/// Circles that `docs/decisions/0065` explains: a crate, and modules of one circle.
const EXPLAINED: &[(&str, &[&str])] = &[
    (
        "elements",
        &[
            "agent",
            "config",
            "control",
            "datapath",
            "fast_path",
            "forward",
            "hardware_model",
            "program_compiler",
            "services",
        ],
    ),
    ("netio", &["interface", "port", "xdp"]),
    ("planimeter", &["cli", "serve"]),
    (
        "progfe",
        &[
            "compile",
            "compiled_program",
            "executor",
            "graph",
            "interpret",
            "lfb",
            "observe",
            "trace",
        ],
    ),
];

/// Imports of the modules of a crate, by module.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns a fault for each circle that no decision explains.
pub fn faults(files: &[PathBuf]) -> Vec<String> {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for file in files.iter().filter(|file| !is_test(file) && !is_crate_root(file)) {
        let place = shown(file);
        let mut parts = place.split('/').skip_while(|part| *part != "crates").skip(1);
        let (Some(name), Some("src"), Some(module)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let module = module.trim_end_matches(".rs");
        let imports = crates.entry(name.to_owned()).or_default();
        imports.entry(module.to_owned()).or_default().extend(imported(without_tests(&read(file))));
    }
    crates.iter().flat_map(|(name, imports)| faults_of(name, imports)).collect()
}

fn faults_of(name: &str, imports: &Imports) -> Vec<String> {
    let is_explained = |circle: &BTreeSet<&str>| {
        EXPLAINED.iter().any(|(crate_name, modules)| {
            *crate_name == name && circle.iter().all(|module| modules.contains(module))
        })
    };
    circles(imports)
        .into_iter()
        .filter(|circle| !is_explained(circle))
        .map(|circle| {
            let modules: Vec<&str> = circle.into_iter().collect();
            format!("modules of crate {name} import each other: {}", modules.join(", "))
        })
        .collect()
}

/// Returns the sets of modules that reach each other by imports.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (module.as_str(), reachable(module, imports))).collect();
    let circle_of = |module: &str| -> BTreeSet<&str> {
        reached[module].iter().copied().filter(|other| reached[other].contains(module)).collect()
    };
    imports.keys().map(|module| circle_of(module)).filter(|circle| circle.len() > 1).collect()
}

/// Returns the modules that a module imports, directly or through others.
fn reachable<'a>(module: &str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![module];
    while let Some(module) = waiting.pop() {
        for (other, _) in imports[module].iter().filter_map(|name| imports.get_key_value(name)) {
            if reached.insert(other.as_str()) {
                waiting.push(other);
            }
        }
    }
    reached
}

/// Returns the names after `crate::`, including those of a group in braces.
fn imported(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let first_word =
        |text: &str| text.trim_start().split(|letter| !is_word(letter)).next().map(str::to_owned);
    let mut names = BTreeSet::new();
    for (at, word) in code.match_indices("crate::") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let after = &code[at + word.len()..];
        match after.strip_prefix('{') {
            Some(group) => names.extend(items(group).into_iter().filter_map(first_word)),
            None => names.extend(first_word(after)),
        }
    }
    names
}

/// Returns the items of a group in braces, whose first brace is open.
fn items(group: &str) -> Vec<&str> {
    let (mut items, mut begin, mut depth) = (Vec::new(), 0, 1);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && letter == ',') {
            items.push(&group[begin..at]);
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Imports {
        edges.iter().map(|(module, text)| ((*module).to_owned(), imported(text))).collect()
    }

    #[test]
    fn imports_are_found_in_groups_and_paths_but_not_in_comments() {
        let text =
            "use crate::{a::{b, c}, d};\nlet x = crate::e::f();\n// crate::g\nmy_crate::h();";
        let names: Vec<String> = imported(text).into_iter().collect();
        assert_eq!(names, ["a", "d", "e"]);
    }

    #[test]
    fn circles_of_two_and_three_modules_are_found() {
        let imports = graph(&[
            ("a", "use crate::b;"),
            ("b", "use crate::{c, d};"),
            ("c", "use crate::a;"),
            ("d", ""),
            ("e", "use crate::f;"),
            ("f", "use crate::e::X;"),
        ]);
        assert_eq!(
            faults_of("made", &imports),
            [
                "modules of crate made import each other: a, b, c",
                "modules of crate made import each other: e, f"
            ]
        );
    }

    #[test]
    fn only_circles_within_an_explained_one_are_accepted() {
        let explained = graph(&[("cli", "use crate::serve;"), ("serve", "use crate::cli;")]);
        assert!(faults_of("planimeter", &explained).is_empty());
        assert_eq!(faults_of("report", &explained).len(), 1);
    }
}
