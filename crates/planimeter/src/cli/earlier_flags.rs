//! Earlier spellings of flags, which this version accepts with a hint.

use std::ffi::OsString;

/// Commands, an earlier flag of theirs, and its current spelling.
const RENAMED: &[(&[&str], &str, &str)] = &[
    (&["quick", "run", "compare", "report", "bundle", "model", "proxy"], "--out", "--output"),
    (&["run", "compare"], "--before", "--setup"),
    (&["run", "compare"], "--between", "--prepare"),
    (&["run", "compare"], "--after", "--cleanup"),
    (&["run", "compare"], "--trust", "--allow-commands"),
    (&["compare"], "--like", "--config-from"),
    (&["report", "bundle"], "--mask", "--anonymize"),
    (&["report", "bundle"], "--hide", "--redact"),
    (&["serve"], "--token", "--token-file"),
    (&["progfe"], "--http-token", "--http-token-file"),
    (&["progfe"], "--agents", "--agent-socket-dir"),
    (&["switch"], "--frames-core", "--pmd-cores"),
    (&["switch", "bridge", "router", "tagger", "progfe"], "--spin", "--busy-poll-us"),
    (&["switch", "bridge", "router", "tagger", "progfe"], "--control", "--control-socket"),
    (&["bridge"], "--ageing", "--ageing-time"),
    (&["bridge"], "--macs", "--mac-table-size"),
    (&["bridge"], "--per-vlan", "--ivl"),
    (&["capture", "generate", "proxy", "progfe"], "--seconds", "--duration"),
    (&["capture"], "--frames", "--count"),
    (&["capture"], "--snap", "--snaplen"),
    (&["capture"], "--no-sum", "--no-digest"),
    (&["capture"], "--every", "--interval"),
    (&["generate"], "--passes", "--loop"),
    (&["generate"], "--refuse-short", "--skip-runts"),
    (&["generate"], "--refuse-cut", "--skip-truncated"),
    (&["generate"], "--gap-factor", "--multiplier"),
    (&["generate"], "--unpaced", "--topspeed"),
    (&["generate"], "--link-bits-per-second", "--rate-bps"),
    (&["fe"], "--patience", "--timeout"),
];

/// Returns a command line with current flags, and calls `hint` for each earlier one.
pub fn current(
    words: impl IntoIterator<Item = OsString>,
    hint: &mut dyn FnMut(String),
) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let Some(command) = words.get(1).and_then(|word| word.to_str()).map(str::to_owned) else {
        return words;
    };
    for word in words.iter_mut().skip(2).take_while(|word| *word != "--") {
        let Some(text) = word.to_str() else { continue };
        let (flag, value) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (text, None),
        };
        let known = |(commands, earlier, _): &&(&[&str], &str, &str)| {
            *earlier == flag && commands.contains(&command.as_str())
        };
        let Some((_, earlier, current)) = RENAMED.iter().find(known) else { continue };
        hint(format!("hint: {earlier} is now {current}"));
        *word = match value {
            Some(value) => format!("{current}={value}").into(),
            None => current.into(),
        };
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn earlier_flags_become_current_ones_with_a_hint() {
        let words = ["planimeter", "run", "--out=x", "latency", "--set", "a=b", "--", "--out"];
        let mut hints = Vec::new();
        let now = current(words.map(OsString::from), &mut |hint| hints.push(hint));
        let wanted = ["planimeter", "run", "--output=x", "latency", "--set", "a=b", "--", "--out"];
        assert_eq!(now, wanted.map(OsString::from));
        assert_eq!(hints, ["hint: --out is now --output"]);
    }

    #[test]
    fn every_current_flag_exists_and_no_earlier_one_does() {
        fn has(command: &clap::Command, flag: &str) -> bool {
            command.get_arguments().any(|it| it.get_long() == flag.strip_prefix("--"))
                || command.get_subcommands().any(|it| has(it, flag))
        }
        let program = crate::cli::Arguments::command();
        for (commands, earlier, current) in RENAMED {
            for name in *commands {
                let command = program.find_subcommand(name).unwrap();
                assert!(has(command, current), "{name} {current}");
                assert!(!has(command, earlier), "{name} {earlier}");
            }
        }
    }
}
