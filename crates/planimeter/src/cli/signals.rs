//! Signals that end a command cleanly: Ctrl-C, SIGTERM and SIGHUP set a flag that loops check.
//!
//! Another signal after one second or more ends the process immediately. An earlier one counts as
//! the same request, because process and process group often both receive the signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use os::clock;
use packet::time::Nanos;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::failure::Failure;
use super::screen;

/// Time in which further signals count as the same request.
const SAME: Nanos = Nanos::from_secs(1);

/// Exit code of a process that was ended immediately.
const ENDED: i32 = 130;

/// Returns a flag that becomes true when the user or the system requests the end of this process.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |error| Failure::need(format!("cannot catch signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let flag = Arc::clone(&stop);
    let watch = move || {
        let mut first = None;
        for _ in signals.forever() {
            flag.store(true, Ordering::Relaxed);
            let now = clock::now();
            if now.since(*first.get_or_insert(now)) >= SAME {
                screen::give_back();
                low_level::exit(ENDED);
            }
        }
    };
    let named = std::thread::Builder::new().name("signals".into());
    named.spawn(watch).map_err(failed)?;
    Ok(stop)
}
