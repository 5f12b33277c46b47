//! Check for external code and resources in a run: the single check for bundles, stored runs, plans
//! and `serve`.
//!
//! A command line, a plan or a topology can come from another user: in a bundle, in an unpacked
//! folder, or through a browser. Invariants:
//! - The check reads words and files only. It starts nothing and opens no target.
//! - What cannot be inspected counts as external code.

pub mod signature;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::bundle::inputs::{self, Role};
use super::bundle::without_dots;
use super::failure::Failure;
use super::plan;
use super::run::{self, Arguments};
use super::shell_words;
use targets::network;

/// External code and resources that a request uses.
#[derive(Debug, Default, PartialEq)]
pub struct ExternalCode {
    /// External code that it runs: commands, scripts, other programs.
    pub code: Vec<String>,
    /// Resources of this host: interfaces, and hosts to which it sends requests.
    pub host: Vec<String>,
    /// Files that the request names, but that are missing in its folder.
    pub missing: Vec<String>,
}

impl ExternalCode {
    /// Checks a plan with files in this folder.
    pub fn of_plan(text: &str, files: &Path) -> ExternalCode {
        ExternalCode::of(plan::written_steps(text), files)
    }

    /// Checks a stored command line with files in this folder. An unreadable one does not run.
    pub fn of_line(line: &str, files: &Path) -> ExternalCode {
        ExternalCode::of(run::parsed(&shell_words::split(line)), files)
    }

    /// Checks the words of a command, without the program, with files in this folder.
    pub fn of_words(words: &[String], files: &Path) -> ExternalCode {
        let program = [String::from("planimeter")];
        let words: Vec<String> = program.iter().chain(words).cloned().collect();
        ExternalCode::of(run::parsed(&words), files)
    }

    /// Checks the arguments of runs with files in this folder.
    pub fn of(steps: impl IntoIterator<Item = Arguments>, files: &Path) -> ExternalCode {
        let mut found = ExternalCode::default();
        for mut step in steps {
            let hooks =
                [("before", &step.before), ("between", &step.between), ("after", &step.after)];
            for (when, command) in hooks {
                if let Some(command) = command {
                    note(&mut found.code, format!("a command ({when}: {})", shown(command)));
                }
            }
            step.targets.iter().for_each(|name| found.device(name));
            found.settings(&step.set);
            inputs::visit(&mut step, &mut |role, file| {
                found.file(role, file, files);
                None
            });
        }
        found
    }

    /// Returns whether it needs the permission of a user of this host.
    pub fn needs_trust(&self) -> bool {
        !self.code.is_empty() || !self.host.is_empty()
    }

    fn device(&mut self, name: &str) {
        if inputs::is_device(name) {
            note(&mut self.host, format!("a device on interfaces of this host ({})", shown(name)));
        }
    }

    /// Checks the parameters that send requests to hosts.
    fn settings(&mut self, set: &[String]) {
        let asked = set.iter().filter_map(|word| word.strip_prefix("snmp="));
        for agent in asked.filter(|agent| *agent != "lab") {
            note(&mut self.host, format!("requests to an SNMP agent ({})", shown(agent)));
        }
    }

    fn file(&mut self, role: Role, file: &str, files: &Path) {
        match role {
            Role::Script => note(&mut self.code, format!("a script ({})", shown(file))),
            Role::Build => {
                note(&mut self.code, format!("another program ({})", shown(file)));
                return;
            }
            _ => {}
        }
        let is_absolute = file.starts_with('/') || file.split('/').any(|part| part == "..");
        if is_absolute || !files.join(without_dots(file)).is_file() {
            note(&mut self.missing, file.into());
        }
        if role == Role::Topology {
            self.switches(file, files);
        }
    }

