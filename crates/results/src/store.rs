//! The folder of a run: the only place in this crate with files.
//!
//! A folder holds `record.json` (replaced whole, never half written), `start.json` (the record before the first trial),
//! `trials.jsonl` (a line for each trial as it ends, on disk before the next begins), `latency/*.hgrm` and what reports
//! make. Invariants:
//!
//! - A run never takes a folder that exists.
//! - One process at a time writes to a run ([`lock`]).
//! - What was measured survives a crash. A damaged line costs its own trial only ([`lines`]).
//! - No trial is counted twice: its id is written once, and of several lines with one id the first counts.

/// The folder of a campaign.
pub mod campaign;
/// What goes wrong with a run's folder.
mod error;
/// Runs of a folder, found by what they are.
pub mod index;
/// The lines of `trials.jsonl`.
pub mod lines;
/// One writer per folder.
pub mod lock;
/// Runs of several people and machines, on a server.
pub mod team;
#[cfg(test)]
mod tests;
/// Files that appear whole.
mod whole;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::histogram::Histogram;
use crate::record::{Line, Outcome, Record, Results, SCHEMA, Trial};
use crate::spectrum::Spectra;
use lines::Lines;
use whole::{write_beside, write_whole};

pub use error::StoreError;
pub use whole::unfinished_name;

/// Largest `record.json`, `trials.jsonl` or histogram that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// Runs of one experiment on one day that may lie in one folder.
pub const RUNS_PER_DAY_MAX: u32 = 9999;

/// The file with everything.
pub const RECORD_FILE: &str = "record.json";

/// The record as it was before the first trial; read where `record.json` is missing or damaged.
pub const START_FILE: &str = "start.json";

/// The file with trials as they happen. Its writer holds the lock on it.
pub const TRIALS_FILE: &str = "trials.jsonl";

/// The folder with histograms.
pub const LATENCY_FOLDER: &str = "latency";

/// A run's folder, open for writing.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// `trials.jsonl`, locked as long as it is open.
    trials: File,
    /// The ids of the trials in it.
    ids: BTreeSet<u64>,
}

/// A run that ended early, open for writing.
#[derive(Debug)]
pub struct Resumed {
    /// Its folder.
    pub store: Store,
    /// The record as it was written last.
    pub record: Record,
    /// The trials and outcomes that were stored.
    pub lines: Lines,
}

/// A file made by a report: its path under the run's folder, and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Path, with `/` between its parts and no way up.
    pub path: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

impl Output {
    /// A file of text.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Output {
        Output { path: path.into(), bytes: text.into().into_bytes() }
    }
}

/// Where logs of modules lie in a run's folder.
const LOG_FOLDER: &str = "modules";

/// Captures of control channels, in the run's folder.
const CAPTURE_FOLDER: &str = "captures";

/// The histograms of a trial, as far as they were taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Histograms<'a> {
    /// Latency from the real departure.
    pub latency: Option<&'a Histogram>,
    /// Latency from the scheduled departure.
    pub latency_scheduled: Option<&'a Histogram>,
    /// Distance from the scheduled departure.
    pub pacing_error: Option<&'a Histogram>,
}

impl Store {
    /// A new folder under `parent` (made if missing) for a run of `experiment` that began on `day`
    /// (`2026-01-31`), named after both with the first free number: `2026-01-31-bianco2010-fig2-1`.
    pub fn create(parent: &Path, day: &str, experiment: &str) -> Result<Store, StoreError> {
        Store::furnish(new_folder(parent, day, experiment)?)
    }

    /// This folder (made if missing) for a run, unless a run is in it.
    pub fn create_at(folder: &Path) -> Result<Store, StoreError> {
        fs::create_dir_all(folder).map_err(|error| StoreError::new("make", folder, error))?;
        let store = Store::furnish(folder.to_path_buf())?;
        // Looked at under the lock, so that two processes cannot both find the folder empty.
        match has_run(folder) {
            false => Ok(store),
            true => {
                let error = io::Error::from(io::ErrorKind::AlreadyExists);
                Err(StoreError::new("make", &folder.join(RECORD_FILE), error))
            }
        }
    }

