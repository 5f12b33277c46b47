//! Executes requests: follows paths, looks up keys, and builds responses in the shape of the
//! request.
//!
//! A configuration is planned first. Each leaf of its paths becomes changes, or the result code of
//! its failure. Then the changes are staged in order. The response is built from the plan, so it
//! has the paths of the request. An index replaces each key (RFC 5810 section 7.1.9). Key lookup
//! uses committed values, not staged ones.
//!
//! Some implementations write a new row as one path for each field (RFC 6053). If the row does not
//! exist and the paths make it complete, they create it.

use std::sync::Arc;

use super::element::{Change, Place};
use super::fe::ElementContext;
use super::properties;
use crate::model::value::{Fields, Value};
use crate::model::{Access, ArraySize, Class, DataType, Kind, Target};
use crate::wire::{
    Content, Data, Operation, OperationKind, Outcome, PathData, ResultCode, Select, Selector, data,
};

/// What a leaf requests.
#[derive(Debug)]
pub(super) enum OperationBuilder {
    /// Changes of values.
    Changes(Vec<Change>),
    /// Changes of an event's properties: its place and the new values.
    Event(Place, Value),
    /// Nothing, because it is invalid.
    Refused(ResultCode),
}

/// A path of the request with indices for keys. A leaf has the index of its work.
struct Node {
    ids: Vec<u32>,
    inner: Inner,
}

enum Inner {
    Leaf(usize),
    Nodes(Vec<Node>),
}

/// A planned operation.
pub(super) struct Plan {
    nodes: Vec<Node>,
    /// The work of its leaves, in order.
    pub work: Vec<OperationBuilder>,
}

/// Plans one operation on one instance.
struct Planner<'a, 'w> {
    world: &'a ElementContext<'w>,
    class: &'a Class,
    instance: u32,
    kind: OperationKind,
    work: Vec<OperationBuilder>,
}

/// Returns the class of an existing instance.
fn instance<'a>(
    world: &'a ElementContext<'_>,
    select: &Select,
) -> Result<&'a Arc<Class>, ResultCode> {
    let catalog = world.element.catalog();
    let class = catalog.class_by_id(select.class).ok_or(ResultCode::LFB_UNKNOWN)?;
    match world.has_instance(select.class, select.instance) {
        true => Ok(class),
        false => Err(ResultCode::INSTANCE_NOT_FOUND),
    }
}

/// Plans a SET, DEL or SET-PROP.
pub(super) fn plan(world: &ElementContext<'_>, select: &Select, operation: &Operation) -> Plan {
    match instance(world, select) {
        Ok(class) => {
            let (instance, kind) = (select.instance, operation.kind);
            let mut planner = Planner { world, class, instance, kind, work: Vec::new() };
            let paths = operation.paths().iter();
            let nodes = paths.map(|path| planner.node(&[], path)).collect();
            Plan { nodes, work: planner.work }
        }
        Err(code) => {
            let paths = operation.paths().iter().enumerate();
            let leaf = |(at, path): (usize, &PathData)| Node {
                ids: path.ids.clone(),
                inner: Inner::Leaf(at),
            };
            let work = operation.paths().iter().map(|_| OperationBuilder::Refused(code)).collect();
            Plan { nodes: paths.map(leaf).collect(), work }
        }
    }
}

impl Plan {
    /// Builds the paths of the response from the results; optionally only those of failures.
    pub(super) fn response(
        &self,
        results: &[ResultCode],
        extended: bool,
        only_failures: bool,
    ) -> Vec<PathData> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|node| respond(node, results, extended, only_failures)).collect()
    }
}

fn respond(
    node: &Node,
    results: &[ResultCode],
    extended: bool,
    only_failures: bool,
) -> Option<PathData> {
    let data = match &node.inner {
        Inner::Leaf(at) => {
            let code = results.get(*at).copied().unwrap_or(ResultCode::UNSPECIFIED);
            if only_failures && code.is_success() {
                return None;
            }
            Data::Outcome(Outcome::of(code, extended))
        }
        Inner::Nodes(nodes) => {
            let nodes = nodes.iter();
            let paths: Vec<_> =
                nodes.filter_map(|node| respond(node, results, extended, only_failures)).collect();
            if paths.is_empty() {
                return None;
            }
            Data::Paths(paths)
        }
    };
    Some(PathData::with(node.ids.clone(), data))
}