    /// Checks the switches of a topology.
    fn switches(&mut self, file: &str, files: &Path) {
        let Some(names) = switches_of(&files.join(file)) else {
            note(&mut self.code, format!("an unreadable topology ({})", shown(file)));
            return;
        };
        for mut name in names {
            self.device(&name);
            inputs::target(&mut name, &mut |role, inner| {
                // A topology cannot contain a topology.
                if role != Role::Topology {
                    self.file(role, inner, files);
                }
                None
            });
        }
    }
}

/// Verifies that the command line of a stored run may be used; the error states the reason
/// otherwise.
pub fn allow_line(folder: &Path, line: &str, is_trusted: bool) -> Result<(), Failure> {
    allow(folder, &ExternalCode::of_line(line, Path::new("")), line, is_trusted)
}

/// Verifies that the plan of a stored campaign may be used; the error states the reason otherwise.
pub fn allow_plan(folder: &Path, text: &str, is_trusted: bool) -> Result<(), Failure> {
    allow(folder, &ExternalCode::of_plan(text, Path::new("")), text, is_trusted)
}

fn allow(folder: &Path, found: &ExternalCode, text: &str, is_trusted: bool) -> Result<(), Failure> {
    if is_trusted || !found.needs_trust() || signature::is_own(folder, text) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} contains {found}, and was not started by you on this host (hint: add --allow-commands to allow \
         this)",
        folder.display()
    )))
}

/// Signs the command line of a run that begins here, if it needs trust.
pub fn sign_line(folder: &Path, line: &str) {
    if ExternalCode::of_line(line, Path::new("")).needs_trust() {
        signature::sign(folder, line);
    }
}

/// Signs the plan of a campaign that begins here, if it needs trust.
pub fn sign_plan(folder: &Path, text: &str) {
    if ExternalCode::of_plan(text, Path::new("")).needs_trust() {
        signature::sign(folder, text);
    }
}

impl fmt::Display for ExternalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self.code.iter().chain(&self.host).map(String::as_str).collect();
        f.write_str(&all.join(", "))
    }
}

/// Returns the targets of a topology's switches.
fn switches_of(path: &Path) -> Option<Vec<String>> {
    // Reading a device never ends, and a pipe may have no writer.
    let is_plain = std::fs::metadata(path).is_ok_and(|facts| facts.is_file());
    let file = is_plain.then(|| File::open(path).ok()).flatten()?;
    let (mut text, most) = (String::new(), network::file::FILE_BYTES_MAX);
    file.take(most + 1).read_to_string(&mut text).ok()?;
    if text.len() as u64 > most {
        return None;
    }
    let table = text.parse::<toml::Table>().ok()?;
    let switches = table.get("switch").and_then(toml::Value::as_array);
    let names = switches.into_iter().flatten().filter_map(|it| it.get("target")?.as_str());
    Some(names.map(String::from).collect())
}

fn note(lines: &mut Vec<String>, line: String) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}

