//! BASE and NEW of a comparison: stored runs, targets of stored runs, or available targets.
//!
//! Invariant: a folder is always a run, even if its name has another meaning. If only the cells of
//! a run are needed, its trials are not read.

use std::path::{Path, PathBuf};

use record::Record;
use stats::comparison::{self, ComparedRun, Comparison};
use stats::gate::Gate;

use super::{Arguments, refused};
use crate::cli::failure::Failure;
use crate::cli::report;
use crate::cli::team_store::{self, DownloadedRun};
use targets::name::TargetKind;

/// Both sides.
pub(super) enum Operands {
    /// Stored runs.
    Stored(Box<StoredPair>),
    /// Targets that can be measured.
    AtHand,
}

/// Two stored runs, or two targets of one stored run.
pub(super) struct StoredPair {
    names: [String; 2],
    targets: [Option<String>; 2],
    base: Record,
    /// `None` if both targets are in the base's record.
    new: Option<Record>,
}

/// A run's folder, and the selected target in it.
pub(in crate::cli) type NamedRun = (PathBuf, Option<String>);

/// Resolves the arguments.
pub(super) fn read(arguments: &Arguments) -> Result<Operands, Failure> {
    let store = team_store::asked(arguments.store.as_ref())?;
    let mut fetched = Vec::new();
    let mut runs = [None, None];
    for (text, run) in [&arguments.base, &arguments.new].into_iter().zip(&mut runs) {
        *run = match (stored(text), &store) {
            (None, Some(store)) if text.parse::<TargetKind>().is_err() => {
                let (name, target) = text.split_once(':').unwrap_or((text, ""));
                // Downloaded data is removed after it was read.
                fetched.push(DownloadedRun::of(store, name)?);
                let folder = fetched.last().map(|it| it.folder().to_path_buf()).unwrap_or_default();
                let target = targets::name::current(target).into_owned();
                Some((folder, Some(target).filter(|it| !it.is_empty())))
            }
            (found, _) => found,
        };
    }
    match runs {
        [Some(base), Some(new)] => {
            if !arguments.experiments.is_empty() || arguments.like.is_some() {
                return Err(Failure::usage(
                    "--run and --config-from need two targets, not stored runs (hint: run 'planimeter \
                     compare switch ovs --run throughput')",
                ));
            }
            Ok(Operands::Stored(Box::new(StoredPair::open(arguments, base, new)?)))
        }
        [None, None] => {
            for text in [&arguments.base, &arguments.new] {
                is_target(text)?;
            }
            Ok(Operands::AtHand)
        }
        [Some(_), None] | [None, Some(_)] => Err(Failure::usage(format!(
            "cannot compare {} with {}: one is a stored run, the other a target (hint: give two \
             runs, or two targets and --config-from RUN)",
            arguments.base, arguments.new
        ))),
    }
}

fn is_target(text: &str) -> Result<(), Failure> {
    let looks_like_path = text.contains('/') && !text.contains(':') && !text.contains('@');
    match text.parse::<TargetKind>() {
        Ok(_) => Ok(()),
        Err(_) if looks_like_path => Err(Failure::usage(format!(
            "{text} is neither a target nor the folder of a run with {}",
            store::RECORD_FILE
        ))),
        Err(error) => Err(Failure::usage(format!("{text} is not a stored run; {error}"))),
    }
}

/// Resolves the run, and the target in it, that a text names.
pub(in crate::cli) fn stored(text: &str) -> Option<NamedRun> {
    let is_folder = |path: &str| Path::new(path).is_dir();
    if is_folder(text) {
        return Some((text.into(), None));
    }
    let target = |name| targets::name::current(name).into_owned();
    let mut colons = text.match_indices(':').map(|(at, _)| at);
    let at = colons.find(|at| is_folder(&text[..*at]))?;
    Some((text[..at].into(), Some(target(&text[at + 1..]))))
}

impl StoredPair {
    fn open(arguments: &Arguments, base: NamedRun, new: NamedRun) -> Result<StoredPair, Failure> {
        let same = base.0.canonicalize().ok() == new.0.canonicalize().ok();
        // A record may be large, and there are two.
        let (base_record, new_record) = std::thread::scope(|scope| {
            let new = (!same).then(|| scope.spawn(|| results_of(&new.0)));
            let base = results_of(&base.0);
            (base, new.map(|reader| reader.join().expect("a reader of records does not panic")))
        });
        let (base_record, new_record) = (base_record?, new_record.transpose()?);
        for ((folder, target), record) in
            [(&base, &base_record), (&new, new_record.as_ref().unwrap_or(&base_record))]
        {
            let names: Vec<&str> = record.targets.iter().map(|it| it.name.as_str()).collect();
            if let Some(target) = target.as_ref().filter(|target| record.target(target).is_none()) {
                return Err(Failure::usage(format!(
                    "{} has no target {target:?} (hint: use one of {})",
                    folder.display(),
                    names.join(", ")
                )));
            }
        }
        if same && (base.1.is_none() || new.1.is_none() || base.1 == new.1) {
            return Err(Failure::usage(format!(
                "cannot compare {} with itself (hint: name a target on each side, such as {0}:{})",
                base.0.display(),
                base_record.targets.last().map_or("switch", |target| target.name.as_str())
            )));
        }
        Ok(StoredPair {
            names: [arguments.base.clone(), arguments.new.clone()],
            targets: [base.1, new.1],
            base: base_record,
            new: new_record,
        })
    }

    pub(super) fn contrast(
        &self,
        (gates, are_written): &(Vec<Gate>, bool),
    ) -> Result<Comparison, Failure> {
        let side = |at: usize, record| ComparedRun {
            name: &self.names[at],
            record,
            target: self.targets[at].as_deref(),
        };
        let (base, new) = (side(0, &self.base), side(1, self.new.as_ref().unwrap_or(&self.base)));
        comparison::contrast(&base, &new, gates, *are_written).map_err(|error| refused(&error))
    }
}

/// Reads a run's results, also of one that ended early.
pub(in crate::cli) fn results_of(folder: &Path) -> Result<Record, Failure> {
    let unreadable = |error| report::unreadable(&error);
    let record = store::read_results(folder).map_err(unreadable)?;
    if !record.partial {
        return Ok(record);
    }
    report::results_of(folder)
}
