//! Ext-PG-Program: the whole program as the only instance of a class that is not part of the graph.
//!
//! - A control element sets a document of any length as rows of at most [`PART_OCTETS`] each, in
//!   one transaction. The commit joins them, checks the program and swaps it in, all or nothing.
//! - The problems of a rejected program can be read until the next one is loaded.
//! - A frame that a control element sets is traced as if a port had received it, and is also
//!   forwarded. Its trace can be read afterwards, block by block.

use forces::association::{Change, Place};
use forces::model::value::{Rows, Value};
use forces::wire::ResultCode;
use packet::frame::{Frame, PortNo};

use crate::element::{Element, ElementError, Prepared};
use crate::executor::Enforcer;
use crate::program::Program;
use crate::program::document::no_files;
use crate::trace::Trace;
use crate::xml::{Source, TEXT_BYTES_MAX};

/// Class id.
pub const CLASS: u32 = 0x5047_0100;
/// Maximum octets of a part of a document.
pub const PART_OCTETS: usize = 32 << 10;

/// Component ids.
pub mod component {
    /// Name of the program.
    pub const NAME: u32 = 1;
    /// Revision of the program.
    pub const REVISION: u32 = 2;
    /// Generation of the program in this element.
    pub const GENERATION: u32 = 3;
    /// The document, in parts.
    pub const DOCUMENT: u32 = 4;
    /// Problems of the last rejected program.
    pub const PROBLEMS: u32 = 5;
    /// Instances with their names.
    pub const INSTANCES: u32 = 6;
    /// Links with their traffic.
    pub const LINKS: u32 = 7;
    /// Dropped frames by block.
    pub const DROPS: u32 = 8;
    /// A frame to trace.
    pub const TRACE_FRAME: u32 = 9;
    /// Trace of that frame.
    pub const TRACE: u32 = 10;
    /// Frame accounting.
    pub const ACCOUNT: u32 = 11;
    /// The last event of an agent.
    pub const AGENT_EVENT: u32 = 12;
}

/// Event id: an agent reported an event.
pub const AGENT_SAID: u32 = 1;

/// State of the instance that is not in the element.
#[derive(Debug, Default)]
pub struct ProgramLfb {
    problems: Vec<String>,
    /// The last event of an agent.
    pub agent_event: Option<Value>,
    /// The last trace, as rows.
    pub traced: Rows,
    /// Number of packets from control elements that were lost because there is no RedirectIn.
    pub redirects_lost: u64,
}

/// Staged changes of the instance.
#[derive(Debug, Default)]
pub struct Staged {
    document: Option<Rows>,
    octets: usize,
    traced: Option<(PortNo, Vec<u8>)>,
}

impl Staged {
    /// Stages a change.
    pub fn stage(&mut self, change: Change) -> Result<(), ResultCode> {
        let Place { path, .. } = change.place().clone();
        match (&path[..], change) {
            ([component::DOCUMENT], Change::Set { value, .. }) => {
                self.document = Some(Rows::new());
                self.octets = 0;
                self.add(value.rows().ok_or(ResultCode::INVALID_PARAMETERS)?)
            }
            ([component::DOCUMENT], Change::Merge { value, .. }) => {
                self.add(value.rows().ok_or(ResultCode::INVALID_PARAMETERS)?)
            }
            ([component::DOCUMENT, index], Change::Set { value, .. }) => {
                self.add(&[(*index, value)].into())
            }
            ([component::TRACE_FRAME], Change::Set { value, .. }) => {
                let port = value.step(1).and_then(Value::unsigned).unwrap_or(0) as PortNo;
                let frame = value.step(2).and_then(Value::bytes).unwrap_or_default().to_vec();
                self.traced = Some((port, frame));
                Ok(())
            }
            _ => Err(ResultCode::NOT_SUPPORTED),
        }
    }

    fn add(&mut self, rows: &Rows) -> Result<(), ResultCode> {
        let document = self.document.get_or_insert_default();
        for (index, row) in rows {
            let octets = row.bytes().map_or(0, <[u8]>::len);
            let before = document.insert(*index, row.clone());
            self.octets += octets;
            self.octets -= before.as_ref().and_then(Value::bytes).map_or(0, <[u8]>::len);
        }
        match self.octets > TEXT_BYTES_MAX {
            true => Err(ResultCode::CONTENTS_TOO_LONG),
            false => Ok(()),
        }
    }
}

/// A document to load, and a frame to trace.
type Wanted = (Option<String>, Option<(PortNo, Frame)>);

impl ProgramLfb {
    /// Takes the staged document and frame for a commit.
    pub fn take(&mut self, staged: Staged) -> Result<Wanted, ResultCode> {
        let document = match staged.document {
            None => None,
            Some(rows) => {
                let parts = rows.values().filter_map(Value::bytes);
                let octets: Vec<u8> = parts.flatten().copied().collect();
                match String::from_utf8(octets) {
                    Ok(text) => Some(text),
                    Err(fault) => {
                        let at = fault.utf8_error().valid_up_to();
                        self.problems =
                            vec![format!("the document is not UTF-8 from octet {at} on")];
                        return Err(ResultCode::INVALID_PARAMETERS);
                    }
                }
            }
        };
        let traced = staged.traced.map(|(port, bytes)| (port, Frame::from_bytes(&bytes)));
        Ok((document, traced))
    }

