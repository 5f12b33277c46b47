//! Event subscriptions: conditions, hysteresis, counts and intervals.
//!
//! Source: RFC 5812 section 4.8.5. A subscription is for all rows of an event's target or for some.
//! The most specific subscription applies. Thresholds and filters are 32-bit numbers.

use std::collections::HashMap;

use super::{ElementContext, Operation, OperationKind, PathData, Place, ResultCode, Select};
use crate::association::Timestamp;
use crate::association::properties::{COUNT, HYSTERESIS, INTERVAL, REGISTRATION, THRESHOLD};
use crate::model::value::Value;
use crate::model::{Class, Condition, DataType, Event, Field, Kind, Target};
use crate::wire::{Data, data};

/// Maximum number of subscriptions.
pub const SUBSCRIPTIONS_MAX: usize = 1024;
/// Maximum number of rows with filter state.
pub const FILTERS_MAX: usize = 65_536;

/// An occurrence of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// Class ID.
    pub class: u32,
    /// Instance ID.
    pub instance: u32,
    /// Event ID.
    pub event: u32,
    /// Indices for the event's subscripts.
    pub subscripts: Vec<u32>,
    /// Current value of the target, for threshold and hysteresis.
    pub value: Option<Value>,
    /// Values of the reports, in the order of declaration, at the time of the event. Missing ones
    /// are read when the notification is built.
    pub reported: Vec<Value>,
}

/// Event properties that a CE set.
#[derive(Debug, Clone, Default)]
struct Subscription {
    registration: u64,
    threshold: u64,
    hysteresis: u64,
    count: u64,
    interval: u64,
}

/// Filter state of a row: last notification, count and condition.
#[derive(Debug, Clone, Default)]
struct Filter {
    told: Option<(Timestamp, Option<i128>)>,
    /// Occurrences since the last notification, including it; wraps to 0 after the count.
    counter: u64,
    /// Whether the condition was met, and has not been false by the hysteresis since.
    is_over: bool,
}

type All = HashMap<Place, Subscription>;

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    all: All,
    staged: Option<All>,
    before: Option<All>,
    filters: HashMap<(Place, Vec<u32>), Filter>,
}

impl Subscriptions {
    /// Validates a change of an event's properties, and stages it on success.
    pub(super) fn stage(&mut self, place: Place, value: &Value) -> ResultCode {
        let mut all = self.staged.clone().unwrap_or_else(|| self.all.clone());
        let Value::Struct(fields) = value else { return ResultCode::INVALID_PARAMETERS };
        let subscription = all.entry(place).or_default();
        for (id, value) in fields.iter() {
            let Some(number) = value.unsigned() else { return ResultCode::INVALID_PARAMETERS };
            match id {
                REGISTRATION => subscription.registration = number,
                THRESHOLD => subscription.threshold = number,
                HYSTERESIS => subscription.hysteresis = number,
                COUNT => subscription.count = number,
                INTERVAL => subscription.interval = number,
                // A complete struct has the accessibility too, which does not change.
                _ => {}
            }
        }
        if all.len() > SUBSCRIPTIONS_MAX {
            return ResultCode::MEMORY_ERROR;
        }
        self.staged = Some(all);
        ResultCode::SUCCESS
    }

    pub(super) fn unstage(&mut self) {
        self.staged = None;
    }

    pub(super) fn commit(&mut self) {
        let staged = self.staged.take().unwrap_or_else(|| self.all.clone());
        self.before = Some(std::mem::replace(&mut self.all, staged));
    }

