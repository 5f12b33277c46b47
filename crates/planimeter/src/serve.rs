//! Runs in a browser: the one that measures, all that are stored, and a form that begins another.
//!
//! A process of its own that reads what runs write: whoever watches holds nothing back (docs/decisions/0036-serve.md). Invariants: nobody sees
//! anything without the token; every queue, list and wait has a limit with a name, beyond which there is one clear answer; nothing outside the
//! folder of runs is shown; what it starts is the same program with a command line that it shows.

/// Who may come in.
mod door;
/// Connections, so many at once and no more.
mod listen;
/// Runs that are followed.
mod watching;
/// Runs that were begun here.
mod starting;
/// A run's files.
mod files;
/// Stored runs, listed and compared.
mod stored;
/// Metrics over time.
mod trend;
/// Runs of a store for teams.
mod elsewhere;
/// Numbers for Prometheus.
mod metrics;
/// How a run's targets are joined, drawn.
mod topology;
/// What pages have in common.
mod page;
/// The form.
mod form;
/// What is asked for, and who answers.
mod routes;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ports::channel::ConnectionLimits;
use switch::services::http::site::ServerNames;
use tokio::sync::Semaphore;

pub use door::{Token, TokenError};
pub use elsewhere::Elsewhere;
pub use listen::{CONNECTIONS, Server};

use elsewhere::Kept;
use metrics::Counts;
use starting::Starter;
use watching::Watching;

/// Who follows a run at once.
pub const LISTENERS_MAX: usize = 16;

/// Questions that need the disk and are answered at once; others wait.
pub const BUSY_MAX: usize = 2;

/// What a server is about.
pub struct Wanted {
    /// The folder of runs.
    pub folder: PathBuf,
    /// Who may come in.
    pub token: Token,
    /// The program that measures.
    pub program: PathBuf,
    /// A store for teams.
    pub store: Option<Elsewhere>,
    /// Names of this server besides its addresses and `localhost`.
    pub names: Vec<String>,
    /// Connections at once.
    pub limits: ConnectionLimits,
}

/// What all answers share.
pub(crate) struct Shared {
    folder: PathBuf,
    elsewhere: Option<Kept>,
    token: Token,
    names: ServerNames,
    limits: ConnectionLimits,
    port: u16,
    watching: Watching,
    starter: Starter,
    counts: Counts,
    listeners: Arc<Semaphore>,
    busy: Arc<Semaphore>,
}

impl Shared {
    fn new(wanted: Wanted, address: SocketAddr) -> Arc<Shared> {
        let Wanted { folder, token, program, store, names, limits } = wanted;
        let asked = store.as_ref().and_then(|store| store.asked.clone());
        Arc::new(Shared {
            watching: Watching::begin(folder.clone()),
            starter: Starter::new(program, folder.clone(), asked),
            elsewhere: store.map(Kept::new),
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

/// Whether a server is to end.
pub type Stop = Arc<AtomicBool>;
