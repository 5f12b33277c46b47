//! FEObject and FEPO, which describe the element and the protocol; their changes are staged like
//! others.
//!
//! Source: RFC 5812 section 5.1, RFC 5810 section 7.3.1, RFC 7121 section 3.1, RFC 7391 section
//! 3.2.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    Change, FeSettings, Id, Operation, OperationKind, PathData, Place, ResultCode, Select,
};
use crate::model::value::{Fields, Value};
use crate::model::{Catalog, Target};
use crate::wire::{Data, VERSION, data};

/// Class ID of FEObject.
pub(crate) const FE_OBJECT: u32 = 1;
/// Class ID of FEPO.
pub(crate) const FEPO: u32 = 2;

/// Component IDs of FEObject.
const TOPOLOGY: u32 = 1;
const SELECTORS: u32 = 2;
const NAME: u32 = 3;
const OBJECT_FE_ID: u32 = 4;
const VENDOR: u32 = 5;
const MODEL: u32 = 6;
const STATE: u32 = 7;
const NEIGHBOURS: u32 = 8;
const MODIFIABLE_TOPOLOGY: u32 = 30;
const SUPPORTED: u32 = 31;

/// Component IDs of FEPO.
const RUNNING_VERSION: u32 = 1;
const FE_ID: u32 = 2;
const MULTICAST: u32 = 3;
const CE_HEARTBEATS: u32 = 4;
const CE_DEAD: u32 = 5;
const FE_HEARTBEATS: u32 = 6;
const FE_INTERVAL: u32 = 7;
const CE_ID: u32 = 8;
const BACKUPS: u32 = 9;
const FAILOVER_POLICY: u32 = 10;
const FAILOVER_TIMEOUT: u32 = 11;
const RESTART_POLICY: u32 = 12;
const LAST_CE_ID: u32 = 13;
const HA_MODE: u32 = 14;
const ALL_CES: u32 = 15;
const EXTENDED: u32 = 16;

/// Values of FEState.
pub(super) const ADMIN_DISABLE: u64 = 0;
pub(super) const OPER_DISABLE: u64 = 1;
pub(super) const OPER_ENABLE: u64 = 2;

type Values = BTreeMap<(u32, u32), Value>;

/// Values of FEObject and FEPO: current, staged, and before the last commit.
#[derive(Debug)]
pub(crate) struct ProtocolObjects {
    values: Values,
    staged: Option<Values>,
    before: Option<Values>,
}

/// Returns whether this module implements a place, not the element.
pub(super) fn is_own(place: &Place) -> bool {
    let elements = matches!(place.path.first(), Some(&(TOPOLOGY | SELECTORS)));
    place.class == FEPO || place.class == FE_OBJECT && !elements
}

/// Returns the text truncated to this many octets.
fn cut(text: &str, octets: usize) -> Value {
    let mut end = text.len().min(octets);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Value::Text(text[..end].to_string())
}

impl ProtocolObjects {
    pub fn new(settings: &FeSettings) -> ProtocolObjects {
        let number = |number: u32| Value::Unsigned(number.into());
        let list = |all: &[u32]| Value::rows_of(all.iter().map(|it| Value::Unsigned((*it).into())));
        let state = if settings.forwards { OPER_ENABLE } else { OPER_DISABLE };
        let backups: Vec<u32> = settings.backups.iter().map(|id| id.0).collect();
        let values = [
            ((FE_OBJECT, NAME), cut(&settings.name, 40)),
            ((FE_OBJECT, OBJECT_FE_ID), number(settings.id.0)),
            ((FE_OBJECT, VENDOR), cut(&settings.vendor, 40)),
            ((FE_OBJECT, MODEL), cut(&settings.model, 40)),
            ((FE_OBJECT, STATE), Value::Unsigned(state)),
            ((FE_OBJECT, NEIGHBOURS), list(&[])),
            ((FE_OBJECT, MODIFIABLE_TOPOLOGY), Value::Boolean(true)),
            ((FEPO, RUNNING_VERSION), number(VERSION.into())),
            ((FEPO, FE_ID), number(settings.id.0)),
            ((FEPO, MULTICAST), list(&[])),
            ((FEPO, CE_HEARTBEATS), number(0)),
            ((FEPO, CE_DEAD), number(30_000)),
            ((FEPO, FE_HEARTBEATS), number(0)),
            ((FEPO, FE_INTERVAL), number(500)),
            ((FEPO, CE_ID), number(settings.primary.0)),
            ((FEPO, BACKUPS), list(&backups)),
            ((FEPO, FAILOVER_POLICY), number(settings.goes_on.into())),
            ((FEPO, FAILOVER_TIMEOUT), number(settings.goes_on_for_ms)),
            ((FEPO, RESTART_POLICY), number(0)),
            ((FEPO, LAST_CE_ID), number(0)),
            ((FEPO, HA_MODE), number(settings.ha_mode.into())),
            ((FEPO, ALL_CES), list(&[])),
            ((FEPO, EXTENDED), number(1)),
            ((FEPO, 30), list(&[VERSION.into()])),
            ((FEPO, 31), list(&[0, 1])),
            ((FEPO, 32), list(&[1, 2])),
        ];
        ProtocolObjects { values: values.into(), staged: None, before: None }
    }

