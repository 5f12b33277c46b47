//! Former keys and values of `--set` assignments, and their present forms.
//!
//! Command lines, plans and records of version 0.0 use the former ones.

/// A former parameter.
struct FormerParameter {
    key: &'static str,
    now: &'static str,
    /// Words that were renamed, each with its present form.
    words: &'static [(&'static str, &'static str)],
}

const fn key(key: &'static str, now: &'static str) -> FormerParameter {
    FormerParameter { key, now, words: &[] }
}

const FORMER: &[FormerParameter] = &[
    key("ahead", "batches_in_flight"),
    key("away", "disconnect_s"),
    key("beside", "background_load_percent"),
    FormerParameter {
        key: "buffer",
        now: "buffer",
        words: &[("whole", "no_buffer"), ("kept", "buffered")],
    },
    FormerParameter {
        key: "control_capture",
        now: "control_capture",
        words: &[("no", "off"), ("stamps", "timestamps"), ("file", "pcap")],
    },
    key("deed", "command"),
    key("deeds", "commands"),
    FormerParameter {
        key: "device_cables",
        now: "cabling_check",
        words: &[("check", "on"), ("trust", "off")],
    },
    FormerParameter {
        key: "device_flows",
        now: "existing_flows",
        words: &[("refuse", "abort"), ("overwrite", "replace")],
    },
    key("device_wait", "device_timeout_s"),
    key("goal_exceed", "goal_exceed_ratio"),
    key("goal_sum", "goal_duration_sum"),
    key("hook_limit", "hook_timeout_s"),
    key("lasts", "step_duration_s"),
    key("late_watch", "post_probe_observation_s"),
    key("load_of", "load_reference"),
    key("macs_max", "mac_table_size"),
    key("patience", "timeout_s"),
    key("probes_after", "probe_start_delay_s"),
    FormerParameter { key: "rig", now: "simulate", words: &[("live", "false"), ("sim", "true")] },
    key("service_ns", "sim_service_time_ns"),
    key("shares", "background_flow_loads"),
    key("slow_pps", "low_rate_pps"),
    key("snmp_wait", "snmp_settle_s"),
    key("span", "duration_s"),
    key("stall_ns", "sim_tester_pause_ns"),
    key("timeout", "entry_timeout_s"),
    FormerParameter {
        key: "turns",
        now: "interleaving",
        words: &[("even", "abab"), ("alternating", "abba")],
    },
    key("under_way", "in_flight"),
    key("unused", "churn_rules"),
    key("verify", "loss_verification"),
    key("warm", "cache_fill_timeout_s"),
    key("wrong", "invalid_field"),
];

/// Returns the former keys, each with the present one.
pub fn former_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMER.iter().map(|it| (it.key, it.now)).filter(|(key, now)| key != now)
}

/// Returns the present name of a parameter.
pub fn current_key(key: &str) -> &str {
    FORMER.iter().find(|it| it.key == key).map_or(key, |it| it.now)
}

/// Returns the present key and value of an assignment with a former key or a former word; `None`
/// for any other.
pub fn current(key: &str, value: &str) -> Option<(&'static str, String)> {
    let former = FORMER.iter().find(|it| it.key == key)?;
    let word = |text: &str| {
        let text = text.trim();
        let found = former.words.iter().find(|(was, _)| *was == text);
        found.map_or(text, |(_, now)| now).to_string()
    };
    let now = match former.words.is_empty() {
        true => value.to_string(),
        false => value.split(',').map(word).collect::<Vec<_>>().join(","),
    };
    (former.now != key || now != value).then_some((former.now, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_keys_and_words_have_a_present_form() {
        let of = |key, value| current(key, value).map(|(key, value)| format!("{key}={value}"));
        assert_eq!(of("patience", "3").as_deref(), Some("timeout_s=3"));
        assert_eq!(of("rig", "sim").as_deref(), Some("simulate=true"));
        assert_eq!(of("buffer", "kept, whole").as_deref(), Some("buffer=buffered,no_buffer"));
        assert_eq!(of("device_flows", "x").as_deref(), Some("existing_flows=x"));
        for (key, value) in [("buffer", "buffered"), ("simulate", "true"), ("frame", "64")] {
            assert_eq!(of(key, value), None);
        }
    }

    #[test]
    fn no_present_key_is_a_former_one() {
        for (key, now) in former_keys() {
            assert_eq!(current_key(now), now, "{key}");
        }
    }
}
