//! Texts of `planimeter list EXPERIMENT`: source, method, how to read the results, limits, example.

use studies::CatalogEntry;
use studies::pages::Page;

/// Columns of a text.
const COLUMNS: usize = 100;

/// Returns headings and texts about the experiments of one name; none for a script.
pub(super) fn of(entries: &[&CatalogEntry]) -> Vec<(&'static str, String)> {
    let Some((first, page)) = entries.first().and_then(|it| Some((it, Page::of(it.set())?))) else {
        return Vec::new();
    };
    let (mut method, mut reading) = (Vec::new(), Vec::new());
    if let [entry] = entries {
        method.push(wrapped(entry.method));
        reading.extend(page.item(entry).map(str::to_owned));
    }
    method.push(page.description().to_owned());
    reading.push(page.reading().to_owned());
    let joined = |parts: &[String]| {
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        plain(&parts.join("\n\n"))
    };
    let parts = [
        ("source", plain(page.source())),
        ("method", joined(&method)),
        ("how to read it", joined(&reading)),
        ("limits", plain(page.limits())),
        ("example", format!("planimeter run {}", page.command())),
        ("reference", format!("docs/reference/experiments/{}.md", first.set())),
    ];
    parts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Breaks a paragraph into lines, as those of the other texts.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in paragraph.split(' ') {
        let width = word.chars().count();
        match column {
            0 => {}
            _ if column + 1 + width > COLUMNS => {
                text.push('\n');
                column = 0;
            }
            _ => {
                text.push(' ');
                column += 1;
            }
        }
        text += word;
        column += width;
    }
    text
}

/// Removes the targets of links, the signs of code spans, and parentheses with only a link, from
/// Markdown.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some(at) = rest.find("](") {
        let before = &rest[..at];
        let begin = before.rfind('[').unwrap_or(at);
        rest = rest[at + 2..].split_once(')').map_or("", |(_, rest)| rest);
        match (before[..begin].strip_suffix('('), rest.strip_prefix(')')) {
            (Some(start), Some(after)) => {
                text += start.trim_end();
                rest = after;
            }
            _ => {
                text += &before[..begin];
                text += before.get(begin + 1..).unwrap_or_default();
            }
        }
    }
    text += rest;
    text.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_code_become_plain_text() {
        let text = "See [`a`](a.md#b), x=[1] and [b](c),\nnot `--set x=[1]`\n([why](d)). End.";
        assert_eq!(plain(text), "See a, x=[1] and b,\nnot --set x=[1]. End.");
    }

    #[test]
    fn a_paragraph_is_broken_into_lines() {
        let paragraph = "word ".repeat(60);
        let text = wrapped(paragraph.trim());
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= COLUMNS));
        assert_eq!(text.replace('\n', " "), paragraph.trim());
    }

    #[test]
    fn one_experiment_has_its_own_text_before_that_of_its_set() {
        let entries = studies::find("rfc2544/recovery").unwrap();
        let texts = of(&entries);
        let text = |name: &str| &texts.iter().find(|(heading, _)| *heading == name).unwrap().1;
        assert!(text("source").starts_with("RFC 2544"), "{texts:?}");
        assert!(text("method").starts_with("The load is 110 %"), "{texts:?}");
        assert!(text("how to read it").starts_with("110 %"), "{texts:?}");
        assert!(text("example").starts_with("planimeter run rfc2544/"));
    }
}
