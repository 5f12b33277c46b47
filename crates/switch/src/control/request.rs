//! What can be asked through the control socket, and what is answered.
//!
//! A request is a JSON object with one key:
//!
//! ```text
//! {"get": "counters"}      ports, drops by reason, tables, turns        {"get": "about"}
//! {"get": "macs"}          learned and static addresses                 {"get": "routes"}
//! {"get": "neighbours"}    of a router
//! {"get_flows": {"from": 0}}  entries of a switch, with the time since each last matched
//! {"set": {"ageing_s": 0}} of a bridge: seconds, 0 to 3600; 0 never forgets
//! {"add_macs": [{"mac": "02:..", "port": 1, "vlan": 0}]}                {"add_mac": {...}}
//! {"add_routes": [{"to": "10.0.0.0/8", "via": "10.1.0.2", "port": 2}]}
//! {"add_neighbours": [{"port": 2, "address": "10.1.0.2", "mac": "02:.."}]}
//! {"flush": "macs"}        what was learned; also routes, neighbours
//! ```

use packet::frame::PortNo;
use serde::Deserialize;

use crate::config::{Mac, Neighbour, Route};

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
    /// Empties a table.
    Flush(What),
}

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
            Request::Flush(what) => format!("flush {}", what.name()),
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
        }
    }
}
