//! How many entries send to each group and pass each meter.

use std::collections::HashMap;

use super::Tables;
use crate::action::Action;

/// Numbers of entries by what they refer to.
#[derive(Debug, Default)]
pub struct References {
    /// By group.
    pub groups: HashMap<u32, usize>,
    /// By meter.
    pub meters: HashMap<u32, usize>,
}

impl Tables {
    /// Counts the entries that refer to groups and meters, each once for each of those.
    pub fn references(&self) -> References {
        let mut references = References::default();
        for (instructions, users) in self.programs.iter() {
            let mut groups: Vec<u32> = Vec::new();
            let mut meters: Vec<u32> = instructions.meter.into_iter().collect();
            for action in instructions.actions() {
                match *action {
                    Action::Group(group) => groups.push(group),
                    Action::Meter(meter) => meters.push(meter),
                    _ => {}
                }
            }
            for (numbers, counts) in
                [(groups, &mut references.groups), (meters, &mut references.meters)]
            {
                let mut numbers = numbers;
                numbers.sort_unstable();
                numbers.dedup();
                for number in numbers {
                    *counts.entry(number).or_default() += users;
                }
            }
        }
        references
    }
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;
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
        assert_eq!((references.groups[&7], references.groups[&8]), (3, 3));
        assert_eq!(references.meters[&4], 3);
        let none = FlowSpec::new(Match::ANY, 1, &[]);
        tables.modify(&none, &FlowFilter::ALL, ModifyRules::default(), now, &mut out).unwrap();
        assert!(tables.references().groups.is_empty());
    }
}
