//! Time that a hypervisor gave to others while this machine wanted it, as the kernel tells it.
//!
//! Source: proc_stat(5), the eighth number of the line `cpu`, of all cores together, in clock ticks.

use packet::time::Nanos;

/// Clock ticks of `/proc` in a second: the kernel's promise to programs on every architecture.
const TICKS_PER_SECOND: u64 = 100;

/// Where the time stands in the line, its name counted.
const COLUMN: usize = 8;

/// Time stolen from all cores since the machine began; none where the kernel does not tell.
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
    fn the_line_of_all_cores_counts_and_a_kernel_that_does_not_tell_is_no_zero() {
        let text = "cpu  10 0 20 900 3 0 1 7 0 0\ncpu0 10 0 20 900 3 0 1 5 0 0\nintr 1 2\n";
        assert_eq!(of_text(text), Some(Nanos::from_millis(70)));
        assert_eq!(of_text("cpu  10 0 20 900\n"), None);
        assert_eq!(of_text("cpu  10 0 20 900 3 0 1 x\n"), None);
        assert_eq!(of_text(""), None);
    }
}
