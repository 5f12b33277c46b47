//! Tests of the index: changes of runs, and damage to the index.

use std::path::PathBuf;
use std::thread;

use rusqlite::Connection;

use super::*;
use crate::{Histograms, Store};
use record::{Point, Record};

/// A folder of runs, removed at the end.
struct Runs(PathBuf);

impl Runs {
    fn new(test: &str) -> Runs {
        let path =
            std::env::temp_dir().join(format!("planimeter-index-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Runs(path)
    }

    /// Adds a run with the first trials of the sample run, dated this day.
    fn add(&self, day: &str, experiment: &str) -> String {
        let mut store = Store::create(&self.0, day, experiment).unwrap();
        store.write_run(&record(day, experiment)).unwrap();
        store.folder().file_name().unwrap().to_str().unwrap().into()
    }

    fn open(&self) -> (Index, IndexUpdate) {
        Index::open(&self.0).unwrap()
    }

    fn folders(&self, filter: &[&str]) -> Vec<String> {
        let filter: Vec<String> = filter.iter().map(ToString::to_string).collect();
        let runs = self.open().0.runs(&Filter::read(&filter).unwrap()).unwrap();
        runs.into_iter().map(|row| row.folder).collect()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The identity that the first version computed for a record with the target `ours`.
#[test]
fn a_current_name_does_not_change_the_identity() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let text = fs::read_to_string(folder.join("1-latency.json")).unwrap();
    let record: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(record.trials[0].target, "switch");
    assert_eq!(
        rows::identity(&record, &record.trials[0]),
        "342c20c2ba4d91d32a866768dce88458dfd4847a32f5fbc5bafd63d9090823de"
    );
}

fn record(day: &str, experiment: &str) -> Record {
    let mut record = sample::record();
    record.created = format!("{day}T12:00:00Z");
    record.trials.truncate(4);
    record.cells.truncate(2);
    record.experiments.truncate(1);
    record.experiments[0].id = experiment.into();
    for cell in &mut record.cells {
        cell.experiment = experiment.into();
        cell.point = Point::new("frame_bytes", 64.0);
    }
    record
}

#[test]
fn runs_of_a_campaign_are_found_in_its_folder() {
    let runs = Runs::new("campaign");
    let alone = runs.add("2026-01-30", "latency");
    let office = runs.0.join("2026-01-31-office-1");
    for step in ["1-rates", "2-latency"] {
        let mut store = Store::create_at(&office.join(step)).unwrap();
        store.write_run(&record("2026-01-31", step)).unwrap();
    }
    assert_eq!(runs.folders(&[]), std::slice::from_ref(&alone), "the folder is not a campaign yet");
    fs::write(office.join(campaign::CAMPAIGN_FILE), "{}").unwrap();
    let wanted = ["2026-01-31-office-1/1-rates", "2026-01-31-office-1/2-latency"];
    assert_eq!(runs.folders(&["since=2026-01-31"]).len(), 2);
    assert!(wanted.iter().all(|run| runs.folders(&[]).iter().any(|it| it == run)));
    fs::remove_dir_all(office.join("1-rates")).unwrap();
    assert_eq!(runs.folders(&["since=2026-01-31"]), wanted[1..]);
}

#[test]
fn runs_are_found_by_their_properties() {
    let runs = Runs::new("filters");
    let first = runs.add("2026-01-31", "bianco2010/fig2");
    let second = runs.add("2026-02-01", "latency");
    assert_eq!(runs.folders(&[]), [second.clone(), first.clone()]);
    for (filter, wanted) in [
        (&["experiment=bianco2010"][..], vec![&first]),
        (&["experiment=bianco2010/fig2"], vec![&first]),
        (&["experiment=bianco2010_fig2"], vec![]),
        (&["since=2026-02-01"], vec![&second]),
        (&["until=2026-01-31"], vec![&first]),
        (&["target=ovs", "partial=no"], vec![&second, &first]),
        (&["target=ovs' OR '1"], vec![]),
        (&["link=veth:afpacket", "since=2026-01-01", "experiment=latency"], vec![&second]),
    ] {
        assert_eq!(runs.folders(filter).iter().collect::<Vec<_>>(), wanted, "{filter:?}");
    }
    let wrong = ["speed=1", "since=yesterday", "partial=maybe", "target", "target="];
    for text in wrong {
        let message = Filter::read(&[text.into()]).unwrap_err().to_string();
        assert!(message.contains(text) && message.contains("KEY=VALUE"), "{message}");
    }
}

#[test]
fn a_trend_lists_the_values_of_a_metric_in_order() {
    let runs = Runs::new("trend");
    runs.add("2026-02-01", "latency");
    runs.add("2026-01-31", "latency");
    let metric = record("2026-01-31", "latency").cells[0].metric.name();
    let (mut index, _) = runs.open();
    let found = index.trend(&Filter::read(&[format!("metric={metric}")]).unwrap()).unwrap();
    assert!(found.len() >= 2);
    assert!(found[0].created < found[1].created && found[0].point == "frame_bytes=64");
    assert_eq!(index.trials().unwrap(), 8);
}

#[test]
fn a_series_has_equal_link_host_effort_parameters_and_version_family() {
    let runs = Runs::new("series");
    type Change = fn(&mut Record);
    let changes: [(&str, Change); 7] = [
        ("the same", |_| {}),
        ("frame", |it| {
            it.parameters.insert("set".into(), serde_json::json!(["frame=512", "capacity=10G"]));
        }),
        ("effort", |it| it.effort = record::Effort::Full),
        ("host", |it| it.environment.cpu_model = Some("another".into())),
        ("link", |it| {
            it.link = "memif".into();
            it.targets.iter_mut().for_each(|target| target.link = Some("memif".into()));
        }),
        ("version", |it| {
            it.targets.iter_mut().for_each(|it| it.version = Some("9.9.1".into()));
        }),
        ("patch", |it| {
            it.targets.iter_mut().for_each(|it| it.version = Some("9.9.2".into()));
        }),
    ];
    for (place, (name, change)) in changes.iter().enumerate() {
        let day = format!("2026-02-{:02}", place + 1);
        let mut record = record(&day, "latency");
        change(&mut record);
        let mut store = Store::create(&runs.0, &day, name).unwrap();
        store.write_run(&record).unwrap();
    }
    runs.add("2026-03-01", "latency");
    let first = &record("2026-01-31", "latency").cells[0];
    let filter = [format!("metric={}", first.metric.name()), format!("target={}", first.target)];
    let (mut index, _) = runs.open();
    let rows = index.trend(&Filter::read(&filter).unwrap()).unwrap();
    assert_eq!(rows.len(), changes.len() + 1);
    let series: Vec<Vec<&str>> = rows
        .chunk_by(TrendRow::is_of_series)
        .map(|rows| rows.iter().map(|row| &row.created[..10]).collect())
        .collect();
    // The first and the last have equal conditions, as have two patches of one version family.
    assert!(series.contains(&vec!["2026-02-01", "2026-03-01"]), "{series:?}");
    assert!(series.contains(&vec!["2026-02-06", "2026-02-07"]), "{series:?}");
    assert_eq!(series.len(), 6, "{series:?}");
}

#[test]
fn only_changed_runs_are_read_again() {
    let runs = Runs::new("stale");
    let (first, second) = (runs.add("2026-01-31", "latency"), runs.add("2026-02-01", "latency"));
    assert_eq!(runs.open().1, IndexUpdate { read: 2, ..IndexUpdate::default() });
    assert_eq!(runs.open().1, IndexUpdate::default());
    let other = crate::record_text(&record("2026-03-01", "fairness"));
    fs::write(runs.0.join(&first).join(RECORD_FILE), other).unwrap();
    fs::remove_dir_all(runs.0.join(&second)).unwrap();
    assert_eq!(runs.open().1, IndexUpdate { read: 1, removed: 1, ..IndexUpdate::default() });
    assert_eq!(runs.folders(&["experiment=fairness"]), [first]);
}

#[test]
fn an_unreadable_run_is_named_and_does_not_affect_others() {
    let runs = Runs::new("unreadable");
    let good = runs.add("2026-01-31", "latency");
    let whole = crate::record_text(&record("2026-01-31", "latency"));
    for (name, text) in [
        ("cut", &whole[..whole.len() / 2]),
        ("edited", &whole.replacen("\"seed\": 7", "\"seed\": \"seven\"", 1)),
        ("later", "{\"schema\": 3, \"everything\": \"else\"}"),
        ("other", "[]"),
    ] {
        fs::create_dir(runs.0.join(name)).unwrap();
        fs::write(runs.0.join(name).join(RECORD_FILE), text).unwrap();
    }
    fs::create_dir(runs.0.join("no run")).unwrap();
    let (_, refreshed) = runs.open();
    let reported: Vec<&str> = refreshed.unreadable.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(reported, ["cut", "edited", "later", "other"]);
    assert!(refreshed.unreadable.iter().all(|(_, why)| !why.contains('\n')));
    assert!(refreshed.unreadable[2].1.contains("schema version 3, but only versions 1 to 2"));
    assert_eq!(runs.folders(&[]), [good]);
    assert_eq!(runs.open().1.read, 0, "an invalid run is not read again until it changes");
    fs::write(runs.0.join("cut").join(RECORD_FILE), whole).unwrap();
    assert_eq!(runs.open().1.unreadable.len(), 3);
}

#[test]
fn a_damaged_index_is_rebuilt() {
    let runs = Runs::new("damage");
    let folder = runs.add("2026-01-31", "latency");
    runs.open();
    let file = runs.0.join(INDEX_FILE);
    let whole = fs::read(&file).unwrap();
    let mut reported = 0;
    for step in 0..24 {
        // Truncated or partly overwritten.
        let at = whole.len() * step / 24;
        let mut spoilt = whole.clone();
        match step % 2 {
            0 => spoilt.truncate(at),
            _ => spoilt[at..(at + 300).min(whole.len())].fill(0xa5),
        }
        fs::write(&file, spoilt).unwrap();
        let (mut index, refreshed) = runs.open();
        reported += usize::from(refreshed.remark.is_some());
        let rows = index.runs(&Filter::default());
        if let Ok(rows) = rows {
            assert!(rows.iter().all(|row| row.folder == folder), "step {step}: {rows:?}");
        }
    }
    assert!(reported > 6, "{reported}");
    fs::write(&file, "no database").unwrap();
    let remark = runs.open().1.remark.unwrap();
    assert!(
        remark.contains("index.sqlite was damaged") && remark.contains("was recreated"),
        "{remark}"
    );
    assert_eq!(runs.folders(&[]), std::slice::from_ref(&folder));
    let later = Connection::open(&file).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    assert_eq!(runs.open().1.read, 1, "of another version");
    // If the path is blocked by something other than a file, the index is in memory.
    schema::remove(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let (mut index, refreshed) = runs.open();
    assert!(refreshed.remark.unwrap().contains("cannot be stored"));
    assert_eq!(index.runs(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn concurrent_readers_work_while_runs_are_written() {
    let runs = Runs::new("concurrent");
    thread::scope(|scope| {
        for day in ["2026-01-01", "2026-01-02", "2026-01-03"] {
            let runs = &runs;
            scope.spawn(move || {
                for _ in 0..4 {
                    let mut store = Store::create(&runs.0, day, "latency").unwrap();
                    let mut record = record(day, "latency");
                    store.append_trial(&mut record.trials[0], Histograms::default()).unwrap();
                    store.write_run(&record).unwrap();
                    assert_eq!(runs.open().1.remark, None);
                }
            });
        }
    });
    assert_eq!(runs.folders(&[]).len(), 12);
    assert_eq!(runs.open().0.trials().unwrap(), 48);
}
