//! Run folders, the index of runs, and the team store.
//!
//! Contents of a folder:
//!
//! - `record.json`: the record without trials and outcomes, replaced atomically
//! - `start.json`: the record before the first trial
//! - `trials.jsonl`: one line per trial or outcome, written to disk when the trial ends and before the next
//!   one begins
//! - `latency/*.hgrm`: histograms
//! - report files
//!
//! Invariants:
//!
//! - A run never uses a folder that exists.
//! - Only one process writes to a run at a time ([`lock`]).
//! - Measurements survive a crash. A damaged line affects only its own trial ([`lines`]).
//! - No trial is counted twice: its id is written once, and of several lines with one id the first
//!   counts.

pub mod campaign;
pub mod columns;
pub mod csv;
pub mod database;
mod error;
pub mod index;
pub mod lines;
pub mod lock;
pub mod postgres;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lines::Lines;
use record::{Outcome, Record, Results, SCHEMA, Trial, TrialLine, schema1};
use stats::histogram::Histogram;
use stats::spectrum::Spectra;
use whole::{write_beside, write_whole};

pub use error::StoreError;
pub use whole::unfinished_name;

/// Largest `record.json`, `trials.jsonl` or histogram that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of runs of one experiment per day and folder.
pub const RUNS_PER_DAY_MAX: u32 = 9999;

/// File with the record without trials and outcomes. Earlier versions stored these too.
pub const RECORD_FILE: &str = "record.json";

/// The record before the first trial; used if `record.json` is missing or damaged.
pub const START_FILE: &str = "start.json";

/// File with the trials, appended as they end. Its writer holds the lock on it.
pub const TRIALS_FILE: &str = "trials.jsonl";

/// The folder with histograms.
pub const LATENCY_FOLDER: &str = "latency";

/// A run's folder, open for writing.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// `trials.jsonl`, locked while open.
    trials: File,
    /// Ids of the trials in it.
    ids: BTreeSet<u64>,
}

/// An interrupted run, open for writing.
#[derive(Debug)]
pub struct Resumed {
    /// Its folder.
    pub store: Store,
    /// The last written record.
    pub record: Record,
    /// The stored trials and outcomes.
    pub lines: Lines,
}

/// A report file: its path under the run's folder, and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Path with `/` as separator and without `..`.
    pub path: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

impl Output {
    /// Creates a text file.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Output {
        Output { path: path.into(), bytes: text.into().into_bytes() }
    }
}

/// Folder of module logs in a run's folder.
const LOG_FOLDER: &str = "modules";

/// Folder of control channel captures in a run's folder.
const CAPTURE_FOLDER: &str = "captures";

/// The histograms of a trial, if recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Histograms<'a> {
    /// Latency from the actual send time.
    pub latency: Option<&'a Histogram>,
    /// Latency from the scheduled send time.
    pub latency_scheduled: Option<&'a Histogram>,
    /// Difference between scheduled and actual send time.
    pub pacing_error: Option<&'a Histogram>,
}

impl Store {
    /// Creates a folder for a run of `experiment` that began on `day` (`2026-01-31`). The folder is
    /// in `parent`, which is created if missing. Its name has the first free number:
    /// `2026-01-31-bianco2010-fig2-1`.
    pub fn create(parent: &Path, day: &str, experiment: &str) -> Result<Store, StoreError> {
        Store::furnish(new_folder(parent, day, experiment)?)
    }

    /// Uses this folder for a run and creates it if missing. Fails if it contains a run.
    pub fn create_at(folder: &Path) -> Result<Store, StoreError> {
        fs::create_dir_all(folder).map_err(|error| StoreError::new("make", folder, error))?;
        let store = Store::furnish(folder.to_path_buf())?;
        // Checked under the lock, so that two processes cannot both find the folder empty.
        match has_run(folder) {
            false => Ok(store),
            true => {
                let error = io::Error::from(io::ErrorKind::AlreadyExists);
                Err(StoreError::new("make", &folder.join(RECORD_FILE), error))
            }
        }
    }

