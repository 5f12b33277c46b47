//! A PostgreSQL connection with deadlines.
//!
//! The library is asynchronous; a runtime owned by the connection makes its calls blocking.
//! Invariants:
//!
//! - Every wait has a timeout.
//! - Any invalid or missing input from a server becomes a one-line error without control
//!   characters.
//! - After a reply timeout, no further requests are sent.

use std::fmt;
use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config};

use super::address::{Address, ServerLocation};
use super::tls::{Security, ServerStream};
use crate::database::schema::{Kind, Table};
use crate::database::{Row, Value};

/// Rows per insert statement.
const ROWS_MAX: usize = 10_000;

/// Maximum length of a quoted server message, in characters.
const SAID_MAX: usize = 240;

/// Time for the server to process the end of the connection.
const LEAVING: Duration = Duration::from_millis(200);

/// A connection.
pub(crate) struct Server {
    /// None after a reply timeout.
    client: Option<Client>,
    connection: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
    answer: Duration,
}

impl Server {
    /// Connects within the timeout of the address.
    pub(crate) fn connect(address: &Address) -> Result<Server, ServerError> {
        let built = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = built.map_err(ServerError::Unreachable)?;
        let made = runtime.block_on(async { timeout(address.connect, connected(address)).await });
        let (client, connection) = match made {
            Ok(Ok(made)) => made,
            Ok(Err(error)) => {
                runtime.shutdown_background();
                return Err(error);
            }
            Err(_) => {
                runtime.shutdown_background();
                return Err(ServerError::Silent(address.connect));
            }
        };
        let (client, connection) = (Some(client), Some(connection));
        Ok(Server { client, connection, runtime: Some(runtime), answer: address.answer })
    }

    /// Returns the client, and how to wait for its replies.
    fn ready(&self) -> Result<(&Client, Waiter<'_>), ServerError> {
        match (&self.client, &self.runtime) {
            (Some(client), Some(runtime)) => Ok((client, Waiter(runtime, self.answer))),
            _ => Err(ServerError::Gone("an earlier request got no reply".into())),
        }
    }

    /// Drops the client after a reply timeout. A late reply would otherwise be taken for the reply
    /// to the next request.
    fn settled<T>(&mut self, done: Result<T, ServerError>) -> Result<T, ServerError> {
        if matches!(done, Err(ServerError::Silent(_))) {
            self.client = None;
        }
        done
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<(), ServerError> {
        let (client, waiting) = self.ready()?;
        let done = waiting.until(client.batch_execute(sql));
        self.settled(done)
    }

    pub(crate) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, ServerError> {
        self.execute_with(sql, &parameters(values))
    }

    fn execute_with(&mut self, sql: &str, parameters: &[Parameter]) -> Result<u64, ServerError> {
        let typed = typed(parameters);
        let (client, waiting) = self.ready()?;
        let done = waiting.until(client.execute_typed(sql, &typed));
        self.settled(done)
    }

    pub(crate) fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, ServerError> {
        let parameters = parameters(values);
        let typed = typed(&parameters);
        let (client, waiting) = self.ready()?;
        let done = waiting.until(client.query_typed(sql, &typed));
        self.settled(done)?.iter().map(read).collect()
    }

    /// Inserts rows as one array per column, so that one statement serves any number of rows.
    pub(crate) fn insert(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Value>>,
    ) -> Result<(), ServerError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut names = Vec::new();
        let mut places = Vec::new();
        for (at, (name, kind, _)) in table.columns.iter().enumerate() {
            names.push(*name);
            places.push(format!("${}::{}[]", at + 1, word(*kind)));
        }
        let (names, places) = (names.join(", "), places.join(", "));
        let sql = format!("INSERT INTO {} ({names}) SELECT * FROM unnest({places})", table.name);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut columns: Vec<Vec<Value>> = vec![Vec::new(); table.columns.len()];
            for row in rows.by_ref().take(ROWS_MAX) {
                columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
            let kinds = table.columns.iter().map(|(_, kind, _)| *kind);
            let arrays: Vec<_> =
                columns.into_iter().zip(kinds).map(|(column, kind)| array(column, kind)).collect();
            self.execute_with(&sql, &arrays)?;
        }
        Ok(())
    }
}

/// The runtime and the timeout of a wait.
struct Waiter<'a>(&'a Runtime, Duration);

