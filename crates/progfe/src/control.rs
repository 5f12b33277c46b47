//! The element from the view of ForCES control elements: each instance by class, number and path.
//!
//! [`Control`] stores the changes that a control element staged and did not commit. Together with
//! an element, the time and the port queues it forms a [`Speaker`], which serves an
//! [association](forces::association).
//!
//! - Staged changes modify a [`Draft`].
//! - A commit loads the draft and swaps it in between two frames.
//! - The previous program is retained until the control element completes the transaction.
//!
//! FEObject's LFBSelectors and LFBTopology represent the program's instances and [links](graph).
//! The whole program is an instance of [a class of this crate](whole).

use dataplane::forwarder::Outputs;
use forces::association::{Change, Element, Happening, Place};
use forces::model::Catalog;
use forces::model::value::Value;
use forces::wire::{Redirect, ResultCode, data};
use packet::frame::Frame;
use packet::time::Nanos;

use crate::element::{self, Draft, ElementError};
use crate::executor::Enforcer;
use crate::lfb::learn_search::LEARNT_FROM;
use crate::program::base_id;

pub mod graph;
pub mod notifications;
pub mod program_lfb;

use graph::{FE_OBJECT, Numbers};
use program_lfb::ProgramLfb;

/// Number of changed rows after which blocks are updated in advance: about a millisecond of work.
const ROWS_AHEAD: usize = 1024;

/// Staged changes of a control element, and other state of the element's end of associations.
#[derive(Debug, Default)]
pub struct Control {
    staged: Option<Staged>,
    /// Row numbers of instances and links.
    numbers: Numbers,
    /// Row numbers before the last commit.
    numbers_before: Option<Numbers>,
    whole: ProgramLfb,
    /// Number of rows staged since the last call of `take_work`.
    work: usize,
}

impl Control {
    /// Returns the number of rows staged since the last call. The caller uses it to let frames pass
    /// between messages.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Stores the last event of an agent so that control elements can read it.
    pub fn agent_said(&mut self, happening: &Happening) {
        self.whole.agent_event = happening.reported.first().cloned();
    }
}

/// Changes that the next commit activates.
#[derive(Debug)]
struct Staged {
    draft: Draft,
    numbers: Numbers,
    /// A new program and a frame to trace.
    whole: program_lfb::Staged,
    /// Whether the program changes.
    has_changes: bool,
    /// Generation of the program that the draft is based on.
    generation: u64,
    /// Number of rows changed since the last update of blocks.
    rows: usize,
}

/// An element that serves an association.
pub struct Speaker<'a, E: Enforcer> {
    /// Staged changes and other state.
    pub control: &'a mut Control,
    /// The element.
    pub element: &'a mut element::Element<E>,
    /// Current time.
    pub now: Nanos,
    /// Queues of the ports.
    pub out: &'a mut Outputs,
}

/// Returns the ForCES result code of an error.
fn code_of(error: &ElementError) -> ResultCode {
    match error {
        ElementError::Instance(_) => ResultCode::INSTANCE_NOT_FOUND,
        ElementError::Path(_) => ResultCode::INVALID_PATH,
        ElementError::NotThere => ResultCode::NOT_FOUND,
        ElementError::There => ResultCode::EXISTS,
        ElementError::Access => ResultCode::NOT_PERMITTED,
        ElementError::Value(fault) => data::code_of(fault),
        ElementError::Refused(_) => ResultCode::INVALID_PARAMETERS,
        ElementError::Stale => ResultCode::BUSY,
    }
}

