//! Description and flow entries of a switch, and how its entries are restored.
//!
//! Source: OpenFlow 1.0.0, 5.3.1 and 5.3.5; 1.3.1, 7.3.5.1 (description) and 7.3.5.7 (ports).
//! Invariant: values that a switch does not report are absent.

use std::collections::{BTreeMap, BTreeSet};

use openflow::model::flow::FlowMod;
use openflow::model::matching::Match;
use openflow::model::message::Message;
use openflow::model::multipart::{
    FlowStats, FlowStatsRequest, MultipartReplyBody, MultipartRequestBody,
};
use openflow::model::port::PortDescription;
use openflow::model::table::TABLE_ALL;
use openflow::model::text::Text;
use openflow::version::Version;
use tester::controller::{ControlError, Controller, RealTime};

use crate::Description;

/// The highest number of a physical port (`OFPP_MAX` of 1.0 is below that of later versions).
const PHYSICAL_MAX: u32 = 0xffff_ff00;

/// Description of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchIdentity {
    /// For the record.
    pub description: Description,
    /// Its port numbers.
    pub ports: BTreeSet<u32>,
}

/// Reads a switch's description; statistics that it rejects are absent.
pub fn ask(controller: &mut Controller) -> Result<SwitchIdentity, ControlError> {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let features = controller.features().clone();
    settings.insert("openflow".into(), controller.version().to_string());
    settings.insert("datapath_id".into(), format!("{:#018x}", features.datapath_id));
    settings.insert("tables".into(), features.tables.to_string());
    settings.insert("buffers".into(), features.buffers.to_string());
    settings.insert("capabilities".into(), features.capabilities.to_string());
    let mut version = None;
    match controller.description(&mut RealTime::default()) {
        Ok(said) => {
            let rows = [
                ("manufacturer", said.manufacturer),
                ("hardware", said.hardware),
                ("software", said.software.clone()),
                ("serial_number", said.serial_number),
                ("datapath", said.datapath),
            ];
            let told = rows.into_iter().filter_map(|(key, text)| Some((key, words(&text)?)));
            settings.extend(told.map(|(key, text)| (key.to_owned(), text)));
            version = words(&said.software);
        }
        Err(ControlError::Refused(..)) => {}
        Err(error) => return Err(error),
    }
    let ports = port_descriptions(controller, features.ports)?;
    let numbers = ports.iter().map(|port| port.number).filter(|it| *it <= PHYSICAL_MAX);
    let ports = numbers.collect();
    Ok(SwitchIdentity { description: Description { version, settings }, ports })
}

/// Reads the ports: from the features reply before 1.3, later from the port description multipart.
fn port_descriptions(
    controller: &mut Controller,
    told: Vec<PortDescription>,
) -> Result<Vec<PortDescription>, ControlError> {
    if controller.version() < Version::V1_3 {
        return Ok(told);
    }
    let request = Message::ask(MultipartRequestBody::PortDesc(openflow::model::reserved::NONE));
    let mut ports = Vec::new();
    for part in controller.ask(&request, &mut RealTime::default())? {
        if let Message::MultipartReply(part) = part
            && let MultipartReplyBody::PortDesc(rows) = part.body
        {
            ports.extend(rows);
        }
    }
    Ok(ports)
}

/// Converts a text; `None` if it is empty or "None".
fn words(text: &Text) -> Option<String> {
    let words = text.to_string();
    let words = words.trim();
    (!words.is_empty() && words != "None").then(|| words.to_owned())
}

/// Reads the flow entries of a switch.
pub fn flows(controller: &mut Controller) -> Result<Vec<FlowStats>, ControlError> {
    controller.flow_stats(FlowStatsRequest::default(), &mut RealTime::default())
}

/// Deletes every entry of every table, and waits for the switch's confirmation.
pub fn clear(controller: &mut Controller) -> Result<(), ControlError> {
    if controller.version() == Version::V1_0 {
        return controller.delete_all(&mut RealTime::default()).map(drop);
    }
    let all = [FlowMod::delete(TABLE_ALL, Match::ANY)];
    controller.install(all, &mut RealTime::default()).map(drop)
}

/// Deletes every entry and restores these; returns how many of them the switch rejected.
pub fn put_back(controller: &mut Controller, found: &[FlowStats]) -> Result<usize, ControlError> {
    clear(controller)?;
    let flows = found.iter().map(as_added);
    let installed = controller.install(flows, &mut RealTime::default())?;
    Ok(installed.refused.len())
}

/// Returns the flow-mod that adds an entry again; its counters and its age restart.
fn as_added(entry: &FlowStats) -> FlowMod {
    FlowMod {
        table: entry.table,
        matching: entry.matching.clone(),
        priority: entry.priority,
        cookie: entry.cookie,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        importance: entry.importance,
        flags: entry.flags,
        instructions: entry.instructions.clone(),
        ..FlowMod::default()
    }
}

#[cfg(test)]
mod tests {
    use openflow::model::{Action, Field, Instruction};

    use super::*;

    #[test]
    fn an_entry_is_restored() {
        let entry = FlowStats {
            table: 3,
            matching: Match::ANY.with(Field::InPort, 7u32),
            priority: 9,
            cookie: 5,
            idle_timeout_s: 60,
            packets: 1000,
            instructions: Instruction::apply(vec![Action::output(2)]),
            ..FlowStats::default()
        };
        let added = as_added(&entry);
        assert_eq!((added.table, added.priority, added.cookie), (3, 9, 5));
        assert_eq!((added.idle_timeout_s, &added.matching), (60, &entry.matching));
        assert_eq!(added.instructions, entry.instructions);
    }
}