impl Waiter<'_> {
    fn until<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ServerError> {
        let Waiter(runtime, time) = self;
        match runtime.block_on(async { timeout(*time, answer).await }) {
            Ok(done) => done.map_err(ServerError::from),
            Err(_) => Err(ServerError::Silent(*time)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.client.take().is_some()
            && let Some(connection) = self.connection.take()
        {
            // The connection ends cleanly once its client is dropped.
            let _ = runtime.block_on(async { timeout(LEAVING, connection).await });
        }
        // Does not wait for a pending name lookup.
        runtime.shutdown_background();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("is_usable", &self.client.is_some()).finish_non_exhaustive()
    }
}

/// Connects and logs in.
async fn connected(address: &Address) -> Result<(Client, JoinHandle<()>), ServerError> {
    let mut config = Config::new();
    config.user(&address.user).dbname(&address.database).application_name("planimeter");
    if let Some(password) = &address.password {
        config.password(password);
    }
    let (way, security, host): (ServerStream, &Security, &str) = match &address.place {
        ServerLocation::Socket(folder) => {
            let file = folder.join(format!(".s.PGSQL.{}", address.port));
            let way = UnixStream::connect(file).await.map_err(ServerError::Unreachable)?;
            (Box::new(way), &Security::None, "localhost")
        }
        ServerLocation::Host(host) => {
            let way = TcpStream::connect((host.as_str(), address.port)).await;
            let way = way.map_err(ServerError::Unreachable)?;
            way.set_nodelay(true).map_err(ServerError::Unreachable)?;
            (Box::new(way), &address.security, host)
        }
    };
    config.ssl_mode(security.mode());
    let connector = security.connector(host).map_err(ServerError::Tls)?;
    let (client, connection) = config.connect_raw(way, connector).await?;
    // The next request reports why the connection ended.
    let connection = tokio::spawn(async { drop(connection.await) });
    Ok((client, connection))
}

/// PostgreSQL type name of a kind.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "boolean",
        Kind::Integer => "bigint",
        Kind::Real => "double precision",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
    }
}

type Parameter = (Box<dyn ToSql + Sync>, Type);

fn typed(parameters: &[Parameter]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    parameters.iter().map(|(value, kind)| (&**value, kind.clone())).collect()
}

fn parameters(values: &[Value]) -> Vec<Parameter> {
    let parameter = |value: &Value| -> Parameter {
        match value {
            Value::Null => (Box::new(None::<String>), Type::TEXT),
            Value::Bool(value) => (Box::new(*value), Type::BOOL),
            Value::Integer(value) => (Box::new(*value), Type::INT8),
            Value::Real(value) => (Box::new(*value), Type::FLOAT8),
            Value::Text(text) => (Box::new(sendable(text)), Type::TEXT),
            Value::Bytes(bytes) => (Box::new(bytes.clone()), Type::BYTEA),
            Value::Texts(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| sendable(text)).collect();
                (Box::new(texts), Type::TEXT_ARRAY)
            }
            Value::Integers(values) => (Box::new(values.clone()), Type::INT8_ARRAY),
        }
    };
    values.iter().map(parameter).collect()
}

/// Values of a column. A value of another kind becomes null.
fn array(values: Vec<Value>, kind: Kind) -> Parameter {
    fn all<T: ToSql + Sync + 'static>(
        values: Vec<Value>,
        read: impl Fn(Value) -> Option<T>,
    ) -> Box<dyn ToSql + Sync>
    where
        Vec<Option<T>>: ToSql,
    {
        Box::new(values.into_iter().map(read).collect::<Vec<Option<T>>>())
    }
    match kind {
        Kind::Bool => {
            let read = |it| if let Value::Bool(value) = it { Some(value) } else { None };
            (all(values, read), Type::BOOL_ARRAY)
        }
        Kind::Integer => {
            let read = |it| if let Value::Integer(value) = it { Some(value) } else { None };
            (all(values, read), Type::INT8_ARRAY)
        }
        Kind::Real => {
            let read = |it| if let Value::Real(value) = it { Some(value) } else { None };
            (all(values, read), Type::FLOAT8_ARRAY)
        }
        Kind::Text => {
            let read = |it| if let Value::Text(text) = it { Some(sendable(&text)) } else { None };
            (all(values, read), Type::TEXT_ARRAY)
        }
        Kind::Bytes => {
            let read = |it| if let Value::Bytes(bytes) = it { Some(bytes) } else { None };
            (all(values, read), Type::BYTEA_ARRAY)
        }
    }
}

