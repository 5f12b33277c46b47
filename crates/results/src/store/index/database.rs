//! The seam between what is asked and who answers: SQLite in a file beside the runs, or PostgreSQL on a server.
//!
//! Both are asked in the same words: what the two dialects share is enough for the index. Invariants: what comes from a record or from a
//! user reaches the database as a value, never as a part of its language; a transaction that is not committed leaves nothing.
//! Places for values are written `$1`, `$2`... in the order in which they come first: SQLite takes these for names and numbers them in
//! that order.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::schema::Table;
use crate::store::team::server::{Server, ServerError};

/// A value in a database, or of a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Several texts, for a server: one of them.
    Texts(Vec<String>),
    /// Several numbers, for a server.
    Integers(Vec<i64>),
}

impl Value {
    /// A text, or none.
    pub(crate) fn text_or_null(text: Option<impl Into<String>>) -> Value {
        text.map_or(Value::Null, |text| Value::Text(text.into()))
    }

    /// A number, or none.
    pub(crate) fn real_or_null(value: Option<f64>) -> Value {
        value.map_or(Value::Null, Value::Real)
    }

    /// A count; one that is larger than any database's numbers is the largest of these.
    pub(crate) fn count(count: u64) -> Value {
        Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = match self {
            Value::Null => ValueRef::Null,
            Value::Bool(value) => ValueRef::Integer((*value).into()),
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::Texts(_) | Value::Integers(_) => {
                let why = "SQLite has no arrays".into();
                return Err(rusqlite::Error::ToSqlConversionFailure(why));
            }
        };
        Ok(ToSqlOutput::Borrowed(borrowed))
    }
}

/// A row of an answer.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    /// A row of these values.
    pub(crate) fn new(values: Vec<Value>) -> Row {
        Row(values.into_iter())
    }

    fn next<T>(
        &mut self,
        what: &'static str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<T, DatabaseError> {
        self.0.next().and_then(read).ok_or(DatabaseError::Unexpected(what))
    }

    /// The next value, which is a text.
    pub(crate) fn text(&mut self) -> Result<String, DatabaseError> {
        self.text_or_none()?.ok_or(DatabaseError::Unexpected("a text"))
    }

    /// The same where there may be none.
    pub(crate) fn text_or_none(&mut self) -> Result<Option<String>, DatabaseError> {
        self.next("a text", |value| match value {
            Value::Text(text) => Some(Some(text)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// The next value, which is a whole number.
    pub(crate) fn integer(&mut self) -> Result<i64, DatabaseError> {
        self.next("a whole number", |value| match value {
            Value::Integer(value) => Some(value),
            _ => None,
        })
    }

    /// The next value, which is true or false.
    pub(crate) fn is(&mut self) -> Result<bool, DatabaseError> {
        self.next("yes or no", |value| match value {
            Value::Bool(value) => Some(value),
            Value::Integer(value) => Some(value != 0),
            _ => None,
        })
    }

    /// The next value, which is a number.
    pub(crate) fn real(&mut self) -> Result<f64, DatabaseError> {
        self.real_or_none()?.ok_or(DatabaseError::Unexpected("a number"))
    }

    /// The same where there may be none.
    pub(crate) fn real_or_none(&mut self) -> Result<Option<f64>, DatabaseError> {
        self.next("a number", |value| match value {
            Value::Real(value) => Some(Some(value)),
            Value::Integer(value) => Some(Some(value as f64)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// The next value, which is bytes.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, DatabaseError> {
        self.next("bytes", |value| match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        })
    }
}

/// A database.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file, or memory.
    File(Connection),
    /// A server.
    Server(Box<Server>),
}

impl Database {
    /// Carries out statements without values.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        match self {
            Database::File(file) => Ok(file.execute_batch(sql)?),
            Database::Server(server) => Ok(server.script(sql)?),
        }
    }

    /// Carries out a statement.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<(), DatabaseError> {
        match self {
            Database::File(file) => {
                file.prepare_cached(sql)?.execute(params_from_iter(values))?;
            }
            Database::Server(server) => {
                server.execute(sql, values)?;
            }
        }
        Ok(())
    }

    /// What is answered.
    pub(crate) fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        match self {
            Database::File(file) => {
                let mut prepared = file.prepare_cached(sql)?;
                let columns = prepared.column_count();
                let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Row> {
                    let values = (0..columns).map(|at| Ok(owned(row.get_ref(at)?)));
                    Ok(Row::new(values.collect::<rusqlite::Result<_>>()?))
                };
                let rows = prepared.query_map(params_from_iter(values), read)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            Database::Server(server) => Ok(server.query(sql, values)?),
        }
    }

    /// Puts rows into a table, a value for each of its columns.
    pub(crate) fn insert(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Value>>,
    ) -> Result<(), DatabaseError> {
        match self {
            Database::File(file) => {
                let mut prepared = file.prepare_cached(&table.insert_row())?;
                rows.iter().try_for_each(|row| {
                    prepared.execute(params_from_iter(row))?;
                    Ok(())
                })
            }
            Database::Server(server) => Ok(server.insert(table, rows)?),
        }
    }

    /// Numbers for so many new runs, which nobody else gets.
    pub(crate) fn numbers(&mut self, count: usize) -> Result<Vec<i64>, DatabaseError> {
        match self {
            // Whoever writes is alone.
            Database::File(file) => {
                let last: i64 =
                    file.query_row("SELECT coalesce(max(id), 0) FROM run", [], |row| row.get(0))?;
                Ok((1..=count as i64).map(|more| last + more).collect())
            }
            Database::Server(_) => {
                let sql = "SELECT nextval('run_number') FROM generate_series(1, $1)";
                let rows = self.query(sql, &[Value::Integer(count as i64)])?;
                rows.into_iter().map(|mut row| row.integer()).collect()
            }
        }
    }

    /// Begins a transaction. In a file nobody else writes meanwhile.
    pub(crate) fn begin(&mut self) -> Result<Writing<'_>, DatabaseError> {
        self.script(match self {
            Database::File(_) => "BEGIN IMMEDIATE",
            Database::Server(_) => "BEGIN",
        })?;
        Ok(Writing { database: self, is_open: true })
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// A transaction: what was done in it counts once it is committed.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    database: &'a mut Database,
    is_open: bool,
}

impl Writing<'_> {
    /// All of it counts.
    pub(crate) fn commit(mut self) -> Result<(), DatabaseError> {
        self.is_open = false;
        self.database.script("COMMIT").inspect_err(|_| {
            // A file that could not be written holds its lock until then.
            let _ = self.database.script("ROLLBACK");
        })
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // A connection that is gone has undone it by itself.
            let _ = self.database.script("ROLLBACK");
        }
    }
}

impl Deref for Writing<'_> {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut Database {
        self.database
    }
}

/// Why a database did not do what was asked.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// SQLite says so.
    File(rusqlite::Error),
    /// The server, or the way to it.
    Server(ServerError),
    /// Something else was answered than what was asked for, which is this.
    Unexpected(&'static str),
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        DatabaseError::File(error)
    }
}

impl From<ServerError> for DatabaseError {
    fn from(error: ServerError) -> Self {
        DatabaseError::Server(error)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseError::File(error) => write!(f, "{error}"),
            DatabaseError::Server(error) => write!(f, "{error}"),
            DatabaseError::Unexpected(what) => {
                write!(f, "where {what} should be, something else was answered")
            }
        }
    }
}
