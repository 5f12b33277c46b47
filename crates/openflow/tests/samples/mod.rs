//! Samples in `tests/bytes`: encoded messages of other implementations.

// Not every test uses all items.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use openflow::codec::decode;
use openflow::model::Message;
use openflow::version::Version;

/// A sample: its origin, its bytes, and the expected results.
#[derive(Clone, Default)]
pub struct Sample {
    pub origin: String,
    pub hex: Vec<u8>,
    /// Bytes that it encodes to, if they differ.
    pub again: Option<Vec<u8>>,
    /// Reply of another implementation.
    pub answer: Option<Vec<u8>>,
    pub text: String,
}

/// Returns the samples' folder of a version.
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

/// Reads the samples of a file.
pub fn load(path: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.split("---\n").map(parse_sample).collect()
}

/// Returns the files of decodable samples, with the name of their message type.
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

/// Returns the bytes of every decodable sample of a version.
pub fn all(version: Version) -> Vec<Vec<u8>> {
    let files = files(version);
    files.iter().flat_map(|(_, path)| load(path)).map(|sample| sample.hex).collect()
}

/// A pseudorandom number generator with a fixed sequence.
pub struct Numbers(pub u64);

impl Numbers {
    /// Returns the next number, below a limit.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Returns a copy with one to four modifications, and a correct length.
///
/// A modification changes a byte, or removes or duplicates a part.
pub fn changed(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.next(4) {
        let at = 8 + numbers.next(bytes.len().max(9) - 8);
        match (numbers.next(12), bytes.get_mut(at)) {
            (0, Some(_)) => drop(bytes.drain(at..(at + 8).min(bytes.len()))),
            (1, Some(_)) => {
                let part = bytes[at..(at + 8).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            (2, Some(byte)) => *byte = 0xff,
            (3, Some(byte)) => *byte = 0,
            (4, Some(byte)) => *byte = byte.wrapping_add(8),
            (_, Some(byte)) => *byte = numbers.next(256) as u8,
            _ => {}
        }
    }
    let length = bytes.len().min(usize::from(u16::MAX)) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Returns the decoded samples of a version, and those of `copies` modified copies of each that
/// still decode.
pub fn messages(version: Version, copies: usize) -> Vec<Message> {
    let mut numbers = Numbers(u64::from(version.wire()));
    let mut messages = Vec::new();
    for bytes in all(version) {
        messages.extend(decode(&bytes).map(|(_, message)| message));
        let changed = (0..copies).map(|_| changed(&bytes, &mut numbers));
        messages.extend(changed.filter_map(|bytes| Some(decode(&bytes).ok()?.1)));
    }
    messages
}
