//! Rules with conditions as decisions.
//!
//! The tree reads each field once for all rules and divides its values into the groups that the
//! rules distinguish.

use super::build::TreeBuilder;
use super::parse::Place;
use super::path_state::{Headers, Known, Next, PathState, Ranges, both, others};
use super::symbolic_bytes::{Field, Read};
use super::tree::NodeId;
use crate::condition::normal::Atom;
use crate::condition::{Condition, Operand, Relation};
use crate::frames::{FormatId, Part};

/// Knowledge about a condition.
enum Truth {
    Holds,
    Fails,
    /// A field must be read.
    Reads(Field),
    /// The next header must be known.
    Header,
    /// Only the frame itself gives the result.
    Hidden,
}

/// Knowledge about an operand.
enum Operated {
    Nowhere,
    /// It is present, with its number if it has one.
    There(Option<Read>),
    Header,
    Hidden,
}

/// Continuation after the rule with an index, or after none.
pub type ThenRule<'t, 'a> =
    &'t mut dyn FnMut(&mut TreeBuilder<'a>, PathState, Option<usize>) -> NodeId;

impl<'a> TreeBuilder<'a> {
    /// Branches on the first rule that holds.
    pub fn first_of(
        &mut self,
        mut way: PathState,
        rules: &[&Condition],
        then: ThenRule<'_, 'a>,
    ) -> NodeId {
        let mut formats: Vec<FormatId> = Vec::new();
        for rule in rules {
            rule.operands(&mut |operand| {
                if let Operand::Field { at, .. } = operand {
                    formats.push(at.format);
                }
            });
        }
        if !formats.is_empty() && way.start.is_none() {
            return self.stand(way);
        }
        if way.headers.next == Next::Other {
            way.headers = Headers::from(way.start);
        }
        formats.sort_unstable();
        formats.dedup();
        let wanted = self.leading_to(formats.into_iter());
        self.rules(way, rules, (0, &wanted), then)
    }

    fn rules(
        &mut self,
        way: PathState,
        rules: &[&Condition],
        (from, wanted): (usize, &[bool]),
        then: ThenRule<'_, 'a>,
    ) -> NodeId {
        for (at, rule) in rules.iter().enumerate().skip(from) {
            match self.truth(&way, rule) {
                Truth::Holds => return then(self, way, Some(at)),
                Truth::Fails => {}
                Truth::Hidden => return self.stand(way),
                Truth::Header => {
                    return self.next_header(way, wanted, &mut |grower, way| {
                        grower.rules(way, rules, (at, wanted), then)
                    });
                }
                Truth::Reads(field) => {
                    let groups = self.groups(&way, field, &rules[at..]);
                    return self.choose(way, Read::Field(field), &groups, &mut |grower, way, _| {
                        grower.rules(way, rules, (at, wanted), then)
                    });
                }
            }
        }
        then(self, way, None)
    }

    fn operand(&self, way: &PathState, operand: &Operand) -> Operated {
        let (at, of) = match operand {
            Operand::Field { at, .. } => (self.place(way, *at), at),
            Operand::Meta { id, .. } => {
                let known = self.slots.slot(*id).and_then(|slot| way.meta[slot]);
                return match known {
                    None => Operated::Nowhere,
                    Some(Known::Constant(value)) => match u64::try_from(value) {
                        Ok(value) => Operated::There(Some(Read::Constant(value))),
                        Err(_) => Operated::Hidden,
                    },
                    Some(Known::Field(field)) => Operated::There(Some(Read::Field(field))),
                    Some(Known::Found) => Operated::Hidden,
                };
            }
        };
        match at {
            Place::Nowhere => Operated::Nowhere,
            Place::Further => Operated::Header,
            Place::Hidden => Operated::Hidden,
            Place::Here(..) if of.part == Part::Header => Operated::There(None),
            Place::Here(_, at, bits) => Operated::There(way.read(at, bits)),
        }
    }

