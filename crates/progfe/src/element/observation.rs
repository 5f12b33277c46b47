//! Requests to trace frames of an element and to measure the cost of its blocks.
//!
//! At most one trace and one measurement are active at the same time. A second request fails until
//! the first has ended.

use packet::time::Nanos;

use super::Element;
use crate::executor::Enforcer;
use crate::observe::cost::Counter;
use crate::observe::{Costs, Tracing, Wanted};

impl<E: Enforcer> Element<E> {
    /// Measures the cost of blocks with a counter, for one of `every` frames, until a deadline.
    /// Returns false if a measurement is running.
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

    /// Returns the measured costs, if a measurement was requested.
    pub fn costs(&self) -> Option<&Costs> {
        self.observing.as_ref()?.costs.as_ref()
    }

    /// Starts to trace the next frames that match. Returns the id for [`Element::tracing`].
    pub fn trace_next(&mut self, wanted: &Wanted, now: Nanos) -> Result<u64, String> {
        self.suspend_mirror();
        let program = self.enforcer.program().clone();
        let observing = self.observing.get_or_insert_default();
        let busy = observing.tracing.as_ref().filter(|it| it.ended(now).is_none());
        if busy.is_some() {
            return Err("another client traces frames (hint: retry when that has ended)".to_owned());
        }
        let id = observing.tracings + 1;
        observing.tracing = Some(Tracing::new(id, &program, wanted)?);
        observing.tracings = id;
        Ok(id)
    }

    /// Returns the trace with this id, unless a newer request replaced it.
    pub fn tracing(&mut self, id: u64) -> Option<&mut Tracing> {
        self.observing.as_mut()?.tracing.as_mut().filter(|tracing| tracing.id == id)
    }

    /// Discards the trace with this id.
    pub fn end_tracing(&mut self, id: u64) {
        let Some(observing) = &mut self.observing else { return };
        observing.tracing.take_if(|tracing| tracing.id == id);
    }

    /// Updates subscriptions, trace and measurement after a program change.
    pub(super) fn program_changed(&mut self) {
        self.set_watched();
        let program = self.enforcer.program();
        if let Some(observing) = &mut self.observing {
            observing.program_changed(program);
        }
    }
}