/// Returns the result code for an invalid path.
fn no_target(class: &Class, path: &[u32]) -> ResultCode {
    // A row that a fixed-size array cannot have gets another code than an invalid path.
    let parent = path.split_last().and_then(|(_, before)| class.target(before).ok());
    match parent {
        Some(Target::Value { data_type, .. }) if data_type.array().is_some() => {
            ResultCode::INVALID_ARRAY_CREATION
        }
        _ => ResultCode::INVALID_PATH,
    }
}

impl Planner<'_, '_> {
    fn place(&self, path: &[u32]) -> Place {
        Place { class: self.class.id, instance: self.instance, path: path.to_vec() }
    }

    fn leaf(&mut self, ids: Vec<u32>, work: OperationBuilder) -> Node {
        self.work.push(work);
        Node { ids, inner: Inner::Leaf(self.work.len() - 1) }
    }

    fn node(&mut self, before: &[u32], path: &PathData) -> Node {
        let mut ids = path.ids.clone();
        let mut full = [before, &ids].concat();
        match &path.selector {
            None => {}
            Some(Selector::Key { key, content }) => {
                match find(self.world, self.class, &self.place(&full), *key, content) {
                    Ok(index) => {
                        ids.push(index);
                        full.push(index);
                    }
                    Err(code) => return self.leaf(ids, OperationBuilder::Refused(code)),
                }
            }
            Some(Selector::Range { first, last }) => {
                let work = self.range(&full, *first, *last, path);
                return self.leaf(ids, work);
            }
        }
        match &path.data {
            Data::Paths(paths) => {
                if let Some(row) = self.new_row(&full, paths) {
                    let place = self.place(&full);
                    self.work
                        .push(OperationBuilder::Changes(vec![Change::Set { place, value: row }]));
                    let at = self.work.len() - 1;
                    let leaf =
                        |path: &PathData| Node { ids: path.ids.clone(), inner: Inner::Leaf(at) };
                    return Node { ids, inner: Inner::Nodes(paths.iter().map(leaf).collect()) };
                }
                let nodes = paths.iter().map(|path| self.node(&full, path)).collect();
                Node { ids, inner: Inner::Nodes(nodes) }
            }
            data => {
                let work = self.work_at(&full, data).unwrap_or_else(OperationBuilder::Refused);
                self.leaf(ids, work)
            }
        }
    }

    /// Plans an operation on a range of rows.
    ///
    /// A DEL deletes the existing rows. A SET creates or replaces the given rows and leaves the
    /// others unchanged.
    fn range(&self, full: &[u32], first: u32, last: u32, path: &PathData) -> OperationBuilder {
        match (self.kind, &path.data) {
            (OperationKind::Set, data @ (Data::Full(_) | Data::Sparse(_))) => {
                let set = self.set_range(full, first..=last, data);
                return set.unwrap_or_else(OperationBuilder::Refused);
            }
            (OperationKind::Delete, Data::None) => {}
            _ => return OperationBuilder::Refused(ResultCode::INVALID_TABLE_FLAGS),
        }
        let rows = match self.world.get(&self.place(full)) {
            Ok(Value::Array(rows)) => rows,
            Ok(_) => return OperationBuilder::Refused(ResultCode::NOT_A_TABLE),
            Err(code) => return OperationBuilder::Refused(code),
        };
        let mut changes = Vec::new();
        for (index, _) in rows.range(first.min(last)..=last) {
            let row = [full, &[*index]].concat();
            match self.work_at(&row, &Data::None) {
                Ok(OperationBuilder::Changes(some)) => changes.extend(some),
                Ok(_) => {}
                Err(code) => return OperationBuilder::Refused(code),
            }
        }
        match changes.is_empty() {
            true => OperationBuilder::Refused(ResultCode::NOT_FOUND),
            false => OperationBuilder::Changes(changes),
        }
    }

