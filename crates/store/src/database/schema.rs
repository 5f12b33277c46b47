//! Tables of the index, common to the SQLite file and the server, and the SQLite file itself.
//!
//! Invariant: a file of another version is not an error. Its tables are dropped and filled again.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rusqlite::{Connection, ErrorCode};

use super::{Database, DatabaseError};

/// Version of the tables in a file. Tables of other versions are recreated.
const VERSION: i64 = 5;

/// Timeout for another process that writes the file.
const PATIENCE: Duration = Duration::from_secs(30);

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Integer,
    Real,
    Text,
    Bytes,
}

/// A column: its name, its type, and whether it may be null.
pub(crate) type Column = (&'static str, Kind, bool);

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

const fn has(name: &'static str, kind: Kind) -> Column {
    (name, kind, false)
}

const fn may_have(name: &'static str, kind: Kind) -> Column {
    (name, kind, true)
}

/// Runs.
///
/// - `identity` identifies a run, independent of its folder.
/// - `digest` identifies the contents of its files.
/// - `origin` names its owner in a shared results store.
pub(crate) const RUN: Table = Table {
    name: "run",
    columns: &[
        has("id", Kind::Integer),
        has("folder", Kind::Text),
        has("bytes", Kind::Integer),
        has("changed_ns", Kind::Integer),
        has("identity", Kind::Text),
        has("digest", Kind::Text),
        may_have("origin", Kind::Text),
        has("created", Kind::Text),
        has("version", Kind::Text),
        has("command_line", Kind::Text),
        has("seed", Kind::Text),
        has("effort", Kind::Text),
        has("partial", Kind::Bool),
        has("link", Kind::Text),
        has("doubtful", Kind::Bool),
        has("environment", Kind::Text),
        may_have("parameters", Kind::Text),
    ],
};

/// Runs and cells in version 1 of the tables of a shared results store.
pub(crate) const RUN_FIRST: Table = RUN.without_last();
pub(crate) const CELL_FIRST: Table = CELL.without_last();

/// Experiments of runs, in the record's order.
pub(crate) const EXPERIMENT: Table = Table {
    name: "experiment",
    columns: &[has("run", Kind::Integer), has("place", Kind::Integer), has("id", Kind::Text)],
};

/// Targets of runs, in the record's order.
pub(crate) const TARGET: Table = Table {
    name: "target",
    columns: &[
        has("run", Kind::Integer),
        has("place", Kind::Integer),
        has("name", Kind::Text),
        may_have("version", Kind::Text),
        has("link", Kind::Text),
    ],
};

/// Cells of runs. `reason` states why the value supports no conclusion.
pub(crate) const CELL: Table = Table {
    name: "cell",
    columns: &[
        has("run", Kind::Integer),
        has("experiment", Kind::Text),
        has("target", Kind::Text),
        has("metric", Kind::Text),
        has("point_name", Kind::Text),
        has("point", Kind::Real),
        may_have("within", Kind::Text),
        may_have("value", Kind::Real),
        may_have("low", Kind::Real),
        may_have("high", Kind::Real),
        has("n", Kind::Integer),
        may_have("reason", Kind::Text),
    ],
};

/// Trials of runs.
pub(crate) const TRIAL: Table = Table {
    name: "trial",
    columns: &[
        has("run", Kind::Integer),
        has("id", Kind::Integer),
        has("experiment", Kind::Text),
        has("target", Kind::Text),
        has("repeat", Kind::Integer),
        has("role", Kind::Text),
        has("point", Kind::Real),
        may_have("rate_pps_offered", Kind::Real),
        may_have("rate_pps_forwarded", Kind::Real),
        may_have("latency_ns_p50", Kind::Integer),
        may_have("latency_ns_p99", Kind::Integer),
    ],
};

/// Tables whose rows belong to a run and are deleted with it.
pub(crate) const PARTS: [&Table; 4] = [&EXPERIMENT, &TARGET, &CELL, &TRIAL];

/// Runs below a folder that cannot be read. Only the SQLite file has this table.
pub(crate) const UNREADABLE: Table = Table {
    name: "unreadable",
    columns: &[
        has("folder", Kind::Text),
        has("bytes", Kind::Integer),
        has("changed_ns", Kind::Integer),
        has("why", Kind::Text),
    ],
};

/// SQL indexes of both databases. PostgreSQL limits the length of an indexed value. Of the names,
/// only a metric's is short enough.
pub(crate) const FINDERS: &str = "
CREATE INDEX run_created ON run (created);
CREATE INDEX experiment_run ON experiment (run);
CREATE INDEX target_run ON target (run);
CREATE INDEX cell_run ON cell (run);
CREATE INDEX cell_metric ON cell (metric, run);
CREATE INDEX trial_run ON trial (run, id);
";

/// SQLite type name of a kind.
fn in_file(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool | Kind::Integer => "INTEGER",
        Kind::Real => "REAL",
        Kind::Text => "TEXT",
        Kind::Bytes => "BLOB",
    }
}

