//! A table that is filled in batches, each followed by a barrier request.
//!
//! Filling ends when the switch rejects an entry or at a limit. Entries are then deleted down to a share of those
//! accepted. Source: costa2017, section IV-C (rules are sent until a table-full message arrives) and IV-D (nearly
//! full is about 90 %).
//!
//! Invariants:
//!
//! - An entry counts as installed if it was not rejected before its barrier reply.
//! - A batch without a barrier reply is not installed, and ends the filling.

use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT};

use super::super::rules::Rules;
use targets::flow_setup::PORT_OUT;

/// Entries before each barrier request.
const BATCH: u32 = 500;

/// Settings for filling a table.
#[derive(Debug, Clone)]
pub struct Fill {
    /// Entries.
    pub rules: Rules,
    /// Whether they match on every field.
    pub is_exact: bool,
    /// Share of the accepted entries that remain.
    pub share: f64,
    /// Number of further entries that must fit.
    pub leaves: u32,
}

/// State of a table that is being filled.
#[derive(Debug, Clone, Default)]
pub struct TableFill {
    /// Entries sent.
    said: u32,
    /// Positions of the rejected entries in the batch.
    refused: Vec<u32>,
    /// Installed entries, in the order of sending.
    there: Vec<u32>,
    /// Highest number of installed entries.
    taken: u32,
    is_full: bool,
    why: Option<String>,
}

impl Fill {
    /// Returns the maximum number of batches.
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

impl TableFill {
    /// Returns the next batch; `None` if the table is full or the limit is reached.
    pub fn next(&mut self, fill: &Fill) -> Option<Vec<Message>> {
        if self.is_full || self.said >= fill.rules.count() {
            return None;
        }
        let last = (self.said + BATCH).min(fill.rules.count());
        let batch = (self.said..last).map(|place| Message::FlowMod(fill.add(place))).collect();
        self.said = last;
        Some(batch)
    }

    /// Records that the switch rejected an entry of the last batch.
    pub fn refuse(&mut self, place: u32, why: impl Into<String>) {
        self.refused.push(place);
        self.is_full = true;
        self.why.get_or_insert(why.into());
    }

    /// Records the barrier reply after the last `count` entries.
    pub fn settle(&mut self, count: u32) {
        let first = self.said - count;
        let refused = std::mem::take(&mut self.refused);
        self.there.extend((0..count).filter(|it| !refused.contains(it)).map(|it| first + it));
        self.taken = self.there.len() as u32;
    }

    /// Records that the barrier reply after the last batch timed out.
    pub fn give_up(&mut self) {
        self.is_full = true;
        self.why.get_or_insert("no barrier reply for a batch before the timeout".into());
    }

    /// Deletes the last entries so that the requested share remains.
    pub fn relieve(&mut self, fill: &Fill) -> Vec<Message> {
        let all = f64::from(self.taken) * fill.share;
        let room = self.there.len().min((all as usize).saturating_sub(fill.leaves as usize));
        let gone = self.there.split_off(room);
        gone.into_iter().map(|place| Message::FlowMod(fill.delete(place))).collect()
    }

    /// Returns whether any entry was sent.
    pub fn has_begun(&self) -> bool {
        self.said > 0
    }

    /// Returns the number of accepted entries.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Returns the number of installed entries.
    pub fn there(&self) -> u32 {
        self.there.len() as u32
    }

    /// Returns whether the switch accepted no more entries, or did not reply.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the reason why it accepted no more.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}
