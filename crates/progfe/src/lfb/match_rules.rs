//! Ext-PG-Match: selects the output by rules with conditions.
//!
//! The highest priority comes first, then the smallest index. A rule may also set a metadata item.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict, counted};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::tree::NodeId;
use crate::condition::Condition;
use crate::diagnostic::Code;
use crate::program::text;

const HIT: u32 = 0;
const MISS: u32 = 1;
/// The component Hits.
const HITS: u32 = 2;
/// The component Misses.
const MISSES: u32 = 3;

/// Counter number of misses in a tree. It is no valid rule index.
const MISSED: u32 = u32::MAX;

/// The Match block.
#[derive(Debug)]
pub struct Match {
    rules: Vec<Rule>,
    hits: BTreeMap<u32, u64>,
    misses: u64,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Index of the rule.
    pub index: u32,
    /// Condition of matching frames.
    pub when: Condition,
    /// Index of the output.
    pub output: u32,
    /// Metadata slot and value to set.
    pub set: Option<(usize, u128)>,
}

impl Match {
    /// Returns the rules in matching order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

impl Block for Match {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let mut rules = Vec::new();
        for row in setup.rows(1) {
            let (frames, catalog) = (setup.frames(), &setup.program.catalog);
            let when = match text::condition(row.text(2), frames, catalog) {
                Ok(when) => when,
                Err(error) => {
                    let path = [&row.path[..], &[2]].concat();
                    let what = format!("{} (at byte {})", error.what, error.at);
                    setup.refuse(Code::Condition, &path, what, error.hint);
                    continue;
                }
            };
            let slot = setup.slot(&row.path, row.number(4));
            let set = slot.map(|slot| (slot, u128::from(row.number(5))));
            let rule = Rule { index: row.index, when, output: row.number(3), set };
            rules.push((Reverse(row.number(1)), rule));
        }
        rules.sort_by_key(|(priority, rule)| (*priority, rule.index));
        let rules = rules.into_iter().map(|(_, rule)| rule).collect();
        Match { rules, hits: BTreeMap::new(), misses: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let rules = &self.rules;
        let found = packet
            .facts(env.frames, env.slots, |facts| rules.iter().find(|rule| rule.when.holds(facts)));
        let Some(rule) = found else {
            self.misses += 1;
            return Verdict::Out(MISS, 0);
        };
        *self.hits.entry(rule.index).or_default() += 1;
        if let Some((slot, value)) = rule.set {
            packet.meta.set(slot, value);
        }
        Verdict::Out(HIT, rule.output)
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let rules: Vec<&Condition> = self.rules.iter().map(|rule| &rule.when).collect();
        Some(grower.first_of(way, &rules, &mut |grower, mut way, found| {
            let Some(place) = found else {
                grower.meet(&mut way, MISSED);
                return grower.go(way, MISS, 0);
            };
            if !grower.hit(&mut way) {
                return grower.stand(way);
            }
            let rule = &self.rules[place];
            grower.meet(&mut way, place as u32);
            if let Some((slot, value)) = rule.set {
                way.set(Some(slot), Known::Constant(value));
            }
            grower.go(way, HIT, rule.output)
        }))
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        match self.rules.get(what as usize) {
            Some(rule) => *self.hits.entry(rule.index).or_default() += frames,
            None => self.misses += frames,
        }
    }

    fn keep(&mut self, old: &mut Self) {
        // Counts of changed rules would be wrong.
        let same = |a: &Rule, b: &Rule| (a.index, &a.when) == (b.index, &b.when);
        let is_same = self.rules.len() == old.rules.len()
            && self.rules.iter().zip(&old.rules).all(|(a, b)| same(a, b));
        if is_same {
            std::mem::swap(&mut self.hits, &mut old.hits);
        }
        std::mem::swap(&mut self.misses, &mut old.misses);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            HITS => Some(counted(&self.hits)),
            MISSES => Some(Value::Unsigned(self.misses)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            HITS => self.hits.clear(),
            MISSES => self.misses = 0,
            _ => {}
        }
    }
}
