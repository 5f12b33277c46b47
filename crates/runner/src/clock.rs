//! Accuracy of the tester's clock over a run, for the record.
//!
//! The clocks are read again after each trial: the undisciplined clock, and a reference outside the
//! machine if there is one. Delays between ports of one tester do not depend on the reference; it
//! shows the error of a second.

use os::clock::reference::{self, Reference};
use os::clock::tsc::{Counter, Reading, reading_ns};
use packet::time::Nanos;
use record::{ClockFacts, ClockReference};
use tester::clock::drift::Drift;
use tester::clock::servo::Discipline;

/// Observes the clocks of this machine.
pub struct ClockWatch {
    drift: Drift,
    /// The reference, if one is readable, and how well the clock follows it.
    reference: Option<(Box<dyn Reference + Send>, Discipline)>,
    reading_ns: u64,
    begun: Nanos,
}

/// After this time a rate is accurate to some parts in a million.
const SETTLING: Nanos = Nanos::from_millis(250);

impl ClockWatch {
    /// Takes a first reading of each clock.
    pub fn begin() -> Self {
        let opened = reference::devices().into_iter().find_map(|path| {
            let mut device = reference::open(&path).ok()?;
            device.edge().ok()?;
            Some(device)
        });
        Self::beside(opened)
    }

    /// Takes a first reading, with this reference if there is one.
    fn beside(reference: Option<Box<dyn Reference + Send>>) -> Self {
        let reference = reference.map(|device| (device, Discipline::new()));
        let (drift, begun) = (Drift::new(), os::clock::now());
        let mut watch = ClockWatch { drift, reference, reading_ns: reading_ns(), begun };
        watch.look();
        watch
    }

    /// Reads the clocks again.
    pub fn look(&mut self) {
        self.drift.add(Reading::take());
        if let Some((device, discipline)) = &mut self.reference
            && let Ok(Some(edge)) = device.edge()
        {
            discipline.meet(&edge);
        }
    }

    /// Waits until a rate can be reported, at most 250 ms from the first reading.
    pub fn settle(&mut self) {
        os::clock::sleep_until(self.begun.saturating_add(SETTLING));
        self.look();
    }

    /// Returns the facts for the record.
    pub fn facts(&self) -> ClockFacts {
        let went = self.drift.went();
        let counter = Counter::of_processor();
        let of_counter = went.filter(|_| counter != Counter::Absent);
        ClockFacts {
            counter: counter.words().into(),
            reading_ns: self.reading_ns,
            span_ns: went.map(|went| went.span.0),
            drift_ppb: went.map(|went| went.ppb),
            drift_ppb_error: went.map(|went| went.ppb_error),
            wander_ns: went.map(|went| went.ns_wander),
            counter_hz: of_counter.map(|went| went.counter_hz),
            counter_hz_error: of_counter.map(|went| went.counter_hz_error),
            reference: self.reference.as_ref().map(|(device, it)| told(device.as_ref(), it)),
        }
    }
}

fn told(device: &dyn Reference, discipline: &Discipline) -> ClockReference {
    let now = os::clock::now();
    let (readings, ignored) = discipline.readings();
    ClockReference {
        name: device.name(),
        offset_ns: discipline.offset_ns(now).and_then(|ns| i64::try_from(ns).ok()),
        offset_ns_error: discipline.error_ns(now),
        drift_ppb: (readings > 1).then(|| discipline.ppb()),
        readings,
        ignored,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use os::clock;
    use os::clock::reference::ClockReading;

    use super::*;

    /// A reference that is ahead by a bit more than one second.
    struct AheadReference(u64);

    impl Reference for AheadReference {
        fn name(&self) -> String {
            "/dev/pps-of-a-test".into()
        }

        fn edge(&mut self) -> io::Result<Option<ClockReading>> {
            let local = clock::now();
            Ok(Some(ClockReading { local, reference: local + Nanos(self.0), error: Nanos(5) }))
        }
    }

    #[test]
    fn a_reference_clock_and_its_error_are_in_the_facts() {
        let mut watch = ClockWatch::beside(Some(Box::new(AheadReference(1_000_000_250))));
        for _ in 0..40 {
            clock::sleep_until(clock::now() + Nanos::from_millis(3));
            watch.look();
        }
        let facts = watch.facts();
        let reference = facts.reference.clone().unwrap();
        let (offset, error) = (reference.offset_ns.unwrap(), reference.offset_ns_error.unwrap());
        assert!((offset - 1_000_000_250).abs() as f64 <= error && error < 1_000.0, "{reference:?}");
        assert_eq!((reference.readings, reference.ignored), (41, 0));
        assert!(facts.span_ns.unwrap() >= 100_000_000 && facts.drift_ppb_error.unwrap() > 0.0);
        assert!(facts.words().contains("/dev/pps-of-a-test is 1000000250 ns ahead"));
    }

    #[test]
    fn a_machine_without_a_reference_clock_reports_that() {
        let facts = ClockWatch::beside(None).facts();
        assert!(facts.reference.is_none() && facts.drift_ppb.is_none());
        assert!(facts.words().contains("no PPS or PTP device"));
    }
}