    fn number(&self, class: u32, component: u32) -> u64 {
        self.values.get(&(class, component)).and_then(Value::unsigned).unwrap_or(0)
    }

    fn set(&mut self, class: u32, component: u32, number: u64) {
        for values in [Some(&mut self.values), self.staged.as_mut()].into_iter().flatten() {
            values.insert((class, component), Value::Unsigned(number));
        }
    }

    /// Returns the primary CE.
    pub fn primary(&self) -> Id {
        Id(self.number(FEPO, CE_ID) as u32)
    }

    /// Returns the previous primary CE.
    pub fn last(&self) -> Id {
        Id(self.number(FEPO, LAST_CE_ID) as u32)
    }

    pub fn set_last(&mut self, ce: Id) {
        self.set(FEPO, LAST_CE_ID, ce.0.into());
    }

    pub fn set_primary(&mut self, ce: Id) {
        self.set(FEPO, CE_ID, ce.0.into());
    }

    /// Sets the ID that a CE assigned.
    pub fn set_id(&mut self, id: Id) {
        self.set(FEPO, FE_ID, id.0.into());
        self.set(FE_OBJECT, OBJECT_FE_ID, id.0.into());
    }

    /// Returns the backup CEs.
    pub fn backups(&self) -> Vec<Id> {
        let rows = self.values.get(&(FEPO, BACKUPS)).and_then(Value::rows);
        let ids = rows.into_iter().flat_map(|rows| rows.values()).filter_map(Value::unsigned);
        ids.map(|id| Id(id as u32)).collect()
    }

    /// Moves the primary CE to the end of the backups and makes the first backup primary (RFC 7121
    /// section 2.1.1).
    pub fn rotate(&mut self) {
        let mut all = self.backups();
        all.retain(|id| *id != self.primary());
        if all.is_empty() {
            return;
        }
        all.push(self.primary());
        let first = all.remove(0);
        self.set_backups(&all);
        self.set_primary(first);
    }

    /// Moves the previous primary CE to the end of the backups, and removes the new one.
    pub fn demote(&mut self, old: Id) {
        let mut all = self.backups();
        all.retain(|id| *id != self.primary() && *id != old);
        all.push(old);
        self.set_backups(&all);
    }

    fn set_backups(&mut self, all: &[Id]) {
        let rows = Value::rows_of(all.iter().map(|id| Value::Unsigned(id.0.into())));
        for values in [Some(&mut self.values), self.staged.as_mut()].into_iter().flatten() {
            values.insert((FEPO, BACKUPS), rows.clone());
        }
    }

    /// Returns whether all CEs are associated at the same time (hot standby).
    pub fn is_hot(&self) -> bool {
        self.number(FEPO, HA_MODE) == 2 && self.goes_on()
    }

    /// Returns whether the element continues for a while without a CE.
    pub fn goes_on(&self) -> bool {
        self.number(FEPO, FAILOVER_POLICY) == 1
    }

    /// Returns how long it continues.
    pub fn goes_on_for(&self) -> Duration {
        Duration::from_millis(self.number(FEPO, FAILOVER_TIMEOUT))
    }

    /// Returns the idle time after which a CE is lost, if CEs send heartbeats.
    pub fn ce_dead_after(&self) -> Option<Duration> {
        let says = self.number(FEPO, CE_HEARTBEATS) == 0;
        says.then(|| Duration::from_millis(self.number(FEPO, CE_DEAD)))
    }

    /// Returns the time without a sent message after which the element sends a heartbeat, if
    /// enabled.
    pub fn heartbeat_after(&self) -> Option<Duration> {
        let says = self.number(FEPO, FE_HEARTBEATS) == 1;
        // Limit heartbeats to one in a millisecond, even if a CE configures less.
        says.then(|| Duration::from_millis(self.number(FEPO, FE_INTERVAL).max(1)))
    }

    /// Returns whether responses use EXTENDEDRESULT.
    pub fn is_extended(&self) -> bool {
        self.number(FEPO, EXTENDED) == 2
    }

    /// Returns the FE state: [`ADMIN_DISABLE`], [`OPER_DISABLE`] or [`OPER_ENABLE`].
    pub fn state(&self) -> u64 {
        self.number(FE_OBJECT, STATE)
    }

    pub fn set_state(&mut self, state: u64) {
        self.set(FE_OBJECT, STATE, state);
    }

    /// Returns whether messages to this ID are for the element.
    pub fn is_for(&self, destination: Id, own: Id) -> bool {
        let groups = self.values.get(&(FEPO, MULTICAST)).and_then(Value::rows);
        let mut groups = groups.into_iter().flat_map(|rows| rows.values());
        let mut in_group = || groups.any(|id| id.unsigned() == Some(destination.0.into()));
        destination == own
            || destination == Id::ALL_FES
            || destination == Id::ALL
            || destination.is_multicast() && in_group()
    }

