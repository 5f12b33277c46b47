//! Capture files of a control channel, and their decoding by tshark.

use std::path::Path;
use std::process::Command;

const SWITCH_PORT: u16 = 40_000;
const CONTROLLER_PORT: u16 = 6653;

/// Returns an Ethernet frame with a TCP segment that has `payload` at this sequence number.
fn frame(payload: &[u8], sequence: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    frame.extend(SWITCH_PORT.to_be_bytes());
    frame.extend(CONTROLLER_PORT.to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

/// Returns a capture file (libpcap format, Ethernet) with one frame for each payload.
pub fn capture(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut sequence = 1;
    for (place, payload) in payloads.iter().enumerate() {
        let frame = frame(payload, sequence);
        sequence += payload.len() as u32;
        for word in [place as u32, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Returns tshark's values of these fields, one line for each frame, separated by tabs.
pub fn tshark(file: &Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(file).args(["-d", "tcp.port==6653,openflow"]);
    command.args(["-o", "tcp.analyze_sequence_numbers:false", "-T", "fields"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}
