//! Frames of an element that somebody looks at, and what its blocks cost: asked for, and told.
//!
//! There is one of each at a time: a second one who asks is told how long the first one goes on.

use packet::time::Nanos;

use super::Element;
use crate::enforce::Enforcer;
use crate::observe::cost::Counter;
use crate::observe::{Costs, Tracing, Wanted};

impl<E: Enforcer> Element<E> {
    /// Looks at what blocks cost, by a counter, with one frame of `every`, until a moment. False if somebody does so
    /// already.
    pub fn measure_costs(
        &mut self,
        counter: Counter,
        every: u64,
        until: Nanos,
        now: Nanos,
    ) -> bool {
        let program = self.enforcer.program().clone();
        let observing = self.observing.get_or_insert_default();
        let is_free = observing.costs.as_ref().is_none_or(|costs| costs.is_over(now));
        if is_free {
            observing.costs = Some(Costs::new(&program, counter, every, until));
        }
        is_free
    }

    /// What blocks cost, as far as somebody asked.
    pub fn costs(&self) -> Option<&Costs> {
        self.observing.as_ref()?.costs.as_ref()
    }

    /// Notes what becomes of the next frames of some kind, and returns the number by which they are
    /// [found](Element::tracing).
    pub fn trace_next(&mut self, wanted: &Wanted, now: Nanos) -> Result<u64, String> {
        let program = self.enforcer.program().clone();
        let observing = self.observing.get_or_insert_default();
        let busy = observing.tracing.as_ref().filter(|it| it.ended(now).is_none());
        if busy.is_some() {
            return Err("somebody else waits for frames; ask again when that has ended".to_owned());
        }
        let id = observing.tracings + 1;
        observing.tracing = Some(Tracing::new(id, &program, wanted)?);
        observing.tracings = id;
        Ok(id)
    }

    /// The frames that were noted, unless others were asked for since.
    pub fn tracing(&mut self, id: u64) -> Option<&mut Tracing> {
        self.observing.as_mut()?.tracing.as_mut().filter(|tracing| tracing.id == id)
    }

    /// Forgets the frames that were noted: nobody waits for them any more.
    pub fn end_tracing(&mut self, id: u64) {
        let Some(observing) = &mut self.observing else { return };
        observing.tracing.take_if(|tracing| tracing.id == id);
    }

    /// Another program runs.
    pub(super) fn program_changed(&mut self) {
        self.set_watched();
        let program = self.enforcer.program();
        if let Some(observing) = &mut self.observing {
            observing.program_changed(program);
        }
    }
}
