//! Program swaps during a trial.
//!
//! A thread reads the element's program over its control socket. It loads the same program again as
//! often as the trial specifies, evenly over its measured frames. A program that the element
//! rejects ends the trial.

use std::path::Path;

use os::clock;
use packet::time::Nanos;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use testbed::peer::planimeter::control::Control;
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

/// Returns the time of each swap after the first measured frame was due.
pub fn moments(trial: &Trial) -> impl DoubleEndedIterator<Item = Nanos> + use<> {
    let (swaps, duration) = (u64::from(trial.swaps), trial.duration.0);
    (0..swaps).map(move |swap| Nanos(duration * (2 * swap + 1) / (2 * swaps)))
}

/// Returns the request that loads an element's own program again.
pub fn document(text: &str) -> Value {
    json!({ "load": { "name": "again.fe.xml", "text": text } })
}

/// Runs a trial on an element with this control socket, with its swaps.
pub fn trial(
    rig: &mut LiveRig,
    trial: &Trial,
    socket: &Path,
    stop: &AtomicBool,
) -> Result<TrialReport, RigError> {
    let failed = |error: testbed::LabError| RigError::Swap(error.to_string());
    let mut control = Control::connect(socket).map_err(failed)?;
    let program = control.ask(&json!({ "get": "program" })).map_err(failed)?;
    let document = document(program["text"].as_str().unwrap_or_default());
    let begins = clock::now().saturating_add(trial.warmup);
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            for at in moments(trial) {
                clock::sleep_until(begins.saturating_add(at));
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                control.ask(&document).map_err(failed)?;
            }
            Ok(())
        });
        let report = rig.trial(trial);
        let swapped = swaps.join().expect("the requesting thread does not panic");
        report.and_then(|report| swapped.map(|()| report))
    })
}