    fn set_range(
        &self,
        full: &[u32],
        range: std::ops::RangeInclusive<u32>,
        data: &Data,
    ) -> Result<OperationBuilder, ResultCode> {
        let Ok(Target::Value { data_type, access, .. }) = self.class.target(full) else {
            return Err(ResultCode::INVALID_PATH);
        };
        let array = data_type.array().ok_or(ResultCode::NOT_A_TABLE)?;
        if !access.is_writable() {
            return Err(ResultCode::READ_ONLY);
        }
        let read = data::read(data_type, data).ok_or(ResultCode::INVALID_TLV)?;
        let (value, whole) = read.map_err(|fault| fault.code())?;
        let rows = value.rows().ok_or(ResultCode::NOT_A_TABLE)?;
        if rows.is_empty() || rows.keys().any(|index| !range.contains(index)) {
            return Err(ResultCode::INVALID_PARAMETERS);
        }
        let place = self.place(full);
        if !whole || array.element.width().is_some() {
            // For rows without optional fields, merging is the same as replacing.
            return Ok(OperationBuilder::Changes(vec![Change::Merge { place, value }]));
        }
        let row = |(index, row): (&u32, &Value)| Change::Set {
            place: self.place(&[full, &[*index]].concat()),
            value: row.clone(),
        };
        Ok(OperationBuilder::Changes(rows.iter().map(row).collect()))
    }

    /// Returns the new row that paths to its fields create, if it does not exist and they make it
    /// complete.
    fn new_row(&self, full: &[u32], paths: &[PathData]) -> Option<Value> {
        let (_, table) = full.split_last().filter(|_| self.kind == OperationKind::Set)?;
        let Ok(Target::Value { data_type, access, .. }) = self.class.target(full) else {
            return None;
        };
        let Ok(Target::Value { data_type: outer, .. }) = self.class.target(table) else {
            return None;
        };
        outer.array().filter(|_| access.is_writable())?;
        if self.world.get(&self.place(full)) != Err(ResultCode::COMPONENT_DOES_NOT_EXIST) {
            return None;
        }
        let mut fields = Fields::new();
        for path in paths {
            let ([id], None) = (&path.ids[..], &path.selector) else { return None };
            let (value, _) = data::read(data_type.step(*id)?, &path.data)?.ok()?;
            fields.insert(*id, value);
        }
        let row = Value::Struct(fields);
        data_type.check(&row).is_ok().then_some(row)
    }

    fn work_at(&self, full: &[u32], data: &Data) -> Result<OperationBuilder, ResultCode> {
        let target = self.class.target(full).map_err(|_| no_target(self.class, full))?;
        let (data_type, access) = match (target, self.kind) {
            (
                Target::Value { data_type, access, .. },
                OperationKind::Set | OperationKind::Delete,
            ) => (data_type, access),
            (Target::Event { .. }, OperationKind::SetProperties) => {
                let read = data::read(properties::of_event(), data);
                let (value, _) =
                    read.ok_or(ResultCode::INVALID_TLV)?.map_err(|fault| fault.code())?;
                return Ok(OperationBuilder::Event(self.place(full), value));
            }
            (Target::Value { data_type, .. }, _) if data_type.is_alias() => {
                return Err(ResultCode::NOT_SUPPORTED);
            }
            (Target::Value { .. }, _) => return Err(ResultCode::READ_ONLY),
            _ => return Err(ResultCode::INVALID_PATH),
        };
        let place = self.place(full);
        if self.kind == OperationKind::Delete {
            return self.delete(place, access);
        }
        if !access.is_writable() && !access.is_resettable() {
            return Err(ResultCode::READ_ONLY);
        }
        let read = data::read(data_type, data).ok_or(ResultCode::INVALID_TLV)?;
        let (value, whole) = read.map_err(|fault| fault.code())?;
        Ok(OperationBuilder::Changes(vec![match whole {
            // The component is resettable only: reset it and ignore the value.
            _ if !access.is_writable() => Change::Set { place, value: data_type.default_value() },
            true => Change::Set { place, value },
            false => Change::Merge { place, value },
        }]))
    }

    /// Plans the deletion of a row or an optional field; other parts cannot be deleted.
    fn delete(&self, place: Place, access: Access) -> Result<OperationBuilder, ResultCode> {
        if !access.is_writable() {
            return Err(ResultCode::READ_ONLY);
        }
        let Some((last, before)) = place.path.split_last().filter(|(_, before)| !before.is_empty())
        else {
            return Err(ResultCode::NOT_SUPPORTED);
        };
        let Ok(Target::Value { data_type, .. }) = self.class.target(before) else {
            return Err(ResultCode::INVALID_PATH);
        };
        let can_go = match &data_type.target().kind {
            Kind::Array(array) => matches!(array.size, ArraySize::Variable(_)),
            _ => data_type.field_by_id(*last).is_some_and(|field| field.optional),
        };
        match can_go {
            true => Ok(OperationBuilder::Changes(vec![Change::Delete { place }])),
            false => Err(ResultCode::NOT_SUPPORTED),
        }
    }
}

