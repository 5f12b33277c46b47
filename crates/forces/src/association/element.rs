//! What stands behind a forwarding element's end of its associations.

use crate::model::Catalog;
use crate::value::Value;
use crate::wire::{Redirect, ResultCode};

/// A part of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Its class.
    pub class: u32,
    /// Which instance.
    pub instance: u32,
    /// Ids and indices that lead to the part.
    pub path: Vec<u32>,
}

/// Something that a control element wants changed. Values are those of the type at their place;
/// whether the place can be written was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The part gets this value; a row or an optional field that is not there is made.
    Set {
        /// Where.
        place: Place,
        /// The whole value.
        value: Value,
    },
    /// Some fields or rows of the part get values, the others keep theirs.
    Merge {
        /// Where.
        place: Place,
        /// The fields and rows that change.
        value: Value,
    },
    /// A row or an optional field is taken away.
    Delete {
        /// Which.
        place: Place,
    },
}

impl Change {
    /// Where it is.
    pub fn place(&self) -> &Place {
        match self {
            Change::Set { place, .. } | Change::Merge { place, .. } | Change::Delete { place } => {
                place
            }
        }
    }
}

/// A forwarding element's instances.
///
/// Changes are staged one by one and take effect together. What was before the last commit is kept
/// until [`Element::complete`], so that [`Element::roll_back`] can bring it back: the program before
/// stays until the control element says that everybody has the new one (RFC 5810 section
/// 4.3.1.2.2).
///
/// FEObject's LFBTopology (class 1, component 1) and LFBSelectors (component 2) are the element's;
/// all else of classes 1 and 2 is never asked for.
pub trait Element {
    /// The classes there are.
    fn catalog(&self) -> &Catalog;

    /// Whether there is such an instance.
    fn has_instance(&self, class: u32, instance: u32) -> bool;

    /// The value at a place. [`ResultCode::COMPONENT_DOES_NOT_EXIST`] if nothing is there.
    fn get(&self, place: &Place) -> Result<Value, ResultCode>;

    /// Sees whether a change can be made on top of those that are staged, and stages it if so; any
    /// other result than success leaves it out. Nothing takes effect.
    fn stage(&mut self, change: Change) -> ResultCode;

    /// Forgets what is staged.
    fn unstage(&mut self);

    /// Lets all that is staged take effect at once, or nothing of it. It is staged no longer then.
    fn commit(&mut self) -> ResultCode;

    /// Brings back what was before the last commit.
    fn roll_back(&mut self);

    /// What was before the last commit is needed no longer.
    fn complete(&mut self);

    /// Whether frames are to be forwarded.
    fn set_forwarding(&mut self, forwards: bool);

    /// Takes a packet that a control element sends by RedirectIn.
    fn redirect(&mut self, redirect: Redirect);

    /// The index of the row with this content in the array at a place. An element that can find it
    /// without looking at every row does.
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
