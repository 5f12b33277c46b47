//! Checks of Markdown documents: width of lines, and words that the project does not use.
//!
//! CONTRIBUTING.md ("How to write") explains both rules. Code is not checked: neither fenced blocks
//! nor spans in backticks. Link targets are not checked for words, because file names are stable.

use std::path::Path;

/// Columns of the longest line.
const COLUMNS_MAX: usize = 100;

/// Folders whose documents are checked, in addition to the documents of the root.
const FOLDERS: &[&str] = &["docs", PAGES];

/// Texts of the experiments, from which pages of the reference are generated.
const PAGES: &str = "crates/studies/src/pages/";

/// Documents that tests generate from the code.
const GENERATED: &[&str] = &["docs/reference/", "docs/openflow-conformance.md"];

/// Places whose documents are checked for words. Add a place once it has none of them.
const WORDS_CHECKED: &[&str] =
    &["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "docs/", PAGES];

/// Words and phrases that the project does not use, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "the actor"),
    ("asked", "\"requested\" or \"required\""),
    ("at once", "\"immediately\" or \"together\""),
    ("beside", "\"next to\", \"in addition to\" or \"during\""),
    ("besides", "\"in addition\""),
    ("clerk", "the term of the field"),
    ("courtesy", "the term of the field"),
    ("deeds", "\"operations\""),
    ("elsewhere", "the place"),
    ("errand", "\"task\""),
    ("errands", "\"tasks\""),
    ("foreseen", "\"planned\" or \"specified\""),
    ("hiccup", "\"stall\""),
    ("in vain", "\"without a reply\" or \"without progress\""),
    ("made ready", "\"compiled\" or \"prepared\""),
    ("mend", "\"fix\""),
    ("mended", "\"fixed\""),
    ("nobody", "the actor: \"no client\", \"no thread\""),
    ("somebody", "the actor"),
    ("stranger", "\"other host\" or \"other client\""),
    ("tell", "\"report\", \"send\" or \"show\""),
    ("tells", "\"reports\", \"sends\" or \"shows\""),
    ("thereby", "a sentence of its own"),
    ("told", "\"reported\", \"sent\" or \"notified\""),
    ("whatever", "\"every\" or \"any\""),
    ("whoever", "the actor"),
    ("workshop", "\"background thread\""),
];

/// Checks all documents; returns the faults.
pub fn check(root: &Path) -> Vec<String> {
    let mut files = crate::tidy::files_in(root, "md", false);
    for folder in FOLDERS {
        files.extend(crate::tidy::files_in(&root.join(folder), "md", true));
    }
    let mut faults = Vec::new();
    for file in files {
        let place = crate::tidy::shown(&file);
        if is_in(&place, GENERATED) {
            continue;
        }
        faults.extend(faults_of(&place, &std::fs::read_to_string(&file).unwrap_or_default()));
    }
    faults
}

/// Checks one document.
fn faults_of(place: &str, text: &str) -> Vec<String> {
    let has_words_checked = is_in(place, WORDS_CHECKED);
    let mut faults = Vec::new();
    let mut in_block = false;
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !is_unbreakable(line) {
            faults.push(format!("{place}:{number}: {columns} columns, at most {COLUMNS_MAX}"));
        }
        if line.trim().is_empty() {
            // A code span ends with its paragraph at the latest.
            in_code = false;
        }
        let prose = words_of(&prose_of(line, &mut in_code));
        for (word, instead) in WORDS.iter().filter(|_| has_words_checked) {
            if prose.contains(&format!(" {word} ")) {
                faults.push(format!("{place}:{number}: \"{word}\" (hint: write {instead})"));
            }
        }
    }
    faults
}

/// Returns whether a line cannot be broken: a table row, one link, or one word.
fn is_unbreakable(line: &str) -> bool {
    let line =
        line.trim_start_matches([' ', '-', '*', '#', '!']).trim_end_matches(['.', ',', ';', ':']);
    let is_link = line.starts_with('[') && line.ends_with(')') && line.matches("](").count() == 1;
    line.starts_with('|') || is_link || !line.contains(' ')
}

/// Removes code spans and link targets. `in_code`: whether the line begins, and ends, in a span.
fn prose_of(line: &str, in_code: &mut bool) -> String {
    let mut prose = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if letter == '`' {
            *in_code = !*in_code;
            prose.push(' ');
        } else if !*in_code && rest.starts_with("](") {
            rest = rest.find(')').map_or("", |end| &rest[end..]);
            continue;
        } else if !*in_code {
            prose.push(letter);
        }
        rest = &rest[letter.len_utf8()..];
    }
    prose
}

/// The words of a text in lower case, each between single spaces.
fn words_of(text: &str) -> String {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !is_letter(letter)).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

/// Returns whether a file is one of these places or in one of them.
fn is_in(place: &str, places: &[&str]) -> bool {
    places.iter().any(|it| place == *it || (it.ends_with('/') && place.starts_with(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_reported_outside_code_tables_and_links() {
        let long = "word ".repeat(25);
        let link = format!("- [{}](b.md)", "a".repeat(100));
        let text = format!("{long}\n| {long} |\n{link}\n```\n{long}\n```\n");
        assert_eq!(faults_of("docs/a.md", &text), ["docs/a.md:1: 125 columns, at most 100"]);
    }

    #[test]
    fn columns_are_characters() {
        assert_eq!(faults_of("docs/a.md", &"µs ".repeat(33)), Vec::<String>::new());
    }

    #[test]
    fn words_are_reported_in_prose_only() {
        let text =
            "Nobody waits.\n`nobody` [x](nobody.md)\n`told\ntold` and Told\n\nin  vain\nretold\n";
        let faults: Vec<String> = faults_of("docs/a.md", text)
            .iter()
            .map(|it| it.split(" (").next().unwrap().to_owned())
            .collect();
        assert_eq!(
            faults,
            ["docs/a.md:1: \"nobody\"", "docs/a.md:4: \"told\"", "docs/a.md:6: \"in vain\""]
        );
        assert_eq!(faults_of("crates/a.md", text), Vec::<String>::new());
    }
}