    pub(super) fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.all = before;
        }
    }

    /// Removes all subscriptions.
    pub(super) fn clear(&mut self) {
        *self = Subscriptions::default();
    }

    /// Returns the instances with active subscriptions, as class and instance ID.
    pub(super) fn instances(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let wanted = self.all.iter().filter(|(_, set)| set.registration != 0);
        wanted.map(|(place, _)| (place.class, place.instance))
    }

    /// Returns the current properties of an event.
    pub(super) fn properties(&self, place: &Place) -> Value {
        let set = self.all.get(place).cloned().unwrap_or_default();
        Value::struct_of([
            (1, Value::Unsigned(3)),
            (REGISTRATION, Value::Unsigned(set.registration)),
            (THRESHOLD, Value::Unsigned(set.threshold)),
            (HYSTERESIS, Value::Unsigned(set.hysteresis)),
            (COUNT, Value::Unsigned(set.count)),
            (INTERVAL, Value::Unsigned(set.interval)),
        ])
    }

    /// Returns whether to notify of this occurrence.
    ///
    /// It ignores the event base, because a class has only one.
    pub(super) fn passes(&mut self, it: &Happening, event: &Event, now: Timestamp) -> bool {
        let same = |place: &&Place| {
            place.class == it.class
                && place.instance == it.instance
                && place.path.get(1) == Some(&it.event)
                && it.subscripts.starts_with(&place.path[2..])
        };
        let Some(place) = self.all.keys().filter(same).max_by_key(|place| place.path.len()) else {
            return false;
        };
        let set = &self.all[place];
        if set.registration == 0 {
            return false;
        }
        let place = Place { path: vec![it.event], ..place.clone() };
        let key = (place, it.subscripts.clone());
        if !self.filters.contains_key(&key) && self.filters.len() >= FILTERS_MAX {
            // Without filter state, notify.
            return true;
        }
        let filter = self.filters.entry(key).or_default();
        let number = it.value.as_ref().and_then(Value::whole);
        filter.meets(set, event.condition, number) && filter.lets_pass(set, number, now)
    }
}

impl Filter {
    /// Returns whether the condition is met now and was not before.
    fn meets(&mut self, set: &Subscription, condition: Condition, number: Option<i128>) -> bool {
        let (threshold, hysteresis) = (i128::from(set.threshold), i128::from(set.hysteresis));
        let (is_met, is_back) = match (condition, number) {
            (Condition::Created | Condition::Deleted, _) => return true,
            (Condition::Changed, Some(number)) if hysteresis > 0 => {
                let last = self.told.and_then(|(_, number)| number);
                return last.is_none_or(|last| (number - last).abs() >= hysteresis);
            }
            (Condition::Changed, _) => return true,
            (_, None) => return false,
            (Condition::GreaterThan, Some(number)) => {
                (number > threshold, number <= threshold - hysteresis)
            }
            (Condition::LessThan, Some(number)) => {
                (number < threshold, number >= threshold + hysteresis)
            }
            (Condition::BecomesEqualTo, Some(number)) => (number == threshold, number != threshold),
        };
        if is_back {
            self.is_over = false;
        }
        let is_new = is_met && !self.is_over;
        self.is_over |= is_met;
        is_new
    }

    /// Returns whether a filter passes the occurrence, or no filter is set. Passing resets all
    /// filters.
    fn lets_pass(&mut self, set: &Subscription, number: Option<i128>, now: Timestamp) -> bool {
        let by_count = set.count > 0 && self.counter == 0;
        let waited = self
            .told
            .is_none_or(|(at, _)| now.saturating_sub(at).as_millis() > u128::from(set.interval));
        let by_interval = set.interval > 0 && waited;
        let passes = by_count || by_interval || set.count == 0 && set.interval == 0;
        if passes {
            self.counter = 0;
            self.told = Some((now, number));
        }
        self.counter += 1;
        if self.counter > set.count {
            self.counter = 0;
        }
        passes
    }
}

