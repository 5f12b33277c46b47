//! Trace of a frame: its steps through the blocks.

use std::fmt::Write;

use crate::lfb::{At, Verdict};
use crate::program::Program;

/// Maximum number of steps in a trace.
pub const STEPS_MAX: usize = 4096;

/// Trace of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Steps in processing order.
    pub steps: Vec<Step>,
    /// Number of steps that are not listed.
    pub left_out: usize,
}

/// One frame or copy in one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Copy number; the original frame is 0.
    pub copy: u32,
    /// Index of the block in the program.
    pub instance: usize,
    /// Input at which it arrived; none if a port received it or it was injected.
    pub input: Option<At>,
    /// Metadata before the block, by id.
    pub before: Vec<(u32, u128)>,
    /// Metadata after the block.
    pub after: Vec<(u32, u128)>,
    /// Bytes after the block, if the block changed them.
    pub bytes: Option<Vec<u8>>,
    /// Result of the block.
    pub verdict: Verdict,
    /// Link that the frame took; none if the output has no link or the frame took no output.
    pub link: Option<u32>,
    /// Numbers of the copies that the block made.
    pub copies: Vec<u32>,
}

impl Step {
    /// Returns the metadata that the block set or changed.
    pub fn changed(&self) -> impl Iterator<Item = (u32, u128)> + '_ {
        self.after.iter().copied().filter(|pair| !self.before.contains(pair))
    }

    /// Describes the result of the block in a few words.
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
                    None => text.push_str(" (not linked): dropped"),
                }
                text
            }
            Verdict::Left(port) => format!("sent on port {port}"),
            Verdict::Told => "reported to its agent or control element".to_owned(),
            Verdict::Held => "queued".to_owned(),
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
