//! The element as control elements see it over ForCES: every instance by class, number and path.
//!
//! [`Control`] keeps what a control element has staged and not committed; with an element, the time and the
//! ports' queues it is a [`Speaker`], which is what stands behind an
//! [association](forces::association). What is staged is made to a [`Draft`]; a commit makes that ready
//! and swaps it in between two frames, and what ran before is kept until the control element says that
//! the transaction is complete.
//!
//! FEObject's LFBSelectors and LFBTopology are the program's instances and [links](graph); the
//! program as a whole is an instance of [a class of our own](whole).

use dataplane::forwarder::Outputs;
use forces::association::{Change, Element, Happening, Place};
use forces::model::Catalog;
use forces::value::Value;
use forces::wire::{Redirect, ResultCode, data};
use packet::frame::Frame;
use packet::time::Nanos;

use crate::element::{self, Draft, ElementError};
use crate::enforce::Enforcer;
use crate::lfb::learn_search::LEARNT_FROM;
use crate::program::base_id;

/// Instances and links as tables.
pub mod graph;
/// What is told to control elements by itself.
pub mod news;
/// The program as a whole, as an instance.
pub mod whole;

use graph::{FE_OBJECT, Numbers};
use whole::Whole;

/// Rows that are changed before blocks are brought to what their tables are: a millisecond's work.
const ROWS_AHEAD: usize = 1024;

/// What a control element has staged, and what else belongs to the element's end of associations.
#[derive(Debug, Default)]
pub struct Control {
    staged: Option<Staged>,
    /// Rows of instances and links.
    numbers: Numbers,
    /// The same before the last commit.
    numbers_before: Option<Numbers>,
    whole: Whole,
    /// Rows that were staged since somebody asked.
    work: usize,
}

impl Control {
    /// How many rows were staged since the last call: whoever hands messages over lets frames have their
    /// turn after some.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Keeps the last event of an agent, which can be asked for.
    pub fn agent_said(&mut self, happening: &Happening) {
        self.whole.agent_event = happening.reported.first().cloned();
    }
}

/// What takes effect with the next commit.
#[derive(Debug)]
struct Staged {
    draft: Draft,
    numbers: Numbers,
    /// Another program, and a frame to be traced.
    whole: whole::Staged,
    /// Whether anything of the program is changed.
    has_changes: bool,
    /// Of which program the draft is.
    generation: u64,
    /// Rows that were changed since blocks were brought to what their tables are.
    rows: usize,
}

/// An element that speaks for itself.
pub struct Speaker<'a, E: Enforcer> {
    /// What is staged, and what is known beside the element.
    pub control: &'a mut Control,
    /// The element.
    pub element: &'a mut element::Element<E>,
    /// The time.
    pub now: Nanos,
    /// The ports' queues.
    pub out: &'a mut Outputs,
}

/// The result that says why the element will not.
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
    /// What is staged so far, beginning with nothing.
    fn staged(&mut self) -> &mut Staged {
        let Control { staged, numbers, .. } = &mut *self.control;
        staged.get_or_insert_with(|| {
            numbers.follow(self.element.program());
            Staged {
                draft: Draft::of(self.element.program()),
                numbers: numbers.clone(),
                whole: whole::Staged::default(),
                has_changes: false,
                generation: self.element.generation(),
                rows: 0,
            }
        })
    }

    fn try_stage(&mut self, change: Change) -> Result<(), ResultCode> {
        let place = change.place().clone();
        if place.class == whole::CLASS {
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
            self.element.go_ahead(&mut staged.draft);
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
            // Two programs at once are none.
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
            self.control.whole.traced = whole::steps(self.element.program(), &trace);
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
        class == whole::CLASS && instance == 1
            || there(self.element.program())
            || self.control.staged.as_ref().is_some_and(|staged| there(&staged.draft.program))
    }

    fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        let program = self.element.program();
        if place.class == FE_OBJECT {
            return self.control.numbers.get(program, &place.path);
        }
        if place.class == whole::CLASS {
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
        // A commit that changed nothing of the program kept none.
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

/// A metadatum's octets as a number.
fn number(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)))
}

#[cfg(test)]
mod tests;