/// Returns the index of the row with this key.
fn find(
    world: &ElementContext<'_>,
    class: &Class,
    place: &Place,
    key: u32,
    content: &[u8],
) -> Result<u32, ResultCode> {
    let Ok(Target::Value { data_type, .. }) = class.target(&place.path) else {
        return Err(ResultCode::INVALID_PATH);
    };
    let array = data_type.array().ok_or(ResultCode::NOT_A_TABLE)?;
    let content_key = array.key(key).ok_or(ResultCode::INVALID_PARAMETERS)?;
    let content = data::read_full(&content_key.data_type, content).map_err(|fault| fault.code())?;
    world.find(place, key, &content)
}

/// Executes a GET or GET-PROP and returns the response operation.
pub(super) fn answer(
    world: &ElementContext<'_>,
    select: &Select,
    operation: &Operation,
    extended: bool,
) -> Operation {
    let kind = operation.kind.response().unwrap_or(OperationKind::GetResponse);
    let refused = |code| Data::Outcome(Outcome::of(code, extended));
    let paths = match instance(world, select) {
        Err(code) => {
            let paths = operation.paths().iter();
            paths.map(|path| PathData::with(path.ids.clone(), refused(code))).collect()
        }
        Ok(class) => {
            let asked =
                QueryContext { world, class, instance: select.instance, kind: operation.kind };
            let path = |path: &PathData| asked.path(&[], path, &refused);
            operation.paths().iter().map(path).collect()
        }
    };
    Operation { kind, content: Content::Paths(paths) }
}

struct QueryContext<'a, 'w> {
    world: &'a ElementContext<'w>,
    class: &'a Class,
    instance: u32,
    kind: OperationKind,
}

impl QueryContext<'_, '_> {
    fn path(
        &self,
        before: &[u32],
        path: &PathData,
        refused: &dyn Fn(ResultCode) -> Data,
    ) -> PathData {
        let mut ids = path.ids.clone();
        let mut place =
            Place { class: self.class.id, instance: self.instance, path: [before, &ids].concat() };
        let mut range = None;
        match &path.selector {
            None => {}
            Some(Selector::Range { first, last }) => range = Some((*first, *last)),
            Some(Selector::Key { key, content }) => {
                match find(self.world, self.class, &place, *key, content) {
                    Ok(index) => {
                        ids.push(index);
                        place.path.push(index);
                    }
                    Err(code) => return PathData::with(ids, refused(code)),
                }
            }
        }
        let data = match &path.data {
            Data::Paths(paths) => {
                let inner = paths.iter().map(|path| self.path(&place.path, path, refused));
                Data::Paths(inner.collect())
            }
            _ => self.value(&place, range).unwrap_or_else(refused),
        };
        PathData::with(ids, data)
    }

    fn value(&self, place: &Place, range: Option<(u32, u32)>) -> Result<Data, ResultCode> {
        let target = self.class.target(&place.path);
        let written = |data_type: &DataType, value: &Value| {
            data::write(data_type, value).map_err(|_| ResultCode::INTERNAL_ERROR)
        };
        match (target.map_err(|_| ResultCode::INVALID_PATH)?, self.kind) {
            (Target::Value { data_type, access, .. }, OperationKind::GetProperties) => {
                let value = self.world.get(place);
                if value == Err(ResultCode::COMPONENT_DOES_NOT_EXIST) {
                    return Err(ResultCode::COMPONENT_DOES_NOT_EXIST);
                }
                let (data_type, value) =
                    properties::of_value(data_type, access, value.ok().as_ref());
                written(&data_type, &value)
            }
            (Target::Event { .. }, OperationKind::GetProperties) => {
                written(properties::of_event(), &self.world.event_properties(place))
            }
            (Target::Value { data_type, access, .. }, _) => {
                if !access.is_readable() {
                    return Err(ResultCode::NOT_PERMITTED);
                }
                let mut value = self.world.get(place)?;
                if let Some((first, last)) = range {
                    let Value::Array(rows) = &mut value else {
                        return Err(ResultCode::NOT_A_TABLE);
                    };
                    rows.retain(|index, _| (first..=last).contains(index));
                    if rows.is_empty() {
                        return Err(ResultCode::EMPTY);
                    }
                }
                written(data_type, &value)
            }
            _ => Err(ResultCode::INVALID_PATH),
        }
    }
}