    /// Opens and locks the files of a run.
    fn furnish(folder: PathBuf) -> Result<Store, StoreError> {
        let path = folder.join(TRIALS_FILE);
        let trials = lock::open(OpenOptions::new().create(true), &path)?;
        lock::lock(&trials, &folder)?;
        let latency = folder.join(LATENCY_FOLDER);
        fs::create_dir_all(&latency).map_err(|error| StoreError::new("make", &latency, error))?;
        Ok(Store { folder, trials, ids: BTreeSet::new() })
    }

    /// Opens the folder of an interrupted run to continue it. Truncates an incomplete last line.
    /// Other damaged lines stay and are listed in [`Lines::damage`].
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

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An unused trial id, above all others.
    pub fn next_trial_id(&self) -> u64 {
        self.ids.last().map_or(1, |last| last.saturating_add(1))
    }

    /// Stores a trial and its histograms, and sets the histogram file names in the trial.
    ///
    /// # Errors
    ///
    /// Rejects a trial whose id is already stored, and writes nothing.
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
        self.append_line(&TrialLine::Trial(trial.clone()))
    }

    /// Writes the log of the module in trial `id`, one line per entry. Returns its path under the
    /// run's folder.
    pub fn write_log(&self, id: u64, lines: &[String]) -> Result<String, StoreError> {
        let folder = self.folder.join(LOG_FOLDER);
        fs::create_dir_all(&folder).map_err(|error| StoreError::new("make", &folder, error))?;
        let name = format!("{LOG_FOLDER}/{id:05}.jsonl");
        let path = self.folder.join(&name);
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        fs::write(&path, text).map_err(|error| StoreError::new("write", &path, error))?;
        Ok(name)
    }

    /// Writes the capture of control channels in a trial. Returns its path under the run's folder.
    pub fn write_capture(&self, id: u64, bytes: &[u8]) -> Result<String, StoreError> {
        let folder = self.folder.join(CAPTURE_FOLDER);
        fs::create_dir_all(&folder).map_err(|error| StoreError::new("make", &folder, error))?;
        let name = format!("{CAPTURE_FOLDER}/{id:05}.pcapng");
        let path = self.folder.join(&name);
        fs::write(&path, bytes).map_err(|error| StoreError::new("write", &path, error))?;
        Ok(name)
    }

    /// Stores a result that required several trials.
    pub fn append_outcome(&mut self, outcome: &Outcome) -> Result<(), StoreError> {
        self.append_line(&TrialLine::Outcome(outcome.clone()))
    }

    fn append_line(&mut self, line: &TrialLine) -> Result<(), StoreError> {
        let mut text = serde_json::to_string(line).expect("a line is plain data");
        text.push('\n');
        let written = self.trials.write_all(text.as_bytes()).and_then(|()| self.trials.sync_data());
        written.map_err(|error| StoreError::new("write", &self.folder.join(TRIALS_FILE), error))
    }

    /// Writes a histogram under `latency/`. Returns its path under the run's folder, for the
    /// record.
    pub fn write_histogram(&self, stem: &str, taken: &Histogram) -> Result<String, StoreError> {
        let name = format!("{LATENCY_FOLDER}/{}.hgrm", file_word(stem));
        // A disk sync per trial would take longer than a short trial.
        write_beside(&self.folder.join(&name), taken.to_hgrm().as_bytes(), |_| Ok(()))?;
        Ok(name)
    }

    /// Replaces `record.json`. The trials and outcomes must be [stored](Store::append_trial).
    pub fn write_record(&self, record: &Record) -> Result<(), StoreError> {
        let mut value = serde_json::to_value(record.without_trials()).expect("it is plain data");
        if let Some(fields) = value.as_object_mut() {
            // Empty lists would look like a run without trials.
            fields.retain(|name, _| !["trials", "outcomes"].contains(&name.as_str()));
            let counts: BTreeSet<u64> = record.trials.iter().map(|trial| trial.id).collect();
            let left_out = self.ids.difference(&counts).copied().collect();
            let counted = CountingTrials { trials: record.trials.len(), left_out };
            let counted = serde_json::to_value(counted).expect("it is plain data");
            fields.insert("counted".into(), counted);
        }
        write_whole(&self.folder.join(RECORD_FILE), format!("{value}\n").as_bytes())
    }

    /// Replaces `record.json` and `start.json` with the record of a run without trials.
    pub fn write_start(&self, record: &Record) -> Result<(), StoreError> {
        write_whole(&self.folder.join(START_FILE), record_text(record).as_bytes())?;
        self.write_record(record)
    }
}