    fn truth(&self, way: &PathState, condition: &Condition) -> Truth {
        let truth = |holds: bool| if holds { Truth::Holds } else { Truth::Fails };
        match condition {
            Condition::Any => Truth::Holds,
            Condition::Not(one) => match self.truth(way, one) {
                Truth::Holds => Truth::Fails,
                Truth::Fails => Truth::Holds,
                open => open,
            },
            Condition::All(all) | Condition::Either(all) => {
                let is_all = matches!(condition, Condition::All(_));
                let mut open = None;
                for one in all {
                    match self.truth(way, one) {
                        Truth::Holds if !is_all => return Truth::Holds,
                        Truth::Fails if is_all => return Truth::Fails,
                        Truth::Holds | Truth::Fails => {}
                        other => {
                            open.get_or_insert(other);
                        }
                    }
                }
                open.unwrap_or(truth(is_all))
            }
            Condition::Present(operand) => match self.operand(way, operand) {
                Operated::Nowhere => Truth::Fails,
                Operated::There(_) => Truth::Holds,
                Operated::Header => Truth::Header,
                Operated::Hidden => Truth::Hidden,
            },
            Condition::Test(operand, relation) => match self.operand(way, operand) {
                Operated::Nowhere => Truth::Fails,
                Operated::Header => Truth::Header,
                Operated::Hidden | Operated::There(None) => Truth::Hidden,
                Operated::There(Some(Read::Constant(value))) => {
                    truth(relation.holds(operand.bits(), value.into()))
                }
                Operated::There(Some(Read::Field(field))) => {
                    let Some(accepted) = accepted(operand, relation) else { return Truth::Hidden };
                    let known = way.ranges(field);
                    if both(&known, &accepted).is_empty() {
                        return Truth::Fails;
                    }
                    match both(&known, &others(&accepted, u64::MAX)).is_empty() {
                        true => Truth::Holds,
                        false => Truth::Reads(field),
                    }
                }
            },
        }
    }

    /// Groups the values of a field that the rules do not distinguish.
    fn groups(&self, way: &PathState, field: Field, rules: &[&Condition]) -> Vec<Ranges> {
        let mut tests: Vec<Ranges> = Vec::new();
        for rule in rules {
            self.tests(way, field, rule, &mut tests);
        }
        let mut ends: Vec<u64> = vec![0];
        for (low, high) in tests.iter().flatten() {
            ends.extend([Some(*low), high.checked_add(1)].into_iter().flatten());
        }
        ends.sort_unstable();
        ends.dedup();
        let mut groups: Vec<(Vec<bool>, Ranges)> = Vec::new();
        for (at, low) in ends.iter().enumerate() {
            let high = ends.get(at + 1).map_or(u64::MAX, |next| next - 1);
            let holds = |ranges: &Ranges| ranges.iter().any(|(a, b)| (*a..=*b).contains(low));
            let kind: Vec<bool> = tests.iter().map(holds).collect();
            match groups.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, ranges)) => ranges.push((*low, high)),
                None => groups.push((kind, vec![(*low, high)])),
            }
        }
        groups.into_iter().map(|(_, ranges)| ranges).collect()
    }

    /// Collects the values of a field that each test of a condition accepts.
    fn tests(&self, way: &PathState, field: Field, condition: &Condition, into: &mut Vec<Ranges>) {
        match condition {
            Condition::Any | Condition::Present(_) => {}
            Condition::Not(one) => self.tests(way, field, one, into),
            Condition::All(all) | Condition::Either(all) => {
                all.iter().for_each(|one| self.tests(way, field, one, into));
            }
            Condition::Test(operand, relation) => {
                if let Operated::There(Some(Read::Field(read))) = self.operand(way, operand)
                    && read == field
                {
                    into.extend(accepted(operand, relation));
                }
            }
        }
    }
}

/// Returns the values for which a test holds. Returns `None` if they are not ranges of 64-bit
/// words.
fn accepted(operand: &Operand, relation: &Relation) -> Option<Ranges> {
    let test = Condition::Test(operand.clone(), relation.clone());
    let mut ranges = Ranges::new();
    for one in test.normal()? {
        for (_, atom) in one.tests {
            match atom {
                Atom::Range(low, high) => {
                    ranges.push((u64::try_from(low).ok()?, u64::try_from(high).ok()?));
                }
                _ => return None,
            }
        }
    }
    // Merges ranges that overlap or touch.
    let gaps = others(&ranges, u64::MAX);
    Some(others(&gaps, u64::MAX))
}
