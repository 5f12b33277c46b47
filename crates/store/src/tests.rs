//! Tests of a run's folder: crashes, repeats and errors.

use super::*;

/// A temporary folder for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("planimeter-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Store {
    /// Stores a whole run: its trials and outcomes that are not stored yet, and its record.
    pub(crate) fn write_run(&mut self, record: &Record) -> Result<(), StoreError> {
        for trial in &record.trials {
            if !self.ids.contains(&trial.id) {
                self.append_trial(&mut trial.clone(), Histograms::default())?;
            }
        }
        record.outcomes.iter().try_for_each(|outcome| self.append_outcome(outcome))?;
        self.write_record(record)
    }
}

#[test]
fn a_run_never_uses_an_existing_folder() {
    let folder = Folder::new("names");
    let first = Store::create(&folder.0, "2026-01-31", "bianco2010/fig2").unwrap();
    let second = Store::create(&folder.0, "2026-01-31", "bianco2010/fig2").unwrap();
    assert!(first.folder().ends_with("2026-01-31-bianco2010-fig2-1"));
    assert!(second.folder().ends_with("2026-01-31-bianco2010-fig2-2"));
    let odd = Store::create(&folder.0, "2026-01-31", "../../x y").unwrap();
    assert_eq!(odd.folder().parent(), Some(folder.0.as_path()));
}

