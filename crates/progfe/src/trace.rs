//! What happened to a frame, block by block, as a value.

use std::fmt::Write;

use crate::lfb::{At, Verdict};
use crate::program::Program;

/// Steps of one trace.
pub const STEPS_MAX: usize = 4096;

/// What happened to a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Steps, in the order in which they were taken.
    pub steps: Vec<Step>,
    /// Steps that are not listed.
    pub left_out: usize,
}

/// One frame, or copy, in one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which copy: the frame itself is 0.
    pub copy: u32,
    /// The block, by its place in the program.
    pub instance: usize,
    /// By which input it came; none for what a port received or somebody put in.
    pub input: Option<At>,
    /// Metadata before, by number.
    pub before: Vec<(u32, u128)>,
    /// Metadata behind.
    pub after: Vec<(u32, u128)>,
    /// Its bytes behind, if the block changed them.
    pub bytes: Option<Vec<u8>>,
    /// What became of it.
    pub verdict: Verdict,
    /// The link by which it went on; none if its output leads nowhere, or it did not go on.
    pub link: Option<u32>,
    /// Copies that the block made, by their numbers.
    pub copies: Vec<u32>,
}

impl Step {
    /// Metadata that the block set or changed.
    pub fn changed(&self) -> impl Iterator<Item = (u32, u128)> + '_ {
        self.after.iter().copied().filter(|pair| !self.before.contains(pair))
    }

    /// What became of the frame in the block, in a few words.
    pub fn outcome(&self, program: &Program) -> String {
        let class = program.class_of(self.instance);
        match self.verdict {
            Verdict::Out(output, index) => {
                let port = class.outputs.get(output as usize);
                let mut text = port.map_or(output.to_string(), |port| match port.group {
                    true => format!("{}[{index}]", port.name),
                    false => port.name.clone(),
                });
                match self.link {
                    Some(link) => {
                        let to = program.input_name(program.links[link as usize].to);
                        let _ = write!(text, " -> {to}");
                    }
                    None => text.push_str(", which leads nowhere: dropped"),
                }
                text
            }
            Verdict::Left(port) => format!("left by port {port}"),
            Verdict::Told => "told to its agent or control element".to_owned(),
            Verdict::Held => "waits in a queue".to_owned(),
            Verdict::Dropped(reason) => format!("dropped: {}", reason.name()),
        }
    }
}

impl Trace {
    pub(crate) fn add(&mut self, step: Step) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        } else {
            self.left_out += 1;
        }
    }
}
