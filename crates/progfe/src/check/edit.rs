//! Operations of Edit: fields exist, values fit, and frames have room for pushed headers.

use std::collections::BTreeMap;

use forces::Value;

use packet::frame::HEADROOM;

use super::About;
use super::graph::{begins, links_out};
use crate::condition::Operand;
use crate::diagnostic::{Code, Problems};
use crate::frames::{FieldRef, FormatId, FrameSet, Part, bits};
use crate::literal;
use crate::program::{Program, base_id, class_id, text};

/// MTU that networks usually support, in bytes.
const USUAL_MTU: usize = 1500;

/// An operation, by the values of `EditDoType`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Pushes new headers after another header, or at the front.
    Push {
        /// New headers, outermost first.
        formats: Vec<FormatId>,
        /// The header before them.
        after: Option<FieldRef>,
    },
    /// Pops consecutive headers.
    Pop {
        /// The first header.
        first: FieldRef,
        /// Formats of all headers.
        formats: Vec<FormatId>,
        /// Next-header value for the preceding header, if the headers do not give it.
        next: Option<u128>,
    },
    /// Sets a field to a value.
    Set(FieldRef, u128),
    /// Adds a value, modulo the width.
    Add(FieldRef, u128),
    /// Copies a field or metadata item to a field.
    Copy(FieldRef, Operand),
    /// Recomputes a checksum, regardless of its value.
    Checksum(FieldRef),
}

