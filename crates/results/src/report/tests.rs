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
    for output in build(&[sample::record()]) {
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
