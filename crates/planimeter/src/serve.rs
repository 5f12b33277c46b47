//! Web interface for runs: shows active runs and stored runs, and starts new ones.
//!
//! The server is a separate process that reads the files of runs, so that clients never delay a
//! measurement (docs/decisions/0036-the-web-interface-is-a-separate-process.md). Invariants:
//! - Every request requires the token.
//! - Every queue, list and wait has a named limit, and a clear response beyond it.
//! - Nothing outside the folder of runs is delivered.
//! - It starts only the same program, with a command line that it shows.

mod auth;
mod listen;
mod live_runs;
mod launch;
mod files;
mod run_list;
mod trend;
mod remote_runs;
mod metrics;
mod topology;
mod page;
mod form;
mod routes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use channel::ConnectionLimits;
use elements::services::http::site::ServerNames;
use tokio::sync::Semaphore;

pub use auth::{Token, TokenError};
pub use listen::{CONNECTIONS, Server};
pub use remote_runs::RemoteStore;

use launch::RunLauncher;
use live_runs::RunFollower;
use metrics::Counts;
use remote_runs::RemoteCache;

/// Limit of concurrent clients that follow a run.
pub const LISTENERS_MAX: usize = 16;

/// Limit of concurrent requests that need the disk; others wait.
pub const BUSY_MAX: usize = 2;

/// Configuration of a server.
pub struct ServeOptions {
    /// The folder of runs.
    pub folder: PathBuf,
    /// The access token.
    pub token: Token,
    /// The program that measures.
    pub program: PathBuf,
    /// A team store.
    pub store: Option<RemoteStore>,
    /// Names of this server in addition to its addresses and `localhost`.
    pub names: Vec<String>,
    /// Connection limits.
    pub limits: ConnectionLimits,
}

/// State shared by all requests.
pub(crate) struct ServerState {
    folder: PathBuf,
    elsewhere: Option<RemoteCache>,
    token: Token,
    names: ServerNames,
    limits: ConnectionLimits,
    port: u16,
    watching: RunFollower,
    starter: RunLauncher,
    counts: Counts,
    listeners: Arc<Semaphore>,
    busy: Arc<Semaphore>,
}

impl ServerState {
    fn new(wanted: ServeOptions, address: SocketAddr) -> Arc<ServerState> {
        let ServeOptions { folder, token, program, store, names, limits } = wanted;
        let asked = store.as_ref().and_then(|store| store.asked.clone());
        Arc::new(ServerState {
            watching: RunFollower::begin(folder.clone()),
            starter: RunLauncher::new(program, folder.clone(), asked),
            elsewhere: store.map(RemoteCache::new),
            folder,
            token,
            names: ServerNames::new(names),
            limits,
            port: address.port(),
            counts: Counts::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            busy: Arc::new(Semaphore::new(BUSY_MAX)),
        })
    }
}

/// Flag that stops a server.
pub type StopFlag = Arc<AtomicBool>;
