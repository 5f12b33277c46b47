//! Memory of a program, estimated before allocation.
//!
//! The estimate is an upper bound for the tables of each instance: configured rows, entries that it
//! may learn, patterns. A program that exceeds [`BYTES_MAX`] is rejected.

use forces::Value;

use super::About;
use crate::diagnostic::{Code, Problems};
use crate::program::{Program, class_id, text};

/// Maximum size of all tables of a program in bytes.
pub const BYTES_MAX: u64 = 4 << 30;
/// Bytes of a block without tables: ports, counters, names.
const BLOCK_BYTES: u64 = 1024;
/// Bytes of a row or entry with its index.
const ROW_BYTES: u64 = 96;
/// Bytes of a state of the pattern automaton.
const STATE_BYTES: u64 = 1024;

/// Returns the maximum size of each instance's tables in bytes.
pub fn estimate(program: &Program) -> Vec<u64> {
    (0..program.instances.len()).map(|at| bytes_of(program, at)).collect()
}

fn bytes_of(program: &Program, at: usize) -> u64 {
    let instance = &program.instances[at];
    let rows = instance.components.values().filter_map(Value::rows).map(|rows| rows.len() as u64);
    let mut bytes = BLOCK_BYTES + rows.sum::<u64>() * ROW_BYTES;
    let number = |name: &str| program.component(at, name).and_then(|v| v.unsigned()).unwrap_or(0);
    match instance.class {
        class_id::LEARN_SEARCH | class_id::STATE | class_id::SEARCH => {
            bytes = bytes.saturating_add(number("MaxEntries").saturating_mul(ROW_BYTES));
        }
        class_id::SCAN => {
            let patterns = program.component(at, "Patterns");
            let patterns = patterns.as_ref().and_then(Value::rows).into_iter().flatten();
            let lengths = patterns.filter_map(|(_, row)| {
                let literal = row.step(1).and_then(Value::text)?;
                text::pattern(literal).ok().map(|bytes| bytes.len() as u64)
            });
            bytes += lengths.sum::<u64>() * STATE_BYTES;
            let keyed = program.component(at, "FlowKey").is_some_and(|key| key.text() != Some(""));
            if keyed {
                bytes = bytes.saturating_add(number("MaxFlows").saturating_mul(ROW_BYTES));
            }
        }
        _ => {}
    }
    bytes
}

/// Adds a problem if the program is too large, at the largest instance.
pub fn check(program: &Program, problems: &mut Problems) {
    let bytes = estimate(program);
    let sum = bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let most = bytes.iter().enumerate().max_by_key(|(_, bytes)| **bytes);
    if let Some((at, most)) = most.filter(|_| sum > BYTES_MAX) {
        let what = format!(
            "tables can grow to {} MiB ({} MiB here), at most {} MiB are allowed",
            sum >> 20,
            most >> 20,
            BYTES_MAX >> 20
        );
        About::new(program, at, problems).wrong(Code::Resources, &[], what, "lower MaxEntries");
    }
}
