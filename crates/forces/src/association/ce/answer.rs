//! Responses, collected from their messages, and their contents.

use std::collections::BTreeMap;

use crate::association::element::Place;
use crate::model::value::Value;
use crate::model::{Catalog, Target};
use crate::wire::{Content, Data, PathData, ResultCode, Select, WireFault, data};

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Correlator of the request.
    pub correlator: u64,
    /// Results of each instance.
    pub selects: Vec<Select>,
}

impl Answer {
    /// Returns each place in the response, with its data.
    pub fn leaves(&self) -> Vec<(Place, &Data)> {
        let mut all = Vec::new();
        for select in &self.selects {
            for operation in &select.operations {
                for path in operation.paths() {
                    leaves(select, &[], path, &mut all);
                }
            }
        }
        all
    }

    /// Returns all failures; that of a whole operation, such as COMMIT, has an empty path.
    pub fn failures(&self) -> Vec<(Place, ResultCode)> {
        let mut all: Vec<_> = self
            .leaves()
            .into_iter()
            .filter_map(|(place, data)| match data {
                Data::Outcome(outcome) => Some((place, outcome.code())),
                _ => None,
            })
            .collect();
        for select in &self.selects {
            for operation in &select.operations {
                if let Content::Outcome(outcome) = &operation.content {
                    let (class, instance) = (select.class, select.instance);
                    let place = Place { class, instance, path: Vec::new() };
                    all.push((place, outcome.code()));
                }
            }
        }
        all.retain(|(_, code)| !code.is_success());
        all
    }

    /// Returns the values in the response by place; merges the parts of a table.
    pub fn values(&self, catalog: &Catalog) -> Result<BTreeMap<Place, Value>, WireFault> {
        let mut values: BTreeMap<Place, Value> = BTreeMap::new();
        for (place, data) in self.leaves() {
            let Some(class) = catalog.class_by_id(place.class) else { continue };
            let Ok(Target::Value { data_type, .. }) = class.target(&place.path) else { continue };
            let Some(read) = data::read(data_type, data) else { continue };
            let (value, _) = read?;
            match values.get_mut(&place) {
                Some(there) => there.merge(value),
                None => drop(values.insert(place, value)),
            }
        }
        Ok(values)
    }
}

fn leaves<'a>(
    select: &Select,
    before: &[u32],
    path: &'a PathData,
    all: &mut Vec<(Place, &'a Data)>,
) {
    let full = [before, &path.ids].concat();
    match &path.data {
        Data::Paths(paths) => paths.iter().for_each(|path| leaves(select, &full, path, all)),
        data => {
            let (class, instance) = (select.class, select.instance);
            all.push((Place { class, instance, path: full }, data));
        }
    }
}
