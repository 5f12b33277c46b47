//! Parses any bytes as entries of a capture filter. The result is an error with a position in the
//! text, or entries that survive formatting and parsing and accept any frame without an error. An
//! entry reported as hidden by another never decides.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::filter::{Filter, overlap, text};

fuzz_target!(|bytes: &[u8]| {
    let (words, frame) =
        bytes.split_at(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    let Ok(words) = std::str::from_utf8(words) else { return };
    let entries = match text::file(words) {
        Ok(entries) => entries,
        Err(error) => {
            let line = words.lines().nth(error.line.unwrap_or(0) - 1).unwrap();
            assert!(error.column >= 1 && error.column <= line.chars().count() + 1, "{error}");
            return;
        }
    };
    for entry in &entries {
        assert_eq!(text::entry(&entry.to_string()), Ok(*entry));
    }
    let mut filter = Filter::closed();
    filter.load(entries.clone()).unwrap();
    filter.keeps(frame);
    for overlap in overlap::find(&entries) {
        assert!(overlap.first < overlap.second);
        overlap.describe(&entries);
        let is_hidden = overlap.kind == overlap::Kind::Hides;
        assert!(!is_hidden || filter.counts().hits[overlap.second] == 0);
    }
});
