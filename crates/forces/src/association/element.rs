//! Interface to the instances of a forwarding element.

use crate::model::Catalog;
use crate::model::value::Value;
use crate::wire::{Redirect, ResultCode};

/// Place of a part of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Class ID.
    pub class: u32,
    /// Instance ID.
    pub instance: u32,
    /// Path of IDs and indices.
    pub path: Vec<u32>,
}

/// A change that a control element requests.
///
/// The value is valid for the type at its place, and the place is writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets a part; creates a missing row or optional field.
    Set {
        /// Place.
        place: Place,
        /// The complete value.
        value: Value,
    },
    /// Sets some fields or rows of a part; the others keep their values.
    Merge {
        /// Place.
        place: Place,
        /// The fields and rows to set.
        value: Value,
    },
    /// Deletes a row or an optional field.
    Delete {
        /// Place.
        place: Place,
    },
}

impl Change {
    /// Returns the place of the change.
    pub fn place(&self) -> &Place {
        match self {
            Change::Set { place, .. } | Change::Merge { place, .. } | Change::Delete { place } => {
                place
            }
        }
    }
}

/// The instances of a forwarding element.
///
/// - Changes are staged one by one and committed together.
/// - The element keeps the state before the last commit until [`Element::complete`], so that
///   [`Element::roll_back`] can restore it. The CE completes a transaction when all elements have
///   committed it (RFC 5810 section 4.3.1.2.2).
/// - The element implements FEObject's LFBTopology (class 1, component 1) and LFBSelectors
///   (component 2). Calls never have other places of classes 1 and 2.
pub trait Element {
    /// Returns the catalog of its classes.
    fn catalog(&self) -> &Catalog;

    /// Returns whether this instance exists.
    fn has_instance(&self, class: u32, instance: u32) -> bool;

    /// Returns the value at a place, or [`ResultCode::COMPONENT_DOES_NOT_EXIST`].
    fn get(&self, place: &Place) -> Result<Value, ResultCode>;

    /// Validates a change on top of the staged ones, and stages it on success.
    ///
    /// Nothing takes effect before the commit.
    fn stage(&mut self, change: Change) -> ResultCode;

    /// Discards the staged changes.
    fn unstage(&mut self);

    /// Commits all staged changes atomically, or none; nothing remains staged.
    fn commit(&mut self) -> ResultCode;

    /// Restores the state before the last commit.
    fn roll_back(&mut self);

    /// Discards the state before the last commit.
    fn complete(&mut self);

    /// Enables or disables forwarding.
    fn set_forwarding(&mut self, forwards: bool);

    /// Handles a packet that a control element sends by RedirectIn.
    fn redirect(&mut self, redirect: Redirect);

    /// Returns the index of the row with this content key in the array at a place.
    ///
    /// The default implementation checks every row. An element with an index should override it.
    fn find(&self, place: &Place, key: u32, content: &Value) -> Result<u32, ResultCode> {
        let catalog = self.catalog();
        let class = catalog.class_by_id(place.class).ok_or(ResultCode::LFB_UNKNOWN)?;
        let Ok(crate::model::Target::Value { data_type, .. }) = class.target(&place.path) else {
            return Err(ResultCode::INVALID_PATH);
        };
        let array = data_type.array().ok_or(ResultCode::NOT_A_TABLE)?;
        let key = array.key(key).ok_or(ResultCode::INVALID_PARAMETERS)?;
        let value = self.get(place)?;
        let rows = value.rows().ok_or(ResultCode::NOT_A_TABLE)?;
        let found = rows.iter().find(|(_, row)| key.of(row).as_ref() == Some(content));
        found.map(|(index, _)| *index).ok_or(ResultCode::NOT_FOUND)
    }
}
