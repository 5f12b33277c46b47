//! Subscriptions to events: conditions, hysteresis, counts and intervals.
//!
//! Source: RFC 5812 section 4.8.5. A subscription is of an event, of all rows that it watches or of
//! some; the one that says most of a row counts. Thresholds and filters are numbers of 32 bits.

use std::collections::HashMap;

use super::{Operation, OperationKind, PathData, Place, ResultCode, Select, World};
use crate::association::Moment;
use crate::association::properties::{COUNT, HYSTERESIS, INTERVAL, REGISTRATION, THRESHOLD};
use crate::model::{Class, Condition, DataType, Event, Field, Kind, Target};
use crate::value::Value;
use crate::wire::{Data, data};

/// Most subscriptions.
pub const SUBSCRIPTIONS_MAX: usize = 1024;
/// Most rows of which it is known when they were told of last.
pub const FILTERS_MAX: usize = 65_536;

/// Something that happened to what an event watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// The class.
    pub class: u32,
    /// Which instance.
    pub instance: u32,
    /// The event's id.
    pub event: u32,
    /// The indices that the event's subscripts stand for.
    pub subscripts: Vec<u32>,
    /// What the target is now; thresholds and hysteresis are compared with it.
    pub value: Option<Value>,
    /// What the event reports, in the order of its declaration, as it was when it happened. What is not
    /// in here is asked for when it is told.
    pub reported: Vec<Value>,
}

/// What a CE set of an event's properties.
#[derive(Debug, Clone, Default)]
struct Subscription {
    registration: u64,
    threshold: u64,
    hysteresis: u64,
    count: u64,
    interval: u64,
}

/// What was told of a row last.
#[derive(Debug, Clone, Default)]
struct Filter {
    told: Option<(Moment, Option<i128>)>,
    /// Occurrences since the last one that counted as the first.
    counter: u64,
    /// The condition was met, and has not been untrue by the hysteresis since.
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
    /// Sees whether an event's properties can be changed, and stages that if so.
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
                // Whole structs hold accessibility too, which stays.
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

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        *self = Subscriptions::default();
    }

    /// Instances of which somebody wants events.
    pub(super) fn instances(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let wanted = self.all.iter().filter(|(_, set)| set.registration != 0);
        wanted.map(|(place, _)| (place.class, place.instance))
    }

    /// The properties of an event, as they are set.
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

    /// Whether somebody wants to be told now. The base of the class is not looked at: there is one.
    pub(super) fn passes(&mut self, it: &Happening, event: &Event, now: Moment) -> bool {
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
            // Nothing is known of it then, and so it is told.
            return true;
        }
        let filter = self.filters.entry(key).or_default();
        let number = it.value.as_ref().and_then(Value::whole);
        filter.meets(set, event.condition, number) && filter.lets_pass(set, number, now)
    }
}

impl Filter {
    /// Whether the condition is met now and was not before.
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

    /// Whether a filter lets it pass, or there is none. One that does resets the others.
    fn lets_pass(&mut self, set: &Subscription, number: Option<i128>, now: Moment) -> bool {
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

/// What is told of an event: its path, and the values that it reports as those of one struct.
pub(super) fn notification(
    world: &World<'_>,
    class: &Class,
    event: &Event,
    it: &Happening,
) -> Option<Select> {
    let mut ids = vec![class.event_base?, event.id];
    ids.extend(&it.subscripts);
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    // Where a row is not known, that of its type is.
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
        // What does not exist is not reported (RFC 5812 section 4.7.6.3).
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

    /// A row's subscripts, and the properties that are set for it.
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

    /// Which of these values are told, one after the other.
    fn check(condition: Condition, set: &[(u32, u64)], values: &[u64], expected: &[u64]) {
        let mut all = subscribed(&[(&[], set)]);
        let event = event(condition);
        let told =
            values.iter().filter(|value| all.passes(&happening(1, **value), &event, Moment::ZERO));
        assert_eq!(told.copied().collect::<Vec<_>>(), expected, "{condition:?}");
    }

    #[test]
    fn thresholds_are_crossed_and_crossed_back() {
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
    fn a_row_has_its_own_subscription_or_all_have_one() {
        let event = event(Condition::Changed);
        let mut all = subscribed(&[(&[7], &[(REGISTRATION, 1)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Moment::ZERO);
        assert_eq!([passes(7), passes(8)], [true, false]);
        // One that says more of a row counts, also if it says that it is not to be told.
        let mut all = subscribed(&[(&[], &[(REGISTRATION, 1)]), (&[7], &[(REGISTRATION, 0)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Moment::ZERO);
        assert_eq!([passes(7), passes(8)], [false, true]);
        // Filters of one row do not hold back another.
        let mut all = subscribed(&[(&[], &[(REGISTRATION, 1), (COUNT, 9)])]);
        let mut passes = |row| all.passes(&happening(row, 1), &event, Moment::ZERO);
        assert_eq!([passes(7), passes(7), passes(8), passes(8)], [true, false, true, false]);
    }

    #[test]
    fn subscriptions_are_bounded_and_rolled_back() {
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
