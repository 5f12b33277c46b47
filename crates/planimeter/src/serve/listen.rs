//! Connections: a few at once, each with a limit for its head and for how long it may take over it.
//!
//! One thread serves all of them; what needs the disk for longer goes to a few others. Invariants: a client that sends nothing, sends slowly or does not
//! read holds its own connection and nothing else; one too many is told so and let go.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{Shared, Stop, Wanted, routes};

/// Connections at once.
pub const CONNECTIONS_MAX: usize = 64;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// How long a head may take, and how long a connection may be silent between two.
const HEAD: Duration = Duration::from_secs(10);

/// How often is looked whether the server is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How long after an error another connection is asked for, when there are too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// How long one too many may take to ask.
const REFUSAL: Duration = Duration::from_millis(500);

/// Threads for what needs the disk.
const BLOCKING_MAX: usize = 4;

/// One too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 42\r\n\
    Retry-After: 2\r\nConnection: close\r\n\r\nthere are too many connections: come later";

/// A server that has its address.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Takes an address; nobody is let in before [`Server::run`].
    pub fn open(address: SocketAddr, wanted: Wanted) -> io::Result<Server> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, shared: Shared::new(wanted, address) })
    }

    /// The address that it has.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is to stop; the run that was begun here and goes on, by its process.
    pub fn run(self, stop: &Stop) -> io::Result<Option<u32>> {
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
        // Whoever still reads is let go.
        runtime.shutdown_background();
        Ok(shared.starter.running())
    }
}

async fn until(stop: &Stop) {
    while !stop.load(Ordering::Relaxed) {
        sleep(LOOK).await;
    }
}

async fn accept(listener: &TcpListener, router: &Router, shared: &Arc<Shared>) {
    let [places, refusals] = [(); 2].map(|()| Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            shared.counts.refused.fetch_add(1, Ordering::Relaxed);
            if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::spawn(async move {
                    refuse(&stream).await;
                    drop(place);
                });
            }
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES_MAX);
            // How a client goes is its own affair.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

/// Says that there is no room to one who asks at once: an answer to what was not read would be lost.
async fn refuse(stream: &TcpStream) {
    let _ = timeout(REFUSAL, stream.readable()).await;
    let _ = stream.try_read(&mut [0; 4096]);
    let _ = stream.try_write(FULL);
}

/// How long an answer may take before it begins.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// An answer, if it comes in time.
pub(super) async fn in_time<T>(answer: impl Future<Output = T>) -> Option<T> {
    timeout(ANSWER, answer).await.ok()
}
