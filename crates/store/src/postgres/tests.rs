//! Tests of a shared results store with a real server and with invalid servers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::*;
use crate::database::address::AddressDefaults;
use crate::database::schema::{CELL, EXPERIMENT, PARTS, TARGET, TRIAL};
use crate::database::server::word;
use crate::index::TrendRow;
use crate::{Histograms, RECORD_FILE, Store, campaign};
use record::Record;
use stats::histogram::Histogram;

#[path = "../../tests/postgres/mod.rs"]
mod postgres;

use postgres::{PASSWORD, Postgres};

/// A folder of runs, removed at the end.
struct Runs(PathBuf);

impl Runs {
    fn new(test: &str) -> Runs {
        let path =
            std::env::temp_dir().join(format!("planimeter-team-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Runs(path)
    }

    /// Adds a run with this number of trials and returns its folder name.
    fn add(&self, day: &str, seed: u64, trials: usize) -> String {
        let mut store = Store::create(&self.0, day, "latency").unwrap();
        let mut record = record(day, seed, trials);
        let mut taken = Histogram::new();
        (1..=100).for_each(|ns| taken.record(ns + seed));
        for trial in &mut record.trials {
            trial.latency = taken.distribution(None);
            let latency = Some(&taken);
            store.append_trial(trial, Histograms { latency, ..Histograms::default() }).unwrap();
        }
        store.write_run(&record).unwrap();
        store.folder().file_name().unwrap().to_str().unwrap().into()
    }

    fn index(&self) -> Index {
        Index::open(&self.0).unwrap().0
    }

    fn send(&self, team: &mut PostgresStore) -> UploadResult {
        team.send(&self.0, &mut self.index(), "ann@lab1").unwrap()
    }
}

impl std::ops::Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn record(day: &str, seed: u64, trials: usize) -> Record {
    let mut record = sample::record();
    record.created = format!("{day}T12:00:00Z");
    record.seed = seed;
    record.trials.truncate(trials);
    record.cells.truncate(3);
    record
}

fn address(url: &str) -> Address {
    let beside = AddressDefaults { password: Some(PASSWORD.into()), ..AddressDefaults::default() };
    Address::read(url, &beside).unwrap().0
}

/// All rows of all tables, sorted, with the run's folder instead of its number.
fn all(database: &mut Database) -> Vec<String> {
    let mut found = Vec::new();
    for table in std::iter::once(&crate::database::schema::RUN).chain(PARTS) {
        // Columns that depend on the location: number and owner.
        let columns = table.columns.iter().map(|(name, ..)| *name);
        let columns = columns
            .filter(|name| !matches!((table.name, *name), ("run", "id" | "origin") | (_, "run")));
        let columns: Vec<String> = columns.map(|name| format!("{}.{name}", table.name)).collect();
        let from = match table.name {
            "run" => "run".to_string(),
            part => format!("{part} JOIN run ON run.id = {part}.run"),
        };
        let sql = format!("SELECT run.folder, {} FROM {from}", columns.join(", "));
        for row in database.query(&sql, &[]).unwrap() {
            let row = format!("{} {row:?}", table.name);
            // SQLite stores booleans as integers.
            found
                .push(row.replace("Bool(true)", "Integer(1)").replace("Bool(false)", "Integer(0)"));
        }
    }
    found.sort();
    found
}

fn is_same_as_file(runs: &Runs, team: &mut PostgresStore) {
    let in_file = all(&mut schema_of(&runs.0));
    assert!(!in_file.is_empty());
    assert_eq!(in_file, all(&mut team.database));
}

fn schema_of(runs: &Path) -> Database {
    drop(Index::open(runs).unwrap());
    let file = runs.join(crate::index::INDEX_FILE);
    Database::File(rusqlite::Connection::open(file).unwrap())
}

fn folders(team: &mut PostgresStore, filter: &[&str]) -> Vec<String> {
    let filter: Vec<String> = filter.iter().map(ToString::to_string).collect();
    let rows = team.runs(&Filter::read(&filter).unwrap()).unwrap();
    rows.into_iter().map(|row| row.folder).collect()
}

/// All tests share one server, because starting it takes longest.
#[test]
fn a_real_server_stores_the_contents_of_run_folders() {
    let Some(server) = Postgres::start() else { return };
    uploaded_runs_equal_a_local_index(&server.database("equal"));
    names_can_be_long_and_have_any_characters(&server.database("names"));
    newer_runs_replace_older_ones(&server.database("newer"));
    several_clients_can_upload_the_same_run(&server.database("many"));
    trials_are_uploaded_when_they_end(&server.database("pushing"));
    tables_of_other_versions_are_not_changed(&server);
    a_read_only_user_can_read(&server);
}

fn uploaded_runs_equal_a_local_index(url: &str) {
    let runs = Runs::new("equal");
    let mut team = PostgresStore::open(&address(url)).unwrap();
    assert!(folders(&mut team, &[]).is_empty(), "reading creates no tables");
    for seed in 0..70 {
        runs.add(&format!("2026-01-{:02}", 1 + seed % 28), seed, 1 + seed as usize % 5);
    }
    let office = runs.0.join("2026-01-31-office-1");
    let mut step = Store::create_at(&office.join("1-rates")).unwrap();
    step.write_run(&record("2026-01-31", 99, 4)).unwrap();
    fs::write(office.join(campaign::CAMPAIGN_FILE), "{}").unwrap();
    Store::create(&runs.0, "2026-01-31", "empty")
        .unwrap()
        .write_run(&record("2026-01-31", 0, 0))
        .unwrap();
    assert_eq!(runs.send(&mut team).runs, 71, "all runs with a measurement");
    fs::remove_dir_all(runs.0.join("2026-01-31-empty-1")).unwrap();
    is_same_as_file(&runs, &mut team);
    assert_eq!(runs.send(&mut team), UploadResult::default());
    let mut index = runs.index();
    let metric = format!("metric={}", record("2026-01-01", 0, 1).cells[0].metric.name());
    for filter in [
        &[][..],
        &["experiment=bianco2010"],
        &["experiment=bianco2010_fig2"],
        &["target=ovs", "partial=no", "since=2026-01-10", "until=2026-01-12"],
        &["target=' OR TRUE --"],
        &["link=veth:afpacket", "doubtful=yes"],
        &[&metric, "effort=quick"],
    ] {
        let filter: Vec<String> = filter.iter().map(ToString::to_string).collect();
        let filter = Filter::read(&filter).unwrap();
        let (here, there) = (index.runs(&filter).unwrap(), team.runs(&filter).unwrap());
        let plain = |row: RunRow| RunRow { id: None, origin: None, ..row };
        assert_eq!(here, there.iter().cloned().map(plain).collect::<Vec<_>>(), "{filter:?}");
        assert!(there.iter().all(|row| row.origin.as_deref() == Some("ann@lab1")));
        let (here, there) = (index.trend(&filter).unwrap(), team.trend(&filter).unwrap());
        assert!(there.iter().all(|row| row.id.is_some()), "{filter:?}");
        let plain = |row: TrendRow| TrendRow { id: None, ..row };
        assert_eq!(here, there.into_iter().map(plain).collect::<Vec<_>>(), "{filter:?}");
    }
    // A run opened from the server equals the local one.
    let found = team.runs(&Filter::default()).unwrap().pop().unwrap();
    let (identity, folder) = team.find(&found.id.unwrap()).unwrap();
    assert_eq!(team.find(&found.folder).unwrap().0, identity);
    let elsewhere = Runs::new("other");
    team.fetch(&identity, &elsewhere.0).unwrap();
    for file in [RECORD_FILE, "latency/00001.hgrm"] {
        let files =
            [&runs.0.join(&folder), &elsewhere.0].map(|it| fs::read(it.join(file)).unwrap());
        assert_eq!(files[0], files[1], "{file}");
    }
    // A run deleted locally stays in the store.
    fs::remove_dir_all(runs.0.join(&folder)).unwrap();
    assert_eq!(runs.send(&mut team), UploadResult::default());
    assert_eq!(team.find(&identity).unwrap().1, folder);
    assert!(matches!(team.find("nothing"), Err(TeamError::NoRun)));
    // Malicious file names do not leave the folder.
    for name in ["../out.hgrm", "/tmp/out.hgrm", "latency/../../out.hgrm", "run.sh"] {
        team.database
            .execute("UPDATE contents SET path = $1", &[Value::Text(name.into())])
            .unwrap();
        let text = team.fetch(&identity, &elsewhere.0).unwrap_err().to_string();
        assert!(text.contains("is not a file of a run"), "{text}");
    }
    let bomb = "UPDATE contents SET path = 'record.json', bytes = 3";
    team.database.execute(bomb, &[]).unwrap();
    assert!(team.fetch(&identity, &elsewhere.0).unwrap_err().to_string().contains("is damaged"));
}

fn names_can_be_long_and_have_any_characters(url: &str) {
    let runs = Runs::new("names");
    let odd = "žluťoučký 🐎 \u{202e}'; DROP TABLE run; -- \\ \" %";
    let folder = runs.add("2026-01-31", 1, 2);
    let text = fs::read_to_string(runs.0.join(&folder).join(RECORD_FILE)).unwrap();
    let mut record: Record = serde_json::from_str(&text).unwrap();
    record.command_line = format!("{odd}{}", "x".repeat(100_000));
    record.experiments[0].id = "e".repeat(9_000);
    record.targets[0].name = format!("zero\0{}", "ü".repeat(9_000));
    let store = runs.0.join(&folder);
    fs::write(store.join(RECORD_FILE), crate::record_text(&record)).unwrap();
    fs::rename(&store, runs.0.join(odd)).unwrap();
    let mut team = PostgresStore::open(&address(url)).unwrap();
    assert_eq!(runs.send(&mut team).runs, 1);
    assert_eq!(folders(&mut team, &[]), [odd]);
    assert_eq!(folders(&mut team, &[&format!("experiment={}", "e".repeat(9_000))]), [odd]);
    assert_eq!(folders(&mut team, &["target=zero"]), Vec::<String>::new());
    assert_eq!(team.find(odd).unwrap().1, odd);
}

fn newer_runs_replace_older_ones(url: &str) {
    let (here, there) = (Runs::new("here"), Runs::new("there"));
    let mut team = PostgresStore::open(&address(url)).unwrap();
    let name = here.add("2026-01-31", 7, 2);
    assert_eq!(here.send(&mut team).runs, 1);
    let (identity, _) = team.find(&name).unwrap();
    // Two machines may use one name for different runs, and different names for one run.
    assert_eq!(there.add("2026-01-31", 8, 2), name);
    let sent = team.send(&there.0, &mut there.index(), "bob@lab2").unwrap();
    assert_eq!(sent.runs, 1);
    let message = team.find(&name).unwrap_err().to_string();
    assert!(message.contains("ann@lab1") && message.contains("bob@lab2"), "{message}");
    fs::rename(here.0.join(&name), here.0.join("moved")).unwrap();
    assert_eq!(here.send(&mut team), UploadResult::default(), "the run is the same");
    // More trials replace fewer, and not the reverse.
    let go_on = |trials: usize| {
        let mut store = Store::create_at(&here.0.join(format!("moved-{trials}"))).unwrap();
        let first = crate::read_record(&here.0.join("moved")).unwrap();
        let mut record = record("2026-01-31", 7, trials);
        record.trials[0] = first.trials[0].clone();
        record.partial = trials < 5;
        for trial in &mut record.trials {
            store.append_trial(trial, Histograms::default()).unwrap();
        }
        store.write_run(&record).unwrap();
    };
    fs::remove_dir_all(there.0.join(&name)).unwrap();
    go_on(5);
    assert_eq!(here.send(&mut team).runs, 1, "it has changed, and the newer copy counts");
    assert_eq!(here.send(&mut team).runs, 0);
    fs::rename(here.0.join("moved"), there.0.join("old")).unwrap();
    assert_eq!(team.find(&identity).unwrap().1, "moved-5");
    assert_eq!(there.send(&mut team).runs, 0, "an older copy does not return");
    assert_eq!(team.find(&identity).unwrap().1, "moved-5");
    assert_eq!(team.runs(&Filter::default()).unwrap().len(), 2);
}

fn several_clients_can_upload_the_same_run(url: &str) {
    let runs = Runs::new("many");
    (0..40).for_each(|seed| drop(runs.add("2026-01-31", seed, 2)));
    // The tables do not exist yet either.
    thread::scope(|scope| {
        for _ in 0..4 {
            let runs = &runs;
            scope.spawn(move || runs.send(&mut PostgresStore::open(&address(url)).unwrap()));
        }
    });
    let mut team = PostgresStore::open(&address(url)).unwrap();
    assert_eq!(runs.send(&mut team), UploadResult::default());
    is_same_as_file(&runs, &mut team);
}

fn trials_are_uploaded_when_they_end(url: &str) {
    let runs = Runs::new("pushing");
    let mut team = PostgresStore::open(&address(url)).unwrap();
    let mut store = Store::create(&runs.0, "2026-01-31", "latency").unwrap();
    let mut record = record("2026-01-31", 5, 8);
    let trials = std::mem::take(&mut record.trials);
    record.partial = true;
    store.write_run(&record).unwrap();
    let mut pushing = IncrementalUpload::new(store.folder(), "2026-01-31-latency-1", "ann@lab1");
    assert_eq!(pushing.push(&mut team).unwrap(), 0);
    let count = |team: &mut PostgresStore| team.runs(&Filter::default()).unwrap()[0].trials;
    for (done, trial) in trials.iter().enumerate() {
        store.append_trial(&mut trial.clone(), Histograms::default()).unwrap();
        if done == 3 {
            // Another client uploads the run, and the server closes this connection.
            assert_eq!(runs.send(&mut team).runs, 1);
            team = PostgresStore::open(&address(url)).unwrap();
        }
        assert_eq!(pushing.push(&mut team).unwrap(), 1);
        assert_eq!(count(&mut team), done as u64 + 1);
    }
    // A late upload sends only what is missing, without duplicates.
    let mut late = IncrementalUpload::new(store.folder(), "2026-01-31-latency-1", "ann@lab1");
    late.push(&mut team).unwrap();
    assert_eq!(count(&mut team), 8);
    record.trials = trials;
    record.partial = false;
    store.write_run(&record).unwrap();
    assert_eq!(runs.send(&mut team).runs, 1, "with its cells and files");
    is_same_as_file(&runs, &mut team);
}

fn tables_of_other_versions_are_not_changed(server: &Postgres) {
    let runs = Runs::new("versions");
    runs.add("2026-01-31", 1, 2);
    let url = server.database("later");
    let mut team = PostgresStore::open(&address(&url)).unwrap();
    assert_eq!(runs.send(&mut team).runs, 1);
    server.sql("later", "UPDATE planimeter.about SET version = 99");
    let mut other = PostgresStore::open(&address(&url)).unwrap();
    for message in [
        other.send(&runs.0, &mut runs.index(), "x").unwrap_err(),
        other.runs(&Filter::default()).unwrap_err(),
    ] {
        assert!(matches!(message, TeamError::Newer { there: 99, own: 6 }) && message.is_lasting());
        assert!(message.to_string().contains("update planimeter"), "{message}");
    }
    // Data from an earlier version are preserved.
    let url = server.database("earlier");
    let mut team = PostgresStore::open(&address(&url)).unwrap();
    tables::make_up_to_first(&mut team.database);
    let message = team.runs(&Filter::default()).unwrap_err().to_string();
    assert!(message.contains("version 1, this planimeter reads 6"), "{message}");
    server.sql("earlier", &format!("INSERT INTO planimeter.run VALUES (nextval('planimeter.run_number'), 'kept', 1, 1, '{}', 'd', \
        NULL, '2026-01-01', 'v', 'c', '1', 'quick', false, 'memory', false, '{{}}')", "a".repeat(64)));
    server.sql("earlier", "INSERT INTO planimeter.target VALUES (1, 0, 'ours:model=x', NULL, 'memory'); \
        INSERT INTO planimeter.cell VALUES (1, 'latency', 'ours', 'latency_ns_p50', 'load_percent', 5, NULL, 1, NULL, NULL, 1); \
        INSERT INTO planimeter.trial VALUES (1, 1, 'latency', 'oursel', 1, 'measure', 5, NULL, NULL, NULL, NULL)");
    assert_eq!(runs.send(&mut team).runs, 1);
    assert_eq!(folders(&mut team, &[]), ["2026-01-31-latency-1", "kept"]);
    let names = "SELECT name FROM planimeter.target WHERE run = 1 UNION ALL SELECT target FROM planimeter.cell WHERE run = 1 \
                 UNION ALL SELECT target FROM planimeter.trial WHERE run = 1";
    let names =
        team.database.query(names, &[]).unwrap().into_iter().map(|mut row| row.text().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["switch:model=x", "switch", "oursel"]);
    assert!(matches!(team.fetch(&"a".repeat(64), &runs.0), Err(TeamError::NotKept)));
}

fn a_read_only_user_can_read(server: &Postgres) {
    let runs = Runs::new("looking");
    runs.add("2026-01-31", 1, 2);
    let url = server.database("looking");
    let mut team = PostgresStore::open(&address(&url)).unwrap();
    assert_eq!(runs.send(&mut team).runs, 1);
    server.sql("looking", &format!(
        "CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA planimeter TO reader; \
         GRANT SELECT ON ALL TABLES IN SCHEMA planimeter TO reader"
    ));
    runs.add("2026-02-01", 2, 2);
    let mut reader = PostgresStore::open(&address(&server.url("reader", "looking"))).unwrap();
    let message = reader.send(&runs.0, &mut runs.index(), "x").unwrap_err();
    assert!(message.is_read_only() && message.is_lasting(), "{message}");
    assert!(message.to_string().contains("permission denied"), "{message}");
    assert_eq!(folders(&mut reader, &[]), ["2026-01-31-latency-1"], "reading still works");
    // Without existing tables, this user may not create any.
    server.database("bare");
    let mut reader = PostgresStore::open(&address(&server.url("reader", "bare"))).unwrap();
    assert!(folders(&mut reader, &[]).is_empty());
    let message = reader.send(&runs.0, &mut runs.index(), "x").unwrap_err();
    assert!(message.is_read_only(), "{message}");
    // A wrong password, and a missing database.
    let wrong = AddressDefaults { password: Some("secret".into()), ..AddressDefaults::default() };
    let (wrong, _) = Address::read(&server.url("reader", "looking"), &wrong).unwrap();
    for (address, want) in [
        (wrong, "password authentication failed"),
        (address(&server.url("reader", "nowhere")), "does not exist"),
    ] {
        let message = PostgresStore::open(&address).unwrap_err();
        assert!(message.is_lasting() && message.to_string().contains(want), "{message}");
        assert!(!message.to_string().contains("secret"), "{message}");
    }
}

/// A fake server that handles a connection with this function. Returns its address with short
/// timeouts.
fn strange(does: impl Fn(std::net::TcpStream) + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().flatten().for_each(does));
    let url = format!("postgres://ann@127.0.0.1:{port}/lab?sslmode=disable");
    let patience = Duration::from_millis(300);
    Address { connect: patience, answer: patience, ..address(&url) }
}

/// Sends nothing and reads until the client disconnects.
fn until_they_leave(mut stream: std::net::TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Messages that complete a login: AuthenticationOk, BackendKeyData, ReadyForQuery.
const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";

#[test]
fn an_invalid_server_ends_in_a_one_line_error() {
    let answers: [(&'static [u8], &str); 6] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ""),
        (b"R\0\0\0\x08\0\0\0\0Z\xff\xff\xff\xff\xff\xff", ""),
        (b"E\0\0\0\x2aSFATAL\0VFATAL\0C28000\0Mno\x1b[31m\r\nentry\0\0", "entry"),
        (b"R\0\0\0\x04", ""),
        (b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ""),
        (b"", "connection lost"),
    ];
    for (bytes, want) in answers {
        let address = strange(move |mut stream| {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
        });
        let message = PostgresStore::open(&address).unwrap_err().to_string();
        assert!(
            !message.contains(char::is_control) && message.contains(want),
            "{bytes:?}: {message}"
        );
    }
    // A server that accepts the connection but does not reply, either at the start or after login.
    let silent = strange(until_they_leave);
    let message = PostgresStore::open(&silent).unwrap_err();
    assert!(
        message.to_string().contains("no reply within 0.3 s") && !message.is_lasting(),
        "{message}"
    );
    let silent = strange(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(LET_IN);
        until_they_leave(stream);
    });
    let message = PostgresStore::open(&silent).unwrap_err().to_string();
    assert!(message.contains("no reply within 0.3 s"), "{message}");
    // Unrequested rows.
    let odd = strange(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(LET_IN);
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"C\0\0\0\x08SET\0Z\0\0\0\x05I");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(
            b"1\0\0\0\x04T\0\0\0\x1c\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01",
        );
        let _ = stream
            .write_all(b"2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01xC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I");
        until_they_leave(stream);
    });
    let mut team = PostgresStore::open(&odd).unwrap();
    let message = team.runs(&Filter::default()).unwrap_err().to_string();
    assert!(!message.contains(char::is_control) && !message.is_empty(), "{message}");
    // No server listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = address(&format!("postgres://ann@{free}/lab"));
    let message = PostgresStore::open(&nobody).unwrap_err();
    assert!(message.to_string().contains("cannot connect") && !message.is_lasting(), "{message}");
    let socket = address("postgres://ann@/lab?host=/nowhere");
    assert!(PostgresStore::open(&socket).unwrap_err().to_string().contains("cannot connect"));
}

#[test]
fn both_databases_have_the_column_names_of_the_schema() {
    let kinds: Vec<_> = [&EXPERIMENT, &TARGET, &CELL, &TRIAL, &tables::CONTENTS]
        .into_iter()
        .flat_map(|table| table.columns.iter().map(|(_, kind, _)| word(*kind)))
        .collect();
    assert!(["bigint", "double precision", "text", "bytea"].iter().all(|it| kinds.contains(it)));
}
