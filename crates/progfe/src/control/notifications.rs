//! Unsolicited messages to control elements: events, and packets from RedirectOut.

use forces::Value;
use forces::association::Happening;
use forces::wire::Redirect;

use super::program_lfb;
use crate::dispatcher::Report;
use crate::lfb::exceptions::DivertedFrame;
use crate::program::Program;

/// Converts an agent's event for an association, with details as JSON.
pub fn agent(report: &Report, facts: &str) -> Happening {
    let Report { agent, occurred, untold } = report;
    let text = |text: &str, octets| Value::Text(program_lfb::cut(text, octets).to_owned());
    let value = Value::struct_of([
        (1, text(agent, 256)),
        (2, text(occurred.event, 256)),
        (3, Value::Unsigned(occurred.at.0)),
        (4, Value::Unsigned(*untold)),
        (5, text(facts, 4096)),
    ]);
    Happening {
        class: program_lfb::CLASS,
        instance: 1,
        event: program_lfb::AGENT_SAID,
        subscripts: Vec::new(),
        value: None,
        reported: vec![value],
    }
}

/// Converts a packet with its metadata, each as wide as its type. Metadata of non-numeric types is
/// omitted.
pub fn redirect(program: &Program, told: &DivertedFrame) -> Redirect {
    let one = |(id, value): &(u32, u128)| {
        let metadata = program.catalog.metadata_by_id(*id)?;
        let width = metadata.data_type.width().filter(|width| *width <= 16)?;
        Some((*id, value.to_be_bytes()[16 - width..].to_vec()))
    };
    let metadata = told.meta.iter().filter_map(one).collect();
    Redirect { metadata, packet: Some(told.frame.bytes().to_vec()) }
}
