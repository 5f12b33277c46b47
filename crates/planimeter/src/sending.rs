//! What is new of a run goes to a store for teams while it measures, by a thread that nobody waits for.
//!
//! Invariants: whoever measures sets a flag and goes on; what is to be sent is read from the run's folder, where it is whether a server answers or not; a
//! server that does not answer is asked again ever more rarely, and what is wrong with it is said once.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab::pin;
use results::store::team::address::Address;
use results::store::team::{Pushing, Team, TeamError};

/// Between two looks at what is new.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest time between two attempts to reach a server.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Lines that wait to be said.
const LINES_MAX: usize = 16;

/// Sends a run as it goes.
#[derive(Debug)]
pub struct Sending {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Something ended since it was looked last.
    is_news: bool,
    is_over: bool,
    /// Why the store cannot be used now, if it was said.
    trouble: Option<String>,
    said: Vec<String>,
}

/// What a thread is to send, and where.
struct Work {
    address: Address,
    pushing: Pushing,
    /// What is said when the store cannot be used.
    trouble: fn(&Address, &TeamError) -> String,
    shared: Arc<Shared>,
}

impl Sending {
    /// Begins to send the run in a folder, which the store calls so, by a thread that may run on these cores.
    pub fn begin(
        address: Address,
        (folder, name, origin): (&Path, &str, &str),
        trouble: fn(&Address, &TeamError) -> String,
        cores: Vec<usize>,
    ) -> Sending {
        let shared = Arc::new(Shared::default());
        let pushing = Pushing::new(folder, name, origin);
        let work = Work { address, pushing, trouble, shared: Arc::clone(&shared) };
        let named = std::thread::Builder::new().name("sending".into());
        // Without the thread all is sent in the end.
        let _ = named.spawn(move || {
            // Where the system does not let us choose, the scheduler does.
            let _ = pin::pin(0, &cores);
            work.run();
        });
        Sending { shared }
    }

    /// There is something new.
    pub fn tell(&self) {
        lock(&self.shared.state).is_news = true;
        self.shared.changed.notify_one();
    }

    /// What there is to say.
    pub fn said(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.state).said)
    }

    /// Ends it, whatever it is at; what is wrong with the store, if that was said.
    pub fn end(&self) -> Option<String> {
        let mut state = lock(&self.shared.state);
        state.is_over = true;
        self.shared.changed.notify_one();
        state.trouble.take()
    }
}

/// A state is whole whenever the lock is free.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    fn run(mut self) {
        let (mut team, mut failures) = (None, 0_u32);
        while self.waited(failures) {
            let done = self.push(&mut team);
            let mut state = lock(&self.shared.state);
            match done {
                Ok(_) => {
                    failures = 0;
                    if state.trouble.take().is_some() {
                        say(&mut state, format!("store {}: it answers again", self.address));
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

    fn push(&mut self, team: &mut Option<Team>) -> Result<usize, TeamError> {
        let team = match team {
            Some(team) => team,
            None => team.insert(Team::open(&self.address)?),
        };
        self.pushing.push(team)
    }

    /// Waits until there is something to do; whether there is.
    fn waited(&self, failures: u32) -> bool {
        let mut state = lock(&self.shared.state);
        // At first at once, since a wrong password is better told early.
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
