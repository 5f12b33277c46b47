//! Signals that end a command cleanly: Ctrl-C, SIGTERM and SIGHUP set a flag that loops look at.
//!
//! A second signal ends the process at once, for those who cannot wait.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::failure::Failure;

/// A flag that becomes true when the user or the system asks this process to end.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the conditional exit looks at the flag before this signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::need(format!("signal {signal} cannot be caught: {error}")))?;
    }
    Ok(stop)
}
