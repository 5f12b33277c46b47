//! Tests with messages of other implementations: each sample decodes, prints as expected and
//! encodes to the same bytes.
//!
//! The samples are in `tests/bytes/<version>/<message>.txt`; multipart messages have a file for
//! each type, with the type after a dot. `tests/bytes/README.md` describes the format and the
//! origins. `UPDATE=1` rewrites the texts, and the second encoding where it differs, in the files.

#![allow(clippy::unwrap_used, reason = "a test")]

mod samples;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use openflow::codec::{decode, encode};
use openflow::model::Message;
use openflow::version::{ErrorCode, MessageKind, MultipartKind, Version};
use samples::{Sample, files, folder, load};

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

/// Compares the results with the samples, or updates the samples.
fn check(path: &Path, samples: &[Sample], actual: &[Sample]) {
    if std::env::var_os("UPDATE").is_some() {
        return save(path, actual);
    }
    for (sample, actual) in samples.iter().zip(actual) {
        let what = format!("{path:?}: {}", sample.origin);
        assert_eq!(actual.text, sample.text, "{what}");
        assert_eq!(actual.again, sample.again, "{what}: encodes differently");
    }
}

/// Decodes a sample and returns the result, or why it fails.
fn run(kind: &str, sample: &Sample) -> Result<Sample, String> {
    let (header, message) = decode(&sample.hex).map_err(|error| error.to_string())?;
    let name = message.kind().name();
    if name != kind || usize::from(header.length) != sample.hex.len() {
        return Err(format!("is a {name} of {} bytes", header.length));
    }
    let version = Version::from_wire(header.version).expect("samples have a known version");
    let mut again = Vec::new();
    encode(version, header.xid, &message, &mut again).map_err(|error| error.to_string())?;
    let meaning = decode(&again).map_err(|error| format!("encodes so that {error}"))?.1;
    if meaning != message {
        return Err(format!("means {message}\nand then {meaning}"));
    }
    Ok(Sample {
        origin: sample.origin.clone(),
        hex: sample.hex.clone(),
        again: (again != sample.hex).then_some(again),
        answer: None,
        text: format!("xid={:#x} {message}", header.xid),
    })
}

#[test]
fn every_sample_prints_as_expected_and_encodes_to_itself() {
    let mut faults = String::new();
    for &version in Version::SUPPORTED {
        for (kind, path) in files(version) {
            let samples = load(&path);
            let mut actual = Vec::new();
            for (place, sample) in samples.iter().enumerate() {
                match run(&kind, sample) {
                    Ok(sample) => actual.push(sample),
                    Err(fault) => {
                        writeln!(faults, "{path:?} {place} {}: {fault}", sample.origin).unwrap();
                    }
                }
            }
            if actual.len() == samples.len() {
                check(&path, &samples, &actual);
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn every_message_and_statistics_type_has_a_sample() {
    for &version in Version::SUPPORTED {
        let (mut kinds, mut requests, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for (_, path) in files(version) {
            for sample in load(&path) {
                let (_, message) = decode(&sample.hex).unwrap();
                kinds.push(message.kind());
                match message {
                    Message::MultipartRequest(request) => requests.push(request.body.kind()),
                    Message::MultipartReply(reply) => replies.push(reply.body.kind()),
                    _ => {}
                }
            }
        }
        let mut lacking = Vec::new();
        for kind in MessageKind::of(version).filter(|kind| !kinds.contains(kind)) {
            lacking.push(kind.to_string());
        }
        for kind in MultipartKind::ALL.iter().filter(|kind| kind.code(version).is_some()) {
            if !requests.contains(kind) {
                lacking.push(format!("{kind} request"));
            }
            if !replies.contains(kind) {
                lacking.push(format!("{kind} reply"));
            }
        }
        assert!(lacking.is_empty(), "{version} has no sample of {lacking:?}");
    }
}

/// Returns the error code of an error message.
fn code_of(version: Version, error: &[u8]) -> ErrorCode {
    let number = |at: usize| u16::from_be_bytes([error[at], error[at + 1]]);
    ErrorCode::from_wire(version, number(8), number(10))
}

/// Returns how this codec rejects a message that another switch rejects, with the other error if it
/// differs.
///
/// Errors differ for messages with two faults, and where Open vSwitch defines additional errors.
/// They also differ for messages that are invalid only without certain tables, groups or bundles.
fn refusal(version: Version, sample: &Sample) -> String {
    let theirs = sample.answer.clone().expect("a rejected message has a reply");
    let theirs_code = code_of(version, &theirs);
    let error = match decode(&sample.hex) {
        Err(error) => error,
        Ok((_, message)) => return format!("is read: {message}; theirs: {theirs_code}"),
    };
    let answer = error.answer().expect("a request has a reply");
    let mut ours = Vec::new();
    encode(version, error.header.unwrap().xid, &answer, &mut ours).unwrap();
    if code_of(version, &ours) != theirs_code {
        return format!("{error}; theirs: {theirs_code}");
    }
    let least = theirs.len().min(8 + 4 + 64);
    assert_eq!(ours[4..least], theirs[4..least], "{:02x?}: {error}", sample.hex);
    error.to_string()
}

#[test]
fn rejected_messages_have_the_error_of_another_switch() {
    for &version in Version::SUPPORTED {
        let path = folder(version).join("refused.txt");
        let samples = load(&path);
        let run = |sample: &Sample| Sample {
            origin: sample.origin.clone(),
            hex: sample.hex.clone(),
            again: None,
            answer: sample.answer.clone(),
            text: refusal(version, sample),
        };
        let actual: Vec<_> = samples.iter().map(run).collect();
        let same = actual.iter().filter(|sample| !sample.text.contains("; theirs: ")).count();
        assert!(same * 2 > actual.len(), "{version}: {same} of {}", actual.len());
        check(&path, &samples, &actual);
    }
}

#[test]
fn truncated_samples_are_rejected_at_every_length() {
    for (_, path) in Version::SUPPORTED.iter().flat_map(|&version| files(version)) {
        for sample in load(&path) {
            let step = 1 + sample.hex.len() / 512;
            for length in (0..sample.hex.len()).step_by(step) {
                let error = decode(&sample.hex[..length]).unwrap_err();
                assert!(error.malformed.at <= length, "{}: {error}", sample.origin);
            }
        }
    }
}
