//! Contents of a bundle: the run's folder, the plan that repeats it, and every file that the plan
//! names.
//!
//! Invariants:
//! - A file within the folder in which the run was started keeps its name, so that targets keep
//!   theirs.
//! - Any other file gets a name below `outside/`, and the plan uses that name.
//! - Secrets and other programs are listed and left out.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use progfe::program::Program;
use progfe::xml::Source;
use store::{RECORD_FILE, campaign as stored};

use super::inputs::{self, Role};
use super::{FILES_FOLDER, plan, refused};
use crate::cli::failure::Failure;
use crate::cli::plan::{self as plans, ParsedGate, Step};
use crate::cli::{report, run, shell_words};
use runner::environment;
use workload::parameter::snmp::{CREDENTIALS, CREDENTIALS_VARIABLE};

/// Size limit of a file that a plan names, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file that the plan names.
pub struct Input {
    /// Its name below `files/`.
    pub path: String,
    /// Its name in the plan.
    given: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it changed since the run began.
    pub has_changed: bool,
}

/// Contents of a bundle.
pub struct Contents {
    /// The name of the bundled folder.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The folders of the runs in it.
    pub runs: Vec<PathBuf>,
    /// The plan that repeats the run.
    pub plan: String,
    /// The files that the plan names.
    pub files: Vec<Input>,
    /// Items that were left out.
    pub left_out: Vec<String>,
}

impl Contents {
    /// Collects the contents of a bundle of this folder.
    pub fn of(folder: &Path) -> Result<Contents, Failure> {
        let unreadable = |error| report::unreadable(&error);
        let runs = stored::runs(folder).map_err(unreadable)?;
        let whole = folder.canonicalize().map_err(|error| refused(folder, error))?;
        let name = whole.file_name().map_or("run".into(), |it| it.to_string_lossy().into_owned());
        let (title, is_strict, created, mut steps, mut gates) = match stored::is_campaign(folder) {
            true => campaign(folder)?,
            false => {
                let record = store::read_results(folder).map_err(unreadable)?;
                let step = step(folder, "run", &record.command_line)?;
                let title = name.clone();
                (title, false, record.created, vec![step], Vec::new())
            }
        };
        // The folder of a run from a bundle also contains its files.
        let own = folder.join(FILES_FOLDER);
        let base = if own.is_dir() { own } else { PathBuf::new() };
        let mut gathered =
            FoundFiles { base, created, files: Vec::new(), left_out: Vec::new(), fault: None };
        for step in &mut steps {
            inputs::visit(&mut step.arguments, &mut |role, file| gathered.take(role, file));
            let is_secret = |word: &String| word.starts_with(&format!("{CREDENTIALS}="));
            step.arguments.set.retain(|word| !is_secret(word));
        }
        for gate in &mut gates {
            gathered.base_of(gate, folder.parent().unwrap_or(Path::new("")));
        }
        match gathered.fault {
            Some(failure) => Err(failure),
            None => Ok(Contents {
                name,
                folder: folder.to_path_buf(),
                runs,
                plan: plan::written(&title, is_strict, &steps, &gates),
                files: gathered.files,
                left_out: gathered.left_out,
            }),
        }
    }
}

/// A plan's title, strictness, start time, steps and gates.
type PlanSummary = (String, bool, String, Vec<Step>, Vec<ParsedGate>);

fn campaign(folder: &Path) -> Result<PlanSummary, Failure> {
    let (facts, text) = stored::read(folder).map_err(|error| report::unreadable(&error))?;
    let gates = plans::gates_of(&text);
    let steps = facts.steps.iter().map(|it| step(folder, &it.name, &it.command_line));
    let steps = steps.collect::<Result<Vec<Step>, Failure>>()?;
    Ok((facts.name, facts.strict, facts.created, steps, gates))
}

fn step(folder: &Path, name: &str, command_line: &str) -> Result<Step, Failure> {
    let arguments = run::parsed(&shell_words::split(command_line))
        .ok_or_else(|| refused(folder, "this version cannot parse the command line of the run"))?;
    Ok(Step { name: name.into(), at: 0, arguments })
}

/// Files found so far.
struct FoundFiles {
    /// The folder that relative paths refer to.
    base: PathBuf,
    /// When the run began.
    created: String,
    files: Vec<Input>,
    left_out: Vec<String>,
    fault: Option<Failure>,
}

impl FoundFiles {
    /// Adds a file and the files that it names; returns its name in the bundle if that differs.
    fn take(&mut self, role: Role, given: &str) -> Option<String> {
        match role {
            Role::Secret => {
                self.leave(format!(
                    "{given}: secret (hint: set {CREDENTIALS_VARIABLE} when you repeat the run)"
                ));
                return None;
            }
            Role::Build => {
                self.leave(format!(
                    "{given}: another build of this program (hint: install it at this path before \
                     you repeat the run)"
                ));
                return None;
            }
            _ => {}
        }
        if let Some(known) = self.files.iter().find(|it| it.given == given) {
            return Some(known.path.clone()).filter(|path| path != given);
        }
        let path = self.path_of(given);
        let (mut bytes, has_changed) = match self.read(given) {
            Ok(read) => read,
            Err(failure) => {
                self.fault.get_or_insert(failure);
                return None;
            }
        };
        match role {
            Role::Program => self.beside(given, &path, &bytes),
            Role::Topology => self.inside(&mut bytes),
            _ => {}
        }
        self.files.push(Input { path: path.clone(), given: given.into(), bytes, has_changed });
        (path != given).then_some(path)
    }

