//! Tests that every link within the repository points to an existing file and heading, and that
//! every page is in the book.

use std::fs;

use crate::{page, root};

#[test]
fn links_have_existing_targets() {
    let mut wrong = Vec::new();
    for path in page::all() {
        let text = fs::read_to_string(&path).unwrap();
        for link in page::links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let shown = path.strip_prefix(root()).unwrap().display().to_string();
            if !target.exists() {
                wrong.push(format!("{shown}: {link}: there is no such file"));
            } else if !anchor.is_empty() {
                let there = page::anchors(&fs::read_to_string(&target).unwrap());
                if !there.iter().any(|it| it == anchor) {
                    wrong.push(format!("{shown}: {link}: no such heading"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed = page::links(&summary);
    let docs = root().join("docs");
    let named = page::all()
        .into_iter()
        .filter_map(|path| Some(path.strip_prefix(&docs).ok()?.to_string_lossy().into_owned()));
    let missing: Vec<String> =
        named.filter(|name| name != "SUMMARY.md").filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    let guide = fs::read_to_string(docs.join("guide.md")).unwrap();
    let pages = page::links(&guide);
    let unlisted: Vec<&String> =
        listed.iter().filter(|it| it.starts_with("guide/") && !pages.contains(it)).collect();
    assert!(unlisted.is_empty(), "not in docs/guide.md: {unlisted:?}");
}
