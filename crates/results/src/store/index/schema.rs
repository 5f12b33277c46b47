//! The index's tables, and the database that they lie in.
//!
//! Invariant: a database of another version is no error of anybody's: it is emptied and filled again.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rusqlite::{Connection, ErrorCode};

/// Version of the tables; a database of another is made anew.
const VERSION: i64 = 1;

/// So long another reader who writes is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY, folder TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
    created TEXT NOT NULL, version TEXT NOT NULL, command_line TEXT NOT NULL, seed TEXT NOT NULL, effort TEXT NOT NULL,
    partial INTEGER NOT NULL, link TEXT NOT NULL, doubtful INTEGER NOT NULL, environment TEXT NOT NULL);
CREATE TABLE unreadable (
    folder TEXT PRIMARY KEY, bytes INTEGER NOT NULL, changed_ns INTEGER NOT NULL, why TEXT NOT NULL);
CREATE TABLE experiment (run INTEGER NOT NULL, id TEXT NOT NULL);
CREATE TABLE target (run INTEGER NOT NULL, name TEXT NOT NULL, version TEXT, link TEXT NOT NULL);
CREATE TABLE cell (
    run INTEGER NOT NULL, experiment TEXT NOT NULL, target TEXT NOT NULL, metric TEXT NOT NULL, point_name TEXT NOT NULL,
    point REAL NOT NULL, within TEXT, value REAL, low REAL, high REAL, n INTEGER NOT NULL);
CREATE TABLE trial (
    run INTEGER NOT NULL, id INTEGER NOT NULL, experiment TEXT NOT NULL, target TEXT NOT NULL, repeat INTEGER NOT NULL,
    role TEXT NOT NULL, point REAL NOT NULL, rate_pps_offered REAL, rate_pps_forwarded REAL, latency_ns_p50 INTEGER,
    latency_ns_p99 INTEGER);
CREATE INDEX run_created ON run (created);
CREATE INDEX experiment_run ON experiment (run, id);
CREATE INDEX target_run ON target (run, name);
CREATE INDEX cell_run ON cell (run, metric);
CREATE INDEX cell_metric ON cell (metric, run);
CREATE INDEX trial_run ON trial (run);
";

/// Opens a database, with empty tables if it is new or of another version.
pub(super) fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    // What a crash of the machine spoils is made anew.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let making = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = making.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        let names: Vec<String> = {
            let mut tables = making.prepare(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )?;
            tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?
        };
        for name in names {
            making.execute_batch(&format!("DROP TABLE \"{}\"", name.replace('"', "\"\"")))?;
        }
        making.execute_batch(TABLES)?;
        making.pragma_update(None, "user_version", VERSION)?;
    }
    making.commit()?;
    Ok(connection)
}

/// Whether an error tells of a file that is no good, and not of one that may not be written or is in use.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let refusals = [
        ErrorCode::CannotOpen,
        ErrorCode::PermissionDenied,
        ErrorCode::ReadOnly,
        ErrorCode::DiskFull,
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::OutOfMemory,
    ];
    error.sqlite_error_code().is_none_or(|code| !refusals.contains(&code))
}

/// Removes a database and what SQLite keeps beside it.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    for end in ["-journal", "-wal", "-shm", ""] {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        match fs::remove_file(Path::new(&name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
