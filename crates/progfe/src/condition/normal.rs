//! Normal form of conditions, for compilers.
//!
//! A condition becomes a disjunction of conjunctions of tests. Tests of the same operand are
//! merged. Conjunctions that are never true are omitted, so an empty list is never true. A
//! condition that needs more than [`CONJUNCTIONS_MAX`] conjunctions has no normal form and is
//! evaluated as a tree.

use super::{Choice, Condition, Facts, Operand, Relation};
use crate::frames::bits;

/// Maximum number of conjunctions of a condition.
pub const CONJUNCTIONS_MAX: usize = 1024;

/// Maximum number of test combinations during normalization.
const WORK_MAX: usize = 1 << 17;

/// A conjunction of tests, ordered by operand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conjunction {
    /// Operands with their tests.
    pub tests: Vec<(Operand, Atom)>,
}

/// A test of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atom {
    /// Present.
    There,
    /// Absent.
    Absent,
    /// Present and in a range.
    Range(u128, u128),
    /// Present and equal under a mask: value, mask.
    Mask(u128, u128),
}

impl Condition {
    /// Returns the disjunction of conjunctions; `None` if there are too many.
    pub fn normal(&self) -> Option<Vec<Conjunction>> {
        let mut work = WORK_MAX;
        normal(self, false, &mut work)
    }
}

impl Conjunction {
    /// Evaluates the conjunction for a frame.
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        self.tests.iter().all(|(operand, atom)| match *atom {
            Atom::There => facts.has(operand),
            Atom::Absent => !facts.has(operand),
            Atom::Range(low, high) => {
                facts.number(operand).is_some_and(|value| (low..=high).contains(&value))
            }
            Atom::Mask(value, mask) => facts.number(operand).is_some_and(|is| is & mask == value),
        })
    }

    fn of(operand: &Operand, atom: Atom) -> Conjunction {
        Conjunction { tests: vec![(operand.clone(), atom)] }
    }

    /// Combines two conjunctions. Returns `None` if they contradict each other.
    fn and(&self, other: &Conjunction) -> Option<Conjunction> {
        let mut tests = self.tests.clone();
        for (operand, atom) in &other.tests {
            let mut atom = *atom;
            let mut merged = Vec::with_capacity(tests.len() + 1);
            for (known, before) in tests {
                if known != *operand {
                    merged.push((known, before));
                    continue;
                }
                match both(before, atom)? {
                    Both::One(one) => atom = one,
                    Both::Each => merged.push((known, before)),
                }
            }
            merged.push((operand.clone(), atom));
            tests = merged;
        }
        tests.sort_by(|(a, _), (b, _)| a.cmp(b));
        Some(Conjunction { tests })
    }
}

/// Combination of two tests of one operand.
enum Both {
    /// Merged into one test.
    One(Atom),
    /// Both tests remain.
    Each,
}

/// Combines two tests of one operand. Returns `None` if they contradict each other.
fn both(a: Atom, b: Atom) -> Option<Both> {
    match (a, b) {
        (Atom::Absent, Atom::Absent) => Some(Both::One(Atom::Absent)),
        (Atom::Absent, _) | (_, Atom::Absent) => None,
        (Atom::There, other) | (other, Atom::There) => Some(Both::One(other)),
        (Atom::Range(low, high), Atom::Range(least, most)) => {
            let (low, high) = (low.max(least), high.min(most));
            (low <= high).then_some(Both::One(Atom::Range(low, high)))
        }
        (Atom::Mask(value, mask), Atom::Mask(other, under)) => {
            let agrees = (value ^ other) & mask & under == 0;
            agrees.then_some(Both::One(Atom::Mask(value | other, mask | under)))
        }
        _ => Some(Both::Each),
    }
}

