//! Completion of a command line by a shell: commands, options, and the values that the program
//! knows.
//!
//! The script that `planimeter completions SHELL` prints runs the program with the words of the
//! line and with [`VARIABLE`] set to the shell's name. The program then prints the candidates for
//! the last word and does nothing else. So a script needs no update when experiments, targets or
//! parameters change.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use clap::{CommandFactory, ValueEnum};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{self, CompleteEnv, EnvCompleter, Shells};

use super::list::{self, ListKind};
use super::run::FORWARDING_RATE;
use elements::hardware_model::model::known;
use studies::CatalogEntry;
use targets::name::TargetKind;
use targets::network;
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Environment variable that selects completion; its value is the shell's name.
const VARIABLE: &str = "PLANIMETER_COMPLETE";

/// Name of the program in the scripts.
const PROGRAM: &str = "planimeter";

/// Shells that complete.
const SHELLS: Shells<'static> =
    Shells(&[&Bash, &env::Elvish, &env::Fish, &env::Powershell, &env::Zsh]);

/// Words of the line to complete, for values that depend on other words.
static LINE: OnceLock<Vec<String>> = OnceLock::new();

/// Prints the candidates if a shell asks for them; returns whether it does.
pub fn answer(words: &[OsString]) -> clap::error::Result<bool> {
    let _ = LINE.set(words.iter().map(|word| word.to_string_lossy().into_owned()).collect());
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(super::Arguments::command)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(words, folder.as_deref())
}

/// Returns the completion script of a shell.
pub fn script(shell: clap_complete::Shell) -> io::Result<Vec<u8>> {
    let completer = SHELLS.completer(&shell.to_string()).ok_or(io::ErrorKind::Unsupported)?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(script)
}

/// Completion in bash, which splits words also at `=` and `:`.
struct Bash;

/// Script for bash 4 and later. It splits the line at blanks only, and removes the part of each
/// candidate that readline keeps: the text before its last word break.
const BASH: &str = r#"_planimeter() {
    local line=${COMP_LINE:0:COMP_POINT} words word kept index
    read -r -a words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    index=$((${#words[@]} - 1))
    word=${words[index]}
    mapfile -t COMPREPLY < <(VARIABLE=bash _CLAP_COMPLETE_INDEX=$index "$1" -- "${words[@]}" 2>/dev/null)
    kept=${word%"$2"}
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]] && compopt -o nospace
    return 0
}
complete -o bashdefault -o nosort -F _planimeter planimeter
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        _program: &str,
        _completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        out.write_all(BASH.replace("VARIABLE", variable).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        env::Bash.write_complete(command, words, folder, out)
    }
}

/// Candidates that start with the current word, in this order.
struct Candidates<'a> {
    current: &'a str,
    found: Vec<CompletionCandidate>,
}

impl<'a> Candidates<'a> {
    fn of(current: &'a OsStr) -> Candidates<'a> {
        // No known name has bytes that are not UTF-8.
        Candidates { current: current.to_str().unwrap_or("\u{fffd}"), found: Vec::new() }
    }

    /// Adds a name with its description.
    fn add(&mut self, name: impl AsRef<str>, about: &str) {
        if name.as_ref().starts_with(self.current) {
            let candidate = CompletionCandidate::new(name.as_ref());
            let help = (!about.is_empty()).then(|| about.to_owned().into());
            self.found.push(candidate.help(help));
        }
    }

    /// Adds files with one of these extensions, and folders, after a prefix of the word.
    fn add_files(&mut self, prefix: &str, extensions: &'static [&'static str]) {
        let Some(path) = self.current.strip_prefix(prefix) else { return };
        let is_wanted = |path: &Path| {
            let name = path.to_string_lossy();
            path.is_file() && extensions.iter().any(|it| name.ends_with(it))
        };
        let files = PathCompleter::any().filter(is_wanted).complete(OsStr::new(path));
        self.found.extend(files.into_iter().map(|it| it.add_prefix(prefix)));
    }
}

/// Returns the studies and experiments that a word may become.
fn add_experiments(all: &mut Candidates<'_>) {
    let mut set = "";
    for entry in studies::entries() {
        if entry.set() != set {
            set = entry.set();
            if set != entry.id {
                all.add(set, "all of its experiments");
            }
        }
        all.add(entry.id, entry.title);
    }
}

/// Completes an experiment, a study, a script, a plan or a bundle.
pub fn experiments(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Candidates::of(current);
    add_experiments(&mut all);
    if !current.is_empty() {
        all.add_files("", &[".py", ".toml", ".tar.gz"]);
    }
    all.found
}

/// Completes what `planimeter list` lists.
pub fn listed(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Candidates::of(current);
    for kind in ListKind::value_variants().iter().filter_map(ListKind::to_possible_value) {
        all.add(kind.get_name(), &kind.get_help().map(ToString::to_string).unwrap_or_default());
    }
    add_experiments(&mut all);
    all.found
}

