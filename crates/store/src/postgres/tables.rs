//! Tables on a server, which several clients of different versions share.
//!
//! The tables have their own schema, so that the database can contain other data. Invariants:
//!
//! - One client at a time creates or changes tables, in one transaction.
//! - A change deletes no data, because the run folders may no longer exist.
//! - Tables of a later version are not changed.

use record::schema1;

use super::TeamError;
use crate::database::schema::{
    CELL, CELL_FIRST, EXPERIMENT, FINDERS, GOES_WITH_RUN, Kind, RUN, RUN_FIRST, TARGET, TRIAL,
    Table,
};
use crate::database::server::word;
use crate::database::{Database, DatabaseError, Value};
use record::target_name::{SWITCH, SWITCH_BEFORE};

/// The schema.
pub(super) const SCHEMA: &str = "planimeter";

/// Key of the advisory lock for creating and changing tables.
const MAKING: i64 = 0x706c_616e_696d_6574;

/// Files of runs, compressed with gzip. They suffice to open a run on another machine.
pub(super) const CONTENTS: Table = Table {
    name: "contents",
    columns: &[
        ("run", Kind::Integer, false),
        ("path", Kind::Text, false),
        ("bytes", Kind::Integer, false),
        ("packed", Kind::Bytes, false),
    ],
};

/// Statements that upgrade the tables by one version each. The first step creates them. The number
/// of steps is the supported version.
fn steps() -> Vec<String> {
    let run = RUN_FIRST.create(compared, ", PRIMARY KEY (id), UNIQUE (identity)");
    let parts = [EXPERIMENT, TARGET, CELL_FIRST, TRIAL];
    let parts = parts.iter().map(|part| part.create(compared, GOES_WITH_RUN));
    let tables = run + &parts.collect::<String>() + FINDERS;
    let names = [(TARGET, "name"), (CELL, "target"), (TRIAL, "target")];
    let renamed = names.map(|(table, column)| {
        format!(
            "UPDATE {} SET {column} = '{SWITCH}' || substr({column}, {}) WHERE {column} ~ '^{SWITCH_BEFORE}($|[:@])';",
            table.name,
            SWITCH_BEFORE.len() + 1,
        )
    });
    let contents = CONTENTS.create(compared, GOES_WITH_RUN);
    vec![
        format!("CREATE SEQUENCE run_number;\n{tables}"),
        format!("{contents}CREATE INDEX contents_run ON contents (run);"),
        format!("ALTER TABLE {} ADD COLUMN parameters {};", RUN.name, compared(Kind::Text)),
        format!("ALTER TABLE {} ADD COLUMN reason {};", CELL.name, compared(Kind::Text)),
        renamed.concat(),
        schema1::METRICS.iter().map(rename_metric).collect(),
    ]
}

/// The statement that gives a metric of schema 1 its present name.
fn rename_metric((was, now): &(&str, &str)) -> String {
    format!("UPDATE {} SET metric = '{now}' WHERE metric = '{was}';\n", CELL.name)
}

/// PostgreSQL type name of a kind. Texts are compared by bytes, as in SQLite.
fn compared(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text COLLATE \"C\"",
        other => word(other),
    }
}

/// Creates or upgrades the tables if necessary.
pub(super) fn make(database: &mut Database) -> Result<(), TeamError> {
    make_up_to(database, &steps())
}

fn make_up_to(database: &mut Database, steps: &[String]) -> Result<(), TeamError> {
    if version(database)? == Some(steps.len() as i64) {
        return Ok(());
    }
    let mut making = database.begin()?;
    // Another client may create them at the same time. The second one finds nothing left to do.
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

/// Creates the tables of version 1.
#[cfg(test)]
pub(super) fn make_up_to_first(database: &mut Database) {
    make_up_to(database, &steps()[..1]).expect("a new database takes them");
}

/// Whether readable tables exist. Tables of an earlier version are an error until a client with
/// write access upgrades them.
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
