//! Requests of the control socket.
//!
//! A request is a JSON object with one key:
//!
//! ```text
//! {"get": "counters"}      ports, drops by reason, tables, turns, connections of listeners   {"get": "about"}
//! {"get": "macs"}          learned and static addresses                 {"get": "routes"}
//! {"get": "neighbours"}    of a router
//! {"get_flows": {"from": 0}}  entries of a switch, with the time since each last matched
//! {"set": {"ageing_s": 0}} of a bridge: seconds, 0 to 3600; 0 for no ageing
//! {"add_macs": [{"mac": "02:..", "port": 1, "vlan": 0}]}                {"add_mac": {...}}
//! {"add_routes": [{"to": "10.0.0.0/8", "via": "10.1.0.2", "port": 2}]}
//! {"add_neighbours": [{"port": 2, "address": "10.1.0.2", "mac": "02:.."}]}
//! {"flush": "macs"}        learned entries; also routes, neighbours
//! {"set_rules": [{"dscp": [40, 47], "udp_destination": 5060, "vlan": 100, "priority": 5}]}   of a tagger
//! {"get": "rules"}         of a tagger
//! {"set_interfaces": [{"port": 1, "mac": "02:.."}]}   of an element with a program that routes
//! {"get_component": {"instance": "fdb", "path": "Learned"}}              of an element with a program
//! {"set_components": [{"instance": "fdb", "path": "AgeSeconds", "value": "60"}]}   all or none
//! {"load": {"name": "a.fe.xml", "text": "<fe ..."}}   another program in place of the running one
//! {"check": {"name": "a.fe.xml", "text": "<fe ..."}}   all problems of a program
//! {"plan": {"name": "a.fe.xml", "text": "<fe ..."}}    what would change if it were loaded
//! {"measure_costs": {"every": 1024, "for_ms": 1000}}   of blocks, by sampling frames     {"get": "costs"}
//! {"trace_next": {"count": 3, "for_ms": 10000, "port": 1, "when": "IPv4.proto = 17"}}   starts a trace, gives an id
//! {"traced": {"id": 1, "end": false}}   the frames traced so far, each once
//! {"roll_back": {}}        to the previous program                      {"get": "program"}
//! {"get": "agents"}        facts and counters of agents
//! {"ask_agent": {"agent": "cfm", "what": "loopback", "with": {"to": "02:..", "count": 3}}}
//! {"watch": {}}            receive events that the program watches, each as {"event": ...}
//! ```

use packet::frame::PortNo;
use serde::Deserialize;

use crate::config::{Mac, Neighbour, Route, TagRule};

/// A request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Reads data.
    Get(Resource),
    /// Reads flow entries of a switch, a bounded number in each reply.
    GetFlows(FlowsFrom),
    /// Changes settings.
    Set(Settings),
    /// Adds one static address to a bridge.
    AddMac(MacEntry),
    /// Adds static addresses to a bridge.
    AddMacs(Vec<MacEntry>),
    /// Adds routes to a router.
    AddRoutes(Vec<Route>),
    /// Adds static neighbours to a router.
    AddNeighbours(Vec<Neighbour>),
    /// Replaces the rules of a tagger.
    SetRules(Vec<TagRule>),
    /// Sets the MAC addresses of ports of an element that routes.
    SetInterfaces(Vec<PortMac>),
    /// Empties a table.
    Flush(Resource),
    /// Reads a component of a block of an element.
    GetComponent(ComponentAt),
    /// Sets components of blocks of an element, all or none.
    SetComponents(Vec<ComponentAt>),
    /// Loads a program in place of the one that an element runs.
    Load(ProgramSource),
    /// Reports all problems of a program, without running it.
    Check(ProgramSource),
    /// Reports what would change if a program were loaded.
    Plan(ProgramSource),
    /// Starts to measure the costs of an element's blocks.
    MeasureCosts(CostsAsked),
    /// Starts to trace the next matching frames.
    TraceNext(TraceAsked),
    /// Reads traced frames.
    Traced(TracedAsked),
    /// Restores the previous program.
    RollBack(Empty),
    /// Sends a command to an agent of an element.
    AskAgent(AgentCommand),
    /// Sends events of an element on this connection from now on.
    Watch(Empty),
}

/// A command to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCommand {
    /// Its name in the program.
    pub agent: String,
    /// The command.
    pub what: String,
    /// Arguments: texts and numbers.
    #[serde(default)]
    pub with: serde_json::Map<String, serde_json::Value>,
}

impl AgentCommand {
    /// Converts the command for agents.
    pub fn ask(&self) -> progfe::agent::AgentRequest {
        let with = self.with.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), text)
        });
        progfe::agent::AgentRequest { what: self.what.clone(), with: with.collect() }
    }
}

