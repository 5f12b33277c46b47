//! `planimeter run FILE.tar.gz`: what a bundle holds, run again here.
//!
//! A bundle comes from somebody else. Invariants: a command, a script, another program or an interface of this host is used only where
//! `--trust` says so; a plan of a bundle names no file that the bundle does not hold; its runs are made in a folder of
//! their own, with its files beside them, where its words mean what they meant.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::store;

use super::contents::without_dots;
use super::inputs::{self, Role};
use super::{ENDING, FILES_FOLDER, refused, unpack};
use crate::cli::failure::Failure;
use crate::cli::out::remark;
use crate::cli::plan;
use crate::cli::run::Arguments;

/// What came of a run's arguments if they name a bundle; none if they do not.
pub fn asked(arguments: &Arguments) -> Option<Result<ExitCode, Failure>> {
    let file = arguments.experiments.iter().find(|name| name.ends_with(ENDING));
    match file {
        Some(file) => Some(run(arguments, file)),
        None if arguments.trust => {
            let line = "--trust goes with a bundle: `planimeter run FILE.tar.gz --trust`";
            Some(Err(Failure::usage(line)))
        }
        None => None,
    }
}

fn run(arguments: &Arguments, file: &str) -> Result<ExitCode, Failure> {
    plan::refuse(arguments, file)?;
    let arguments = &plan::rooted(arguments);
    // Whatever folder is entered meanwhile.
    let out = arguments.out_folder();
    let out = std::path::absolute(&out).map_err(|error| refused(&out, error))?;
    let day = crate::environment::wall_clock();
    let day = day.split('T').next().unwrap_or_default();
    let path = Path::new(file);
    let name = path.file_name().map_or_else(|| file.into(), |it| it.to_string_lossy());
    let name = name.trim_end_matches(ENDING).trim_end_matches(".bundle").to_string();
    // What is wrong with the file is told before a folder is made.
    fs::metadata(path).map_err(|error| refused(path, error))?;
    let made_out = !out.exists();
    let folder = store::new_folder(&out, day, &format!("again-{name}")).map_err(|error| {
        Failure::usage(format!("{error}; choose another folder with --out DIR"))
    })?;
    // Nothing but what was unpacked is in it until the campaign begins.
    let undone = Undone { folder: folder.clone(), out: made_out.then_some(out) };
    let campaign = begun(arguments, path, &folder, &name);
    match campaign {
        Ok(Some(campaign)) => {
            undone.keep();
            campaign.carry_out(arguments)
        }
        Ok(None) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(failure),
    }
}

/// The campaign of a bundle that was unpacked into this folder; none where only that was asked what it would do.
fn begun(
    arguments: &Arguments,
    file: &Path,
    folder: &Path,
    name: &str,
) -> Result<Option<plan::campaign::Campaign>, Failure> {
    let files = folder.join(FILES_FOLDER);
    fs::create_dir(&files).map_err(|error| refused(&files, error))?;
    let opened =
        unpack::unpack(file, FILES_FOLDER, &files).map_err(|error| refused(file, error))?;
    let found = Found::of(&opened.plan, &files);
    if let Some(path) = found.missing.first() {
        return Err(refused(
            file,
            format!("its plan names {path:?}, which is not in it: it is not run"),
        ));
    }
    if !found.dangers.is_empty() && !arguments.trust {
        return Err(refused(
            file,
            format!(
                "it comes with {}; give --trust to let whoever made it do that here",
                found.dangers.join(", ")
            ),
        ));
    }
    for changed in &opened.facts.changed {
        remark!(
            "{changed} in this bundle is not what its run read: it was changed after that began"
        );
    }
    plan::enter(folder)?;
    plan::of_bundle(arguments, opened.plan, name, folder.to_path_buf())
}

/// A folder that goes again unless it is kept.
struct Undone {
    folder: PathBuf,
    /// The folder of runs, if it was made too.
    out: Option<PathBuf>,
}

impl Undone {
    fn keep(mut self) {
        self.folder = PathBuf::new();
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        let _ = fs::remove_dir_all(&self.folder);
        if let Some(out) = &self.out {
            // Only if nothing else is in it.
            let _ = fs::remove_dir(out);
        }
    }
}

/// What a plan of somebody else's would use.
#[derive(Debug, Default, PartialEq)]
struct Found {
    /// What only a trusted one may.
    dangers: Vec<String>,
    /// Files that are not below `files/`.
    missing: Vec<String>,
}