/// Problem of an operation: field of the row, code, description, hint.
pub type OperationFault = (u32, Code, String, &'static str);

impl Operation {
    /// Parses a row of Edit's table `Ops`.
    pub fn read(row: &Value, program: &Program) -> Result<Operation, OperationFault> {
        let frames = &program.frames;
        let text = |field| row.step(field).and_then(Value::text).unwrap_or_default().trim();
        let unknown = |field| move |what| (field, Code::FrameUnknown, what, "");
        let field = || {
            let found = frames.resolve(text(4)).map_err(unknown(4))?;
            match frames.field(found).and_then(|field| field.number_bits()) {
                Some(width) => Ok((found, width)),
                None => {
                    let what = format!("\"{}\" is not a writable field", text(4));
                    Err((4, Code::EditOperation, what, "name a field of at most 128 bits"))
                }
            }
        };
        let value = |column: u32, width: u32| match literal::read(text(column)) {
            Some(value) if value.value <= bits::most(width) => Ok(value.value),
            Some(_) => {
                let what = format!("{} does not fit into {width} bits", text(column));
                Err((column, Code::Value, what, ""))
            }
            None => {
                let what = format!("invalid value \"{}\"", text(column));
                Err((
                    column,
                    Code::Value,
                    what,
                    "use a decimal or 0x... number, or a MAC, IPv4 or IPv6 address",
                ))
            }
        };
        match row.step(1).and_then(Value::unsigned) {
            Some(1) => {
                let formats = formats(frames, text(2)).map_err(unknown(2))?;
                let after = match text(3) {
                    "" => None,
                    name => Some(frames.resolve(name).map_err(unknown(3))?.header()),
                };
                linked(frames, &formats, after)?;
                Ok(Operation::Push { formats, after })
            }
            Some(2) => {
                let first = text(2).split_whitespace().next().unwrap_or_default();
                let first = frames.resolve(first).map_err(unknown(2))?;
                let formats = formats(frames, text(2)).map_err(unknown(2))?;
                let next = match text(7) {
                    "" => None,
                    _ => Some(value(7, 128)?),
                };
                Ok(Operation::Pop { first, formats, next })
            }
            Some(3) => {
                let (field, width) = field()?;
                Ok(Operation::Set(field, value(5, width)?))
            }
            Some(4) => {
                let (field, width) = field()?;
                Ok(Operation::Add(field, value(5, width)?))
            }
            Some(5) => {
                let (field, width) = field()?;
                let from = text::operand(text(6), frames, &program.catalog)
                    .map_err(|what| (6, Code::EditOperation, what, "name a field or meta:NAME"))?;
                if from.bits() > width {
                    let what =
                        format!("{from} has {} bits, at most {width} are allowed", from.bits());
                    return Err((6, Code::EditOperation, what, ""));
                }
                Ok(Operation::Copy(field, from))
            }
            Some(6) => {
                let (field, _) = field()?;
                match frames.field(field).and_then(|field| field.checksum) {
                    Some(_) => Ok(Operation::Checksum(field)),
                    None => {
                        let what = format!("\"{}\" is not a checksum", text(4));
                        Err((4, Code::EditOperation, what, ""))
                    }
                }
            }
            _ => Err((1, Code::EditOperation, "unknown operation".to_owned(), "")),
        }
    }
}

/// Returns the formats of a list of headers.
fn formats(frames: &FrameSet, names: &str) -> Result<Vec<FormatId>, String> {
    let headers: Vec<FieldRef> =
        names.split_whitespace().map(|name| frames.resolve(name)).collect::<Result<_, _>>()?;
    if headers.is_empty() {
        return Err("missing frame name".to_owned());
    }
    match headers.iter().all(|header| header.part == Part::Header) {
        true => Ok(headers.into_iter().map(|header| header.format).collect()),
        false => Err(format!("\"{names}\" is a field, not a frame")),
    }
}

/// Checks that each pushed header can follow the one before it and has a determined length.
fn linked(
    frames: &FrameSet,
    formats: &[FormatId],
    after: Option<FieldRef>,
) -> Result<(), OperationFault> {
    let chain: Vec<FormatId> =
        after.map(|after| after.format).into_iter().chain(formats.iter().copied()).collect();
    for pair in chain.windows(2) {
        let [outer, inner] = [pair[0], pair[1]].map(|id| frames.format(id));
        if outer.leads_to(pair[1]).is_none() {
            let what = format!("\"{}\" never follows \"{}\"", inner.name, outer.name);
            return Err((2, Code::EditOperation, what, "add a <case> to its <next>"));
        }
    }
    for id in formats {
        if frames.blank(*id).is_none() {
            let what = format!("a new \"{}\" has no definite length", frames.format(*id).name);
            return Err((
                2,
                Code::EditOperation,
                what,
                "preset its length fields with set=\"...\"",
            ));
        }
    }
    Ok(())
}

/// Adds blocks that lack room for a push, because other blocks on some path use it.
pub fn ways(program: &Program, problems: &mut Problems) {
    let out = links_out(program);
    let own: Vec<usize> = (0..program.instances.len()).map(|at| growth(program, at)).collect();
    let mut grown: Vec<Option<usize>> = vec![None; program.instances.len()];
    let mut told = vec![false; program.instances.len()];
    let mut mtus: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
    let mut waiting: Vec<usize> = (0..grown.len()).filter(|at| begins(program, *at)).collect();
    while let Some(at) = waiting.pop() {
        let behind = grown[at].unwrap_or(0) + own[at];
        if behind > HEADROOM {
            // The search stops here, so that it ends even if queues form cycles. A block that
            // pushes too much by itself has another problem.
            if own[at] <= HEADROOM && !std::mem::replace(&mut told[at], true) {
                let what = format!("blocks push {behind} bytes on a path to this instance");
                let hint = "push at most 64 bytes";
                About::new(program, at, problems).wrong(Code::EditRoom, &[], what, hint);
            }
            continue;
        }
        if behind > 0 && program.instances[at].class == base_id::MAC_OUT {
            mtu(program, at, behind, &mut mtus);
        }
        for link in &out[at] {
            let to = program.links[*link].to.instance;
            if grown[to].is_none_or(|known| known < behind) && !begins(program, to) {
                grown[to] = Some(behind);
                waiting.push(to);
            }
        }
    }
    for (at, (set, behind)) in mtus {
        let id = program.class_of(at).component("MTU").map_or(0, |component| component.id);
        let large = USUAL_MTU + behind;
        let what = format!(
            "packets of {USUAL_MTU} bytes become {large} bytes, more than the MTU of {set}"
        );
        About::new(program, at, problems).wrong(Code::EditMtu, &[id], what, "set a larger MTU");
    }
}

/// Records an EtherMACOut whose configured MTU is too small for its frames.
fn mtu(program: &Program, at: usize, behind: usize, mtus: &mut BTreeMap<usize, (u64, usize)>) {
    let Some(component) = program.class_of(at).component("MTU") else { return };
    let set = program.instances[at].components.get(&component.id).and_then(Value::unsigned);
    if let Some(set) = set.filter(|set| *set < (USUAL_MTU + behind) as u64) {
        mtus.insert(at, (set, behind));
    }
}

/// Returns the number of bytes that an instance adds to a frame.
fn growth(program: &Program, at: usize) -> usize {
    if program.instances[at].class != class_id::EDIT {
        return 0;
    }
    let Some(Value::Array(rows)) = program.component(at, "Ops") else { return 0 };
    let (mut pushed, mut popped) = (0usize, 0usize);
    for row in rows.values() {
        match Operation::read(row, program) {
            Ok(Operation::Push { formats, .. }) => {
                let fresh = formats.iter().filter_map(|id| program.frames.blank(*id));
                pushed += fresh.map(|bytes| bytes.len()).sum::<usize>();
            }
            Ok(Operation::Pop { formats, .. }) => {
                let sizes =
                    formats.iter().filter_map(|id| program.frames.format(*id).fixed_bytes());
                popped += sizes.sum::<u32>() as usize;
            }
            _ => {}
        }
    }
    pushed.saturating_sub(popped)
}

/// Adds problems of the operations of all instances.
pub fn check(program: &Program, problems: &mut Problems) {
    for at in 0..program.instances.len() {
        if program.instances[at].class != class_id::EDIT {
            continue;
        }
        let mut about = About::new(program, at, problems);
        let Some(Value::Array(rows)) = program.component(at, "Ops") else { continue };
        let (mut pushed, mut popped) = (0usize, 0usize);
        for (index, row) in &rows {
            match Operation::read(row, program) {
                Err((field, code, what, hint)) => {
                    about.wrong(code, &[1, *index, field], what, hint)
                }
                Ok(Operation::Push { formats, .. }) => {
                    let bytes = formats.iter().filter_map(|id| program.frames.blank(*id));
                    pushed += bytes.map(|bytes| bytes.len()).sum::<usize>();
                    if pushed.saturating_sub(popped) > HEADROOM {
                        let what = format!("the operations push {} bytes", pushed - popped);
                        let hint = "push at most 64 bytes";
                        about.wrong(Code::EditRoom, &[1, *index], what, hint);
                        break;
                    }
                }
                Ok(Operation::Pop { formats, .. }) => {
                    let sizes =
                        formats.iter().filter_map(|id| program.frames.format(*id).fixed_bytes());
                    popped += sizes.sum::<u32>() as usize;
                }
                Ok(_) => {}
            }
        }
    }
}