    /// Sets state and message counters of all CEs.
    pub fn set_all_ces(&mut self, all: impl Iterator<Item = (Id, u64, [u64; 8])>) {
        let rows = all.map(|(id, status, counts)| {
            let counts = (1..).zip(counts).map(|(id, count)| (id, Value::Unsigned(count)));
            Value::struct_of([
                (1, Value::Unsigned(id.0.into())),
                (2, Value::Struct(counts.collect())),
                (3, Value::Unsigned(status)),
            ])
        });
        self.values.insert((FEPO, ALL_CES), Value::rows_of(rows));
    }

    /// Returns the report in the association setup: last primary CE and heartbeat interval.
    pub fn report(&self) -> Vec<Select> {
        let path = |component: u32| {
            let value = self.number(FEPO, component) as u32;
            PathData::with([component], Data::Full(value.to_be_bytes().to_vec()))
        };
        let paths = vec![path(LAST_CE_ID), path(FE_INTERVAL)];
        vec![Select::one(FEPO, 1, Operation::on(OperationKind::Report, paths))]
    }

    pub fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        let (first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
        let value = self.values.get(&(place.class, *first));
        let part = value.and_then(|value| value.at(rest));
        part.cloned().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)
    }

    /// Validates a change, and stages it on success.
    pub fn stage(&mut self, change: Change, catalog: &Catalog) -> ResultCode {
        let mut values = self.staged.clone().unwrap_or_else(|| self.values.clone());
        let place = change.place().clone();
        match stage(&mut values, change, &place, catalog) {
            Ok(()) => {
                self.staged = Some(values);
                ResultCode::SUCCESS
            }
            Err(code) => code,
        }
    }

    pub fn unstage(&mut self) {
        self.staged = None;
    }

    pub fn commit(&mut self) {
        let staged = self.staged.take().unwrap_or_else(|| self.values.clone());
        self.before = Some(std::mem::replace(&mut self.values, staged));
    }

    pub fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.values = before;
        }
    }
}

fn stage(
    values: &mut Values,
    change: Change,
    place: &Place,
    catalog: &Catalog,
) -> Result<(), ResultCode> {
    let class = catalog.class_by_id(place.class).ok_or(ResultCode::LFB_UNKNOWN)?;
    let (&first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
    let component = class.component_by_id(first).ok_or(ResultCode::INVALID_PATH)?;
    let key = (place.class, first);
    let root = values.entry(key).or_insert_with(|| component.default_value());
    let missing = ResultCode::COMPONENT_DOES_NOT_EXIST;
    match change {
        Change::Set { value, .. } => drop(root.put(rest, value).map_err(|_| missing)?),
        Change::Merge { value, .. } => root.at_mut(rest).ok_or(missing)?.merge(value),
        Change::Delete { .. } => drop(root.take(rest).ok_or(ResultCode::NOT_FOUND)?),
    }
    component.data_type.check(root).map_err(|fault| data::code_of(&fault))?;
    match (key, root.unsigned()) {
        // RFC 5812 section 5.1: a CE sets the administrative state, not the operational one.
        ((FE_OBJECT, STATE), Some(OPER_DISABLE)) => Err(ResultCode::VALUE_OUT_OF_RANGE),
        // Peers would take a new ID for another element.
        ((FE_OBJECT, OBJECT_FE_ID), _) => Err(ResultCode::NOT_SUPPORTED),
        ((FEPO, CE_ID), Some(id)) if !Id(id as u32).is_ce() => Err(ResultCode::VALUE_OUT_OF_RANGE),
        _ => Ok(()),
    }
}

/// Returns FEObject's SupportedLFBs from the classes of the catalog.
pub(super) fn supported(catalog: &Catalog, path: &[u32]) -> Option<Value> {
    let rest = path.strip_prefix(&[SUPPORTED])?;
    let rows = catalog.classes().map(|class| {
        let mut fields = Fields::new();
        fields.insert(1, Value::Text(class.name.clone()));
        fields.insert(2, Value::Unsigned(class.id.into()));
        fields.insert(3, Value::Text(class.version.to_string()));
        Value::Struct(fields)
    });
    Value::rows_of(rows).at(rest).cloned()
}

/// Event IDs of FEPO.
pub(super) const PRIMARY_DOWN: u32 = 1;
pub(super) const PRIMARY_CHANGED: u32 = 2;

/// Returns a FEPO notification: the primary CE is down, or has changed.
pub(super) fn notification(catalog: &Catalog, event: u32, ce: Id) -> Option<Select> {
    let base = catalog.class_by_id(FEPO)?.event_base?;
    let data = Data::Full(ce.0.to_be_bytes().to_vec());
    let path = PathData::with([base, event], data);
    Some(Select::one(FEPO, 1, Operation::on(OperationKind::Report, vec![path])))
}

/// Returns the type at a place, to split long responses.
pub(super) fn type_at(
    catalog: &Catalog,
    class: u32,
    path: &[u32],
) -> Option<std::sync::Arc<crate::model::DataType>> {
    match catalog.class_by_id(class)?.target(path) {
        Ok(Target::Value { data_type, .. }) => Some(data_type.clone()),
        _ => None,
    }
}
