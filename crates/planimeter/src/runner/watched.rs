//! A module around which whoever watches the run is told how its search goes.
//!
//! A module searches within one trial, where nobody but itself knows how far it is. What it says of that becomes an event, as the steps of
//! other searches are. Invariant: the module inside is told what it would be told without, and nothing else.

use instrument::module::{Desk, Ended, Event as Happened, Module, Needs};

use super::Watcher;
use crate::live::event::Event;

/// A module and who is told.
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