    /// Opens the files of a run in a folder, and locks them.
    fn furnish(folder: PathBuf) -> Result<Store, StoreError> {
        let path = folder.join(TRIALS_FILE);
        let trials = lock::open(OpenOptions::new().create(true), &path)?;
        lock::lock(&trials, &folder)?;
        let latency = folder.join(LATENCY_FOLDER);
        fs::create_dir_all(&latency).map_err(|error| StoreError::new("make", &latency, error))?;
        Ok(Store { folder, trials, ids: BTreeSet::new() })
    }

    /// Opens the folder of a run that ended early, to go on with it. A last line without its end is cut off; other damaged
    /// lines stay, and are named in [`Lines::damage`].
    pub fn resume(folder: &Path) -> Result<Resumed, StoreError> {
        let (record, _) = read_record_text(folder)?;
        let mut store = Store::furnish(folder.to_path_buf())?;
        let path = folder.join(TRIALS_FILE);
        let bytes = lines::read(&path)?;
        let whole = lines::whole(&bytes);
        if whole.len() < bytes.len() {
            let cut = store.trials.set_len(whole.len() as u64);
            cut.map_err(|error| StoreError::new("write", &path, error))?;
        }
        whole::remove_unfinished(folder);
        let lines = Lines::parse(whole);
        store.ids = lines.ids.clone();
        Ok(Resumed { store, record, lines })
    }

    /// Where the run lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An id that no trial of the run has, above all others.
    pub fn next_trial_id(&self) -> u64 {
        self.ids.last().map_or(1, |last| last.saturating_add(1))
    }

    /// Keeps a trial that ended, and its histograms, whose file names it writes into the trial.
    ///
    /// # Errors
    ///
    /// A trial whose id was stored before is rejected, and nothing is written.
    pub fn append_trial(
        &mut self,
        trial: &mut Trial,
        histograms: Histograms<'_>,
    ) -> Result<(), StoreError> {
        if !self.ids.insert(trial.id) {
            return Err(StoreError::RepeatedTrial { folder: self.folder.clone(), id: trial.id });
        }
        let stem = format!("{:05}", trial.id);
        if let (Some(taken), Some(kept)) = (histograms.latency, &mut trial.latency) {
            kept.file = Some(self.write_histogram(&stem, taken)?);
        }
        if let (Some(taken), Some(kept)) =
            (histograms.latency_scheduled, &mut trial.latency_scheduled)
        {
            kept.file = Some(self.write_histogram(&format!("{stem}-scheduled"), taken)?);
        }
        if let (Some(taken), Some(kept)) = (histograms.pacing_error, &mut trial.pacing_error) {
            kept.file = Some(self.write_histogram(&format!("{stem}-pacing"), taken)?);
        }
        self.append_line(&Line::Trial(trial.clone()))
    }

    /// Writes the log of the module of trial number `id`, a line for each entry; its file under the run's
    /// folder.
    pub fn write_log(&self, id: u64, lines: &[String]) -> Result<String, StoreError> {
        let folder = self.folder.join(LOG_FOLDER);
        fs::create_dir_all(&folder).map_err(|error| StoreError::new("make", &folder, error))?;
        let name = format!("{LOG_FOLDER}/{id:05}.jsonl");
        let path = self.folder.join(&name);
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        fs::write(&path, text).map_err(|error| StoreError::new("write", &path, error))?;
        Ok(name)
    }

    /// Keeps what control channels looked like on the wire in a trial; the file's name within the run's folder.
    pub fn write_capture(&self, id: u64, bytes: &[u8]) -> Result<String, StoreError> {
        let folder = self.folder.join(CAPTURE_FOLDER);
        fs::create_dir_all(&folder).map_err(|error| StoreError::new("make", &folder, error))?;
        let name = format!("{CAPTURE_FOLDER}/{id:05}.pcapng");
        let path = self.folder.join(&name);
        fs::write(&path, bytes).map_err(|error| StoreError::new("write", &path, error))?;
        Ok(name)
    }

    /// Keeps a result that took several trials.
    pub fn append_outcome(&mut self, outcome: &Outcome) -> Result<(), StoreError> {
        self.append_line(&Line::Outcome(outcome.clone()))
    }

    fn append_line(&mut self, line: &Line) -> Result<(), StoreError> {
        let mut text = serde_json::to_string(line).expect("a line is plain data");
        text.push('\n');
        let written = self.trials.write_all(text.as_bytes()).and_then(|()| self.trials.sync_data());
        written.map_err(|error| StoreError::new("write", &self.folder.join(TRIALS_FILE), error))
    }