/// Replaces zero bytes, which PostgreSQL text does not allow.
fn sendable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Converts a row with the column types that the server reports.
fn read(row: &tokio_postgres::Row) -> Result<Row, ServerError> {
    let value = |at: usize, kind: &Type| -> Result<Value, tokio_postgres::Error> {
        let found = match *kind {
            Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(Value::Bool),
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Value::Integer),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map(Value::Real),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Bytes),
            // Any other type that does not convert to text is an error.
            _ => row.try_get::<_, Option<String>>(at)?.map(Value::Text),
        };
        Ok(found.unwrap_or(Value::Null))
    };
    let columns = row.columns().iter().enumerate();
    let values: Result<Vec<Value>, _> = columns.map(|(at, it)| value(at, it.type_())).collect();
    Ok(Row::new(values?))
}

/// Error of a server operation.
#[derive(Debug)]
pub(crate) enum ServerError {
    /// The server is unreachable.
    Unreachable(io::Error),
    /// No reply within this timeout.
    Silent(Duration),
    /// TLS failed, or does not meet the requirements.
    Tls(String),
    /// The server rejected the login.
    Login(String),
    /// The user lacks a permission.
    Rights(String),
    /// The connection ended.
    Gone(String),
    /// The server rejected the request for another reason.
    Refused(String),
    /// The reply is not valid.
    Odd(String),
}

impl ServerError {
    /// Whether a retry is likely to fail with the same error.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, ServerError::Login(_) | ServerError::Rights(_) | ServerError::Tls(_))
    }
}

impl From<tokio_postgres::Error> for ServerError {
    fn from(error: tokio_postgres::Error) -> Self {
        use std::error::Error;
        if let Some(said) = error.as_db_error() {
            let line = said.message().to_string();
            let is_of = |class: &str| said.code().code().starts_with(class);
            return match said.code() {
                code if is_of("28") || *code == SqlState::INVALID_CATALOG_NAME => {
                    ServerError::Login(line)
                }
                &SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::READ_ONLY_SQL_TRANSACTION => {
                    ServerError::Rights(line)
                }
                // The server is starting or shutting down.
                _ if is_of("57P") => ServerError::Gone(line),
                _ => ServerError::Refused(line),
            };
        }
        let mut why = error.to_string();
        let mut cause = error.source();
        let mut is_ended = error.is_closed();
        while let Some(inner) = cause {
            if let Some(inner) = inner.downcast_ref::<io::Error>() {
                let ended = [
                    io::ErrorKind::UnexpectedEof,
                    io::ErrorKind::ConnectionReset,
                    io::ErrorKind::ConnectionAborted,
                    io::ErrorKind::BrokenPipe,
                    io::ErrorKind::NotConnected,
                ];
                is_ended |= ended.contains(&inner.kind());
                if let Some(tls) = inner.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>())
                {
                    return ServerError::Tls(tls.to_string());
                }
            }
            if !why.contains(&inner.to_string()) {
                why = format!("{why}: {inner}");
            }
            cause = inner.source();
        }
        match why {
            why if is_ended => ServerError::Gone(why),
            // TLS is required and the server does not support it.
            why if why.contains("TLS") => ServerError::Tls(why),
            why if why.contains("password missing") || why.contains("authentication") => {
                ServerError::Login(why)
            }
            why => ServerError::Odd(why),
        }
    }
}

/// Reduces external text to one line.
fn cleaned(text: &str) -> String {
    let line: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let mut short: String = line.trim().chars().take(SAID_MAX).collect();
    if short.len() < line.trim().len() {
        short += "...";
    }
    short
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Unreachable(error) => {
                write!(f, "cannot connect: {}", cleaned(&error.to_string()))
            }
            ServerError::Silent(time) => write!(f, "no reply within {} s", time.as_secs_f64()),
            ServerError::Tls(why) => write!(f, "TLS: {}", cleaned(why)),
            ServerError::Login(said) => write!(f, "login failed: {}", cleaned(said)),
            ServerError::Rights(said) => write!(f, "access denied: {}", cleaned(said)),
            ServerError::Gone(why) => write!(f, "connection lost: {}", cleaned(why)),
            ServerError::Refused(said) => write!(f, "request rejected: {}", cleaned(said)),
            ServerError::Odd(why) => {
                write!(f, "invalid PostgreSQL reply: {}", cleaned(why))
            }
        }
    }
}
