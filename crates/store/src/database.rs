//! Common interface to both databases: SQLite in a file next to the runs, or PostgreSQL on a
//! server.
//!
//! Both receive the same SQL; the common subset of the two dialects is sufficient for the index.
//! Invariants:
//!
//! - Data from a record or a user reach the database as parameters, never as SQL.
//! - A transaction that is not committed has no effect.
//!
//! Parameters are `$1`, `$2`... in the order of their first use. SQLite treats these as names and
//! numbers them in that order.

pub mod address;
pub(crate) mod schema;
pub(crate) mod server;
mod tls;

use std::fmt;
use std::ops::{Deref, DerefMut};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use schema::Table;
use server::{Server, ServerError};

/// A value in a database or in a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A list of texts for PostgreSQL's `ANY`.
    Texts(Vec<String>),
    /// A list of integers for PostgreSQL's `ANY`.
    Integers(Vec<i64>),
}

impl Value {
    /// A text or null.
    pub(crate) fn text_or_null(text: Option<impl Into<String>>) -> Value {
        text.map_or(Value::Null, |text| Value::Text(text.into()))
    }

    /// A number or null.
    pub(crate) fn real_or_null(value: Option<f64>) -> Value {
        value.map_or(Value::Null, Value::Real)
    }

    /// A count, limited to the largest integer of the database.
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

/// A row of a query result.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    /// Creates a row from values.
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

    /// Takes the next value as text.
    pub(crate) fn text(&mut self) -> Result<String, DatabaseError> {
        self.text_or_none()?.ok_or(DatabaseError::Unexpected("a text"))
    }

    /// Takes the next value as text or null.
    pub(crate) fn text_or_none(&mut self) -> Result<Option<String>, DatabaseError> {
        self.next("a text", |value| match value {
            Value::Text(text) => Some(Some(text)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// Takes the next value as an integer.
    pub(crate) fn integer(&mut self) -> Result<i64, DatabaseError> {
        self.next("an integer", |value| match value {
            Value::Integer(value) => Some(value),
            _ => None,
        })
    }

    /// Takes the next value as a boolean.
    pub(crate) fn is(&mut self) -> Result<bool, DatabaseError> {
        self.next("yes or no", |value| match value {
            Value::Bool(value) => Some(value),
            Value::Integer(value) => Some(value != 0),
            _ => None,
        })
    }

    /// Takes the next value as a number.
    pub(crate) fn real(&mut self) -> Result<f64, DatabaseError> {
        self.real_or_none()?.ok_or(DatabaseError::Unexpected("a number"))
    }

    /// Takes the next value as a number or null.
    pub(crate) fn real_or_none(&mut self) -> Result<Option<f64>, DatabaseError> {
        self.next("a number", |value| match value {
            Value::Real(value) => Some(Some(value)),
            Value::Integer(value) => Some(Some(value as f64)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// Takes the next value as bytes.
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
    /// A SQLite file, or an in-memory database.
    File(Connection),
    /// A PostgreSQL server.
    Server(Box<Server>),
}

impl Database {
    /// Executes statements without parameters.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        match self {
            Database::File(file) => Ok(file.execute_batch(sql)?),
            Database::Server(server) => Ok(server.script(sql)?),
        }
    }

    /// Executes a statement.
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

    /// Executes a query and returns its rows.
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

    /// Inserts rows with a value for each column of a table.
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

    /// Reserves numbers for new runs.
    pub(crate) fn numbers(&mut self, count: usize) -> Result<Vec<i64>, DatabaseError> {
        match self {
            // A writer has exclusive access.
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

    /// Begins a transaction. In SQLite it excludes other writers.
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_>, DatabaseError> {
        self.script(match self {
            Database::File(_) => "BEGIN IMMEDIATE",
            Database::Server(_) => "BEGIN",
        })?;
        Ok(Transaction { database: self, is_open: true })
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

/// A transaction. Its changes take effect on commit.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    database: &'a mut Database,
    is_open: bool,
}

impl Transaction<'_> {
    /// Commits the transaction.
    pub(crate) fn commit(mut self) -> Result<(), DatabaseError> {
        self.is_open = false;
        self.database.script("COMMIT").inspect_err(|_| {
            // After a failed write, SQLite holds its lock until the rollback.
            let _ = self.database.script("ROLLBACK");
        })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // A lost connection has already rolled back.
            let _ = self.database.script("ROLLBACK");
        }
    }
}

impl Deref for Transaction<'_> {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Database {
        self.database
    }
}

/// Error of a database operation.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// Error of SQLite.
    File(rusqlite::Error),
    /// Error of the server or the connection.
    Server(ServerError),
    /// The result has another type than this expected one.
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
                write!(f, "invalid query result: expected {what}")
            }
        }
    }
}
