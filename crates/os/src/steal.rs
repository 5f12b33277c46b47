//! CPU time that the hypervisor gave to others while this machine wanted to run (steal time).
//!
//! Source: proc_stat(5), the eighth number of the line `cpu`, summed over all cores, in clock
//! ticks.

use packet::time::Nanos;

/// Clock ticks of `/proc` per second: Linux guarantees this value to user space on every
/// architecture.
const TICKS_PER_SECOND: u64 = 100;

/// Column of the steal time in the line, counted with the line's name.
const COLUMN: usize = 8;

/// Returns the steal time of all cores since boot; none if the kernel does not report it.
pub fn total() -> Option<Nanos> {
    of_text(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn of_text(text: &str) -> Option<Nanos> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some("cpu"))?;
    let ticks: u64 = line.split_whitespace().nth(COLUMN)?.parse().ok()?;
    Some(Nanos(ticks.saturating_mul(1_000_000_000 / TICKS_PER_SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_all_cores_counts_and_a_missing_value_is_none() {
        let text = "cpu  10 0 20 900 3 0 1 7 0 0\ncpu0 10 0 20 900 3 0 1 5 0 0\nintr 1 2\n";
        assert_eq!(of_text(text), Some(Nanos::from_millis(70)));
        assert_eq!(of_text("cpu  10 0 20 900\n"), None);
        assert_eq!(of_text("cpu  10 0 20 900 3 0 1 x\n"), None);
        assert_eq!(of_text(""), None);
    }
}