impl Table {
    /// The table before its last column was added.
    const fn without_last(&self) -> Table {
        Table { name: self.name, columns: self.columns.split_at(self.columns.len() - 1).0 }
    }

    /// The statement that creates the table, with the type names of a database and further
    /// constraints.
    pub(crate) fn create(&self, word: fn(Kind) -> &'static str, rules: &str) -> String {
        let mut sql = format!("CREATE TABLE {} (", self.name);
        for (at, (name, kind, may_be_missing)) in self.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let need = if *may_be_missing { "" } else { " NOT NULL" };
            let _ = write!(sql, "{comma}{name} {}{need}", word(*kind));
        }
        sql + rules + ");\n"
    }

    /// The statement that inserts a row.
    pub(crate) fn insert_row(&self) -> String {
        let places: Vec<String> = (1..=self.columns.len()).map(|at| format!("${at}")).collect();
        format!("INSERT INTO {} VALUES ({})", self.name, places.join(", "))
    }
}

/// Constraint that deletes a part of a run together with the run.
pub(crate) const GOES_WITH_RUN: &str = ", FOREIGN KEY (run) REFERENCES run (id) ON DELETE CASCADE";

/// The tables of a file.
fn tables() -> String {
    let run = RUN.create(in_file, ", PRIMARY KEY (id), UNIQUE (folder)");
    let parts = PARTS.iter().map(|part| part.create(in_file, GOES_WITH_RUN));
    let unreadable = UNREADABLE.create(in_file, ", PRIMARY KEY (folder)");
    run + &parts.collect::<String>() + &unreadable + FINDERS
}

/// Opens a file, with empty tables if it is new or of another version.
pub(crate) fn connect(file: &Path) -> Result<Database, DatabaseError> {
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    // A machine crash can damage the file, which is then recreated.
    connection.pragma_update(None, "synchronous", "OFF")?;
    // Off while tables are dropped. SQLite ignores this setting within a transaction.
    connection.pragma_update(None, "foreign_keys", "OFF")?;
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
        making.execute_batch(&tables())?;
        making.pragma_update(None, "user_version", VERSION)?;
    }
    making.commit()?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    Ok(Database::File(connection))
}

/// Whether an error means that the file is damaged, not that it is read-only or in use.
pub(crate) fn is_damage(error: &DatabaseError) -> bool {
    let refusals = [
        ErrorCode::CannotOpen,
        ErrorCode::PermissionDenied,
        ErrorCode::ReadOnly,
        ErrorCode::DiskFull,
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::OutOfMemory,
    ];
    match error {
        DatabaseError::File(error) => {
            error.sqlite_error_code().is_none_or(|code| !refusals.contains(&code))
        }
        _ => true,
    }
}

/// Removes a database and the files that SQLite creates next to it.
pub(crate) fn remove(file: &Path) -> io::Result<()> {
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