    /// Loads a document as the next program.
    pub fn load<E: Enforcer>(
        &mut self,
        text: &str,
        element: &mut Element<E>,
    ) -> Result<Prepared<E>, ResultCode> {
        let (program, problems) = Program::load(&Source::new("Document", text), &no_files);
        let prepared = match program {
            Some(program) => element.prepare(program),
            None => Err(problems),
        };
        match prepared {
            Ok(prepared) => {
                self.problems.clear();
                Ok(prepared)
            }
            Err(problems) => {
                self.note(&ElementError::Refused(problems));
                Err(ResultCode::INVALID_PARAMETERS)
            }
        }
    }

    /// Stores the reason of a rejection.
    pub fn note(&mut self, error: &ElementError) {
        self.problems = error.to_string().lines().map(str::to_owned).collect();
    }

    /// Returns the value at a path.
    pub fn get<E: Enforcer>(
        &self,
        element: &Element<E>,
        path: &[u32],
    ) -> Result<Value, ResultCode> {
        let program = element.program();
        let text = |text: &str, octets: usize| Value::Text(cut(text, octets).to_owned());
        let number = |number: u64| Value::Unsigned(number);
        let (&first, rest) = path.split_first().ok_or(ResultCode::INVALID_PATH)?;
        let whole = match first {
            component::NAME => text(&program.name, 256),
            component::REVISION => number(program.revision.into()),
            component::GENERATION => number(element.generation()),
            component::DOCUMENT => {
                let document = program.to_xml().into_bytes();
                let parts = document.chunks(PART_OCTETS).map(|part| Value::Bytes(part.to_vec()));
                Value::rows_of(parts)
            }
            component::PROBLEMS => {
                Value::rows_of(self.problems.iter().map(|problem| text(problem, 4096)))
            }
            component::INSTANCES => Value::rows_of(program.instances.iter().map(|it| {
                let [class, instance] = [it.class, it.number].map(|id| number(id.into()));
                Value::struct_of([(1, text(&it.name, 256)), (2, class), (3, instance)])
            })),
            component::LINKS => {
                Value::rows_of(program.links.iter().enumerate().map(|(at, link)| {
                    let traffic = element.link(at);
                    Value::struct_of([
                        (1, text(&program.output_name(link.from), 512)),
                        (2, text(&program.input_name(link.to), 512)),
                        (3, number(traffic.frames)),
                        (4, number(traffic.bytes)),
                    ])
                }))
            }
            component::DROPS => {
                let all = program.instances.iter().enumerate().flat_map(|(at, instance)| {
                    element.drops(at).iter().map(move |(reason, output, frames)| {
                        Value::struct_of([
                            (1, text(&instance.name, 256)),
                            (2, text(reason.name(), 64)),
                            (3, number(output.into())),
                            (4, number(frames)),
                        ])
                    })
                });
                Value::rows_of(all)
            }
            component::AGENT_EVENT => {
                self.agent_event.clone().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)?
            }
            component::TRACE => Value::Array(self.traced.clone()),
            component::ACCOUNT => {
                let account = element.account();
                let all = [
                    account.received + element.stopped,
                    account.injected,
                    account.copies,
                    account.left,
                    account.told,
                    account.dropped,
                    element.stopped,
                    self.redirects_lost,
                ];
                Value::struct_of((1..).zip(all.map(number)))
            }
            _ => return Err(ResultCode::NOT_PERMITTED),
        };
        whole.at(rest).cloned().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)
    }
}

/// Cuts a text to the octets that its type allows.
pub(super) fn cut(text: &str, octets: usize) -> &str {
    let mut end = text.len().min(octets);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a trace as rows.
pub fn steps(program: &Program, trace: &Trace) -> Rows {
    let row = |step: &crate::trace::Step| {
        let metadata: Vec<String> = step
            .changed()
            .map(|(id, value)| {
                let known = program.catalog.metadata_by_id(id);
                let name = known.map_or_else(|| id.to_string(), |metadata| metadata.name.clone());
                format!("{name}={value}")
            })
            .collect();
        let fields = [
            (1, Value::Unsigned(step.copy.into())),
            (2, Value::Text(cut(&program.instances[step.instance].name, 256).to_owned())),
            (3, Value::Text(cut(&step.outcome(program), 1024).to_owned())),
            (4, Value::Text(cut(&metadata.join(" "), 4096).to_owned())),
            (5, Value::Bytes(step.bytes.clone().unwrap_or_default())),
        ];
        Value::struct_of(fields)
    };
    (0..).zip(trace.steps.iter().map(row)).collect()
}
