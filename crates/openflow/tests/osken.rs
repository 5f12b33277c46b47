//! Tests that os-ken decodes our messages, and that we decode those in os-ken's test data.
//!
//! They need a Python with os-ken, as `tools/needs.sh tests` installs it. os-ken supports 1.2 to
//! 1.5 and decodes mostly messages of a switch. Its test data has messages of several other
//! implementations.

#![allow(clippy::unwrap_used, reason = "a test")]

mod need;
mod samples;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use openflow::codec::{decode, encode};
use openflow::model::Message;
use openflow::version::Version;

/// Modified copies of each sample.
const COPIES: usize = 4;

const VERSIONS: [Version; 4] = [Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5];

fn encoded(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(version, xid, message, &mut bytes).unwrap();
    bytes
}

/// Returns whether os-ken (4.2) fails to decode this valid message.
///
/// - It does not know some experimenter parts.
/// - It reads past the end of flow monitor updates and, in 1.5, of copy-field actions and of groups
///   whose buckets have properties.
///
/// It also fails on Open vSwitch's encoding of the same messages, and Open vSwitch decodes ours.
fn is_beyond_os_ken(version: Version, message: &Message) -> bool {
    let text = message.to_string();
    let groups = version == Version::V1_5 && text.contains("bucket");
    let is_monitor = text.starts_with("multipart_reply flow_monitor");
    let is_unknown = text.contains("experimenter") || text.contains("field_0x");
    is_unknown || is_monitor || groups || text.contains("copy_field")
}

/// Invalid messages in os-ken's test data, which this codec rejects.
const WRONG: [(&str, &str); 17] = [
    ("3-2-ofp_flow_mod", "sets a VLAN id without the bit for the presence of a tag"),
    ("3-59-ofp_packet_in", "a VLAN id without the bit for the presence of a tag"),
    ("3-60-ofp_flow_mod", "a VLAN id without the bit for the presence of a tag"),
    ("4-12-ofp_flow_stats_reply", "sets a VLAN id without the bit for a tag"),
    ("4-2-ofp_flow_mod", "sets a VLAN id without the bit for a tag"),
    ("4-59-ofp_packet_in", "a VLAN id without the bit for a tag"),
    ("4-60-ofp_flow_mod", "a VLAN id without the bit for a tag"),
    ("5-12-ofp_flow_stats_reply", "sets a VLAN id without the bit for a tag"),
    ("5-2-ofp_flow_mod", "sets a VLAN id without the bit for a tag"),
    ("5-57-ofp_packet_in", "a VLAN id without the bit for a tag"),
    ("5-58-ofp_flow_mod", "a VLAN id without the bit for a tag"),
    ("5-70-ofp_bundle_add_msg", "a bundle is no place for an echo request"),
    ("libofproto-OFP15-bundle_features_reply", "more nanoseconds than a second has"),
    ("libofproto-OFP15-bundle_features_request", "more nanoseconds than a second has"),
    ("libofproto-OFP15-flow_desc_reply", "an instruction that is longer than the message"),
    ("libofproto-OFP15-table_features_reply", "packet types that are Ethernet addresses"),
    ("libofproto-OFP15-table_features_request", "packet types that are Ethernet addresses"),
];

/// Returns os-ken's output for the messages, one line for each.
fn judge(python: &Path, name: &str, messages: &[Vec<u8>]) -> Vec<String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, messages.concat()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/osken/judge.py");
    let output = Command::new(python).arg(script).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_string).collect()
}

#[test]
fn os_ken_decodes_our_messages() {
    let Some(python) = need::python("os-ken") else { return };
    let mut all = String::new();
    for version in VERSIONS {
        let mut messages = samples::messages(version, COPIES);
        messages.retain(|message| !is_beyond_os_ken(version, message));
        let bytes: Vec<_> =
            (1..).zip(&messages).map(|(xid, message)| encoded(version, xid, message)).collect();
        let lines = judge(&python, &format!("{version}.openflow"), &bytes);
        assert_eq!(lines.len(), messages.len());
        let mut faults = String::new();
        let mut read = 0;
        for ((line, message), bytes) in lines.iter().zip(&messages).zip(&bytes) {
            let again = line.split(' ').nth(1);
            let is_same = again.is_none_or(|again| again == "same");
            read += usize::from(line != "none");
            if line.starts_with("fault") || !is_same {
                writeln!(faults, "{line}: {message}: {bytes:02x?}").unwrap();
            }
        }
        writeln!(all, "{version}: {faults}").unwrap();
        assert!(read > messages.len() / 3, "{version}: {read} of {}", messages.len());
    }
    assert!(!all.contains("fault"), "{all}");
}

/// Returns os-ken's test data files for a version.
fn kept(python: &Path, version: Version) -> Vec<PathBuf> {
    let code = "import os_ken.tests as tests; print(tests.__path__[0])";
    let output = Command::new(python).args(["-c", code]).output().unwrap();
    let folder = String::from_utf8(output.stdout).unwrap();
    let folder =
        Path::new(folder.trim()).join("packet_data").join(format!("of1{}", version.wire() - 1));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "packet"));
    files.sort();
    files
}

#[test]
fn samples_of_os_ken_are_decoded() {
    let Some(python) = need::python("os-ken") else { return };
    let (mut faults, mut read) = (String::new(), 0);
    for &version in Version::SUPPORTED {
        for path in kept(&python, version) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_wrong = WRONG.iter().any(|(wrong, _)| *wrong == name);
            let bytes = std::fs::read(&path).unwrap();
            match decode(&bytes) {
                Ok((header, message)) => {
                    read += 1;
                    let again = encoded(version, header.xid, &message);
                    assert_eq!(decode(&again).unwrap().1, message, "{name}");
                    if is_wrong {
                        writeln!(faults, "{version} {name} is read: {message}").unwrap();
                    }
                }
                Err(error) if !is_wrong => {
                    writeln!(faults, "{version} {name}: {error}: {bytes:02x?}").unwrap();
                }
                Err(_) => {}
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(read > 200, "only {read} are decoded");
}
