//! Creates many stored runs from one, to measure the cost of large stores.
//!
//! `cargo run --release -p store --example many_runs -- RUN DIR [COUNT]` fills the new folder
//! DIR. `base` and `new` are runs of COUNT trials each (default 10,000). `runs` contains COUNT runs
//! of the size of RUN, one per minute. Then
//!
//! ```sh
//! planimeter compare DIR/base DIR/new         # a comparison of 2 x COUNT stored trials
//! planimeter list runs DIR/runs               # the first time makes the index, later ones look whether it still holds
//! ```
//!
//! Trials are copies of RUN's with other ids, at other points, and with forwarded frames reduced by
//! a few per mille, so that intervals are not empty. Nothing in DIR was measured, and its records
//! state this.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use record::{Point, Record, Trial};
use store::{Histograms, Store};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (run, folder, count) = match words.as_slice() {
        [run, folder] => (Path::new(run), PathBuf::from(folder), 10_000),
        [run, folder, count] => (Path::new(run), PathBuf::from(folder), count.parse().unwrap()),
        _ => panic!("many_runs RUN DIR [COUNT]"),
    };
    let mut record = store::read_record(run).unwrap();
    record.tool.version.push_str(" (multiplied)");
    for (name, salt) in [("base", 1), ("new", 2)] {
        let large = repeated(&record, count, salt);
        write(&folder.join(name), &large);
    }
    for number in 0..count {
        let [minute, hour, day] = [number % 60, number / 60 % 24, number / 60 / 24];
        let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
        let one = Record {
            created: format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z"),
            seed: number as u64,
            ..record.clone()
        };
        write(&folder.join(format!("runs/2026-{month:02}-{day:02}-made-{number:05}")), &one);
    }
}

/// The record with its trials repeated at further points, up to `count`.
fn repeated(record: &Record, count: usize, salt: u64) -> Record {
    let values = record.trials.iter().map(|trial| trial.point.value);
    let span = 1.0 + values.fold(0.0, f64::max);
    let rounds = 0..count.div_ceil(record.trials.len().max(1));
    let all = rounds.flat_map(|round| {
        record.trials.iter().map(move |trial| {
            let value = trial.point.value + round as f64 * span;
            Trial { point: Point { value, ..trial.point.clone() }, ..trial.clone() }
        })
    });
    let trials = all.take(count).enumerate().map(|(at, trial)| {
        let wobble = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(salt as u32);
        let less = trial.frames_forwarded / 1000 * (wobble >> 62);
        Trial {
            id: at as u64 + 1,
            frames_forwarded: trial.frames_forwarded - less,
            frames_unexplained: trial.frames_unexplained + less as i64,
            ..trial
        }
    });
    let mut made = Record { trials: trials.collect(), ..record.clone() };
    report::finish(&mut made, &[]);
    made
}

fn write(folder: &Path, record: &Record) {
    let mut store = Store::create_at(folder).unwrap();
    for trial in &record.trials {
        store.append_trial(&mut trial.clone(), Histograms::default()).unwrap();
    }
    store.write_record(record).unwrap();
}
