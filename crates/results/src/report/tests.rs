//! The report of the made-up run against the files in `tests/golden`; `UPDATE=1` blesses anew.

use std::path::{Path, PathBuf};

use super::*;
use crate::sample;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
#[allow(clippy::disallowed_methods)]
fn the_report_is_what_a_person_looked_at() {
    let update = std::env::var("UPDATE").is_ok_and(|value| value == "1");
    let shown = |output: &Output| !output.path.ends_with(".csv");
    for output in build(&[sample::record()]).into_iter().filter(shown) {
        let path = golden().join(output.path.replace('/', "-"));
        if update {
            std::fs::write(&path, &output.text).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = output.text.lines().zip(want.lines()).position(|(have, want)| have != want);
        assert!(
            output.text == want,
            "{} differs from line {:?} on; if it should, look at it and run with UPDATE=1",
            path.display(),
            differs.map(|line| line + 1),
        );
    }
}

fn page_of(records: &[Record]) -> String {
    let outputs = build(records);
    outputs.into_iter().find(|output| output.path == "report.html").unwrap().text
}

#[test]
fn deleting_and_making_it_again_changes_nothing() {
    let record = sample::record();
    let read: Record = serde_json::from_str(&crate::store::record_text(&record)).unwrap();
    assert_eq!(build(&[record]), build(&[read]));
}

#[test]
fn the_page_loads_nothing_and_runs_nothing() {
    let page = page_of(&[sample::record()]);
    for word in ["<script", "<link", "<img", "src=", "@import", "url(", "href="] {
        assert!(!page.contains(word), "{word}");
    }
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn hostile_words_stay_text() {
    let mut record = sample::record();
    let evil = "<script>alert(1)</script>";
    record.targets[0].version = Some(evil.into());
    record.command_line = evil.into();
    record.experiments[0].title = evil.into();
    record.environment.kernel = Some(evil.into());
    record.link = evil.into();
    for output in build(&[record]) {
        let is_markup = output.path.ends_with(".html") || output.path.ends_with(".svg");
        assert!(!(is_markup && output.text.contains("<script")), "{}", output.path);
    }
}

#[test]
fn several_runs_share_one_page_and_no_name() {
    let outputs = build(&[sample::record(), sample::record()]);
    let mut paths: Vec<&str> = outputs.iter().map(|output| output.path.as_str()).collect();
    assert!(paths.contains(&"figures/run2-bianco2010-fig3.svg"));
    paths.sort_unstable();
    let count = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), count);
    let page = &outputs[0].text;
    assert_eq!(page.matches("id=\"run1-bianco2010-fig2-title\"").count(), 1);
    assert_eq!(page.matches("id=\"run2-bianco2010-fig2-title\"").count(), 1);
}

#[test]
fn an_empty_or_partial_run_still_gives_a_page_that_says_so() {
    let mut record = sample::record();
    record.trials.clear();
    record.partial = true;
    record.trials_planned = Some(414);
    crate::derive::finish(&mut record, &sample::claims());
    let page = page_of(&[record]);
    assert!(page.contains("partial: 0 of 414 trials were measured"));
    assert!(!page.contains("<svg"), "nothing measured, nothing drawn");
    assert!(!page.contains("NaN"));
}
