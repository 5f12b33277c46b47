//! The samples in `tests/bytes`: bytes that others wrote, read from their files.

// Not every test uses all of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use openflow::version::Version;

/// One sample: its origin, its bytes, and what is to come of them.
#[derive(Clone, Default)]
pub struct Sample {
    pub origin: String,
    pub hex: Vec<u8>,
    /// Bytes that it encodes to, where they are others.
    pub again: Option<Vec<u8>>,
    /// What another implementation answered.
    pub answer: Option<Vec<u8>>,
    pub text: String,
}

/// The samples' folder of one version.
pub fn folder(version: Version) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bytes").join(version.to_string())
}

fn parse_hex(lines: &[&str]) -> Vec<u8> {
    let digits: String = lines.concat().split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "half a byte in {digits}");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn parse_sample(text: &str) -> Sample {
    let mut sample = Sample::default();
    let lines: Vec<&str> = text.lines().collect();
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| !lines[at].starts_with("  ") && !lines[at].is_empty())
        .collect();
    for (place, &start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(lines.len());
        let body = &lines[start + 1..end];
        match lines[start].split_once(':').expect("a key and a colon") {
            ("origin", origin) => sample.origin = origin.trim().to_string(),
            ("hex", _) => sample.hex = parse_hex(body),
            ("again", _) => sample.again = Some(parse_hex(body)),
            ("answer", _) => sample.answer = Some(parse_hex(body)),
            ("text", _) => {
                let body: Vec<_> = body.iter().map(|line| &line[2..]).collect();
                sample.text = body.join("\n");
            }
            (key, _) => panic!("no such key: {key}"),
        }
    }
    assert!(!sample.origin.is_empty() && !sample.hex.is_empty(), "a sample has origin and hex");
    sample
}

/// The samples of a file.
pub fn load(path: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.split("---\n").map(parse_sample).collect()
}

/// The files of samples that decode, with the name of their kind of message.
pub fn files(version: Version) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder(version)).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let kind = stem.split('.').next().unwrap().to_string();
        if kind != "refused" {
            files.push((kind, path));
        }
    }
    files.sort();
    files
}

/// The bytes of every sample of a version that decodes.
pub fn all(version: Version) -> Vec<Vec<u8>> {
    let files = files(version);
    files.iter().flat_map(|(_, path)| load(path)).map(|sample| sample.hex).collect()
}
