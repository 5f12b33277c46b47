//! A Markdown page: the anchors of its headings, its links, its fenced blocks.

use std::path::{Path, PathBuf};

/// A fenced block.
pub struct Fence {
    /// The info string: language and keywords.
    pub info: Vec<String>,
    pub text: String,
    /// Its first line, from 1.
    pub line: usize,
}

impl Fence {
    pub fn has(&self, word: &str) -> bool {
        self.info.iter().any(|it| it == word)
    }

    /// Returns the value of `KEY=`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.info.iter().find_map(|it| it.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Returns every document, sorted: those of the root and all below `docs`.
pub fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let is_page = |path: &Path| path.extension().is_some_and(|it| it == "md");
    let here = std::fs::read_dir(super::root()).unwrap().map(|it| it.unwrap().path());
    found.extend(here.filter(|path| is_page(path)));
    let mut folders = vec![super::root().join("docs")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if is_page(&path) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Returns the blocks of a page, and its text without them.
pub fn fences(text: &str) -> (Vec<Fence>, String) {
    let (mut fences, mut prose): (Vec<Fence>, String) = Default::default();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(info), false) => {
                let info = info.split_whitespace().map(String::from).collect();
                fences.push(Fence { info, text: String::new(), line: index + 1 });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let last = fences.last_mut().unwrap();
                last.text += line;
                last.text.push('\n');
            }
            (None, false) => {
                prose += line;
                prose.push('\n');
            }
        }
    }
    (fences, prose)
}

/// Returns the anchors of a page's headings, as GitHub and mdBook generate them.
pub fn anchors(text: &str) -> Vec<String> {
    let (_, prose) = fences(text);
    let headings = prose.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then_some(title).and_then(|it| it.strip_prefix(' '))
    });
    headings.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let plain: String = title.trim().to_lowercase().chars().filter(kept).collect();
    plain.replace(' ', "-")
}

/// Returns the targets of a page's links.
pub fn links(text: &str) -> Vec<String> {
    let (_, prose) = fences(text);
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let rest = &prose[at + 2..];
        let end = rest.find([')', '\n']).unwrap_or(rest.len());
        // A code span contains no link.
        let line = &prose[prose[..at].rfind('\n').map_or(0, |it| it + 1)..at];
        if line.matches('`').count().is_multiple_of(2) {
            found.push(rest[..end].to_string());
        }
    }
    found
}

#[test]
fn fences_anchors_and_links_are_found() {
    let text =
        "# A `b`: c\n[x](y.md#z) `[no](link)`\n```sh run needs=cores\n# no\nls [a](b)\n```\n";
    let (fences, _) = fences(text);
    assert_eq!((fences.len(), fences[0].line, &fences[0].text[..]), (1, 3, "# no\nls [a](b)\n"));
    assert!(fences[0].has("run") && fences[0].value("needs") == Some("cores"));
    assert_eq!(anchors(text), ["a-b-c"]);
    assert_eq!(links(text), ["y.md#z"]);
}
