//! The tables on a server, which several people's programs share, of this version and of others.
//!
//! They lie in a schema of their own, so that the database can hold other things. Invariants: tables are made and changed by one program at a time, step by step,
//! each step whole or not at all; nothing that is there is thrown away, for only its owner knows where else it is; tables of a later program are left
//! alone.

use super::TeamError;
use super::server::word;
use crate::store::index::database::{Database, DatabaseError, Value};
use crate::store::index::schema::{
    CELL, CELL_FIRST, EXPERIMENT, FINDERS, GOES_WITH_RUN, Kind, RUN, RUN_FIRST, TARGET, TRIAL,
    Table,
};

/// The schema.
pub(super) const SCHEMA: &str = "planimeter";

/// Who makes or changes tables holds this.
const MAKING: i64 = 0x706c_616e_696d_6574;

/// Files of runs, packed by gzip: enough to open a run elsewhere.
pub(super) const CONTENTS: Table = Table {
    name: "contents",
    columns: &[
        ("run", Kind::Integer, false),
        ("path", Kind::Text, false),
        ("bytes", Kind::Integer, false),
        ("packed", Kind::Bytes, false),
    ],
};

/// What makes the tables of version 1 out of nothing, those of version 2 out of them, and so on: a program's version is how many it has.
fn steps() -> Vec<String> {
    let run = RUN_FIRST.create(compared, ", PRIMARY KEY (id), UNIQUE (identity)");
    let parts = [EXPERIMENT, TARGET, CELL_FIRST, TRIAL];
    let parts = parts.iter().map(|part| part.create(compared, GOES_WITH_RUN));
    let tables = run + &parts.collect::<String>() + FINDERS;
    let contents = CONTENTS.create(compared, GOES_WITH_RUN);
    vec![
        format!("CREATE SEQUENCE run_number;\n{tables}"),
        format!("{contents}CREATE INDEX contents_run ON contents (run);"),
        format!("ALTER TABLE {} ADD COLUMN parameters {};", RUN.name, compared(Kind::Text)),
        format!("ALTER TABLE {} ADD COLUMN reason {};", CELL.name, compared(Kind::Text)),
    ]
}

/// What a kind is called here. Texts are compared by their bytes, as in a file.
fn compared(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text COLLATE \"C\"",
        other => word(other),
    }
}

/// Sees to it that the tables are there and can be written.
pub(super) fn make(database: &mut Database) -> Result<(), TeamError> {
    make_up_to(database, &steps())
}

fn make_up_to(database: &mut Database, steps: &[String]) -> Result<(), TeamError> {
    if version(database)? == Some(steps.len() as i64) {
        return Ok(());
    }
    let mut making = database.begin()?;
    // Another may be at the same: whoever comes second finds it done.
    making.query("SELECT 'held' FROM pg_advisory_xact_lock($1)", &[Value::Integer(MAKING)])?;
    let there = version(&mut making)?;
    let done = there.unwrap_or(0);
    if done > steps.len() as i64 {
        return Err(newer(done));
    }
    if there.is_none() {
        making.script(&format!(
            "CREATE SCHEMA IF NOT EXISTS {SCHEMA}; CREATE TABLE planimeter.about (version bigint NOT NULL); INSERT INTO planimeter.about VALUES (0);"
        ))?;
    }
    for step in &steps[usize::try_from(done).unwrap_or(0)..] {
        making.script(step)?;
    }
    making.execute(
        "UPDATE planimeter.about SET version = $1",
        &[Value::Integer(steps.len() as i64)],
    )?;
    Ok(making.commit()?)
}

/// The tables as the first version had them.
#[cfg(test)]
pub(super) fn make_up_to_first(database: &mut Database) {
    make_up_to(database, &steps()[..1]).expect("a new database takes them");
}

/// Whether there are tables that can be read. Of an earlier version they can once they were written to by this one.
pub(super) fn look(database: &mut Database) -> Result<bool, TeamError> {
    let own = steps().len() as i64;
    match version(database)? {
        None => Ok(false),
        Some(there) if there == own => Ok(true),
        Some(there) if there > own => Err(newer(there)),
        Some(there) => Err(TeamError::Older { there, own }),
    }
}

fn newer(there: i64) -> TeamError {
    TeamError::Newer { there, own: steps().len() as i64 }
}

fn version(database: &mut Database) -> Result<Option<i64>, DatabaseError> {
    let named = [Value::Text(SCHEMA.into())];
    let sql =
        "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'about'";
    let there = database.query(sql, &named)?.into_iter().map(|mut row| row.integer());
    if there.sum::<Result<i64, _>>()? == 0 {
        return Ok(None);
    }
    let rows = database.query("SELECT version FROM planimeter.about", &[])?;
    rows.into_iter().next().map(|mut row| row.integer()).transpose()
}
