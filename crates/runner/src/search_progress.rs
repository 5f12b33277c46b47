//! Wrapper around a module that reports the progress of its search to watchers.
//!
//! A module searches within one trial, so only the module knows its progress. The wrapper turns the
//! module's reports into events, like the steps of other searches. Invariant: the inner module
//! receives exactly the same calls as without the wrapper.

use tester::module::{Desk, Ended, Event as Happened, Module, Needs};

use super::Watcher;
use crate::live::event::Event;

/// A module and the watchers of its search.
pub(super) struct Watched<'a> {
    pub(super) module: &'a mut dyn Module,
    pub(super) watcher: &'a mut dyn Watcher,
}

impl Module for Watched<'_> {
    fn needs(&self) -> Needs {
        self.module.needs()
    }

    fn react(&mut self, event: &Happened<'_>, desk: &mut Desk) {
        self.module.react(event, desk);
        if let Some(bracket) = desk.take_searching() {
            self.watcher.tell(&Event::Searching(bracket));
        }
    }

    fn finish(&mut self, ended: &Ended, desk: &mut Desk) {
        self.module.finish(ended, desk);
    }
}