    /// Writes a histogram under `latency/` and returns its path under the run's folder, for the
    /// record.
    pub fn write_histogram(&self, stem: &str, taken: &Histogram) -> Result<String, StoreError> {
        let name = format!("{LATENCY_FOLDER}/{}.hgrm", file_word(stem));
        // A wait for the disk in every trial would last longer than a short trial.
        write_beside(&self.folder.join(&name), taken.to_hgrm().as_bytes(), |_| Ok(()))?;
        Ok(name)
    }

    /// Replaces `record.json`.
    pub fn write_record(&self, record: &Record) -> Result<(), StoreError> {
        write_whole(&self.folder.join(RECORD_FILE), record_text(record).as_bytes())
    }

    /// Replaces `record.json` and `start.json` by the record of a run that has no trial yet.
    pub fn write_start(&self, record: &Record) -> Result<(), StoreError> {
        write_whole(&self.folder.join(START_FILE), record_text(record).as_bytes())?;
        self.write_record(record)
    }
}

/// Makes a folder under `parent` (made if missing) for what began on `day` (`2026-01-31`), named after it with the first free
/// number: `2026-01-31-bianco2010-fig2-1`.
pub fn new_folder(parent: &Path, day: &str, name: &str) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(parent).map_err(|error| StoreError::new("make", parent, error))?;
    let stem = format!("{}-{}", file_word(day), file_word(name));
    for number in 1..=RUNS_PER_DAY_MAX {
        let folder = parent.join(format!("{stem}-{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::new("make", &folder, error)),
        }
    }
    Err(StoreError::TooManyRuns { folder: parent.join(stem), limit: RUNS_PER_DAY_MAX })
}

/// The record as `record.json` holds it, and as `--json` prints it.
pub fn record_text(record: &Record) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}

/// Reads the record in a run's folder.
pub fn read_record(folder: &Path) -> Result<Record, StoreError> {
    read_record_text(folder).map(|(record, _)| record)
}

/// Whether a run has begun in a folder.
pub fn has_run(folder: &Path) -> bool {
    [RECORD_FILE, START_FILE].iter().any(|name| folder.join(name).is_file())
}

fn read_record_text(folder: &Path) -> Result<(Record, String), StoreError> {
    with_start(folder, |path| {
        let text = read_text(path)?;
        let record: Record = parsed(path, &text)?;
        if record.schema == SCHEMA { Ok((record, text)) } else { Err(other_schema(path, &text)) }
    })
}

/// Reads `record.json`, or `start.json` where that is missing or damaged.
fn with_start<T>(
    folder: &Path,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    read(&folder.join(RECORD_FILE)).or_else(|error| match error {
        // What another version wrote is not damaged.
        StoreError::UnknownSchema { schema: Some(_), .. } => Err(error),
        // The file that is damaged is named, unless the other one can be read.
        _ => read(&folder.join(START_FILE)).map_err(|_| error),
    })
}

/// Reads the record in a run's folder without its trials, which are most of it: enough for what rests on cells.
pub fn read_results(folder: &Path) -> Result<Record, StoreError> {
    with_start(folder, |path| {
        let text = read_text(path)?;
        let brief: Results = parsed(path, &text)?;
        let record = Record::from(brief);
        if record.schema == SCHEMA { Ok(record) } else { Err(other_schema(path, &text)) }
    })
}

/// The text as what it should be; where it is not, because another version wrote it or it is no record, that is said.
fn parsed<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| match other_schema(path, text) {
        StoreError::UnknownSchema { schema: Some(schema), .. } if schema == u64::from(SCHEMA) => {
            StoreError::not_understood(path, &error)
        }
        other => other,
    })
}

/// What a text says of its schema, as the reason why it is not read; what is no JSON is told by its place.
fn other_schema(path: &Path, text: &str) -> StoreError {
    /// What every version states.
    #[derive(serde::Deserialize)]
    struct Stated {
        schema: Option<serde_json::Value>,
    }
    let is_object = text.trim_start().starts_with('{');
    let schema = match serde_json::from_str::<Stated>(text) {
        Ok(stated) if is_object => stated.schema.as_ref().and_then(serde_json::Value::as_u64),
        // What is JSON and no object is no record either.
        Ok(_) => None,
        Err(error) if error.is_data() => None,
        Err(error) => return StoreError::not_understood(path, &error),
    };
    StoreError::UnknownSchema { file: path.to_path_buf(), schema, known: SCHEMA }
}

