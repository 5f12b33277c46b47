//! Machine of a run, as far as the system describes it.
//!
//! Source: RFC 2544 section 26 and RFC 8456 section 4.8, which require this with every result.
//! Unknown values are absent.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use record::Environment;

/// Environment variable with the store's address, if the command line has none.
pub const STORE_VARIABLE: &str = "PLANIMETER_STORE";

/// Reads the description of this machine.
pub fn read() -> Environment {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Environment {
        system: os_name(),
        kernel: text("/proc/sys/kernel/osrelease"),
        cpu_model: field(&cpuinfo, "model name"),
        cpu_cores: std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        cpu_governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock: None,
        memory_bytes: memory_bytes(),
        virtualised: hypervisor(&cpuinfo),
        simulated: false,
        versions: Default::default(),
    }
}

/// Returns the wall-clock time, RFC 3339 in UTC, for the record; no measurement uses it.
#[allow(clippy::disallowed_methods)]
pub fn wall_clock() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    rfc3339(since.map_or(0, |since| since.as_secs()))
}

/// Formats seconds since 1970 as RFC 3339, with Howard Hinnant's conversion of days to dates.
pub fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string()).filter(|it| !it.is_empty())
}

/// Returns the value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name))
        .map(|(_, value)| value.trim().to_string())
}

fn os_name() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_string())
}

fn memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = field(&meminfo, "MemTotal")?.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the hypervisor's name if the firmware states it, "yes" if only the processor indicates
/// one.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flags = field(cpuinfo, "flags")?;
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let named = text("/sys/class/dmi/id/sys_vendor").or_else(|| text("/sys/hypervisor/type"));
    Some(named.unwrap_or_else(|| "unnamed".into()))
}

/// Returns the environment variables that user commands inherit.
pub fn inherited() -> Vec<(OsString, OsString)> {
    // The address of a store may contain a password.
    std::env::vars_os().filter(|(name, _)| name != STORE_VARIABLE).collect()
}

/// Returns the folder in which runs keep their sockets and processes, one for each user. It stays
/// the same in a user namespace, in which the user has another id.
#[allow(clippy::disallowed_methods)]
pub fn run_root() -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = || match std::env::var("XDG_RUNTIME_DIR") {
        Ok(folder) if !folder.is_empty() => PathBuf::from(folder).join("planimeter"),
        _ => std::env::temp_dir().join(format!("planimeter-{}", user())),
    };
    ROOT.get_or_init(root).clone()
}

/// Returns the user of this process, from the owner of its entry in /proc.
fn user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |entry| entry.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_correct_around_leap_days_and_new_year() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(rfc3339(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn the_first_value_of_a_name_counts() {
        let text = "processor : 0\nmodel name\t: A\nmodel name\t: B\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A"));
        assert_eq!(field(text, "flags"), None);
    }
}