/// Creates a folder in `parent` (created if missing) for a run or campaign that began on `day`
/// (`2026-01-31`). Its name has the first free number: `2026-01-31-bianco2010-fig2-1`.
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

/// The record as JSON.
pub fn record_text(record: &Record) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}

/// Reads the record and the trials in a run's folder.
pub fn read_record(folder: &Path) -> Result<Record, StoreError> {
    read_run(folder).map(|stored| stored.record)
}

/// Whether a folder contains a run.
pub fn has_run(folder: &Path) -> bool {
    [RECORD_FILE, START_FILE].iter().any(|name| folder.join(name).is_file())
}

fn read_record_text(folder: &Path) -> Result<(Record, String), StoreError> {
    with_start(folder, |path| {
        let text = read_text(path)?;
        let record: Record = parsed(path, &text)?;
        Ok((record, text))
    })
}

/// Reads `record.json`, or `start.json` if the former is missing or damaged.
fn with_start<T>(
    folder: &Path,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    read(&folder.join(RECORD_FILE)).or_else(|error| match error {
        // A record of another version is not damaged.
        StoreError::UnknownSchema { schema: Some(_), .. } => Err(error),
        // Reports the damaged file unless the other one is readable.
        _ => read(&folder.join(START_FILE)).map_err(|_| error),
    })
}

/// Reads the record in a run's folder without its trials. Sufficient for uses of cells.
pub fn read_results(folder: &Path) -> Result<Record, StoreError> {
    with_start(folder, |path| {
        let text = read_text(path)?;
        let brief: Results = parsed(path, &text)?;
        Ok(Record::from(brief))
    })
}

/// Parses a text of this schema or of schema 1. The error states whether another version wrote it
/// or it is not a record.
fn parsed<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, StoreError> {
    let parsed = match schema_of(path, text)? {
        Some(1) => serde_json::from_str(text).and_then(|mut value| {
            schema1::convert_record(&mut value);
            serde_json::from_value(value)
        }),
        Some(schema) if schema == u64::from(SCHEMA) => serde_json::from_str(text),
        schema => {
            let file = path.to_path_buf();
            return Err(StoreError::UnknownSchema { file, schema, known: SCHEMA });
        }
    };
    parsed.map_err(|error| StoreError::not_understood(path, &error))
}

/// Returns the schema that a text states. For invalid JSON the error states the position.
fn schema_of(path: &Path, text: &str) -> Result<Option<u64>, StoreError> {
    /// The field that every version has.
    #[derive(serde::Deserialize)]
    struct Stated {
        schema: Option<serde_json::Value>,
    }
    let is_object = text.trim_start().starts_with('{');
    match serde_json::from_str::<Stated>(text) {
        Ok(stated) if is_object => Ok(stated.schema.as_ref().and_then(serde_json::Value::as_u64)),
        // JSON other than an object is not a record.
        Ok(_) => Ok(None),
        Err(error) if error.is_data() => Ok(None),
        Err(error) => Err(StoreError::not_understood(path, &error)),
    }
}

/// Reads a run's record and its trials. Values of a run that was killed or is still in progress do
/// not include all of its trials.
pub fn read_run(folder: &Path) -> Result<Stored, StoreError> {
    read_texts(folder).map(|(stored, _)| stored)
}