/// Parameters of a cost measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostsAsked {
    /// Sampling interval: one frame in this many is executed block by block.
    #[serde(default = "every")]
    pub every: u64,
    /// Duration in milliseconds, at most [`OBSERVED_MS_MAX`].
    pub for_ms: u64,
}

/// Default sampling interval in frames.
pub const EVERY: u64 = 1024;

fn every() -> u64 {
    EVERY
}

/// Maximum duration of an observation in milliseconds.
pub const OBSERVED_MS_MAX: u64 = 3_600_000;

/// Parameters of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceAsked {
    /// Number of frames.
    pub count: u64,
    /// Duration in milliseconds, at most [`OBSERVED_MS_MAX`].
    pub for_ms: u64,
    /// Only frames that this port received.
    #[serde(default)]
    pub port: Option<PortNo>,
    /// Only frames that fulfil this condition.
    #[serde(default)]
    pub when: String,
}

/// Parameters of reading a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedAsked {
    /// The ID of the trace.
    pub id: u64,
    /// Whether to end the trace.
    #[serde(default)]
    pub end: bool,
}

/// The MAC address of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortMac {
    /// The port.
    pub port: PortNo,
    /// Its address.
    pub mac: Mac,
}

/// A component of a block, or a part of it, and its new value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentAt {
    /// The block's name.
    pub instance: String,
    /// The path by names and indices, such as `Entries[3].Value`.
    pub path: String,
    /// The value as in programs.
    #[serde(default)]
    pub value: String,
}

/// A program as XML. It may refer only to files that ship with planimeter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSource {
    /// The name in problem reports.
    pub name: String,
    /// The document.
    pub text: String,
    /// Number with which to fetch the result of its compilation, once that has begun.
    #[serde(skip)]
    pub number: Option<u64>,
}

/// No parameters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// Object of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Program name and version, kind of data plane, and ports.
    About,
    /// All counters.
    Counters,
    /// A bridge's addresses.
    Macs,
    /// A router's routes.
    Routes,
    /// A router's neighbours.
    Neighbours,
    /// A tagger's rules.
    Rules,
    /// The program that an element runs, as XML.
    Program,
    /// Facts and counters of agents of an element.
    Agents,
    /// Costs of blocks of an element.
    Costs,
}

/// Start of a list of flow entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsFrom {
    /// 0, or `next` of the previous reply.
    #[serde(default)]
    pub from: usize,
}

/// Settings that can be changed while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Ageing time of a bridge in seconds; 0 for no ageing.
    pub ageing_s: u64,
}

/// A static address of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MacEntry {
    /// The address.
    pub mac: Mac,
    /// Its port.
    pub port: PortNo,
    /// Its VLAN; 0 for untagged frames.
    #[serde(default)]
    pub vlan: u16,
}

impl Request {
    /// Returns the name of the request, to follow "cannot" in an error message.
    pub fn name(&self) -> String {
        match self {
            Request::Get(what) => format!("get {}", what.name()),
            Request::GetFlows(_) => "get flows".to_string(),
            Request::Set(_) => "set ageing_s".to_string(),
            Request::AddMac(_) | Request::AddMacs(_) => "add macs".to_string(),
            Request::AddRoutes(_) => "add routes".to_string(),
            Request::AddNeighbours(_) => "add neighbours".to_string(),
            Request::SetRules(_) => "set rules".to_string(),
            Request::SetInterfaces(_) => "set interfaces".to_string(),
            Request::Flush(what) => format!("flush {}", what.name()),
            Request::GetComponent(_) => "get component".to_string(),
            Request::SetComponents(_) => "set components".to_string(),
            Request::Load(_) => "load a program".to_string(),
            Request::Check(_) => "check a program".to_string(),
            Request::Plan(_) => "plan a program".to_string(),
            Request::MeasureCosts(_) => "measure costs".to_string(),
            Request::TraceNext(_) => "trace frames".to_string(),
            Request::Traced(_) => "return traced frames".to_string(),
            Request::RollBack(_) => "roll back".to_string(),
            Request::AskAgent(_) => "send a command to an agent".to_string(),
            Request::Watch(_) => "watch".to_string(),
        }
    }

    /// Parses a line.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("invalid request: {error}"))
    }
}

impl Resource {
    /// Returns its name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Resource::About => "about",
            Resource::Counters => "counters",
            Resource::Macs => "macs",
            Resource::Routes => "routes",
            Resource::Neighbours => "neighbours",
            Resource::Rules => "rules",
            Resource::Program => "program",
            Resource::Agents => "agents",
            Resource::Costs => "costs",
        }
    }
}
