//! A table that is filled until the switch refuses a rule, or as far as a bound, in batches with a barrier behind
//! each, and then relieved to a share of what it took.
//!
//! Source: costa2017, section IV-C (rules are sent until a table-full message comes) and IV-D (nearly full is
//! some 90 %). Invariants: what counts as there is what was not refused when its barrier was answered; a batch that
//! is not answered is not there, and ends the filling.

use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT};

use super::super::rules::Rules;
use crate::target::program::PORT_OUT;

/// Rules before each barrier.
const BATCH: u32 = 500;

/// How a table is filled.
#[derive(Debug, Clone)]
pub struct Fill {
    /// The rules.
    pub rules: Rules,
    /// Whether they name every field.
    pub is_exact: bool,
    /// The share of what fits that is there in the end.
    pub share: f64,
    /// Rules that are to have room besides.
    pub leaves: u32,
}

/// A table that is being filled.
#[derive(Debug, Clone, Default)]
pub struct Filled {
    /// Rules that were said.
    said: u32,
    /// The places in the batch of those that were refused.
    refused: Vec<u32>,
    /// The rules that are there, in the order in which they were said.
    there: Vec<u32>,
    /// How many there were at the most.
    taken: u32,
    is_full: bool,
    why: Option<String>,
}

impl Fill {
    /// How many batches there are at the most.
    pub fn batches(&self) -> u64 {
        self.rules.count().div_ceil(BATCH).into()
    }

    fn add(&self, place: u32) -> FlowMod {
        let matching = match self.is_exact {
            true => self.rules.exact(place),
            false => self.rules.matching(place),
        };
        FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(PORT_OUT.into())])
    }

    fn delete(&self, place: u32) -> FlowMod {
        let command = openflow::model::FlowModCommand::DeleteStrict;
        FlowMod { command, instructions: Vec::new(), ..self.add(place) }
    }
}

impl Filled {
    /// The next batch; none if the table is full, or the bound reached.
    pub fn next(&mut self, fill: &Fill) -> Option<Vec<Message>> {
        if self.is_full || self.said >= fill.rules.count() {
            return None;
        }
        let last = (self.said + BATCH).min(fill.rules.count());
        let batch = (self.said..last).map(|place| Message::FlowMod(fill.add(place))).collect();
        self.said = last;
        Some(batch)
    }

    /// A rule of the last batch was refused.
    pub fn refuse(&mut self, place: u32, why: impl Into<String>) {
        self.refused.push(place);
        self.is_full = true;
        self.why.get_or_insert(why.into());
    }

    /// So many rules were said last, and the barrier behind them was answered.
    pub fn settle(&mut self, count: u32) {
        let first = self.said - count;
        let refused = std::mem::take(&mut self.refused);
        self.there.extend((0..count).filter(|it| !refused.contains(it)).map(|it| first + it));
        self.taken = self.there.len() as u32;
    }

    /// The barrier behind the last batch was not answered in time.
    pub fn give_up(&mut self) {
        self.is_full = true;
        self.why.get_or_insert("a batch was not answered within the patience".into());
    }

    /// Deletes the last rules, so that the share of them is left that is wanted.
    pub fn relieve(&mut self, fill: &Fill) -> Vec<Message> {
        let all = f64::from(self.taken) * fill.share;
        let room = self.there.len().min((all as usize).saturating_sub(fill.leaves as usize));
        let gone = self.there.split_off(room);
        gone.into_iter().map(|place| Message::FlowMod(fill.delete(place))).collect()
    }

    /// Whether any rule was said.
    pub fn has_begun(&self) -> bool {
        self.said > 0
    }

    /// How many rules the switch took.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// How many are there.
    pub fn there(&self) -> u32 {
        self.there.len() as u32
    }

    /// Whether it took no more, or gave no answer.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Why it took no more.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}
