//! Ext-PG-Edit: modifies frames.
//!
//! Operations apply in index order, and lengths and checksums are updated. If an operation fails,
//! the frame leaves by ExceptionOut unchanged.

use forces::Value;
use packet::frame::Frame;
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::PathState;
use crate::compile::tree::NodeId;
use crate::condition::{Choice, Operand};
use crate::diagnostic::Code;
use crate::frames::edit::{EditFault, Editor};
use crate::frames::{FieldRef, FormatId, FrameSet, Located, bits};

const OUT: u32 = 0;
const EXCEPTION: u32 = 1;
/// Component ids.
const CHANGED: u32 = 2;
const FAILED: u32 = 3;

/// The Edit block.
#[derive(Debug)]
pub struct Edit {
    operations: Vec<Operation>,
    changed: u64,
    failed: u64,
    /// The frame before the operations.
    before: Frame,
}

/// An operation on a frame.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Pushes new headers after another header, or at the front.
    Push(Vec<FormatId>, Option<FieldRef>),
    /// Pops consecutive headers, with the next-header value for the header before them.
    Pop(Vec<FieldRef>, Option<u128>),
    /// Sets a field to a value.
    Set(FieldRef, u128),
    /// Adds a value to a field.
    Add(FieldRef, u128),
    /// Copies a field.
    CopyField(FieldRef, FieldRef),
    /// Copies a metadata item, by its slot.
    CopyMeta(FieldRef, usize),
    /// Recomputes a checksum.
    Checksum(FieldRef),
}

impl Edit {
    /// Applies all operations. Returns false on failure; the frame may then be partly modified.
    pub fn apply(&self, packet: &mut Packet, frames: &FrameSet) -> bool {
        let (start, meta) = (packet.start(), packet.meta.clone());
        let mut editor = Editor::from(frames, start, packet.frame_mut());
        let done = self.operations.iter().try_for_each(|it| it.apply(&mut editor, &meta));
        if done.is_ok() {
            editor.finish();
        }
        done.is_ok()
    }

