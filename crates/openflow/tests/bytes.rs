//! Messages of other implementations, byte for byte: each decodes, prints as expected and encodes
//! to the same bytes again.
//!
//! The samples are in `tests/bytes/<version>/<message>.txt`; `tests/bytes/README.md` says what a
//! sample looks like and where they come from. `UPDATE=1` writes the texts (and the second
//! encoding, where it differs) into the files anew.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use openflow::codec::{decode, encode};
use openflow::header::Header;
use openflow::model::Message;
use openflow::version::{MessageKind, Version};

/// One sample: its origin, its bytes, and what is to come of them.
#[derive(Default)]
struct Sample {
    origin: String,
    hex: Vec<u8>,
    /// Bytes that it encodes to, where they are others.
    again: Option<Vec<u8>>,
    /// What another implementation answered.
    answer: Option<Vec<u8>>,
    text: String,
}

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bytes").join(version)
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

fn load(path: &Path) -> Vec<Sample> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.split("---\n").map(parse_sample).collect()
}

fn write_hex(out: &mut String, key: &str, bytes: &[u8]) {
    writeln!(out, "{key}:").unwrap();
    for line in bytes.chunks(32) {
        let words = line.chunks(4).map(|word| {
            word.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
        });
        writeln!(out, "  {}", words.collect::<Vec<_>>().join(" ")).unwrap();
    }
}

fn save(path: &Path, samples: &[Sample]) {
    let write = |sample: &Sample| {
        let mut out = format!("origin: {}\n", sample.origin);
        write_hex(&mut out, "hex", &sample.hex);
        for (key, bytes) in [("again", &sample.again), ("answer", &sample.answer)] {
            if let Some(bytes) = bytes {
                write_hex(&mut out, key, bytes);
            }
        }
        out.push_str("text:\n");
        sample.text.lines().for_each(|line| writeln!(out, "  {line}").unwrap());
        out
    };
    let all: Vec<_> = samples.iter().map(write).collect();
    fs::write(path, all.join("---\n")).unwrap();
}

/// Compares what came of the samples with what they say, or makes them say it.
fn check(path: &Path, samples: &[Sample], actual: &[Sample]) {
    if std::env::var_os("UPDATE").is_some() {
        return save(path, actual);
    }
    for (sample, actual) in samples.iter().zip(actual) {
        let what = format!("{path:?}: {}", sample.origin);
        assert_eq!(actual.text, sample.text, "{what}");
        assert_eq!(actual.again, sample.again, "{what}: encodes otherwise");
    }
}

fn encode_as(header: Header, message: &Message) -> Vec<u8> {
    let version = Version::from_wire(header.version).expect("samples have a known version");
    let mut bytes = Vec::new();
    encode(version, header.xid, message, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_sample_prints_as_expected_and_encodes_to_itself() {
    for &kind in MessageKind::ALL {
        let path = folder("1.0").join(format!("{kind}.txt"));
        let samples = load(&path);
        let mut actual = Vec::new();
        for sample in &samples {
            let (header, message) =
                decode(&sample.hex).unwrap_or_else(|error| panic!("{}: {error}", sample.origin));
            assert_eq!(message.kind(), kind, "{}", sample.origin);
            assert_eq!(usize::from(header.length), sample.hex.len());
            let again = encode_as(header, &message);
            assert_eq!(
                decode(&again).unwrap().1,
                message,
                "{}: means something else",
                sample.origin
            );
            actual.push(Sample {
                origin: sample.origin.clone(),
                hex: sample.hex.clone(),
                again: (again != sample.hex).then_some(again),
                answer: None,
                text: format!("xid={:#x} {message}", header.xid),
            });
        }
        check(&path, &samples, &actual);
    }
}

#[test]
fn what_another_switch_refuses_is_answered_with_the_same_error() {
    let path = folder("1.0").join("refused.txt");
    let samples = load(&path);
    let mut actual = Vec::new();
    for sample in &samples {
        let error = decode(&sample.hex).expect_err(&sample.origin);
        let theirs = sample.answer.clone().expect("a refused message has an answer");
        let ours = error.answer().expect("a request is answered");
        let ours = encode_as(error.header.unwrap(), &ours);
        let least = theirs.len().min(8 + 4 + 64);
        assert_eq!(ours[4..least], theirs[4..least], "{}: {error}", sample.origin);
        actual.push(Sample {
            origin: sample.origin.clone(),
            hex: sample.hex.clone(),
            again: None,
            answer: Some(theirs),
            text: error.to_string(),
        });
    }
    check(&path, &samples, &actual);
}

#[test]
fn a_cut_sample_is_refused_at_every_length() {
    for &kind in MessageKind::ALL {
        for sample in load(&folder("1.0").join(format!("{kind}.txt"))) {
            for length in 0..sample.hex.len() {
                let error = decode(&sample.hex[..length]).unwrap_err();
                assert!(error.malformed.at <= length, "{}: {error}", sample.origin);
            }
        }
    }
}
