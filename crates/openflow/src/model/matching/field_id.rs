//! Field IDs without values.
//!
//! Source: OpenFlow 1.3.5 section 7.3.5.5.2 (`ofp_table_feature_prop_oxm`) and 1.5.1 section
//! 7.2.1.2 (`ofp_port_desc_prop_oxm`). An ID includes whether the field has a mask.

use std::fmt;

use packet::field::{Field, FieldSet};

/// ID of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldId {
    /// A field of the specification.
    Known {
        /// The field.
        field: Field,
        /// Whether it has a mask.
        masked: bool,
    },
    /// An experimenter field, or a field of another version.
    Other {
        /// OXM header: class, number, mask bit and length.
        header: u32,
        /// Experimenter ID, if the class is that of experimenters.
        experimenter: Option<u32>,
    },
}

impl FieldId {
    /// Returns the IDs of the fields, without masks.
    pub fn plain(fields: FieldSet) -> Vec<FieldId> {
        fields.iter().map(|field| FieldId::Known { field, masked: false }).collect()
    }

    /// Returns the IDs of the fields, with a mask where the field allows one.
    pub fn maskable(fields: FieldSet) -> Vec<FieldId> {
        let id = |field: Field| FieldId::Known { field, masked: field.maskable() };
        fields.iter().map(id).collect()
    }

    /// Returns the fields of the specification among these IDs.
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