impl Found {
    /// What this plan would use, of these files.
    fn of(text: &str, files: &Path) -> Found {
        let mut found = Found::default();
        for step in plan::written_steps(text) {
            let hooks =
                [("before", &step.before), ("between", &step.between), ("after", &step.after)];
            for (when, command) in hooks {
                if let Some(command) = command {
                    found.danger(format!("a command ({when}: {})", shown(command)));
                }
            }
            for name in &step.targets {
                found.device(name);
            }
            found.settings(&step.set);
            let mut step = step;
            inputs::visit(&mut step, &mut |role, file| {
                found.file(role, file, files);
                None
            });
        }
        found
    }

    fn danger(&mut self, line: String) {
        if !self.dangers.contains(&line) {
            self.dangers.push(line);
        }
    }

    fn device(&mut self, name: &str) {
        if inputs::is_device(name) {
            self.danger(format!("a device at interfaces of this host ({})", shown(name)));
        }
    }

    /// What is asked of hosts.
    fn settings(&mut self, set: &[String]) {
        let asked = set.iter().filter_map(|word| word.strip_prefix("snmp="));
        for agent in asked.filter(|agent| *agent != "lab") {
            self.danger(format!("questions to an SNMP agent ({})", shown(agent)));
        }
    }

    fn file(&mut self, role: Role, file: &str, files: &Path) {
        match role {
            Role::Script => self.danger(format!("a script ({})", shown(file))),
            Role::Build => {
                self.danger(format!("another program ({})", shown(file)));
                return;
            }
            _ => {}
        }
        let is_absolute = file.starts_with('/') || file.split('/').any(|part| part == "..");
        if is_absolute || !files.join(without_dots(file)).is_file() {
            self.missing.push(file.into());
            return;
        }
        if role == Role::Topology {
            self.switches(file, files);
        }
    }

    /// What the switches of a topology are.
    fn switches(&mut self, file: &str, files: &Path) {
        let Ok(text) = fs::read_to_string(files.join(without_dots(file))) else { return };
        let Ok(table) = text.parse::<toml::Table>() else { return };
        let switches = table.get("switch").and_then(toml::Value::as_array);
        for name in switches.into_iter().flatten().filter_map(|it| it.get("target")?.as_str()) {
            let mut name = name.to_string();
            self.device(&name);
            inputs::target(&mut name, &mut |role, inner| {
                // A topology holds none.
                if role != Role::Topology {
                    self.file(role, inner, files);
                }
                None
            });
        }
    }
}

/// Text of somebody else's in a line.
fn shown(text: &str) -> String {
    const LETTERS_MAX: usize = 80;
    let plain = text.replace(char::is_control, " ");
    let short: String = plain.chars().take(LETTERS_MAX).collect();
    if short.len() < plain.len() { format!("{short}...") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with what a bundle's plan may name, removed at the end.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_plan_of_somebody_else_uses_only_what_it_brings_and_nothing_of_this_host() {
        let name = format!("planimeter-again-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("inner")).unwrap();
        let topology = "[[switch]]\nname = \"a\"\ntarget = \"\\u006furs@/bin/sh\"\n\
                        [[switch]]\nname = \"b\"\ntarget = \"openflow:tcp:192.0.2.7,ports=1@eth1\"\n\
                        [[switch]]\nname = \"c\"\ntarget = \"ours:model=/etc/m.toml\"\n";
        for (file, text) in [("s.toml", ""), ("inner/m.py", ""), ("t.toml", topology)] {
            fs::write(folder.0.join(file), text).unwrap();
        }
        for (plan, dangers, missing) in [
            (
                "run = \"latency\"\non = \"ours\"\nset = { stream = \"./s.toml\", snmp = \"lab\" }",
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
            ("on = \"ours@/bin/sh\"", &["another program (/bin/sh)"], &[]),
            ("on = \"device:ports=1@eth1+2@eth2\"", &["a device at interfaces"], &[]),
            ("set = { snmp = \"192.0.2.7\" }", &["an SNMP agent (192.0.2.7)"], &[]),
            ("on = \"progfe:/etc/passwd\"", &[], &["/etc/passwd"]),
            ("set = { stream = \"inner/../../s.toml\" }", &[], &["inner/../../s.toml"]),
            ("link = \"progfe:nothing.xml=veth\"", &[], &["nothing.xml"]),
            (
                "topology = \"t.toml\"",
                &["another program (/bin/sh)", "a device at interfaces"],
                &["/etc/m.toml"],
            ),
        ] {
            let found = Found::of(plan, &folder.0);
            assert_eq!(found.dangers.len(), dangers.len(), "{plan}: {:?}", found.dangers);
            for (line, words) in found.dangers.iter().zip(dangers) {
                assert!(line.contains(words), "{plan}: {line}");
            }
            assert_eq!(found.missing, missing, "{plan}");
        }
    }
}
