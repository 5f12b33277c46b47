//! Sends new results of a run to a team store during the measurement, in a separate thread.
//!
//! Invariants:
//! - The measuring thread only sets a flag and continues.
//! - The data to send is read from the run's folder, which is complete with or without a server.
//! - Attempts to reach a silent server back off, and each problem is reported once.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::database::address::Address;
use store::postgres::{IncrementalUpload, PostgresStore, TeamError};
use testbed::affinity;

/// Interval between two checks for new data.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest backoff between two attempts to reach a server.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Limit of messages that wait to be printed.
const LINES_MAX: usize = 16;

/// Background sender of a run.
#[derive(Debug)]
pub struct BackgroundUpload {
    shared: Arc<UploadState>,
}

#[derive(Debug, Default)]
struct UploadState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether something ended since the last check.
    is_news: bool,
    is_over: bool,
    /// Why the store cannot be used at present, if this was reported.
    trouble: Option<String>,
    said: Vec<String>,
}

/// State of the thread: the run and its store.
struct UploadThread {
    address: Address,
    pushing: IncrementalUpload,
    /// Formats the message for a store that cannot be used.
    trouble: fn(&Address, &TeamError) -> String,
    shared: Arc<UploadState>,
}

impl BackgroundUpload {
    /// Starts to send the run in a folder, under the store's name for it, in a thread that may run
    /// on these cores.
    pub fn begin(
        address: Address,
        (folder, name, origin): (&Path, &str, &str),
        trouble: fn(&Address, &TeamError) -> String,
        cores: Vec<usize>,
    ) -> BackgroundUpload {
        let shared = Arc::new(UploadState::default());
        let pushing = IncrementalUpload::new(folder, name, origin);
        let work = UploadThread { address, pushing, trouble, shared: Arc::clone(&shared) };
        let named = std::thread::Builder::new().name("sending".into());
        // Without the thread, all data is sent at the end of the run.
        let _ = named.spawn(move || {
            // If pinning is not permitted, the scheduler chooses the core.
            let _ = affinity::pin(0, &cores);
            work.run();
        });
        BackgroundUpload { shared }
    }

    /// Signals new data.
    pub fn tell(&self) {
        lock(&self.shared.state).is_news = true;
        self.shared.changed.notify_one();
    }

    /// Returns the messages to print.
    pub fn said(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.state).said)
    }

    /// Stops the thread at any point; returns the problem of the store if it was reported.
    pub fn end(&self) -> Option<String> {
        let mut state = lock(&self.shared.state);
        state.is_over = true;
        self.shared.changed.notify_one();
        state.trouble.take()
    }
}

/// The state is consistent whenever the lock is free, even after a panic.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UploadThread {
    fn run(mut self) {
        let (mut team, mut failures) = (None, 0_u32);
        while self.waited(failures) {
            let done = self.push(&mut team);
            let mut state = lock(&self.shared.state);
            match done {
                Ok(_) => {
                    failures = 0;
                    if state.trouble.take().is_some() {
                        say(&mut state, format!("store {}: connected again", self.address));
                    }
                }
                Err(error) => {
                    team = None;
                    failures += 1;
                    state.is_news = true;
                    if state.trouble.is_none() {
                        let line = (self.trouble)(&self.address, &error);
                        state.trouble = Some(line.clone());
                        say(&mut state, line);
                    }
                    if error.is_lasting() {
                        return;
                    }
                }
            }
        }
    }

    fn push(&mut self, team: &mut Option<PostgresStore>) -> Result<usize, TeamError> {
        let team = match team {
            Some(team) => team,
            None => team.insert(PostgresStore::open(&self.address)?),
        };
        self.pushing.push(team)
    }

    /// Waits until there is data to send; returns `false` when the sender ends.
    fn waited(&self, failures: u32) -> bool {
        let mut state = lock(&self.shared.state);
        // The first attempt comes after the shortest pause, so that a wrong password is reported
        // early.
        let pause = if failures == 0 {
            PAUSE
        } else {
            (PAUSE * (1 << failures.min(5) >> 1)).min(PAUSE_MAX)
        };
        let rest = self.shared.changed.wait_timeout_while(state, pause, |state| !state.is_over);
        state = rest.unwrap_or_else(PoisonError::into_inner).0;
        let news = self.shared.changed.wait_while(state, |state| !state.is_news && !state.is_over);
        let mut state = news.unwrap_or_else(PoisonError::into_inner);
        state.is_news = false;
        !state.is_over
    }
}

fn say(state: &mut State, line: String) {
    if state.said.len() < LINES_MAX {
        state.said.push(line);
    }
}
