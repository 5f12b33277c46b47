//! Responses that do not fit into one message (RFC 7391 section 3.3).
//!
//! The messages of such a response have the same correlator. The first is marked as start, the last
//! as end, and the others as middle. The last message of a query response has no data. A table too
//! long for one TLV is split between rows.

use crate::model::value::{Rows, Value};
use crate::model::{DataType, PATH_STEPS_MAX};
use crate::wire::{
    Body, Content, Data, Header, MESSAGE_OCTETS_MAX, Message, Operation, OperationKind, Outcome,
    PathData, Phase, ResultCode, Select, TLV_OCTETS_MAX, data, message_octets, path_octets,
};

/// Octets of FULLDATA at which a part of a table is complete.
const PART_OCTETS: usize = 48 << 10;

/// Splits rows into values of about the maximum size of a part.
fn split_rows(data_type: &DataType, rows: &Rows) -> Vec<Data> {
    let mut parts = Vec::new();
    let (mut open, mut octets) = (Rows::new(), 0);
    let written = |rows: &mut Rows| {
        data::write(data_type, &Value::Array(std::mem::take(rows)))
            .unwrap_or(Data::Outcome(Outcome::of(ResultCode::INTERNAL_ERROR, false)))
    };
    for (index, row) in rows {
        let one = Value::Array([(*index, row.clone())].into());
        octets += match data::write(data_type, &one) {
            Ok(Data::Full(bytes) | Data::Sparse(bytes)) => bytes.len(),
            _ => 0,
        };
        open.insert(*index, row.clone());
        if octets >= PART_OCTETS {
            parts.push(written(&mut open));
            octets = 0;
        }
    }
    if !open.is_empty() {
        parts.push(written(&mut open));
    }
    parts
}

/// Appends the data at a path, split if necessary.
fn cut(
    select: &Select,
    kind: OperationKind,
    path: PathData,
    types: &Types<'_>,
    out: &mut Vec<Select>,
) {
    let whole = |path: PathData| {
        Select::one(select.class, select.instance, Operation::on(kind, vec![path]))
    };
    if path_octets(&path).is_ok_and(|octets| octets <= PART_OCTETS + 4096) {
        out.push(whole(path));
        return;
    }
    let data_type = types(select, &path.ids);
    // Rows of a fixed width are split without decoding.
    let array = data_type.as_ref().and_then(|data_type| data_type.array());
    if let (Some(width), Data::Full(bytes)) = (array.and_then(|it| it.element.width()), &path.data)
    {
        let row = 4 + width;
        for rows in bytes.chunks((PART_OCTETS / row).max(1) * row) {
            out.push(whole(PathData::with(path.ids.clone(), Data::Full(rows.to_vec()))));
        }
        return;
    }
    let rows = data_type.and_then(|data_type| {
        let (value, _) = data::read(&data_type, &path.data)?.ok()?;
        Some((data_type, value))
    });
    if let Some((data_type, Value::Array(rows))) = rows {
        for data in split_rows(&data_type, &rows) {
            out.push(whole(PathData::with(path.ids.clone(), data)));
        }
        return;
    }
    let data = Data::Outcome(Outcome::of(ResultCode::CONTENTS_TOO_LONG, false));
    out.push(whole(PathData::with(path.ids, data)));
}

/// Finds the type at a path.
pub(super) type Types<'a> = dyn Fn(&Select, &[u32]) -> Option<std::sync::Arc<DataType>> + 'a;

/// Flattens nested paths, each from its component on.
fn flat(before: &[u32], path: PathData, out: &mut Vec<PathData>) {
    let mut ids = before.to_vec();
    ids.extend(&path.ids);
    match path.data {
        Data::Paths(paths) => paths.into_iter().for_each(|path| flat(&ids, path, out)),
        data => out.push(PathData::with(ids, data)),
    }
}

/// Returns the messages of a configuration response.
///
/// An LFBselect that is too long is split into several of the same instance. A response that is too
/// long for one message has several messages, as query responses do.
pub(super) fn responses(header: Header, selects: Vec<Select>) -> Vec<Message> {
    let body = Body::ConfigResponse(selects);
    if message_octets(&body).is_ok() {
        return vec![Message { header, body }];
    }
    let mut pieces = Vec::new();
    for select in body.into_selects() {
        let (class, instance) = (select.class, select.instance);
        for operation in select.operations {
            let Content::Paths(paths) = operation.content else {
                pieces.push(Select::one(class, instance, operation));
                continue;
            };
            let mut all = Vec::new();
            paths.into_iter().for_each(|path| flat(&[], path, &mut all));
            // Each chunk fits into a TLV, however long its paths are.
            for some in all.chunks(TLV_OCTETS_MAX / (4 * PATH_STEPS_MAX + 24)) {
                let operation = Operation::on(operation.kind, some.to_vec());
                pieces.push(Select::one(class, instance, operation));
            }
        }
    }
    let all = in_messages(pieces);
    numbered(header, all, Body::ConfigResponse)
}

/// Groups pieces into messages, each well below the maximum length.
fn in_messages(pieces: Vec<Select>) -> Vec<Vec<Select>> {
    let mut all: Vec<Vec<Select>> = Vec::new();
    let mut octets = usize::MAX;
    for piece in pieces {
        let paths = piece.operations.iter().flat_map(Operation::paths);
        let piece_octets: usize =
            16 + paths.map(|path| path_octets(path).unwrap_or(0)).sum::<usize>();
        if octets.saturating_add(piece_octets) > MESSAGE_OCTETS_MAX / 2 {
            all.push(Vec::new());
            octets = 0;
        }
        octets += piece_octets;
        all.last_mut().expect("a part was added before").push(piece);
    }
    all
}

/// Builds the messages of one response: marks the first as start and the last as end.
fn numbered(header: Header, all: Vec<Vec<Select>>, body: fn(Vec<Select>) -> Body) -> Vec<Message> {
    let count = all.len();
    let message = |(place, selects)| {
        let mut header = header;
        header.flags.atomic = count > 1;
        header.flags.phase = match place {
            0 => Phase::Start,
            place if place + 1 == count => Phase::End,
            _ => Phase::Middle,
        };
        Message { header, body: body(selects) }
    };
    all.into_iter().enumerate().map(message).collect()
}

/// Returns the messages of a query response.
pub(super) fn messages(header: Header, selects: Vec<Select>, types: &Types<'_>) -> Vec<Message> {
    let body = Body::QueryResponse(selects);
    if message_octets(&body).is_ok() {
        return vec![Message { header, body }];
    }
    let selects = body.into_selects();
    let mut pieces = Vec::new();
    let mut last = None;
    for select in &selects {
        for operation in &select.operations {
            last = Some((select.class, select.instance, operation.kind));
            let mut paths = Vec::new();
            operation.paths().iter().for_each(|path| flat(&[], path.clone(), &mut paths));
            for path in paths {
                cut(select, operation.kind, path, types, &mut pieces);
            }
        }
    }
    let mut all = in_messages(pieces);
    if let Some((class, instance, kind)) = last {
        let content = Content::Outcome(Outcome::of(ResultCode::SUCCESS, false));
        all.push(vec![Select::one(class, instance, Operation { kind, content })]);
    }
    numbered(header, all, Body::QueryResponse)
}
