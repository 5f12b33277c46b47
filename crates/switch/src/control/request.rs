//! What can be asked through the control socket, and what is answered.
//!
//! A request is a JSON object with one key:
//!
//! ```text
//! {"get": "counters"}      ports, drops by reason, tables, turns, connections of listeners   {"get": "about"}
//! {"get": "macs"}          learned and static addresses                 {"get": "routes"}
//! {"get": "neighbours"}    of a router
//! {"get_flows": {"from": 0}}  entries of a switch, with the time since each last matched
//! {"set": {"ageing_s": 0}} of a bridge: seconds, 0 to 3600; 0 never forgets
//! {"add_macs": [{"mac": "02:..", "port": 1, "vlan": 0}]}                {"add_mac": {...}}
//! {"add_routes": [{"to": "10.0.0.0/8", "via": "10.1.0.2", "port": 2}]}
//! {"add_neighbours": [{"port": 2, "address": "10.1.0.2", "mac": "02:.."}]}
//! {"flush": "macs"}        what was learned; also routes, neighbours
//! {"set_rules": [{"dscp": [40, 47], "udp_destination": 5060, "vlan": 100, "priority": 5}]}   of a tagger
//! {"get": "rules"}         of a tagger
//! {"set_interfaces": [{"port": 1, "mac": "02:.."}]}   of an element with a program that routes
//! {"get_component": {"instance": "fdb", "path": "Learned"}}              of an element with a program
//! {"set_components": [{"instance": "fdb", "path": "AgeSeconds", "value": "60"}]}   all of them or none
//! {"load": {"name": "a.fe.xml", "text": "<fe ..."}}   another program, in place of the one that runs
//! {"check": {"name": "a.fe.xml", "text": "<fe ..."}}   all that is wrong with a program
//! {"plan": {"name": "a.fe.xml", "text": "<fe ..."}}    what would change if it were loaded
//! {"measure_costs": {"every": 1024, "for_ms": 1000}}   of blocks, by some frames     {"get": "costs"}
//! {"trace_next": {"count": 3, "for_ms": 10000, "port": 1, "when": "IPv4.proto = 17"}}   frames, and gives an id
//! {"traced": {"id": 1, "end": false}}   what became of them so far, told once
//! {"roll_back": {}}        to the program before that                   {"get": "program"}
//! {"get": "agents"}        what its agents know and count
//! {"ask_agent": {"agent": "cfm", "what": "loopback", "with": {"to": "02:..", "count": 3}}}
//! {"watch": {}}            from now on events that the program watches come, each as {"event": ...}
//! ```

use packet::frame::PortNo;
use serde::Deserialize;

use crate::config::{Mac, Neighbour, Route, TagRule};

/// A request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Reads something.
    Get(What),
    /// Reads a switch's entries, a bounded number at a time.
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
    /// Gives a tagger other rules.
    SetRules(Vec<TagRule>),
    /// Gives ports of an element that routes their addresses.
    SetInterfaces(Vec<PortMac>),
    /// Empties a table.
    Flush(What),
    /// Reads what a block of an element holds.
    GetComponent(ComponentAt),
    /// Changes what blocks of an element hold, all at once or not at all.
    SetComponents(Vec<ComponentAt>),
    /// Puts another program in place of the one that an element runs.
    Load(Document),
    /// Names all problems of a program, which is not run.
    Check(Document),
    /// Says what would change if a program were loaded.
    Plan(Document),
    /// Measures for some time what blocks of an element cost.
    MeasureCosts(CostsAsked),
    /// Notes what becomes of the next frames of some kind.
    TraceNext(TraceAsked),
    /// Tells what became of them.
    Traced(TracedAsked),
    /// Puts the program back that the last one took the place of.
    RollBack(Nothing),
    /// Has an agent of an element do something.
    AskAgent(AgentAsked),
    /// Has events of an element told on this connection from now on.
    Watch(Nothing),
}

/// A command to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAsked {
    /// Its name in the program.
    pub agent: String,
    /// What it is to do.
    pub what: String,
    /// With what: texts and numbers.
    #[serde(default)]
    pub with: serde_json::Map<String, serde_json::Value>,
}

impl AgentAsked {
    /// The command as agents read it.
    pub fn ask(&self) -> progfe::agent::Ask {
        let with = self.with.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), text)
        });
        progfe::agent::Ask { what: self.what.clone(), with: with.collect() }
    }
}

/// How costs are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostsAsked {
    /// One frame of how many goes block by block.
    #[serde(default = "every")]
    pub every: u64,
    /// For how many milliseconds, at most [`OBSERVED_MS_MAX`].
    pub for_ms: u64,
}

/// One frame of so many goes block by block unless somebody says otherwise.
pub const EVERY: u64 = 1024;

fn every() -> u64 {
    EVERY
}

/// An element is looked at for so many milliseconds at most.
pub const OBSERVED_MS_MAX: u64 = 3_600_000;

/// Which frames are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceAsked {
    /// How many.
    pub count: u64,
    /// For how many milliseconds, at most [`OBSERVED_MS_MAX`].
    pub for_ms: u64,
    /// Those that this port received.
    #[serde(default)]
    pub port: Option<PortNo>,
    /// Those for which this condition holds.
    #[serde(default)]
    pub when: String,
}

/// What became of frames that were wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedAsked {
    /// The number that was given when they were asked for.
    pub id: u64,
    /// Whether no more are wanted.
    #[serde(default)]
    pub end: bool,
}

/// The address that a port takes frames for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortMac {
    /// The port.
    pub port: PortNo,
    /// Its address.
    pub mac: Mac,
}

/// A component of a block, or a part of it, and what it is to hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentAt {
    /// The block's name.
    pub instance: String,
    /// The path by names and indices, as `Entries[3].Value`.
    pub path: String,
    /// The value as programs write it.
    #[serde(default)]
    pub value: String,
}

/// A program as XML. It names no files but those that ship.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// What it is called where something is wrong with it.
    pub name: String,
    /// The document.
    pub text: String,
    /// By which what becomes of it is fetched, once it is being made ready.
    #[serde(skip)]
    pub number: Option<u64>,
}

/// No particulars.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Which program this is, what it forwards by, and its ports.
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
    /// What agents of an element know and count.
    Agents,
    /// What blocks of an element cost.
    Costs,
}

/// Where a list of entries begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsFrom {
    /// 0, or what the answer before gave as `next`.
    #[serde(default)]
    pub from: usize,
}

/// Settings that can be changed while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Seconds after which a bridge forgets an address; 0 never does.
    pub ageing_s: u64,
}

/// A static address of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MacEntry {
    /// The address.
    pub mac: Mac,
    /// The port behind which it is.
    pub port: PortNo,
    /// The VLAN in which it is; 0 without tags.
    #[serde(default)]
    pub vlan: u16,
}

impl Request {
    /// What it asks for, in words that follow "cannot".
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
            Request::Traced(_) => "tell of frames".to_string(),
            Request::RollBack(_) => "roll back".to_string(),
            Request::AskAgent(_) => "ask an agent".to_string(),
            Request::Watch(_) => "watch".to_string(),
        }
    }

    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("this is no request: {error}"))
    }
}

impl What {
    /// Its name in requests.
    pub fn name(self) -> &'static str {
        match self {
            What::About => "about",
            What::Counters => "counters",
            What::Macs => "macs",
            What::Routes => "routes",
            What::Neighbours => "neighbours",
            What::Rules => "rules",
            What::Program => "program",
            What::Agents => "agents",
            What::Costs => "costs",
        }
    }
}