/// Builds an event notification: the event's path, and the reports as the fields of one struct.
pub(super) fn notification(
    world: &ElementContext<'_>,
    class: &Class,
    event: &Event,
    it: &Happening,
) -> Option<Select> {
    let mut ids = vec![class.event_base?, event.id];
    ids.extend(&it.subscripts);
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    // An unknown row has index 0, which selects its type.
    let mut subscripts = it.subscripts.clone();
    subscripts.resize(event.subscripts().max(subscripts.len()), 0);
    for (at, report) in event.reports.iter().enumerate() {
        let id = at as u32 + 1;
        let path = Event::report_path(report, &subscripts)?;
        let Ok(Target::Value { data_type, .. }) = class.target(&path) else { continue };
        let place = Place { class: it.class, instance: it.instance, path };
        fields.push(Field {
            id,
            name: String::new(),
            synopsis: String::new(),
            optional: true,
            access: None,
            data_type: data_type.clone(),
        });
        // Omit what does not exist (RFC 5812 section 4.7.6.3).
        let known = it.reported.get(at).cloned().or_else(|| world.get(&place).ok());
        values.extend(known.map(|value| (id, value)));
    }
    let data = match fields.is_empty() {
        true => Data::None,
        false => {
            let data_type = DataType::unnamed(Kind::Struct(fields));
            data::write(&data_type, &Value::struct_of(values)).ok()?
        }
    };
    let path = PathData::with(ids, data);
    Some(Select::one(it.class, it.instance, Operation::on(OperationKind::Report, vec![path])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(condition: Condition) -> Event {
        Event {
            id: 4,
            name: String::new(),
            synopsis: String::new(),
            target: vec![Some(5), None],
            condition,
            reports: Vec::new(),
        }
    }

    fn happening(row: u32, value: u64) -> Happening {
        let (subscripts, value) = (vec![row], Some(Value::Unsigned(value)));
        let reported = Vec::new();
        Happening { class: 3, instance: 1, event: 4, subscripts, value, reported }
    }

    /// Subscripts of a row, and the properties that are set for it.
    type Set<'a> = (&'a [u32], &'a [(u32, u64)]);

    fn subscribed(rows: &[Set<'_>]) -> Subscriptions {
        let mut all = Subscriptions::default();
        for (row, set) in rows {
            let path = [&[60, 4], *row].concat();
            let place = Place { class: 3, instance: 1, path };
            let set = set.iter().map(|(id, number)| (*id, Value::Unsigned(*number)));
            assert!(all.stage(place, &Value::struct_of(set)).is_success());
        }
        all.commit();
        all
    }

    /// Checks which of these successive values cause a notification.
    fn check(condition: Condition, set: &[(u32, u64)], values: &[u64], expected: &[u64]) {
        let mut all = subscribed(&[(&[], set)]);
        let event = event(condition);
        let reported = values
            .iter()
            .filter(|value| all.passes(&happening(1, **value), &event, Timestamp::ZERO));
        assert_eq!(reported.copied().collect::<Vec<_>>(), expected, "{condition:?}");
    }

    #[test]
    fn thresholds_and_hysteresis_select_the_notifications() {
        let on = (REGISTRATION, 1);
        let threshold = (THRESHOLD, 50);
        let hysteresis = (HYSTERESIS, 10);
        let values = [10, 51, 60, 45, 52, 40, 53, 50, 49, 54];
        check(Condition::GreaterThan, &[on, threshold], &values, &[51, 52, 53, 54]);
        check(Condition::GreaterThan, &[on, threshold, hysteresis], &values, &[51, 53]);
        let values = [90, 49, 40, 55, 48, 60, 47, 50, 51, 46];
        check(Condition::LessThan, &[on, threshold], &values, &[49, 48, 47, 46]);
        check(Condition::LessThan, &[on, threshold, hysteresis], &values, &[49, 47]);
        let values = [50, 50, 51, 50, 49];
        check(Condition::BecomesEqualTo, &[on, threshold], &values, &[50, 50]);
        check(Condition::Changed, &[threshold], &values, &[]);
    }

    #[test]
    fn a_row_subscription_overrides_that_of_all_rows() {
        let event = event(Condition::Changed);
        let mut all = subscribed(&[(&[7], &[(REGISTRATION, 1)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Timestamp::ZERO);
        assert_eq!([passes(7), passes(8)], [true, false]);
        // The more specific subscription applies, even if it is disabled.
        let mut all = subscribed(&[(&[], &[(REGISTRATION, 1)]), (&[7], &[(REGISTRATION, 0)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Timestamp::ZERO);
        assert_eq!([passes(7), passes(8)], [false, true]);
        // The filter of one row does not affect another row.
        let mut all = subscribed(&[(&[], &[(REGISTRATION, 1), (COUNT, 9)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Timestamp::ZERO);
        assert_eq!([passes(7), passes(7), passes(8), passes(8)], [true, false, true, false]);
    }

    #[test]
    fn subscriptions_are_limited_and_rolled_back() {
        let mut all = subscribed(&[(&[], &[(REGISTRATION, 1)])]);
        let place = |row| Place { class: 3, instance: 1, path: vec![60, 4, row] };
        let on = Value::struct_of([(REGISTRATION, Value::Unsigned(1))]);
        let staged = (0..2000).filter(|row| all.stage(place(*row), &on).is_success()).count();
        assert_eq!(staged, SUBSCRIPTIONS_MAX - 1);
        all.commit();
        all.roll_back();
        assert_eq!(all.all.len(), 1);
    }
}