/// Completes a target.
pub fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Candidates::of(current);
    for kind in TargetKind::ALL {
        all.add(kind.name(), kind.about());
    }
    for model in known::all() {
        all.add(format!("switch:model={}", model.name), &model.about);
    }
    for name in progfe::shipped::names() {
        all.add(format!("progfe:{name}"), "ProGFE element with this program");
    }
    all.add_files("progfe:", &[".fe.xml"]);
    match all.current.starts_with(network::PREFIX) {
        true => all.add_files(network::PREFIX, &[".toml"]),
        false => all.add(network::PREFIX, "several linked switches as one target"),
    }
    all.add("openflow:", "external OpenFlow switch: openflow:URL,ports=N@IF+N@IF");
    all.add("device:", "external bridge or router: device:ports=N@IF+N@IF");
    all.found
}

/// Completes a side of a comparison: a target or a stored run.
pub fn sides(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = targets(current);
    if !current.is_empty() {
        found.extend(PathCompleter::dir().complete(current));
    }
    found
}

/// Completes a link, also after `TARGET=`.
pub fn links(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Candidates::of(current);
    let prefix = all.current.rfind('=').map_or("", |at| &all.current[..=at]);
    for (name, about) in list::links() {
        // The short names of "veth:afpacket" and "nic:afpacket".
        if let Some(short) = name.strip_suffix(":afpacket") {
            all.add(format!("{prefix}{short}"), &about);
        }
        all.add(format!("{prefix}{name}"), &about);
    }
    all.found
}

/// Completes an assignment of `--set`: a parameter of the line's experiments, or of any if it has
/// none, and then its value if that is a word.
pub fn assignments(current: &OsStr) -> Vec<CompletionCandidate> {
    let line = LINE.get().map(Vec::as_slice).unwrap_or_default();
    assignments_on(line, current)
}

/// Completes an assignment of `--set` for `planimeter quick`.
pub fn quick_assignments(current: &OsStr) -> Vec<CompletionCandidate> {
    assignments_on(&[FORWARDING_RATE.into()], current)
}

fn assignments_on(line: &[String], current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Candidates::of(current);
    let is_named =
        |entry: &&CatalogEntry| line.iter().any(|it| it == entry.id || it == entry.set());
    let mut entries: Vec<&CatalogEntry> = studies::entries().filter(is_named).collect();
    if entries.is_empty() {
        entries = studies::entries().collect();
    }
    let declared = entries.into_iter().flat_map(CatalogEntry::declared).chain(shared::always());
    let mut keys: Vec<&str> = Vec::new();
    for parameter in declared {
        if !keys.contains(&parameter.key) {
            keys.push(parameter.key);
            add_assignments(&mut all, parameter);
        }
    }
    all.found
}

/// Adds a parameter, or its values once the word names it.
fn add_assignments(all: &mut Candidates<'_>, parameter: &Parameter) {
    let Parameter { key, takes, .. } = parameter;
    let Some((named, value)) = all.current.split_once('=') else {
        return all.add(format!("{key}="), parameter.help);
    };
    let (words, is_list) = match takes {
        ValueType::Word(words) => (words, false),
        ValueType::Words(words) => (words, true),
        _ => return,
    };
    if named == *key {
        let before = value.rfind(',').filter(|_| is_list).map_or("", |at| &value[..=at]);
        words.iter().for_each(|word| all.add(format!("{key}={before}{word}"), ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[CompletionCandidate]) -> Vec<String> {
        found.iter().map(|it| it.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn parameters_are_those_of_the_experiments_on_the_line() {
        let on = |line: &[&str], word: &str| {
            let line: Vec<String> = line.iter().map(|it| (*it).to_owned()).collect();
            names(&assignments_on(&line, OsStr::new(word)))
        };
        let any = on(&["run", "--set"], "tra");
        assert_eq!(any, ["traffic="]);
        assert_eq!(on(&["run", "forwarding-rate", "--set"], "tra"), ["traffic="]);
        assert_eq!(on(&["run", "program-swap"], "swaps"), ["swaps_per_s="]);
        assert_eq!(on(&["run", "latency"], "swaps"), [""; 0]);
        let values = ["traffic=one", "traffic=sequential", "traffic=random", "traffic=zipf"];
        assert_eq!(on(&["run", "latency"], "traffic="), values);
        assert_eq!(on(&["run", "rule-activation"], "probes=before,a"), ["probes=before,after"]);
        assert_eq!(on(&["run", "latency"], "frame="), [""; 0]);
    }

    #[test]
    fn links_complete_for_all_targets_and_for_one() {
        assert_eq!(names(&links(OsStr::new("mem"))), ["memory", "memif"]);
        assert_eq!(names(&links(OsStr::new("ovs=veth:l"))), ["ovs=veth:live"]);
        let all = names(&links(OsStr::new("")));
        assert!(all.iter().all(|name| name.parse::<targets::name::Link>().is_ok()), "{all:?}");
    }

    #[test]
    fn complete_targets_are_valid() {
        let all = names(&targets(OsStr::new("")));
        let whole: Vec<&String> = all.iter().filter(|name| !name.ends_with(':')).collect();
        assert!(whole.len() > TargetKind::ALL.len() + 5, "{all:?}");
        for name in whole {
            assert!(name.parse::<TargetKind>().is_ok(), "{name}");
        }
    }
}
