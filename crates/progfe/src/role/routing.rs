//! A program as a router: table changes for interfaces, neighbours and routes.
//!
//! RFC 6956 defines which block has which table:
//!
//! - EtherMACIn: addresses for which a port accepts frames
//! - IPv4UcastLPM (5.3.1): prefixes with a HopSelector
//! - IPv4NextHop (5.3.2): rows with a MediaEncapInfoIndex
//! - EtherEncap (5.1.4): link-layer headers by that index
//!
//! A neighbour is a next hop with a link-layer header and a host route. A route refers to a
//! neighbour.

use core::net::Ipv4Addr;
use std::collections::HashMap;

use forces::Value;
use forces::model::value::Rows;
use packet::header::ethernet::Mac;

use super::{inputs, only};
use crate::element::Change;
use crate::program::{Program, base_id};

// Component and field ids of the RFC 6956 classes.
const LOCAL_ADDRESSES: u32 = 2;
const TABLE: u32 = 1;
const HOP_PORT: u32 = 1;
const HOP_ADDRESS: u32 = 3;
const HOP_ENCAP: u32 = 4;
const SUCCESS_OUT: u32 = 0;

/// Blocks of a program that a router configuration changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    prefixes: usize,
    hops: usize,
    headers: usize,
    /// By port, the block that accepts its frames.
    inputs: Vec<(u32, usize)>,
    /// The success output of next hops.
    output: u32,
}

/// A neighbour of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Port number.
    pub port: u32,
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Link-layer address.
    pub mac: Mac,
    /// MTU in bytes; 0 means no limit.
    pub mtu: u32,
}

/// A route through a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Destination network.
    pub network: Ipv4Addr,
    /// Prefix length, up to 32.
    pub length: u8,
    /// Address of the neighbour.
    pub via: Ipv4Addr,
    /// Port of the neighbour, if it is ambiguous.
    pub port: Option<u32>,
}

impl Routing {
    /// Finds the blocks of a program. Returns the missing or duplicate block if the program is not
    /// a router.
    pub fn of(program: &Program) -> Result<Routing, String> {
        let hops = only(program, base_id::NEXT_HOP_V4, "IPv4NextHop")?;
        let successes = program.links.iter().map(|link| link.from);
        let successes = successes.filter(|end| end.instance == hops && end.port == SUCCESS_OUT);
        let output = successes.map(|end| end.index).min();
        let routing = Routing {
            prefixes: only(program, base_id::UCAST_LPM_V4, "IPv4UcastLPM")?,
            hops,
            headers: only(program, base_id::ENCAP, "EtherEncap")?,
            inputs: inputs(program),
            output: output.ok_or("the program has no linked next hop")?,
        };
        match program.ports.iter().find(|port| routing.input(port.number).is_none()) {
            Some(port) => Err(format!("no EtherMACIn receives the frames of port {}", port.number)),
            None => Ok(routing),
        }
    }

    fn input(&self, port: u32) -> Option<usize> {
        self.inputs.iter().find(|(known, _)| *known == port).map(|(_, at)| *at)
    }

    /// Returns the changes that make ports accept frames for exactly these addresses.
    pub fn interfaces(&self, addresses: &[(u32, Mac)]) -> Result<Vec<Change>, String> {
        let change = |&(port, mac): &(u32, Mac)| {
            let instance = self.input(port).ok_or_else(|| no_port(port))?;
            let value = Value::rows_of([Value::Bytes(mac.to_vec())]);
            Ok(Change::Set { instance, path: vec![LOCAL_ADDRESSES], value })
        };
        addresses.iter().map(change).collect()
    }

    /// Returns the changes that add these neighbours. A known neighbour gets the new address.
    pub fn neighbours(
        &self,
        program: &Program,
        neighbours: &[Neighbour],
    ) -> Result<Vec<Change>, String> {
        let mut hops = rows(program, self.hops);
        let mut headers = rows(program, self.headers);
        let mut prefixes = Prefixes::of(rows(program, self.prefixes));
        for neighbour in neighbours {
            let Neighbour { port, address, mac, mtu } = *neighbour;
            let source = self.address_of(program, port)?;
            let known = hops.iter().find(|(_, row)| is_hop(row, address, Some(port)));
            let known = known.map(|(&hop, row)| (hop, number(row, HOP_ENCAP)));
            let (hop, header) = known.unwrap_or((next(&hops), next(&headers)));
            let unsigned = |number: u32| Value::Unsigned(number.into());
            hops.insert(
                hop,
                Value::struct_of([
                    (HOP_PORT, unsigned(port)),
                    (2, unsigned(mtu)),
                    (HOP_ADDRESS, Value::Bytes(address.octets().to_vec())),
                    (HOP_ENCAP, unsigned(header)),
                    (5, unsigned(self.output)),
                ]),
            );
            headers.insert(
                header,
                Value::struct_of([
                    (1, Value::Bytes(mac.to_vec())),
                    (2, Value::Bytes(source.to_vec())),
                    (3, unsigned(0)),
                    (4, unsigned(0)),
                    (5, unsigned(port)),
                ]),
            );
            prefixes.lead(address, 32, hop);
        }
        Ok(vec![
            table(self.hops, hops),
            table(self.headers, headers),
            table(self.prefixes, prefixes.rows),
        ])
    }

