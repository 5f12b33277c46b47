//! Preview of the fate of learned and counted state if another program replaces the running one.
//!
//! The program is loaded as for a swap and then discarded, so the preview equals the real result.

use std::sync::Arc;

use packet::time::Nanos;

use super::Element;
use crate::check::check;
use crate::compiled_program::{RetainedState, UpcomingBlocks};
use crate::diagnostic::Problems;
use crate::executor::Enforcer;
use crate::program::{Program, base_id};

/// State of a block, and its fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDiff {
    /// Name of the block.
    pub instance: String,
    /// Learned and counted state: component names with a number or a row count.
    pub holds: Vec<(String, Held)>,
    /// Number of frames that the block dropped.
    pub drops: u64,
    /// Fate of this state.
    pub fate: Fate,
}

/// Fate of the state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is preserved.
    Kept,
    /// The part that fits the block's new settings is preserved.
    AsItFits,
    /// It is lost.
    Lost,
}

/// Contents of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A number other than zero.
    Number(u64),
    /// Number of rows.
    Rows(usize),
}

impl<E: Enforcer> Element<E> {
    /// Returns blocks with state and its fate under another program, and the number of links whose
    /// counters would be lost. Returns all problems if the program cannot run.
    pub fn foresee(
        &self,
        program: Program,
        now: Nanos,
    ) -> Result<(Vec<StateDiff>, usize), Problems> {
        let problems = check(&program);
        if problems.refuses() {
            return Err(problems);
        }
        let (program, next) = (Arc::new(program), self.generations + 1);
        let prepared = self.enforcer.prepare(program, next, self.seed, UpcomingBlocks::new())?;
        let loaded = E::loaded(&prepared);
        let running = self.enforcer.program();
        let mut all = Vec::new();
        for (at, instance) in running.instances.iter().enumerate() {
            let is_as_before = loaded
                .program
                .find(&instance.name)
                .is_some_and(|new| loaded.program.instances[new].components == instance.components);
            let fate = match loaded.keeps(at) {
                None => Fate::Lost,
                Some(RetainedState::State) if !is_as_before => Fate::AsItFits,
                Some(_) => Fate::Kept,
            };
            let (holds, drops) = (self.holds(at, now), self.enforcer.drops(at).total());
            if !holds.is_empty() || drops > 0 {
                let name = instance.name.clone();
                all.push(StateDiff { instance: name, holds, drops, fate });
            }
        }
        let kept: Vec<usize> = loaded.keeps_links().collect();
        let lost = |at: &usize| !kept.contains(at) && self.enforcer.link(*at).frames > 0;
        Ok((all, (0..running.links.len()).filter(lost).count()))
    }

    /// Returns the state that a block writes itself, without configured values.
    fn holds(&self, at: usize, now: Nanos) -> Vec<(String, Held)> {
        let program = self.enforcer.program();
        let Some(block) = self.enforcer.block(at) else { return Vec::new() };
        let class = program.class_of(at);
        // Components of a port describe its link; they are not learned.
        if class.is_a(base_id::PHY) {
            return Vec::new();
        }
        let own = class.components.iter().filter(|it| {
            it.kind == forces::model::ComponentKind::Component
                && !program.instances[at].components.contains_key(&it.id)
        });
        let held = |id: u32| {
            let value = block.get(id, now)?;
            match value.rows() {
                Some(rows) => Some(rows.len()).filter(|rows| *rows > 0).map(Held::Rows),
                None => value.unsigned().filter(|it| *it > 0).map(Held::Number),
            }
        };
        own.filter_map(|it| Some((it.name.clone(), held(it.id)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use dataplane::forwarder::{Forwarder, Outputs};
    use packet::frame::Batch;

    use super::*;
    use crate::compile::Compiled;
    use crate::program::document::no_files;
    use crate::xml::Source;

    const TEXT: &str = include_str!("../../../../examples/progfe/bridge.fe.xml");

    fn program(text: &str) -> Program {
        let (program, problems) = Program::load(&Source::new("a.fe.xml", text), &no_files);
        program.unwrap_or_else(|| panic!("{problems}"))
    }

    #[test]
    fn a_preview_reports_the_fate_of_learned_state_and_changes_nothing() {
        let (mut out, now) = (Outputs::new(&[1, 2]), Nanos::from_secs(10));
        let mut element: Element<Compiled> = Element::start(program(TEXT), 1).unwrap();
        for from in 1..=3 {
            let mut batch = Batch::new(1);
            let bytes = [[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, from]].concat();
            assert!(batch.push_bytes(&[bytes, vec![0; 48]].concat()));
            element.forward(1, &mut batch, now, &mut out);
        }
        let reported = |element: &Element<Compiled>, text: &str| {
            let (all, links) = element.foresee(program(text), now).unwrap();
            let fdb = all.into_iter().find(|it| it.instance == "fdb").unwrap();
            (fdb.holds, fdb.fate, links)
        };
        let (holds, fate, links) = reported(&element, TEXT);
        assert!(holds.contains(&("Entries".to_owned(), Held::Rows(3))), "{holds:?}");
        assert_eq!((fate, links), (Fate::Kept, 0));
        let (_, fate, _) = reported(&element, &TEXT.replace("262144", "2"));
        assert_eq!(fate, Fate::AsItFits);
        let (_, fate, _) =
            reported(&element, &TEXT.replace("id=\"fdb\"", "id=\"fdb\" reset=\"true\""));
        assert_eq!(fate, Fate::Lost);
        // One link from the port into the table, one from the table.
        let (_, fate, links) = reported(&element, &TEXT.replace("fdb", "table"));
        assert_eq!((fate, links), (Fate::Lost, 2));
        assert_eq!(element.generation(), 1);
        assert_eq!(element.account().received, 3);
    }
}
