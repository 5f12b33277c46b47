//! HTTP connections, with limits on their number and on the size and duration of each request head.
//!
//! One thread serves all connections; longer disk work goes to a small thread pool. Invariants:
//! - A client that sends nothing, sends slowly or does not read blocks only its own connection.
//! - When all places are taken, a new connection replaces one without a complete request, by the
//!   rules of [`channel::admission`]. If there is no such connection, the new one gets an
//!   error response and is closed.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use channel::admission::{AdmissionResult, AdmittedConnection};
use channel::{ConnectionLimits, Progress, Source};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::{ServeOptions, ServerState, StopFlag, routes};

/// Default connection limits.
pub const CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 64, per_source: 32 };

/// Limit of concurrent connections that receive the rejection response.
const REFUSALS_MAX: usize = 64;

/// Size limit of a request head, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Time limit of a request head, and of the idle time between two requests.
const HEAD: Duration = Duration::from_secs(2);

/// Interval at which the stop flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Delay before the next accept after an error, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit for a rejected client to send its request.
const REFUSAL: Duration = Duration::from_millis(500);

/// Threads for disk work.
const BLOCKING_MAX: usize = 4;

/// Response to a rejected connection.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 44\r\n\
    Retry-After: 2\r\nConnection: close\r\n\r\ntoo many connections (hint: try again later)";

/// A server that is bound to its address.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    shared: Arc<ServerState>,
}

impl Server {
    /// Binds the address; connections are accepted from [`Server::run`] on.
    pub fn open(address: SocketAddr, wanted: ServeOptions) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, shared: ServerState::new(wanted, address) })
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is set; returns the process of the run that was started here and is
    /// still active.
    pub fn run(self, stop: &StopFlag) -> io::Result<Option<u32>> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_io().enable_time().max_blocking_threads(BLOCKING_MAX);
        let runtime = builder.build()?;
        let shared = Arc::clone(&self.shared);
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let router = routes::router(Arc::clone(&shared));
            tokio::select! {
                () = accept(&listener, &router, &shared) => {}
                () = until(stop) => {}
            }
            Ok::<(), io::Error>(())
        })?;
        // Connections that still receive data are closed.
        runtime.shutdown_background();
        Ok(shared.starter.running())
    }
}

async fn until(stop: &StopFlag) {
    while !stop.load(Ordering::Relaxed) {
        sleep(POLL_INTERVAL).await;
    }
}

async fn accept(listener: &TcpListener, router: &Router, shared: &Arc<ServerState>) {
    let mut connections = Connections::new(shared.limits);
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Some(place) = connections.admit(Source::Host(address.ip())) else {
            shared.counts.refused.fetch_add(1, Ordering::Relaxed);
            if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::spawn(async move {
                    refuse(&stream).await;
                    drop(place);
                });
            }
            continue;
        };
        let (number, has_asked) = (place.number, Arc::clone(&place.has_asked));
        let routes = TowerToHyperService::new(router.clone());
        let service = service_fn(move |request| {
            has_asked.store(true, Ordering::Relaxed);
            routes.call(request)
        });
        let task = tokio::spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES_MAX);
            // A connection error concerns only that client.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
        connections.serves(number, task.abort_handle());
    }
}

/// Open connections by number.
type OpenConnections = Arc<Mutex<BTreeMap<usize, OpenConnection>>>;

/// Table of open connections.
struct Connections {
    limits: ConnectionLimits,
    open: OpenConnections,
    accepted: usize,
}

struct OpenConnection {
    source: Source,
    has_asked: Arc<AtomicBool>,
    task: Option<AbortHandle>,
}

/// A place in the table; released on drop.
struct ConnectionSlot {
    number: usize,
    /// Whether the client has sent a complete request.
    has_asked: Arc<AtomicBool>,
    open: OpenConnections,
}

impl Connections {
    fn new(limits: ConnectionLimits) -> Connections {
        Connections { limits, open: Arc::default(), accepted: 0 }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<usize, OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place for a connection from this source, if one is free or another connection can
    /// be replaced.
    fn admit(&mut self, source: Source) -> Option<ConnectionSlot> {
        let mut open = self.open();
        let held = |(&number, it): (&usize, &OpenConnection)| AdmittedConnection {
            id: number,
            source: Some(it.source),
            pending: (!it.has_asked.load(Ordering::Relaxed))
                .then_some((Progress::Silent, number as u64)),
        };
        let all: Vec<AdmittedConnection> = open.iter().map(held).collect();
        match self.limits.room_for(&all, Some(source)) {
            AdmissionResult::Free => {}
            AdmissionResult::InsteadOf(number) => {
                if let Some(task) = open.remove(&number).and_then(|it| it.task) {
                    task.abort();
                }
            }
            AdmissionResult::Refused(_) => return None,
        }
        drop(open);
        self.accepted += 1;
        let (number, has_asked) = (self.accepted, Arc::new(AtomicBool::new(false)));
        let entry = OpenConnection { source, has_asked: Arc::clone(&has_asked), task: None };
        self.open().insert(number, entry);
        Some(ConnectionSlot { number, has_asked, open: Arc::clone(&self.open) })
    }

    /// Registers the task that serves a connection.
    fn serves(&self, number: usize, task: AbortHandle) {
        if let Some(open) = self.open().get_mut(&number) {
            open.task = Some(task);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// Sends the rejection response after it reads the request. A response sent before would be lost.
async fn refuse(stream: &TcpStream) {
    let _ = timeout(REFUSAL, stream.readable()).await;
    let _ = stream.try_read(&mut [0; 4096]);
    let _ = stream.try_write(FULL);
}

/// Time limit for a response to begin.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// Returns the response if it is ready within the time limit.
pub(super) async fn in_time<T>(answer: impl Future<Output = T>) -> Option<T> {
    timeout(ANSWER, answer).await.ok()
}
