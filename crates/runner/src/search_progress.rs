//! Wrapper around a module that reports the progress of its search to watchers.
//!
//! A module searches within one trial, so only the module knows its progress. The wrapper turns the
//! module's reports into events, like the steps of other searches. Invariant: the inner module
//! receives exactly the same calls as without the wrapper.

use tester::module::{Ended, Event as Happened, Module, ModuleContext, ModuleRequirements};

use super::ProgressListener;
use crate::live::event::Event;

/// A module and the watchers of its search.
pub(super) struct SearchReporter<'a> {
    pub(super) module: &'a mut dyn Module,
    pub(super) watcher: &'a mut dyn ProgressListener,
}

impl Module for SearchReporter<'_> {
    fn needs(&self) -> ModuleRequirements {
        self.module.needs()
    }

    fn react(&mut self, event: &Happened<'_>, context: &mut ModuleContext) {
        self.module.react(event, context);
        if let Some(bracket) = context.take_search() {
            self.watcher.tell(&Event::Searching(bracket));
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        self.module.finish(ended, context);
    }
}
