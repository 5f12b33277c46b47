//! Everything that is looked at before a program runs.
//!
//! A program that was read has no wrong names or values left; here its blocks are looked at together:
//! links, cycles, what is never reached, which metadata and frames arrive where, what tables say of
//! outputs and keys, what conditions and operations say of frames, ports, memory. Every problem is
//! found, none hides another; an element takes a program without errors or not at all.

use crate::problem::{Code, Place, Problems};
use crate::program::document::Load;
use crate::program::{End, Program};
use crate::xml::Source;

/// Links and outputs without one.
pub mod links;
/// Cycles, and what no frame reaches.
pub mod graph;
/// Which metadata arrive where.
pub mod metadata;
/// Which kinds of frames arrive where.
pub mod kinds;
/// What tables say of outputs and keys.
pub mod tables;
/// What our own blocks are set to.
pub mod blocks;
/// Operations of Edit.
pub mod edit;
/// Ports and what they are bound to.
pub mod ports;
/// Service agents.
pub mod agents;
/// Memory that a program takes.
pub mod resources;

/// All that is wrong with a program.
pub fn check(program: &Program) -> Problems {
    let mut problems = Problems::default();
    links::check(program, &mut problems);
    graph::check(program, &mut problems);
    metadata::check(program, &mut problems);
    kinds::check(program, &mut problems);
    tables::outputs(program, &mut problems);
    edit::ways(program, &mut problems);
    resources::check(program, &mut problems);
    agents::check(program, &mut problems);
    problems.extend(each(program));
    problems
}

/// What is wrong with blocks and ports, each by itself: what can be said of a program of which parts
/// could not be read, too.
pub fn each(program: &Program) -> Problems {
    let mut problems = Problems::default();
    tables::keys(program, &mut problems);
    blocks::check(program, &mut problems);
    edit::check(program, &mut problems);
    ports::check(program, &mut problems);
    problems
}

impl Program {
    /// Reads and checks a document: a program that can run, if nothing refuses it.
    pub fn load(source: &Source<'_>, load: Load<'_>) -> (Option<Program>, Problems) {
        let (program, mut problems) = Program::read_what_can_be(source, load);
        if let Some(program) = &program {
            // Links and blocks that could not be read would be missed everywhere else.
            let whole = !problems.refuses();
            problems.extend(if whole { check(program) } else { each(program) });
        }
        (program.filter(|_| !problems.refuses()), problems)
    }

    /// The link of an output, if it has one.
    pub fn link_of(&self, from: End) -> Option<usize> {
        self.links.iter().position(|link| link.from == from)
    }
}

/// Adding problems of one instance.
pub(crate) struct About<'a> {
    program: &'a Program,
    instance: usize,
    problems: &'a mut Problems,
}

impl<'a> About<'a> {
    pub(crate) fn new(program: &'a Program, instance: usize, problems: &'a mut Problems) -> Self {
        About { program, instance, problems }
    }

    /// Adds a problem of what a path leads to.
    pub(crate) fn wrong(&mut self, code: Code, path: &[u32], what: String, hint: &str) {
        let place = self.program.place_of(self.instance, path).clone();
        self.wrong_at(code, path, &place, what, hint);
    }

    /// Adds a problem within the text of what a path leads to, at a byte of it.
    pub(crate) fn wrong_in(
        &mut self,
        code: Code,
        path: &[u32],
        at: usize,
        what: String,
        hint: &str,
    ) {
        let mut place = self.program.place_of(self.instance, path).clone();
        let value = path.split_first().and_then(|(id, rest)| {
            self.program.instances[self.instance].components.get(id)?.at(rest)?.text()
        });
        let before = value.and_then(|text| text.get(..at)).unwrap_or_default();
        // Escaped characters are longer in the document: the place is that of the text's line then.
        match before.rsplit_once('\n') {
            Some((lines, last)) => {
                place.line += lines.matches('\n').count() as u32 + 1;
                place.column = last.chars().count() as u32 + 1;
            }
            None => place.column += before.chars().count() as u32,
        }
        self.wrong_at(code, path, &place, what, hint);
    }

    fn wrong_at(&mut self, code: Code, path: &[u32], place: &Place, what: String, hint: &str) {
        let class = self.program.class_of(self.instance);
        let name = &self.program.instances[self.instance].name;
        let path = match path {
            [] => name.clone(),
            path => format!("{name}/{}", class.show_path(path)),
        };
        self.problems.add(code, place, path, what, hint);
    }
}