    fn leave(&mut self, line: String) {
        if !self.left_out.contains(&line) {
            self.left_out.push(line);
        }
    }

    /// Returns a file's name in the bundle: unchanged if it stays within the bundle.
    fn path_of(&self, given: &str) -> String {
        let mut parts = Path::new(given).components();
        let is_inside =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if parts.clone().all(is_inside) && super::unpack::is_plain(&without_dots(given)) {
            return given.into();
        }
        let name = parts.next_back().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let name: String =
            name.unwrap_or_default().chars().filter(char::is_ascii_graphic).collect();
        let name = name.replace(['\\', '/'], "-");
        format!("outside/{}/{name}", self.files.len() + 1)
    }

    fn read(&self, given: &str) -> Result<(Vec<u8>, bool), Failure> {
        let at = self.base.join(given);
        let file = File::open(&at).map_err(|error| {
            refused(
                &at,
                format!(
                    "cannot read a file that the run used: {error} (hint: run 'planimeter bundle' \
                     in the folder where the run started)"
                ),
            )
        })?;
        let facts = file.metadata().map_err(|error| refused(&at, error))?;
        let changed = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let changed = changed.map_or(0, |since| since.as_secs());
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| refused(&at, error))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(refused(
                &at,
                format!(
                    "the file is too large: a bundle accepts files of up to {FILE_BYTES_MAX} bytes"
                ),
            ));
        }
        Ok((bytes, environment::rfc3339(changed) > self.created))
    }

    /// Adds the files that an element's program names, which are in its folder.
    fn beside(&mut self, given: &str, path: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let folder = self.base.join(given);
        let folder = folder.parent().unwrap_or(Path::new("")).to_path_buf();
        let named = RefCell::new(Vec::new());
        let beside = |name: &str| {
            named.borrow_mut().push(name.to_string());
            std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string())
        };
        let _ = Program::load(&Source::new(given, &text), &beside);
        for name in named.into_inner() {
            let of = |file: &str| match file.rsplit_once('/') {
                Some((folder, _)) => format!("{folder}/{name}"),
                None => name.clone(),
            };
            let (given, path) = (of(given), of(path));
            if self.files.iter().any(|it| it.path == path) {
                continue;
            }
            if !super::unpack::is_plain(&without_dots(&path)) {
                self.leave(format!("{given}: named by the program, but outside its folder"));
                continue;
            }
            match self.read(&given) {
                Ok((bytes, has_changed)) => {
                    self.files.push(Input { path, given, bytes, has_changed })
                }
                Err(failure) => drop(self.fault.get_or_insert(failure)),
            }
        }
    }

    /// Adds the files that the targets of a topology name.
    fn inside(&mut self, bytes: &mut Vec<u8>) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let mut text = text.to_string();
        let Ok(table) = text.parse::<toml::Table>() else { return };
        let switches = table.get("switch").and_then(toml::Value::as_array);
        let names = switches.into_iter().flatten().filter_map(|it| it.get("target")?.as_str());
        for name in names {
            let mut other = name.to_string();
            inputs::target(&mut other, &mut |role, file| self.take(role, file));
            if other != name {
                text = text.replace(name, &other);
            }
        }
        *bytes = text.into_bytes();
    }

    /// Adds a stored run that is a gate's base, as far as the comparison needs it.
    fn base_of(&mut self, gate: &mut ParsedGate, out: &Path) {
        let Some(base) = &mut gate.base else { return };
        let Some((folder, target)) = plans::run_of(&base.text, out) else { return };
        let name = format!("base-{}", self.files.len() + 1);
        let mut wanted = vec![String::from(RECORD_FILE)];
        if let Ok((facts, _)) = stored::read(&folder) {
            wanted = vec![stored::CAMPAIGN_FILE.into(), stored::PLAN_FILE.into()];
            wanted.extend(facts.steps.iter().map(|it| format!("{}/{RECORD_FILE}", it.folder)));
        }
        for file in wanted {
            let (path, from) = (format!("{name}/{file}"), folder.join(&file));
            match std::fs::read(&from) {
                Ok(bytes) => {
                    let given = from.display().to_string();
                    self.files.push(Input { path, given, bytes, has_changed: false });
                }
                Err(error) => drop(self.fault.get_or_insert(refused(&from, error))),
            }
        }
        base.text = match target {
            Some(target) => format!("{name}:{target}"),
            None => name,
        };
    }
}

/// Removes `.` and redundant `..` parts from a path.
pub fn without_dots(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}