/// Reads a run's record, and what its lines hold beyond it: a run that was ended from outside, or is still under way,
/// has written lines that its record does not know of.
pub fn read_run(folder: &Path) -> Result<Stored, StoreError> {
    read_texts(folder).map(|(stored, _)| stored)
}

/// A run as it is stored.
#[derive(Debug)]
pub struct Stored {
    /// Its record, with the trials of its lines where these are more.
    pub record: Record,
    /// Whether these were more; what is derived is then to be derived again.
    pub is_behind: bool,
    /// What was left out, a line each.
    pub damage: Vec<String>,
}

/// The texts that a run was read from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// Its record.
    pub(crate) record: String,
    /// The lines of its trials, of a run that did not end or ended early.
    pub(crate) lines: String,
}

/// The same with what it was read from.
pub(crate) fn read_texts(folder: &Path) -> Result<(Stored, Texts), StoreError> {
    let (mut record, text) = read_record_text(folder)?;
    let mut texts = Texts { record: text, ..Texts::default() };
    let path = folder.join(TRIALS_FILE);
    if !record.partial || !path.exists() {
        return Ok((Stored { record, is_behind: false, damage: Vec::new() }, texts));
    }
    let bytes = lines::read(&path)?;
    let whole = lines::whole(&bytes);
    texts.lines = String::from_utf8_lossy(whole).into_owned();
    let lines = Lines::parse(whole);
    let damage = lines.damage.iter().map(|damage| format!("{}, {damage}", path.display()));
    let damage = damage.collect();
    let (mut trials, mut outcomes) = (Vec::new(), Vec::new());
    for line in lines.lines {
        match line {
            Line::Trial(trial) => trials.push(trial),
            Line::Outcome(outcome) => outcomes.push(outcome),
        }
    }
    let is_behind = record.trials.len() < trials.len() || record.outcomes.len() < outcomes.len();
    if is_behind {
        (record.trials, record.outcomes) = (trials, outcomes);
    }
    Ok((Stored { record, is_behind, damage }, texts))
}

/// Reads a histogram that a record names.
pub fn read_histogram(folder: &Path, file: &str) -> Result<Histogram, StoreError> {
    let path = inside(folder, file)?;
    let text = read_text(&path)?;
    Histogram::from_hgrm(&text).map_err(|why| StoreError::BadHistogram { file: path, why })
}

/// Reads the latencies of these trials by percentile. What cannot be read is told of there, and left out.
pub fn read_spectra<'a>(folder: &Path, trials: impl Iterator<Item = &'a Trial>) -> Spectra {
    let mut spectra = Spectra::default();
    for trial in trials {
        let Some(file) = trial.latency.as_ref().and_then(|it| it.file.as_deref()) else { continue };
        match read_histogram(folder, file) {
            Ok(histogram) => spectra.add(trial.id, &histogram),
            Err(error) => spectra.leave_out(trial.id, &error.to_string()),
        }
    }
    spectra
}

/// Writes what a report made, each file whole; pages last, so that where a page is, everything else is too.
pub fn write_outputs(folder: &Path, outputs: &[Output]) -> Result<(), StoreError> {
    let (pages, others): (Vec<_>, Vec<_>) =
        outputs.iter().partition(|output| output.path.ends_with(".html"));
    for output in others.into_iter().chain(pages) {
        let path = inside(folder, &output.path)?;
        let parent = path.parent().expect("a file in a folder has one");
        fs::create_dir_all(parent).map_err(|error| StoreError::new("make", parent, error))?;
        write_whole(&path, &output.bytes)?;
    }
    Ok(())
}

fn read_text(path: &Path) -> Result<String, StoreError> {
    let size = fs::metadata(path).map_err(|error| StoreError::new("read", path, error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(StoreError::TooLarge { file: path.to_path_buf(), limit: FILE_BYTES_MAX });
    }
    fs::read_to_string(path).map_err(|error| StoreError::new("read", path, error))
}

/// A path under `folder`, refused if it leads out of it.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let plain =
        name.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\\'));
    match plain {
        true => Ok(folder.join(name)),
        false => Err(StoreError::OutsideRun { folder: folder.to_path_buf(), name: name.into() }),
    }
}

/// The text with everything replaced by `-` that a file name should not hold.
fn file_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let word: String =
        text.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    word.trim_start_matches('.').chars().take(80).collect()
}