impl<E: Enforcer> Speaker<'_, E> {
    /// Returns the staged changes, starting with none.
    fn staged(&mut self) -> &mut Staged {
        let Control { staged, numbers, .. } = &mut *self.control;
        staged.get_or_insert_with(|| {
            numbers.follow(self.element.program());
            Staged {
                draft: Draft::of(self.element.program()),
                numbers: numbers.clone(),
                whole: program_lfb::Staged::default(),
                has_changes: false,
                generation: self.element.generation(),
                rows: 0,
            }
        })
    }

    fn try_stage(&mut self, change: Change) -> Result<(), ResultCode> {
        let place = change.place().clone();
        if place.class == program_lfb::CLASS {
            return self.staged().whole.stage(change);
        }
        let staged = self.staged();
        staged.has_changes = true;
        if place.class == FE_OBJECT {
            return graph::stage(&mut staged.draft, &mut staged.numbers, change);
        }
        let instance = staged.draft.program.place_of_instance(place.class, place.instance);
        let instance = instance.ok_or(ResultCode::INSTANCE_NOT_FOUND)?;
        let rows = match &change {
            Change::Set { value, .. } | Change::Merge { value, .. } => {
                value.rows().map_or(1, |rows| rows.len().max(1))
            }
            Change::Delete { .. } => 1,
        };
        if let Change::Delete { place } = &change
            && place.path.get(1).is_some_and(|index| *index >= LEARNT_FROM)
            && self.get(place).is_err()
        {
            return Err(ResultCode::NOT_FOUND);
        }
        let staged = self.staged();
        let change = match change {
            Change::Set { place, value } => {
                element::Change::Set { instance, path: place.path, value }
            }
            Change::Merge { place, value } => {
                element::Change::Merge { instance, path: place.path, value }
            }
            Change::Delete { place } => element::Change::Delete { instance, path: place.path },
        };
        staged.rows += rows;
        let changed = staged.draft.change(change);
        self.control.work += rows;
        changed.map_err(|error| code_of(&error))?;
        let Control { staged, .. } = &mut *self.control;
        if let Some(staged) = staged.as_mut().filter(|staged| staged.rows >= ROWS_AHEAD) {
            staged.rows = 0;
            self.element.prepare_commit(&mut staged.draft);
        }
        Ok(())
    }

    fn try_commit(&mut self) -> Result<(), ResultCode> {
        let Some(staged) = self.control.staged.take() else { return Ok(()) };
        let Staged { draft, mut numbers, whole, has_changes, generation, .. } = staged;
        if generation != self.element.generation() {
            return Err(code_of(&ElementError::Stale));
        }
        let (document, traced) = self.control.whole.take(whole)?;
        let prepared = match document {
            // A new document and changes of the running program exclude each other.
            Some(_) if has_changes => return Err(ResultCode::NOT_SUPPORTED),
            Some(text) => Some(self.control.whole.load(&text, self.element)?),
            None if has_changes => {
                let prepared = self.element.prepare_draft(draft);
                Some(prepared.map_err(|error| {
                    self.control.whole.note(&error);
                    code_of(&error)
                })?)
            }
            None => None,
        };
        if let Some(prepared) = prepared {
            self.element.swap(prepared, self.now, self.out).map_err(|error| code_of(&error))?;
            numbers.follow(self.element.program());
            let before = std::mem::replace(&mut self.control.numbers, numbers);
            self.control.numbers_before = Some(before);
        }
        if let Some((port, mut frame)) = traced {
            let trace = self.element.trace(port, &mut frame, self.now, self.out);
            self.control.whole.traced = program_lfb::steps(self.element.program(), &trace);
        }
        Ok(())
    }
}

impl<E: Enforcer> Element for Speaker<'_, E> {
    fn catalog(&self) -> &Catalog {
        &self.element.program().catalog
    }

    fn has_instance(&self, class: u32, instance: u32) -> bool {
        let there = |program: &crate::program::Program| {
            program.place_of_instance(class, instance).is_some()
        };
        class == program_lfb::CLASS && instance == 1
            || there(self.element.program())
            || self.control.staged.as_ref().is_some_and(|staged| there(&staged.draft.program))
    }

    fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        let program = self.element.program();
        if place.class == FE_OBJECT {
            return self.control.numbers.get(program, &place.path);
        }
        if place.class == program_lfb::CLASS {
            return self.control.whole.get(self.element, &place.path);
        }
        let at = program.place_of_instance(place.class, place.instance);
        let at = at.ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)?;
        self.element.get(at, &place.path, self.now).map_err(|error| match error {
            ElementError::NotThere => ResultCode::COMPONENT_DOES_NOT_EXIST,
            other => code_of(&other),
        })
    }

    fn stage(&mut self, change: Change) -> ResultCode {
        self.try_stage(change).err().unwrap_or(ResultCode::SUCCESS)
    }

    fn unstage(&mut self) {
        self.control.staged = None;
    }

    fn commit(&mut self) -> ResultCode {
        self.try_commit().err().unwrap_or(ResultCode::SUCCESS)
    }

    fn roll_back(&mut self) {
        // A commit that did not change the program retained no previous one.
        if let Some(before) = self.control.numbers_before.take() {
            self.element.roll_back(self.now, self.out);
            self.control.numbers = before;
        }
    }

    fn complete(&mut self) {
        self.control.numbers_before = None;
        self.element.settle();
    }

    fn set_forwarding(&mut self, forwards: bool) {
        self.element.set_forwarding(forwards);
    }

    fn redirect(&mut self, redirect: Redirect) {
        let program = self.element.program().clone();
        let instances = program.instances.iter().enumerate();
        let redirect_in = instances
            .filter(|(at, _)| program.class_of(*at).is_a(base_id::REDIRECT_IN))
            .min_by_key(|(_, it)| it.number);
        let (Some((at, _)), Some(packet)) = (redirect_in, &redirect.packet) else {
            self.control.whole.redirects_lost += 1;
            return;
        };
        if packet.len() > packet::frame::FRAME_BYTES_MAX {
            self.control.whole.redirects_lost += 1;
            return;
        }
        let meta: Vec<(u32, u128)> = redirect
            .metadata
            .iter()
            .filter_map(|(id, bytes)| Some((*id, number(bytes)?)))
            .collect();
        let mut frame = Frame::from_bytes(packet);
        if self.element.inject(at, (&mut frame, &meta), self.now, self.out).is_err() {
            self.control.whole.redirects_lost += 1;
        }
    }
}

/// Converts the octets of a metadata item to a number.
fn number(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
}

#[cfg(test)]
mod tests;