    /// Returns the changes that add these routes. A route replaces an existing one for the same
    /// prefix.
    pub fn routes(&self, program: &Program, routes: &[Route]) -> Result<Vec<Change>, String> {
        let hops = rows(program, self.hops);
        let mut prefixes = Prefixes::of(rows(program, self.prefixes));
        let mut last = None;
        for route in routes {
            let Route { network, length, via, port } = *route;
            if length > 32 {
                return Err(format!("{network}/{length}: the prefix length is above 32"));
            }
            let hop = match last {
                Some((known, hop)) if known == (via, port) => hop,
                _ => {
                    let found = hops.iter().find(|(_, row)| is_hop(row, via, port));
                    *found.ok_or_else(|| format!("{network}/{length}: unknown neighbour {via}"))?.0
                }
            };
            last = Some(((via, port), hop));
            prefixes.lead(network, length, hop);
        }
        Ok(vec![table(self.prefixes, prefixes.rows)])
    }

    /// Returns the first address for which a port accepts frames.
    fn address_of(&self, program: &Program, port: u32) -> Result<Mac, String> {
        let instance = self.input(port).ok_or_else(|| no_port(port))?;
        let set = program.instances[instance].components.get(&LOCAL_ADDRESSES);
        let first = set.and_then(Value::rows).and_then(|rows| rows.values().next());
        first.and_then(Value::octets).ok_or_else(|| {
            let name = &program.instances[instance].name;
            format!(
                "port {port} has no address (hint: set its interface, or {name}.LocalMACAddresses)"
            )
        })
    }
}

fn no_port(port: u32) -> String {
    format!("the program declares no port {port}")
}

fn rows(program: &Program, instance: usize) -> Rows {
    let set = program.instances[instance].components.get(&TABLE);
    set.and_then(Value::rows).cloned().unwrap_or_default()
}

fn table(instance: usize, rows: Rows) -> Change {
    Change::Set { instance, path: vec![TABLE], value: Value::Array(rows) }
}

fn next(rows: &Rows) -> u32 {
    rows.last_key_value().map_or(0, |(index, _)| index.saturating_add(1))
}

fn number(row: &Value, field: u32) -> u32 {
    let value = row.step(field).and_then(Value::unsigned);
    value.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

fn is_hop(row: &Value, address: Ipv4Addr, port: Option<u32>) -> bool {
    row.step(HOP_ADDRESS).and_then(Value::octets) == Some(address.octets())
        && port.is_none_or(|port| number(row, HOP_PORT) == port)
}

/// Rows of a prefix table, indexed by prefix.
struct Prefixes {
    rows: Rows,
    places: HashMap<(u32, u8), u32>,
}

impl Prefixes {
    fn of(rows: Rows) -> Prefixes {
        let key = |row: &Value| {
            let address = row.step(1).and_then(Value::octets).map(u32::from_be_bytes)?;
            let is_default = row.step(4).and_then(Value::boolean) == Some(true);
            let length = if is_default { 0 } else { number(row, 2).min(32) as u8 };
            Some((masked(address, length), length))
        };
        let places = rows.iter().filter_map(|(&index, row)| Some((key(row)?, index))).collect();
        Prefixes { rows, places }
    }

    /// Sets the hop of a prefix.
    fn lead(&mut self, network: Ipv4Addr, length: u8, hop: u32) {
        let network = masked(network.to_bits(), length);
        let place = *self.places.entry((network, length)).or_insert_with(|| next(&self.rows));
        let row = [
            (1, Value::Bytes(network.to_be_bytes().to_vec())),
            (2, Value::Unsigned(length.into())),
            (3, Value::Boolean(false)),
            (4, Value::Boolean(false)),
            (5, Value::Unsigned(0)),
            (6, Value::Unsigned(hop.into())),
        ];
        self.rows.insert(place, Value::struct_of(row));
    }
}

fn masked(address: u32, length: u8) -> u32 {
    address & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}
