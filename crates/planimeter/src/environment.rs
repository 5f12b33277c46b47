//! The machine that a run happens on, as far as it tells about itself.
//!
//! Source: what RFC 2544 section 26 and RFC 8456 section 4.8 want stated with every result. What
//! cannot be found out is absent.

use std::fs;

use results::record::Environment;

/// Reads what there is to know.
pub fn read() -> Environment {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Environment {
        system: os_name(),
        kernel: text("/proc/sys/kernel/osrelease"),
        cpu_model: field(&cpuinfo, "model name"),
        cpu_cores: std::thread::available_parallelism().ok().map(|cores| cores.get() as u32),
        cpu_governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        memory_bytes: memory_bytes(),
        virtualised: hypervisor(&cpuinfo),
        simulated: false,
        versions: Default::default(),
    }
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_string()).filter(|it| !it.is_empty())
}

/// The value of the first `name : value` line.
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

/// The hypervisor's name where firmware tells it, "yes" where only the processor does.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flags = field(cpuinfo, "flags")?;
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let named = text("/sys/class/dmi/id/sys_vendor").or_else(|| text("/sys/hypervisor/type"));
    Some(named.unwrap_or_else(|| "unnamed".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_name_counts() {
        let text = "processor : 0\nmodel name\t: A\nmodel name\t: B\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A"));
        assert_eq!(field(text, "flags"), None);
    }
}
