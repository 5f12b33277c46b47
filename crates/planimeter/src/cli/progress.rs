//! Progress on stderr: a screen for long runs on a terminal, one plain line per trial elsewhere, both with the time that is left.
//!
//! Invariant: nothing of it is waited for (docs/decisions/0035-who-watches-holds-nothing-back.md), and what was said while a screen was up stands on the terminal
//! afterwards.

use std::io::IsTerminal;

use ports::clock;

use super::out::remark;
use super::place;
use super::screen::{self, Look, Screen};
use crate::live::event::{Event, Told};
use crate::live::picture::Picture;
use crate::runner::Watcher;

/// A run that takes longer gets a screen, seconds.
const LONG_S: f64 = 15.0;

/// Remarks that are kept while a screen is up.
const KEPT_MAX: usize = 1000;

/// How far a run has come.
pub struct Progress {
    picture: Picture,
    /// How a screen would look, where one can be.
    look: Option<Look>,
    screen: Option<Screen>,
    /// What was said while it was up.
    kept: Vec<String>,
    trials: u64,
}

impl Progress {
    /// Of a run that has not begun.
    pub fn new() -> Self {
        let is_able =
            place::variable("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        let is_shown = std::io::stderr().is_terminal() && is_able && screen::has_room();
        let plain = place::variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let look = is_shown.then_some(Look { plain });
        Progress { picture: Picture::default(), look, screen: None, kept: Vec::new(), trials: 0 }
    }

    /// All done: a screen vanishes, and what was said meanwhile is said again.
    pub fn finish(&mut self) {
        self.screen = None;
        std::mem::take(&mut self.kept).iter().for_each(|line| remark!("{line}"));
    }

    /// Opens a screen where the run takes long enough to look at one.
    fn open_if_long(&mut self) {
        let left = self.picture.seconds_left(now_ms()).unwrap_or(0.0);
        if let Some(look) = self.look.filter(|_| left >= LONG_S && self.screen.is_none()) {
            self.screen = Screen::open(look, self.picture.clone());
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}

impl Watcher for Progress {
    fn say(&mut self, line: &str) {
        self.tell(&Event::Said { line: line.into() });
        match &self.screen {
            Some(_) if self.kept.len() < KEPT_MAX => self.kept.push(line.into()),
            Some(_) => {}
            None => remark!("{line}"),
        }
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
        self.picture.tell(Told { at_ms: now_ms(), lost: 0, event: event.clone() });
        if let Some(screen) = &self.screen {
            screen.tell(event.clone());
        }
        if matches!(event, Event::Planned { .. }) {
            self.open_if_long();
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    clock::since_1970().0 / 1_000_000
}