    /// Returns the operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

impl Operation {
    fn apply(&self, editor: &mut Editor<'_>, meta: &super::Meta) -> Result<(), EditFault> {
        let position =
            |located: &Located, of: FieldRef| located.position(of).ok_or(EditFault::NotThere);
        match self {
            Operation::Push(formats, after) => {
                let after = after.map(|after| position(editor.located(), after)).transpose()?;
                editor.push(formats, after)
            }
            Operation::Pop(headers, next) => {
                let first = position(editor.located(), headers[0])?;
                for (at, header) in (first..).zip(headers) {
                    if position(editor.located(), *header)? != at {
                        return Err(EditFault::NotThere);
                    }
                }
                editor.pop(first, headers.len(), *next)
            }
            Operation::Set(field, value) => editor.set(*field, *value),
            Operation::Add(field, value) => editor.add(*field, *value),
            Operation::CopyField(to, from) => {
                let value = editor.read(*from)?;
                editor.set(*to, value)
            }
            Operation::CopyMeta(to, slot) => {
                let value = meta.get(*slot).ok_or(EditFault::NotThere)?;
                editor.set(*to, value)
            }
            Operation::Checksum(field) => editor.renew_checksum(*field),
        }
    }
}

/// Parses a row of operations. Returns `None` after a problem.
fn operation(setup: &mut Setup<'_>, row: &super::config::Row<'_>) -> Option<Operation> {
    let frames = setup.frames();
    let (names, field, path) = (row.text(2), row.text(4), row.path.clone());
    let at = |field: u32| [&path[..], &[field]].concat();
    fn told<T>(setup: &mut Setup<'_>, path: &[u32], what: String) -> Option<T> {
        setup.refuse(Code::EditOperation, path, what, "");
        None
    }
    let resolve = |setup: &mut Setup<'_>, of: u32, text: &str| match frames.resolve(text.trim()) {
        Ok(found) => Some(found),
        Err(what) => told(setup, &at(of), what),
    };
    let value = |setup: &mut Setup<'_>, of: u32, text: &str, bits: u32| {
        let any = Operand::Meta { id: 0, bits, name: String::new() };
        match Choice::parse(text.trim(), &any) {
            Ok(Choice::One(one)) if one.value <= bits::most(bits) => Some(one.value),
            Ok(_) => told(setup, &at(of), format!("\"{text}\" is not a value of {bits} bits")),
            Err(error) => told(setup, &at(of), error.what),
        }
    };
    let bits_of = |of: FieldRef| frames.field(of).and_then(|field| field.number_bits());
    match row.number(1) {
        1 => {
            let mut formats = Vec::new();
            for name in names.split_whitespace() {
                match frames.find(name) {
                    Some(format) => formats.push(format),
                    None => return told(setup, &at(2), format!("no frame \"{name}\"")),
                }
            }
            if formats.is_empty() {
                return told(setup, &at(2), "push names no header".to_owned());
            }
            let after = row.text(3);
            let after = match after.trim() {
                "" => None,
                after => Some(resolve(setup, 3, after)?.header()),
            };
            Some(Operation::Push(formats, after))
        }
        2 => {
            let mut headers = Vec::new();
            for name in names.split_whitespace() {
                headers.push(resolve(setup, 2, name)?.header());
            }
            if headers.is_empty() {
                return told(setup, &at(2), "pop names no header".to_owned());
            }
            let next = match row.text(7).trim() {
                "" => None,
                next => Some(value(setup, 7, next, 64)?),
            };
            Some(Operation::Pop(headers, next))
        }
        kind @ (3 | 4) => {
            let to = resolve(setup, 4, field)?;
            let Some(bits) = bits_of(to) else {
                return told(setup, &at(4), format!("\"{field}\" is not a number"));
            };
            let value = value(setup, 5, row.text(5), bits)?;
            Some(if kind == 3 { Operation::Set(to, value) } else { Operation::Add(to, value) })
        }
        5 => {
            let to = resolve(setup, 4, field)?;
            match setup.operand(&at(6), row.text(6))? {
                Operand::Field { at: from, .. } => Some(Operation::CopyField(to, from)),
                Operand::Meta { id, .. } => {
                    setup.slot(&at(6), id).map(|slot| Operation::CopyMeta(to, slot))
                }
            }
        }
        6 => {
            let of = resolve(setup, 4, field)?;
            match frames.field(of).is_some_and(|field| field.checksum.is_some()) {
                true => Some(Operation::Checksum(of)),
                false => told(setup, &at(4), format!("\"{field}\" is not a checksum")),
            }
        }
        other => told(setup, &at(1), format!("unknown operation {other}")),
    }
}

impl Block for Edit {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let rows = setup.rows(1);
        let operations = rows.iter().filter_map(|row| operation(setup, row)).collect();
        Edit { operations, changed: 0, failed: 0, before: Frame::default() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.before.copy_from(packet.frame());
        if self.apply(packet, env.frames) {
            self.changed += 1;
            return Verdict::Out(OUT, 0);
        }
        self.failed += 1;
        packet.frame_mut().copy_from(&self.before);
        packet.set_meta(env.slots, meta_id::EXCEPTION, exception::ANY);
        Verdict::Out(EXCEPTION, 0)
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        Some(grower.edit(way, &self.operations, &mut |grower, mut way| {
            grower.meet(&mut way, CHANGED);
            way.edited();
            grower.go(way, OUT, 0)
        }))
    }

    fn met(&mut self, _what: u32, frames: u64, _bytes: u64) {
        self.changed += frames;
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.changed, &mut old.changed);
        std::mem::swap(&mut self.failed, &mut old.failed);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            CHANGED => Some(Value::Unsigned(self.changed)),
            FAILED => Some(Value::Unsigned(self.failed)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            CHANGED => self.changed = 0,
            FAILED => self.failed = 0,
            _ => {}
        }
    }
}