#[test]
fn measured_trials_survive_and_a_truncated_line_does_not() {
    let folder = Folder::new("resume");
    let mut record = sample::record();
    let trials = std::mem::take(&mut record.trials);
    let mut store = Store::create(&folder.0, "2026-01-31", "latency").unwrap();
    store.write_record(&record).unwrap();
    for trial in &trials {
        store.append_trial(&mut trial.clone(), Histograms::default()).unwrap();
    }
    let path = store.folder().to_path_buf();
    drop(store);
    let mut file = OpenOptions::new().append(true).open(path.join(TRIALS_FILE)).unwrap();
    file.write_all(br#"{"line":"trial","id":99,"exp"#).unwrap();

    let mut resumed = Store::resume(&path).unwrap();
    assert_eq!(resumed.record, record);
    let kept: Vec<TrialLine> = trials.iter().cloned().map(TrialLine::Trial).collect();
    assert_eq!(resumed.lines.lines, kept);
    assert!(!resumed.lines.has_gaps());
    let next = &mut Trial { id: trials.len() as u64 + 1, ..trials[0].clone() };
    resumed.store.append_trial(next, Histograms::default()).unwrap();
    drop(resumed);
    assert_eq!(Store::resume(&path).unwrap().lines.lines.len(), trials.len() + 1);
}

#[test]
fn histograms_are_in_the_files_of_their_trial() {
    let folder = Folder::new("histograms");
    let mut store = Store::create(&folder.0, "2026-01-31", "latency").unwrap();
    let mut taken = Histogram::new();
    (1..2000).for_each(|ns| taken.record(ns));
    let mut trial = sample::record().trials.remove(0);
    trial.latency = taken.distribution(None);
    let histograms = Histograms { latency: Some(&taken), ..Histograms::default() };
    store.append_trial(&mut trial, histograms).unwrap();
    let file = trial.latency.unwrap().file.unwrap();
    assert_eq!(read_histogram(store.folder(), &file).unwrap(), taken);
    store.write_record(&sample::record()).unwrap();
    let path = store.folder().to_path_buf();
    drop(store);
    let resumed = Store::resume(&path).unwrap();
    let TrialLine::Trial(kept) = &resumed.lines.lines[0] else { panic!("a trial was written") };
    assert_eq!(kept.latency.as_ref().unwrap().file.as_ref(), Some(&file));
}

#[test]
fn an_unreadable_histogram_is_reported_and_the_others_are_read() {
    let folder = Folder::new("spectra");
    let mut trials = sample::record().trials;
    trials.truncate(6);
    let mut store = Store::create(&folder.0, "2026-01-31", "latency").unwrap();
    let mut taken = Histogram::new();
    (1..=100).for_each(|ns| taken.record(ns));
    for trial in &mut trials {
        let latency = Some(&taken);
        store.append_trial(trial, Histograms { latency, ..Histograms::default() }).unwrap();
    }
    fs::write(store.folder().join("latency/00002.hgrm"), "#[Base64V2 = ").unwrap();
    for id in 3..=6 {
        fs::remove_file(store.folder().join(format!("latency/0000{id}.hgrm"))).unwrap();
    }
    let spectra = read_spectra(store.folder(), trials.iter());
    assert!(!spectra.of_trials(&[1]).is_empty() && spectra.of_trials(&[2, 3]).is_empty());
    let reported = spectra.left_out();
    assert_eq!(reported.len(), 4, "{reported:?}");
    assert!(
        reported[0].starts_with("trial 2: ") && reported[0].contains("Base64V2"),
        "{reported:?}"
    );
    assert_eq!(reported[3], "and 2 more trials");
}

#[test]
fn a_record_round_trips_exactly() {
    let folder = Folder::new("record");
    let record = sample::record();
    let mut store = Store::create(&folder.0, "2026-01-31", "fig2").unwrap();
    store.write_run(&record).unwrap();
    let text = fs::read_to_string(store.folder().join(RECORD_FILE)).unwrap();
    assert!(!text.contains("\"trials\": [\n    {") && !text.contains("\"outcomes\""));
    let read = read_record(store.folder()).unwrap();
    assert_eq!(read, record);
    assert_eq!(record_text(&read), record_text(&record));
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let folder = Folder::new("refusals");
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, "x").unwrap();
    let error = Store::create(&file, "2026-01-31", "fig2").unwrap_err().to_string();
    assert!(error.contains("cannot make") && error.contains("file"), "{error}");

    let missing = read_record(&folder.0.join("nowhere")).unwrap_err().to_string();
    assert!(missing.contains("cannot read") && missing.contains("record.json"), "{missing}");

    for (text, want) in [
        ("{\"schema\": 7}", "has schema version 7, but only versions 1 to 2 are supported"),
        ("{}", "is not a planimeter record"),
        ("[1]", "is not a planimeter record"),
        ("{\n\"schema\": 1,\n", "line 3"),
        ("{\"schema\": 1}", "missing field"),
    ] {
        fs::write(folder.0.join(RECORD_FILE), text).unwrap();
        let error = read_record(&folder.0).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn names_do_not_lead_out_of_the_folder() {
    let folder = Folder::new("outside");
    for path in ["../x", "/etc/x", "a//b", "figures/../../x", ""] {
        let output = Output::text(path, "");
        let error = write_outputs(&folder.0, &[output]).unwrap_err();
        assert!(matches!(error, StoreError::OutsideRun { .. }), "{path}");
        assert!(read_histogram(&folder.0, path).is_err());
    }
    let output = Output::text("figures/a.svg", "<svg/>");
    write_outputs(&folder.0, &[output]).unwrap();
    assert_eq!(fs::read_to_string(folder.0.join("figures/a.svg")).unwrap(), "<svg/>");
}

#[test]
fn lines_before_a_truncation_survive() {
    let folder = Folder::new("cut");
    let mut record = sample::record();
    let trials: Vec<Trial> = record.trials.drain(..).take(3).collect();
    record = Record { cells: Vec::new(), ratios: Vec::new(), claims: Vec::new(), ..record };
    record.partial = true;
    let mut store = Store::create(&folder.0, "2026-01-31", "latency").unwrap();
    store.write_record(&record).unwrap();
    for trial in &trials {
        store.append_trial(&mut trial.clone(), Histograms::default()).unwrap();
    }
    let lines = store.folder().join(TRIALS_FILE);
    let whole = fs::read(&lines).unwrap();
    let ends: Vec<usize> = (1..=whole.len()).filter(|end| whole[end - 1] == b'\n').collect();
    assert_eq!(ends.len(), 3);
    for cut in 0..=whole.len() {
        fs::write(&lines, &whole[..cut]).unwrap();
        let wanted = ends.iter().filter(|end| **end <= cut).count();
        let read = read_run(store.folder()).unwrap().record;
        assert_eq!(read.trials, trials[..wanted], "cut at byte {cut}");
    }
    // Records are replaced atomically. The error for a truncated record states the position, and
    // the lines stay unchanged.
    let path = store.folder().join(RECORD_FILE);
    let text = fs::read(&path).unwrap();
    for cut in (0..text.len() - 1).step_by(97) {
        fs::write(&path, &text[..cut]).unwrap();
        let message = read_run(store.folder()).unwrap_err().to_string();
        assert!(
            message.contains("record.json, line ") && !message.contains('\n'),
            "{cut}: {message}"
        );
    }
    assert_eq!(fs::read(&lines).unwrap(), whole);
}

/// Records written by released versions, named after schema and content. These files never change.
#[test]
fn records_of_every_schema_can_be_opened() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let folder = Folder::new("kept");
    fs::create_dir_all(&folder.0).unwrap();
    let mut schemas = Vec::new();
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(folder.0.join(RECORD_FILE), &text).unwrap();
        let Stored { record: read, is_behind, .. } = read_run(&folder.0).unwrap();
        assert!(!is_behind && !read.trials.is_empty() && !read.cells.is_empty(), "{path:?}");
        let results = read_results(&folder.0).unwrap();
        assert_eq!((&results.cells, &results.targets), (&read.cells, &read.targets), "{path:?}");
        schemas.push(schema_of(&path, &text).unwrap());
        assert_eq!(read.schema, SCHEMA, "{path:?}");
        assert_eq!(numbers(&record_text(&read)), numbers(&text), "{path:?}");
        // They have the target `ours`.
        assert!(text.contains(r#""target":"ours""#), "{path:?}");
        let names = || {
            let trials = read.trials.iter().map(|it| &it.target);
            let cells = read.cells.iter().map(|it| &it.target);
            let outcomes = read.outcomes.iter().map(|it| &it.target);
            let targets = read.targets.iter().flat_map(|it| [&it.name, &it.spec]);
            trials.chain(cells).chain(outcomes).chain(targets)
        };
        assert!(names().all(|name| name == "switch"), "{:?}", names().collect::<Vec<_>>());
        // Derived values are recomputed: the cells are equal.
        let mut again = read.clone();
        report::finish(&mut again, &sample::claims());
        let of = |record: &Record| -> Vec<(String, f64)> {
            let cell = |it: &record::Cell| (it.metric.name().to_string(), it.value);
            record.cells.iter().map(cell).collect()
        };
        assert_eq!(of(&again), of(&read), "{path:?}");
    }
    for schema in 1..=SCHEMA {
        assert!(
            schemas.contains(&Some(schema.into())),
            "no sample record of schema {schema}: {schemas:?}"
        );
    }
}

/// Returns all numbers of a record except zero, which may be left out, and the schema, sorted.
fn numbers(text: &str) -> Vec<f64> {
    fn add(value: &serde_json::Value, found: &mut Vec<f64>) {
        match value {
            serde_json::Value::Number(number) => found.extend(number.as_f64()),
            serde_json::Value::Array(all) => all.iter().for_each(|it| add(it, found)),
            serde_json::Value::Object(fields) => fields.values().for_each(|it| add(it, found)),
            _ => {}
        }
    }
    let mut record: serde_json::Value = serde_json::from_str(text).unwrap();
    record.as_object_mut().unwrap().remove("schema");
    let mut found = Vec::new();
    add(&record, &mut found);
    found.retain(|number| *number != 0.0);
    found.sort_by(f64::total_cmp);
    found
}

/// Creates a folder with a partial run of these trials.
fn stored(folder: &Folder, trials: &[Trial]) -> PathBuf {
    let mut record = sample::record();
    record.trials.clear();
    record = Record { cells: Vec::new(), ratios: Vec::new(), claims: Vec::new(), ..record };
    record.partial = true;
    let mut store = Store::create(&folder.0, "2026-01-31", "latency").unwrap();
    store.write_start(&record).unwrap();
    for trial in trials {
        store.append_trial(&mut trial.clone(), Histograms::default()).unwrap();
    }
    store.folder().to_path_buf()
}

fn trials(count: usize) -> Vec<Trial> {
    let mut trials = sample::record().trials;
    trials.truncate(count);
    assert_eq!(trials.len(), count);
    trials
}

#[test]
fn a_folder_has_one_writer() {
    let folder = Folder::new("writers");
    let run = stored(&folder, &trials(2));
    let first = Store::resume(&run).unwrap();
    let before = fs::read(run.join(TRIALS_FILE)).unwrap();
    for error in [
        Store::resume(&run).map(drop).unwrap_err(),
        Store::create_at(&run).map(drop).unwrap_err(),
        lock::Locked::take(&run).map(drop).unwrap_err(),
    ] {
        let own = format!("process {} is writing to it", std::process::id());
        let line = error.to_string();
        assert!(line.contains(&own) && line.contains(run.to_str().unwrap()), "{line}");
    }
    assert_eq!(fs::read(run.join(TRIALS_FILE)).unwrap(), before);
    // Reading needs no lock.
    assert_eq!(read_run(&run).unwrap().record.trials.len(), 2);
    drop(first);
    let report = lock::Locked::take(&run).unwrap();
    assert!(matches!(Store::resume(&run), Err(StoreError::Locked { .. })));
    drop(report);
    Store::resume(&run).unwrap();
    assert!(lock::Locked::take(&folder.0).unwrap().is_none(), "there is no run");
    // Links from an archive are not followed.
    let (path, other) = (run.join(TRIALS_FILE), folder.0.join("other"));
    fs::rename(&path, &other).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(matches!(Store::resume(&run), Err(StoreError::System { doing: "write", .. })));
}

#[test]
fn a_repeated_trial_is_neither_written_nor_counted() {
    let folder = Folder::new("repeated");
    let trials = trials(4);
    let run = stored(&folder, &trials);
    let mut resumed = Store::resume(&run).unwrap();
    let error = resumed.store.append_trial(&mut trials[1].clone(), Histograms::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("trial 2 already exists"), "{error}");
    drop(resumed);
    // As two concurrent writers of an earlier version left it: another trial with an existing id.
    let other = Trial { id: 2, frames_offered: 77, ..trials[1].clone() };
    let mut file = OpenOptions::new().append(true).open(run.join(TRIALS_FILE)).unwrap();
    writeln!(file, "{}", serde_json::to_string(&TrialLine::Trial(other)).unwrap()).unwrap();
    let read = read_run(&run).unwrap();
    assert_eq!(read.record.trials, trials, "the first one counts");
    let named = "trials.jsonl, line 5: trial 2 is repeated, ignored: the first one counts";
    assert!(read.damage.len() == 1 && read.damage[0].ends_with(named), "{:?}", read.damage);
    let resumed = Store::resume(&run).unwrap();
    assert_eq!(resumed.lines.lines.len(), 4);
    assert!(resumed.lines.has_gaps());
}

#[test]
fn a_damaged_line_loses_only_its_own_trial() {
    let trials = trials(4);
    let text = serde_json::to_string(&TrialLine::Trial(trials[2].clone())).unwrap();
    let half = text.as_bytes()[..text.len() / 2].to_vec();
    let nul = vec![0; text.len()];
    let mut strange = text.clone().into_bytes();
    strange[20] = 0xff;
    let brackets = vec![b'['; 100_000];
    for (name, bytes) in [
        ("half", half),
        ("nul", nul),
        ("not-utf-8", strange),
        ("empty", Vec::new()),
        ("other", br#"{"line":"trial","id":3}"#.to_vec()),
        ("deep", brackets),
    ] {
        let folder = Folder::new(&format!("damaged-{name}"));
        let run = stored(&folder, &trials);
        let path = run.join(TRIALS_FILE);
        let whole = fs::read(&path).unwrap();
        let mut lines: Vec<&[u8]> = whole.split(|byte| *byte == b'\n').collect();
        lines[2] = &bytes;
        fs::write(&path, lines.join(&b'\n')).unwrap();
        let read = read_run(&run).unwrap();
        let kept = [&trials[..2], &trials[3..]].concat();
        assert_eq!(read.record.trials, kept, "{name}");
        assert_eq!(read.damage.len(), 1, "{name}: {:?}", read.damage);
        assert!(
            read.damage[0].contains("trials.jsonl, line 3: damaged, ignored: "),
            "{:?}",
            read.damage
        );
        let resumed = Store::resume(&run).unwrap();
        assert_eq!(resumed.lines.lines.len(), 3, "{name}");
        assert!(resumed.lines.has_gaps(), "{name}");
    }
}

#[test]
fn a_run_without_its_record_is_read_from_its_start() {
    let folder = Folder::new("start");
    let trials = trials(3);
    let run = stored(&folder, &trials);
    let path = run.join(RECORD_FILE);
    let text = fs::read(&path).unwrap();
    let half = text[..text.len() / 2].to_vec();
    for damaged in [Some(Vec::new()), Some(vec![0; 4096]), Some(half), Some(vec![0xff; 9]), None] {
        match &damaged {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        assert!(has_run(&run));
        assert_eq!(read_run(&run).unwrap().record.trials, trials);
        assert!(read_results(&run).unwrap().partial);
        assert_eq!(Store::resume(&run).unwrap().lines.lines.len(), 3);
        assert!(Store::create_at(&run).is_err());
    }
    // A record of another version is not damaged.
    fs::write(&path, "{\"schema\": 7}").unwrap();
    assert!(matches!(read_run(&run), Err(StoreError::UnknownSchema { .. })));
    // If both files are unusable, the error names the damaged one.
    fs::write(&path, "").unwrap();
    fs::remove_file(run.join(START_FILE)).unwrap();
    let line = read_run(&run).unwrap_err().to_string();
    assert!(line.contains("record.json"), "{line}");
}

#[test]
fn writers_of_one_file_never_share_a_temporary_file() {
    let folder = Folder::new("other-files");
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("report.html");
    let texts: Vec<String> = (0..8).map(|it| format!("{it}").repeat(100_000)).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            let path = &path;
            scope.spawn(move || {
                (0..20).for_each(|_| whole::write_whole(path, text.as_bytes()).unwrap());
            });
        }
    });
    let read = fs::read_to_string(&path).unwrap();
    assert!(texts.contains(&read), "a file of two writers");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    // Leftover files of a killed writer are ignored, and the next resume removes them.
    let run = stored(&folder, &trials(1));
    for name in ["record.json.1-1.part", "latency/00001.hgrm.1-1.part"] {
        fs::write(run.join(name), "x").unwrap();
    }
    Store::resume(&run).unwrap();
    let left = fs::read_dir(&run).unwrap().chain(fs::read_dir(run.join(LATENCY_FOLDER)).unwrap());
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
}