/// Shortens a text of another user to one line.
fn shown(text: &str) -> String {
    const LETTERS_MAX: usize = 80;
    let plain = text.replace(char::is_control, " ");
    let short: String = plain.chars().take(LETTERS_MAX).collect();
    if short.len() < plain.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with the files of a bundle's plan, removed at the end.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_foreign_plan_uses_only_its_own_files_and_nothing_of_this_host() {
        let name = format!("planimeter-trust-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("inner")).unwrap();
        let topology = "[[switch]]\nname = \"a\"\ntarget = \"\\u006furs@/bin/sh\"\n\
                        [[switch]]\nname = \"b\"\ntarget = \"openflow:tcp:192.0.2.7,ports=1@eth1\"\n\
                        [[switch]]\nname = \"c\"\ntarget = \"switch:model=/etc/m.toml\"\n";
        for (file, text) in [("s.toml", ""), ("inner/m.py", ""), ("t.toml", topology)] {
            fs::write(folder.0.join(file), text).unwrap();
        }
        for (plan, dangers, missing) in [
            (
                "run = \"latency\"\non = \"switch\"\nset = { stream = \"./s.toml\", snmp = \"lab\" }",
                &[][..],
                &[][..],
            ),
            (
                "[[step]]\nbefore = \"rm -r x\"\nafter = \"y\"",
                &["before: rm -r x", "after: y"],
                &[],
            ),
            ("between = \"x\"\n[[step]]\nrun = \"latency\"", &["between: x"], &[]),
            ("run = \"inner/m.py\"", &["a script (inner/m.py)"], &[]),
            ("on = \"switch@/bin/sh\"", &["another program (/bin/sh)"], &[]),
            ("on = \"device:ports=1@eth1+2@eth2\"", &["a device on interfaces"], &[]),
            ("set = { snmp = \"192.0.2.7\" }", &["an SNMP agent (192.0.2.7)"], &[]),
            ("on = \"progfe:/etc/passwd\"", &[], &["/etc/passwd"]),
            ("set = { stream = \"inner/../../s.toml\" }", &[], &["inner/../../s.toml"]),
            ("link = \"progfe:nothing.xml=veth\"", &[], &["nothing.xml"]),
            (
                "topology = \"t.toml\"",
                &["another program (/bin/sh)", "a device on interfaces"],
                &["/etc/m.toml"],
            ),
        ] {
            let found = ExternalCode::of_plan(plan, &folder.0);
            let lines: Vec<&String> = found.code.iter().chain(&found.host).collect();
            assert_eq!(lines.len(), dangers.len(), "{plan}: {lines:?}");
            for (line, words) in lines.iter().zip(dangers) {
                assert!(line.contains(words), "{plan}: {line}");
            }
            assert_eq!(found.needs_trust(), !dangers.is_empty(), "{plan}");
            assert_eq!(found.missing, missing, "{plan}");
        }
    }

    #[test]
    fn every_way_to_name_a_program_counts_as_foreign_code() {
        let folder =
            Folder(std::env::temp_dir().join(format!("planimeter-ways-{}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("t.toml"), "[[switch]]\nname = \"a\"\ntarget = \"switch@/x\"\n")
            .unwrap();
        fs::write(folder.0.join("own.toml"), "[[switch]]\nname = \"a\"\ntarget = \"switch\"\n")
            .unwrap();
        fs::write(folder.0.join("torn.toml"), "[[switch]\n").unwrap();
        fs::write(folder.0.join("long.toml"), " ".repeat(1 << 17)).unwrap();
        for line in [
            "run latency --on switch@/x",
            "run latency --on ovs@/x",
            "run latency --on switch --on bridge@x/../y",
            "run latency --on 'router:cache=on@/x'",
            "run latency --link switch@/x=veth",
            "run latency --set load_reference=switch@/x",
            "run latency --on topology:t.toml",
            "run latency --topology t.toml",
            "run mine.py --on switch",
            "run latency --setup x",
            "run latency --prepare x",
            "run latency --cleanup x",
            // What cannot be inspected does not count as harmless.
            "run latency --topology torn.toml",
            "run latency --topology long.toml",
            "run latency --topology /dev/zero",
        ] {
            let found = ExternalCode::of_line(&format!("planimeter {line}"), &folder.0);
            assert_eq!(found.code.len(), 1, "{line}: {found:?}");
        }
        for line in [
            "run latency --on switch --on ovs --on linux-bridge --link veth",
            "run latency --on switch:model=./m.toml --on progfe:p.fe.xml --set stream=s.toml",
            "run latency --topology own.toml",
        ] {
            let found = ExternalCode::of_line(&format!("planimeter {line}"), &folder.0);
            assert!(!found.needs_trust(), "{line}: {found:?}");
        }
        let device = "planimeter run latency --on openflow:tcp:192.0.2.7,ports=1@eth1+2@eth2";
        let found = ExternalCode::of_line(device, &folder.0);
        assert!(found.code.is_empty() && found.needs_trust(), "{found:?}");
    }
}
