//! Numbers of entries that refer to each group and each meter.
//!
//! The counts are updated with every change of an entry, so that a reply does not need to scan the
//! entries. Invariant: an entry counts once for each group and each meter.

use std::collections::BTreeMap;

use super::Tables;
use crate::instruction::Instructions;

/// Reference counts by group and by meter.
#[derive(Debug, Default)]
pub struct References {
    groups: BTreeMap<u32, usize>,
    meters: BTreeMap<u32, usize>,
}

/// The groups and meters that an instruction list refers to, each once.
#[derive(Debug, Default)]
pub(super) struct Targets {
    groups: Box<[u32]>,
    meters: Box<[u32]>,
}

impl Targets {
    /// Returns the groups and meters of these instructions.
    pub(super) fn of(instructions: &Instructions) -> Targets {
        let once = |numbers: &mut dyn Iterator<Item = u32>| {
            let mut numbers: Vec<u32> = numbers.collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.into()
        };
        Targets {
            groups: once(&mut instructions.groups()),
            meters: once(&mut instructions.meters()),
        }
    }
}

impl References {
    /// Returns the number of entries that send to a group.
    pub fn of_group(&self, number: u32) -> usize {
        self.groups.get(&number).copied().unwrap_or(0)
    }

    /// Returns the number of entries that use a meter.
    pub fn of_meter(&self, number: u32) -> usize {
        self.meters.get(&number).copied().unwrap_or(0)
    }

    /// Whether any entry sends to a group.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whether any entry uses a meter.
    pub fn has_meters(&self) -> bool {
        !self.meters.is_empty()
    }

    /// Adds one entry with these references.
    #[inline]
    pub(super) fn add(&mut self, targets: &Targets) {
        targets.groups.iter().for_each(|number| *self.groups.entry(*number).or_default() += 1);
        targets.meters.iter().for_each(|number| *self.meters.entry(*number).or_default() += 1);
    }

    /// Removes one entry with these references.
    #[inline]
    pub(super) fn remove(&mut self, targets: &Targets) {
        let counts = targets.groups.iter().map(|number| (number, false));
        for (number, is_meter) in counts.chain(targets.meters.iter().map(|number| (number, true))) {
            let counts = if is_meter { &mut self.meters } else { &mut self.groups };
            if let Some(count) = counts.get_mut(number) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(number);
                }
            }
        }
    }
}

impl Tables {
    /// Returns the numbers of entries that refer to each group and meter.
    pub fn references(&self) -> &References {
        self.programs.references()
    }
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;
    use crate::action::Action;
    use crate::flow::FlowFilter;
    use crate::flow::{FlowSpec, ModifyRules};
    use crate::forwarder::Outputs;
    use crate::instruction::Instructions;
    use crate::key::Field;
    use crate::matching::Match;
    use crate::table::TableSettings;

    #[test]
    fn each_entry_counts_once_for_each_group_and_meter() {
        let mut tables = Tables::new(&[TableSettings::default()], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(1));
        let does = Instructions {
            meter: Some(4),
            ..Instructions::apply(&[Action::Group(7), Action::Group(7), Action::Group(8)])
        };
        for port in 1..=3 {
            let matching = Match::of(&[(Field::InPort, port)]);
            tables.add(&FlowSpec::doing(matching, 1, does.clone()), now, &mut out).unwrap();
        }
        let references = tables.references();
        assert_eq!((references.of_group(7), references.of_group(8)), (3, 3));
        assert_eq!(references.of_meter(4), 3);
        let none = FlowSpec::new(Match::ANY, 1, &[]);
        tables.modify(&none, &FlowFilter::ALL, ModifyRules::default(), now, &mut out).unwrap();
        assert!(!tables.references().has_groups() && !tables.references().has_meters());
    }
}
