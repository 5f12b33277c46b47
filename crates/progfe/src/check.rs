//! All checks of a program before it runs.
//!
//! The reader has already rejected invalid names and values. This module checks the program as a
//! whole:
//!
//! - links, cycles and unreachable blocks,
//! - metadata and frame types at inputs,
//! - outputs and keys in tables,
//! - conditions and operations,
//! - ports and memory.
//!
//! A check reports all problems. An element accepts only programs without errors.

use crate::diagnostic::{Code, Place, Problems};
use crate::program::document::Load;
use crate::program::{End, Program};
use crate::xml::Source;

pub mod links;
pub mod graph;
pub mod metadata;
pub mod kinds;
pub mod tables;
pub mod blocks;
pub mod edit;
pub mod ports;
pub mod agents;
pub mod resources;

/// Returns all problems of a program.
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

/// Returns problems of individual blocks and ports. These checks also work if parts of the program
/// could not be read.
pub fn each(program: &Program) -> Problems {
    let mut problems = Problems::default();
    tables::keys(program, &mut problems);
    blocks::check(program, &mut problems);
    edit::check(program, &mut problems);
    ports::check(program, &mut problems);
    problems
}

impl Program {
    /// Reads and checks a document. Returns a program that can run, if there are no errors.
    pub fn load(source: &Source<'_>, load: Load<'_>) -> (Option<Program>, Problems) {
        let (program, mut problems) = Program::read_what_can_be(source, load);
        if let Some(program) = &program {
            // Links and blocks that could not be read would cause further problems.
            let whole = !problems.refuses();
            problems.extend(if whole { check(program) } else { each(program) });
        }
        (program.filter(|_| !problems.refuses()), problems)
    }

    /// Returns the link of an output, if it has one.
    pub fn link_of(&self, from: End) -> Option<usize> {
        self.links.iter().position(|link| link.from == from)
    }
}

/// Adds problems of one instance.
pub(crate) struct About<'a> {
    program: &'a Program,
    instance: usize,
    problems: &'a mut Problems,
}

impl<'a> About<'a> {
    pub(crate) fn new(program: &'a Program, instance: usize, problems: &'a mut Problems) -> Self {
        About { program, instance, problems }
    }

    /// Adds a problem at a path.
    pub(crate) fn wrong(&mut self, code: Code, path: &[u32], what: String, hint: &str) {
        let place = self.program.place_of(self.instance, path).clone();
        self.wrong_at(code, path, &place, what, hint);
    }

    /// Adds a problem in the text at a path, at a byte offset.
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
        // Escaped characters are longer in the document. The place is then the line of the text.
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
