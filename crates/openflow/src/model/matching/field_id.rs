//! Names of fields in lists, without values.
//!
//! Source: OpenFlow 1.3.5 section 7.3.5.5.2 (`ofp_table_feature_prop_oxm`) and 1.5.1 section
//! 7.2.1.2 (`ofp_port_desc_prop_oxm`). A name says whether a mask goes along.

use std::fmt;

use packet::field::{Field, FieldSet};

/// A field, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldId {
    /// One that the specification defines.
    Known {
        /// Which.
        field: Field,
        /// Whether a mask goes along.
        masked: bool,
    },
    /// One that somebody else defines, or another version.
    Other {
        /// Its header on the wire: class, number, mask bit and length.
        header: u32,
        /// Whose, if the class says that it is an experimenter's.
        experimenter: Option<u32>,
    },
}

impl FieldId {
    /// The fields of a set, each without a mask.
    pub fn plain(fields: FieldSet) -> Vec<FieldId> {
        fields.iter().map(|field| FieldId::Known { field, masked: false }).collect()
    }

    /// The fields of a set, each with a mask if it can have one.
    pub fn maskable(fields: FieldSet) -> Vec<FieldId> {
        let id = |field: Field| FieldId::Known { field, masked: field.maskable() };
        fields.iter().map(id).collect()
    }

    /// The fields that the specification defines.
    pub fn known(ids: &[FieldId]) -> FieldSet {
        let field = |id: &FieldId| match *id {
            FieldId::Known { field, .. } => Some(field),
            FieldId::Other { .. } => None,
        };
        ids.iter().filter_map(field).collect()
    }
}

impl fmt::Display for FieldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldId::Known { field, masked: false } => write!(f, "{field}"),
            FieldId::Known { field, masked: true } => write!(f, "{field}/"),
            FieldId::Other { header, experimenter: None } => write!(f, "{header:#010x}"),
            FieldId::Other { header, experimenter: Some(whose) } => {
                write!(f, "{header:#010x}:{whose:#010x}")
            }
        }
    }
}
