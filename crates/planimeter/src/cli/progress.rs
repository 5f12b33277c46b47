//! Progress on stderr: a screen for long runs on a terminal, otherwise one line per trial; both
//! show the remaining time.
//!
//! Invariant: the measurement never waits for it
//! (docs/decisions/0035-live-views-never-delay-a-measurement.md). Remarks printed while a screen is open
//! are printed on the terminal afterwards.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use os::clock;
use store::database::address::Address;

use super::output::remark;
use super::screen::{self, Screen, ScreenStyle};
use super::team_store;
use super::trust;
use super::variables;
use crate::upload::BackgroundUpload;
use runner::ProgressListener;
use runner::live::event::{Event, LiveEvent};
use runner::live::state::RunState;

/// Duration from which on a run gets a screen, in seconds.
const LONG_S: f64 = 15.0;

/// Limit of remarks that are stored while a screen is open.
const KEPT_MAX: usize = 1000;

/// Progress display of a run.
pub struct Progress {
    picture: RunState,
    /// Style of the screen, if one is possible.
    look: Option<ScreenStyle>,
    screen: Option<Screen>,
    /// Remarks while the screen is open.
    kept: Vec<String>,
    trials: u64,
    /// Command line of the run, to be signed in the run's folder.
    command_line: String,
    /// The team store that receives the run.
    store: Option<Address>,
    sending: Option<BackgroundUpload>,
    /// The folder of runs that contains this one.
    runs: PathBuf,
}

impl Progress {
    /// Creates the display of a run that has not begun.
    pub fn new(command_line: &str, store: Option<&Address>) -> Self {
        let is_able =
            variables::variable("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        let is_shown = std::io::stderr().is_terminal() && is_able && screen::has_room();
        let plain = variables::variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let look = is_shown.then_some(ScreenStyle { plain });
        Progress {
            picture: RunState::default(),
            look,
            screen: None,
            kept: Vec::new(),
            trials: 0,
            command_line: command_line.into(),
            store: store.cloned(),
            sending: None,
            runs: PathBuf::new(),
        }
    }

    /// Ends the display: closes the screen, and prints the stored remarks again.
    pub fn finish(&mut self) {
        self.screen = None;
        std::mem::take(&mut self.kept).iter().for_each(|line| remark!("{line}"));
        if let (Some(sending), Some(store)) = (self.sending.take(), &self.store) {
            sending.said().iter().for_each(|line| remark!("{line}"));
            let told = sending.end();
            // Sends the completed run, and all other unsent runs. Problems that were reported are
            // not reported again.
            if let Err(error) = team_store::send_all(store, &self.runs)
                && told.is_none()
            {
                remark!("{}", team_store::trouble(store, &error));
            }
        }
    }

    /// Opens a screen if the run takes long enough.
    fn open_if_long(&mut self) {
        let left = self.picture.seconds_left(now_ms()).unwrap_or(0.0);
        if let Some(look) = self.look.filter(|_| left >= LONG_S && self.screen.is_none()) {
            self.screen = Screen::open(look, self.picture.clone());
        }
    }
}

impl ProgressListener for Progress {
    fn say(&mut self, line: &str) {
        self.tell(&Event::Said { line: line.into() });
        match &self.screen {
            Some(_) if self.kept.len() < KEPT_MAX => self.kept.push(line.into()),
            Some(_) => {}
            None => remark!("{line}"),
        }
    }

    fn opened(&mut self, folder: &Path, cores: &[usize]) {
        trust::sign_line(folder, &self.command_line);
        let Some(store) = &self.store else { return };
        let (runs, name) = team_store::place_of(folder);
        let run = (folder, name.as_str(), team_store::origin());
        let run = (run.0, run.1, run.2.as_str());
        self.sending =
            Some(BackgroundUpload::begin(store.clone(), run, team_store::trouble, cores.to_vec()));
        self.runs = runs;
    }

    fn heard(&mut self) -> Vec<String> {
        self.sending.as_ref().map(BackgroundUpload::said).unwrap_or_default()
    }

    fn expect(&mut self, trials: u64) {
        self.trials = trials;
    }

    fn step(&mut self, line: &str) {
        if self.screen.is_none() {
            let done = self.picture.done + 1;
            let all = self.trials.max(done);
            let left = self.picture.seconds_left(now_ms()).filter(|_| done < all);
            let left = left.map(|s| format!(" ({} left)", screen::span(s))).unwrap_or_default();
            remark!("[{done}/{all}] {line}{left}");
        }
    }

    fn tell(&mut self, event: &Event) {
        self.picture.tell(LiveEvent { at_ms: now_ms(), lost: 0, event: event.clone() });
        if let (Event::Ended(_), Some(sending)) = (event, &self.sending) {
            sending.tell();
        }
        if let Some(screen) = &self.screen {
            screen.tell(event.clone());
        }
        if matches!(event, Event::Planned { .. }) {
            self.open_if_long();
        }
    }
}

/// Returns the time in milliseconds since 1970.
fn now_ms() -> u64 {
    clock::since_1970().0 / 1_000_000
}
