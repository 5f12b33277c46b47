//! Commit times of scheduled bundles.
//!
//! Source: OpenFlow switch specification 1.5.1, sections 6.8.6 and 7.3.5.20. The switch uses the
//! host's clock. A controller can read it, and can set the limits for commit times.

use openflow::model::bundle::{
    BundleFeatureFlags, BundleFeatureProperty, BundleFeatures, BundleFeaturesRequest, BundleFlags,
    WallTime,
};
use openflow::version::ErrorCode;
use packet::time::Nanos;

const SECOND: u64 = 1_000_000_000;

/// Accuracy of scheduled commits.
const ACCURACY: Nanos = Nanos::from_millis(1);

/// Maximum of the limits that a controller may set.
const LIMIT_MAX: Nanos = Nanos::from_secs(86_400);

/// Limits for commit times in the future and in the past.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    future_max: Nanos,
    past_max: Nanos,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { future_max: Nanos::from_secs(3600), past_max: Nanos::from_secs(1) }
    }
}

impl Schedule {
    /// Converts a scheduled time of day to the agent's time, if it is later than now. `wall` is now
    /// as a time of day.
    pub fn due(&self, time: WallTime, wall: Nanos, now: Nanos) -> Result<Option<Nanos>, ErrorCode> {
        let time = nanos(time);
        if time > wall.saturating_add(self.future_max) {
            return Err(ErrorCode::BundleScheduleFuture);
        }
        if time.saturating_add(self.past_max) < wall {
            return Err(ErrorCode::BundleSchedulePast);
        }
        Ok((time > wall).then(|| now.saturating_add(time.since(wall))))
    }

    /// Applies requested limits and returns the bundle features.
    pub fn features(
        &mut self,
        request: &BundleFeaturesRequest,
        wall: Nanos,
    ) -> Result<BundleFeatures, ErrorCode> {
        if request.flags.contains(BundleFeatureFlags::TIME_SET_SCHEDULE) {
            self.set(&request.properties)?;
        }
        let asks_time = BundleFeatureFlags::TIMESTAMP | BundleFeatureFlags::TIME_SET_SCHEDULE;
        let limits = BundleFeatureProperty::Time {
            accuracy: wall_time(ACCURACY),
            future_max: wall_time(self.future_max),
            past_max: wall_time(self.past_max),
            timestamp: wall_time(wall),
        };
        Ok(BundleFeatures {
            capabilities: BundleFlags::ATOMIC | BundleFlags::ORDERED | BundleFlags::TIME,
            properties: match request.flags.and(asks_time).is_empty() {
                true => Vec::new(),
                false => vec![limits],
            },
        })
    }

    fn set(&mut self, properties: &[BundleFeatureProperty]) -> Result<(), ErrorCode> {
        for property in properties {
            let BundleFeatureProperty::Time { future_max, past_max, .. } = property else {
                return Err(ErrorCode::PropertyBadExperimenter);
            };
            let (future_max, past_max) = (nanos(*future_max), nanos(*past_max));
            if future_max > LIMIT_MAX || past_max > LIMIT_MAX {
                return Err(ErrorCode::RequestMultipartBadSchedule);
            }
            *self = Schedule { future_max, past_max };
        }
        Ok(())
    }
}

fn nanos(time: WallTime) -> Nanos {
    Nanos(time.seconds.saturating_mul(SECOND).saturating_add(time.nanoseconds.into()))
}

fn wall_time(span: Nanos) -> WallTime {
    WallTime { seconds: span.0 / SECOND, nanoseconds: (span.0 % SECOND) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_time_is_converted_and_limited() {
        let schedule = Schedule::default();
        let (wall, now) = (Nanos::from_secs(1_000_000), Nanos::from_secs(5));
        let at = |seconds, nanoseconds| WallTime { seconds, nanoseconds };
        let due = schedule.due(at(1_000_001, 7), wall, now);
        assert_eq!(due, Ok(Some(Nanos(6 * SECOND + 7))));
        assert_eq!(schedule.due(at(999_999, 0), wall, now), Ok(None));
        let past = schedule.due(at(999_998, 999_999_999), wall, now);
        assert_eq!(past, Err(ErrorCode::BundleSchedulePast));
        let future = schedule.due(at(1_003_600, 1), wall, now);
        assert_eq!(future, Err(ErrorCode::BundleScheduleFuture));
        assert!(schedule.due(at(u64::MAX, 0), wall, now).is_err());
    }
}
