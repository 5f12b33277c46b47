//! Names of targets: the spelling of earlier versions, and labels for readers.
//!
//! The name on the command line identifies a target in commands, records, CSV and JSON files. A
//! label is for sentences, tables and figures.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Name of the built-in OpenFlow switch.
pub const SWITCH: &str = "switch";

/// Its name in version 0.0.
pub const SWITCH_BEFORE: &str = "ours";

/// Built-in targets whose bare name does not say which program it is.
const BUILT_IN: [&str; 4] = [SWITCH, "bridge", "router", "tagger"];

/// Returns the current spelling of a target's name: `switch:model=x` of `ours:model=x`.
pub fn current(name: &str) -> Cow<'_, str> {
    match name.strip_prefix(SWITCH_BEFORE) {
        Some(rest) if is_end(rest) => format!("{SWITCH}{rest}").into(),
        _ => name.into(),
    }
}

/// Returns the spelling of a target's name in the first version.
pub fn first_spelling(name: &str) -> Cow<'_, str> {
    match name.strip_prefix(SWITCH) {
        Some(rest) if is_end(rest) => format!("{SWITCH_BEFORE}{rest}").into(),
        _ => name.into(),
    }
}

/// Returns the label of a target: `planimeter bridge` of `bridge`, `progfe:…/b/x.xml` of
/// `progfe:/a/b/x.xml`.
pub fn label(name: &str) -> String {
    let name = short(name);
    match BUILT_IN.iter().any(|word| name.strip_prefix(word).is_some_and(is_end)) {
        true => format!("planimeter {name}"),
        false => name.into(),
    }
}

/// What precedes a file in a target's name. The program of another build is not shortened: such
/// programs often differ in their first folders only.
const BEFORE_FILES: [&str; 2] = ["progfe:", "switch:model="];

/// Returns the name with at most the last folder of a file's path.
fn short(name: &str) -> Cow<'_, str> {
    let Some(before) = BEFORE_FILES.iter().find(|before| name.starts_with(**before)) else {
        return name.into();
    };
    let rest = &name[before.len()..];
    let (file, more) = rest.split_at(rest.find([',', '@']).unwrap_or(rest.len()));
    match file.rmatch_indices('/').nth(1) {
        Some((at, _)) => format!("{before}\u{2026}{}{more}", &file[at..]).into(),
        None => name.into(),
    }
}

/// Returns the scope of a warning with labels: `latency on planimeter switch, ovs`.
pub fn scope_label(scope: &str) -> String {
    map_scope(scope, |name| label(name).into())
}

fn map_scope<'a>(scope: &'a str, map: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    match scope.split_once(" on ") {
        Some((experiment, targets)) => {
            let targets: Vec<_> = targets.split(", ").map(map).collect();
            format!("{experiment} on {}", targets.join(", "))
        }
        None => scope.into(),
    }
}

/// Whether a target's first word ends here.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([':', '@'])
}

/// Deserializes a target's name.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(current(&name).into_owned())
}

/// Deserializes a list of names.
pub(crate) fn read_all<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    Ok(names.iter().map(|name| current(name).into_owned()).collect())
}

/// Deserializes texts by target.
pub(crate) fn read_keys<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|(name, text)| (current(&name).into_owned(), text)).collect())
}

/// Deserializes the scope of a warning: an experiment ` on ` targets, separated by commas.
pub(crate) fn read_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let scope = String::deserialize(deserializer)?;
    Ok(map_scope(&scope, current))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_name_has_a_current_spelling() {
        for (name, now) in [
            ("ours", "switch"),
            ("ours:model=hp-2920,mode=legacy", "switch:model=hp-2920,mode=legacy"),
            ("ours@./before/planimeter", "switch@./before/planimeter"),
            ("oursel", "oursel"),
            ("progfe:ours", "progfe:ours"),
            ("ovs", "ovs"),
        ] {
            assert_eq!(current(name), now);
            assert_eq!(current(&current(name)), now);
            assert_eq!(first_spelling(now), name);
        }
    }

    #[test]
    fn a_label_tells_built_in_targets_from_others() {
        for (name, shown) in [
            ("switch", "planimeter switch"),
            ("switch:model=hp-2920", "planimeter switch:model=hp-2920"),
            ("router:cache=on", "planimeter router:cache=on"),
            ("bridge@./x", "planimeter bridge@./x"),
            ("tagger", "planimeter tagger"),
            ("linux-bridge", "linux-bridge"),
            ("progfe:bridge.fe.xml", "progfe:bridge.fe.xml"),
            ("switches", "switches"),
            ("progfe:/a/b/bridge.fe.xml", "progfe:\u{2026}/b/bridge.fe.xml"),
            ("progfe:./b/bridge.fe.xml", "progfe:\u{2026}/b/bridge.fe.xml"),
            ("progfe:/bridge.fe.xml", "progfe:/bridge.fe.xml"),
            (
                "switch:model=/a/b/x.toml,mode=legacy",
                "planimeter switch:model=\u{2026}/b/x.toml,mode=legacy",
            ),
            ("ovs@/opt/a/b", "ovs@/opt/a/b"),
        ] {
            assert_eq!(label(name), shown);
        }
    }
}