/// A stored run.
#[derive(Debug)]
pub struct Stored {
    /// Its record, with trials.
    pub record: Record,
    /// Whether the derived values may lack trials, so that they must be recomputed.
    pub is_behind: bool,
    /// Descriptions of the parts that were omitted, one line each.
    pub damage: Vec<String>,
}

/// Which trials of `trials.jsonl` count. A resumed run may leave out some of them.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct CountingTrials {
    /// Number of trials that count.
    trials: usize,
    /// Ids of the others.
    left_out: BTreeSet<u64>,
}

impl CountingTrials {
    /// Reads the field from the text of a record. Records of earlier versions have none.
    fn of(record: &str) -> CountingTrials {
        #[derive(serde::Deserialize)]
        struct Field {
            #[serde(default)]
            counted: CountingTrials,
        }
        serde_json::from_str(record)
            .map_or_else(|_| CountingTrials::default(), |it: Field| it.counted)
    }
}

/// The source texts of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceTexts {
    /// The record.
    pub(crate) record: String,
    /// The lines of trials and outcomes, unless the record contains them.
    pub(crate) lines: String,
}

/// Reads a run and its source texts.
pub(crate) fn read_texts(folder: &Path) -> Result<(Stored, SourceTexts), StoreError> {
    let (mut record, text) = read_record_text(folder)?;
    let mut texts = SourceTexts { record: text, ..SourceTexts::default() };
    let path = folder.join(TRIALS_FILE);
    let is_complete = !record.partial && !record.trials.is_empty();
    if is_complete || !path.exists() {
        return Ok((Stored { record, is_behind: false, damage: Vec::new() }, texts));
    }
    let bytes = lines::read(&path)?;
    let whole = lines::whole(&bytes);
    texts.lines = String::from_utf8_lossy(whole).into_owned();
    let lines = Lines::parse(whole);
    let damage = lines.damage.iter().map(|damage| format!("{}, {damage}", path.display()));
    let mut damage: Vec<String> = damage.collect();
    let (mut trials, mut outcomes) = (Vec::new(), Vec::new());
    for line in lines.lines {
        match line {
            TrialLine::Trial(trial) => trials.push(trial),
            TrialLine::Outcome(outcome) => outcomes.push(outcome),
        }
    }
    let CountingTrials { trials: counted, left_out } = CountingTrials::of(&texts.record);
    trials.retain(|trial: &Trial| !left_out.contains(&trial.id));
    outcomes.retain(|outcome: &Outcome| outcome.trials.iter().all(|id| !left_out.contains(id)));
    if !record.partial && trials.len() == counted {
        // The damaged lines were measured again.
        damage.clear();
    }
    let has_more = record.trials.len() < trials.len() || record.outcomes.len() < outcomes.len();
    if has_more {
        trials.sort_by_key(|trial| trial.id);
        outcomes.sort_by_key(|outcome| outcome.trials.last().copied());
        (record.trials, record.outcomes) = (trials, outcomes);
    }
    Ok((Stored { is_behind: has_more && record.partial, record, damage }, texts))
}

/// Reads a histogram that a record refers to.
pub fn read_histogram(folder: &Path, file: &str) -> Result<Histogram, StoreError> {
    let path = inside(folder, file)?;
    let text = read_text(&path)?;
    Histogram::from_hgrm(&text).map_err(|why| StoreError::BadHistogram { file: path, why })
}

/// Reads the latency percentiles of these trials. Lists and omits unreadable histograms.
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

/// Writes report files atomically. Pages come last, so that all files that a page needs exist.
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

/// A path under `folder`. Rejects paths that lead out of it.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let plain =
        name.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\\'));
    match plain {
        true => Ok(folder.join(name)),
        false => Err(StoreError::OutsideRun { folder: folder.to_path_buf(), name: name.into() }),
    }
}

/// Replaces characters that are unsafe in a file name with `-`.
fn file_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let word: String =
        text.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    word.trim_start_matches('.').chars().take(80).collect()
}