fn normal(condition: &Condition, negated: bool, work: &mut usize) -> Option<Vec<Conjunction>> {
    match condition {
        Condition::Any if negated => Some(Vec::new()),
        Condition::Any => Some(vec![Conjunction::default()]),
        Condition::Not(one) => normal(one, !negated, work),
        Condition::Present(operand) => {
            let atom = if negated { Atom::Absent } else { Atom::There };
            Some(vec![Conjunction::of(operand, atom)])
        }
        Condition::Test(operand, relation) => test(operand, relation, negated, work),
        Condition::All(parts) | Condition::Either(parts) => {
            let together = matches!(condition, Condition::All(_)) != negated;
            let mut sum: Option<Vec<Conjunction>> = None;
            for part in parts {
                let part = normal(part, negated, work)?;
                sum = Some(match sum {
                    None => part,
                    Some(sum) if together => product(&sum, &part, work)?,
                    Some(mut sum) => {
                        sum.extend(part);
                        sum
                    }
                });
                if sum.as_ref().is_some_and(|sum| sum.len() > CONJUNCTIONS_MAX) {
                    return None;
                }
            }
            sum
        }
    }
}

fn product(a: &[Conjunction], b: &[Conjunction], work: &mut usize) -> Option<Vec<Conjunction>> {
    if a.len().checked_mul(b.len())? > CONJUNCTIONS_MAX * 4 {
        return None;
    }
    let mut all = Vec::new();
    for one in a {
        for other in b {
            *work = work.checked_sub(1 + one.tests.len() * other.tests.len())?;
            all.extend(one.and(other));
        }
    }
    Some(all)
}

fn test(
    operand: &Operand,
    relation: &Relation,
    negated: bool,
    work: &mut usize,
) -> Option<Vec<Conjunction>> {
    let width = operand.bits();
    let most = bits::most(width);
    let range = |low: u128, high: u128| vec![Atom::Range(low, high)];
    let positive = match relation {
        Relation::Is(choice) => vec![atom(choice, width)],
        Relation::In(choices) => choices.iter().map(|choice| atom(choice, width)).collect(),
        Relation::Other(choice) => complement(atom(choice, width), width),
        Relation::Below(bound) => {
            bound.value.checked_sub(1).map_or(Vec::new(), |high| range(0, high))
        }
        Relation::AtMost(bound) => range(0, bound.value),
        Relation::Above(bound) if bound.value == most => Vec::new(),
        Relation::Above(bound) => range(bound.value + 1, most),
        Relation::AtLeast(bound) => range(bound.value, most),
    };
    if !negated {
        return Some(positive.into_iter().map(|atom| Conjunction::of(operand, atom)).collect());
    }
    // No atom is true, or the operand is absent.
    let mut left = vec![Conjunction::of(operand, Atom::There)];
    for atom in positive {
        let others = complement(atom, width);
        let others: Vec<_> =
            others.into_iter().map(|atom| Conjunction::of(operand, atom)).collect();
        left = product(&left, &others, work)?;
        if left.len() > CONJUNCTIONS_MAX {
            return None;
        }
    }
    left.push(Conjunction::of(operand, Atom::Absent));
    Some(left)
}

/// Converts a choice to one test. A prefix mask becomes a range.
fn atom(choice: &Choice, width: u32) -> Atom {
    match choice {
        Choice::One(one) => Atom::Range(one.value, one.value),
        Choice::Range(low, high) => Atom::Range(low.value, high.value),
        Choice::Prefix(..) | Choice::Masked(..) => {
            let (value, mask) = choice.masked(width);
            let behind = bits::most(width) & !mask;
            if behind & behind.wrapping_add(1) == 0 {
                Atom::Range(value & mask, (value & mask) | behind)
            } else {
                Atom::Mask(value & mask, mask)
            }
        }
    }
}

/// Returns the complement of a test as a disjunction, for an operand that is present.
fn complement(atom: Atom, width: u32) -> Vec<Atom> {
    let most = bits::most(width);
    match atom {
        Atom::There => Vec::new(),
        Atom::Absent => vec![Atom::There],
        Atom::Range(low, high) => {
            let below = low.checked_sub(1).map(|end| Atom::Range(0, end));
            let above = (high < most).then(|| Atom::Range(high + 1, most));
            below.into_iter().chain(above).collect()
        }
        Atom::Mask(value, mask) => {
            // This bit is the first under the mask that differs.
            let bits = (0..width).rev().map(|bit| 1u128 << bit).filter(|bit| mask & bit != 0);
            bits.map(|bit| {
                let upper = mask & !(bit | (bit - 1));
                Atom::Mask((value & upper) | (!value & bit), upper | bit)
            })
            .collect()
        }
    }
}
