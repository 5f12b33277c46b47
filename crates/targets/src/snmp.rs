//! SNMP agents of targets: external agents that the lab starts, agents of devices, and simulated
//! agents.
//!
//! A simulated agent reports the simulated node's counters as IF-MIB defines them, and the node's
//! utilization since the last request. It takes [`THINKS`] for each request.

use std::collections::VecDeque;

use channel::datagram::{Datagrams, Memory, Udp, pair};
use elements::control::request::{Request, Resource};
use elements::node::Node;
use os::clock;
use packet::time::Nanos;
use serde_json::Value as Json;
use snmp::mib::{self, Interface};
use snmp::{AuthProtocol, Binding, Credentials, Secret, Value};
use testbed::Site;
use tester::rig::agents::Agent;

use super::TargetError;
use super::veth::lab_error;
use workload::PORTS_MAX;
use workload::parameter::snmp::{AgentLocation, SnmpAgent};

/// Processing time of a simulated agent for a request.
pub const THINKS: Nanos = Nanos::from_micros(200);

/// Engine ID of simulated agents (RFC 3411: text of an enterprise without a number).
const ENGINE_ID: &[u8] = b"\x80\x00\x00\x00\x04planimeter";

/// Size limit of a request to a simulated agent, in bytes.
const QUESTION_BYTES_MAX: usize = 4096;

/// Returns the agent of a target in a namespace, if one is configured, and the process that the lab
/// started for it.
pub fn beside(
    site: &Site,
    witness: &SnmpAgent,
) -> Result<(Vec<Agent>, Option<testbed::agent::Agent>), TargetError> {
    match witness.at {
        None => Ok((Vec::new(), None)),
        Some(AgentLocation::Address(_)) => Ok((of_device(witness)?, None)),
        Some(AgentLocation::Lab) => {
            let started = testbed::agent::Agent::start(site, &settings(&witness.credentials)?);
            let started = started.map_err(lab_error)?;
            let open = || Udp::connect(testbed::agent::ADDRESS);
            let way = site.namespace.run(open).map_err(lab_error)?;
            Ok((vec![asked(way, witness)?], Some(started)))
        }
    }
}

/// Returns the agent of a device for a network of switches; an agent of the lab could belong to
/// none of them.
pub fn of_network(witness: &SnmpAgent) -> Result<Vec<Agent>, TargetError> {
    if let Some(AgentLocation::Lab) = witness.at {
        let what = "the lab has no SNMP agent for the switches of a topology (hint: use --set \
                    snmp=IP[:PORT])";
        return Err(TargetError::CannotHold(what.into()));
    }
    of_device(witness)
}

/// Returns the agent of a device, as this host reaches it, if one is configured.
pub fn of_device(witness: &SnmpAgent) -> Result<Vec<Agent>, TargetError> {
    match witness.at {
        None => Ok(Vec::new()),
        Some(AgentLocation::Address(address)) => Ok(vec![asked(Udp::connect(address), witness)?]),
        Some(AgentLocation::Lab) => {
            let what = "the lab has SNMP agents only for links veth and memif, and simulated ones \
                        for --set simulate=true (hint: use --set snmp=IP[:PORT])";
            Err(TargetError::CannotHold(what.into()))
        }
    }
}

fn asked(
    way: Result<Udp, channel::datagram::DatagramError>,
    witness: &SnmpAgent,
) -> Result<Agent, TargetError> {
    let way = way.map_err(|error| TargetError::failed("cannot open the SNMP agent", error))?;
    let seed = clock::since_1970().0;
    Ok(Agent::new(Box::new(way), witness.credentials.clone(), seed))
}

/// Quotes a secret for `snmpd.conf`.
fn quoted(secret: &Secret) -> Result<String, TargetError> {
    let is_plain = |text: &&str| !text.chars().any(|it| it.is_control() || "\"'\\".contains(it));
    let plain = secret.exposed().filter(is_plain).ok_or_else(|| {
        let what = "an SNMP agent of the lab does not support this secret (hint: use text without \
                    quotes and backslashes)";
        TargetError::CannotHold(what.into())
    })?;
    Ok(format!("\"{plain}\""))
}

/// Returns the lines of `snmpd.conf` that accept these credentials.
fn settings(credentials: &Credentials) -> Result<Vec<String>, TargetError> {
    match credentials {
        Credentials::Community(community) => {
            Ok(vec![format!("rocommunity {}", quoted(community)?)])
        }
        Credentials::User(user) => {
            let mut create = format!("createUser {}", user.name);
            let level = match (&user.auth, &user.privacy) {
                (None, _) => "noauth",
                (Some(_), None) => "auth",
                (Some(_), Some(_)) => "priv",
            };
            if let Some((protocol, secret)) = &user.auth {
                let name = match protocol {
                    AuthProtocol::Sha1 => "SHA",
                    AuthProtocol::Sha256 => "SHA-256",
                    AuthProtocol::Sha384 => "SHA-384",
                    AuthProtocol::Sha512 => "SHA-512",
                };
                create += &format!(" {name} {}", quoted(secret)?);
            }
            if let Some(secret) = &user.privacy {
                create += &format!(" AES {}", quoted(secret)?);
            }
            Ok(vec![create, format!("rouser {} {level}", user.name)])
        }
    }
}

/// Returns the simulated agent of a target in virtual time and its address, if one is configured.
pub fn simulated(witness: &SnmpAgent) -> Result<(Option<SimulatedAgent>, Vec<Agent>), TargetError> {
    match witness.at {
        None => Ok((None, Vec::new())),
        Some(AgentLocation::Lab) => {
            let (agent, asks) = SimulatedAgent::new(&witness.credentials);
            Ok((Some(agent), vec![asks]))
        }
        Some(AgentLocation::Address(_)) => {
            let what = "virtual time supports only simulated SNMP agents (hint: use --set \
                        snmp=lab)";
            Err(TargetError::CannotHold(what.into()))
        }
    }
}

/// An agent in virtual time.
pub struct SimulatedAgent {
    end: Memory,
    agent: snmp::Agent,
    owed: VecDeque<(Nanos, Vec<u8>)>,
    /// Time of the last load report, and the node's total busy time then.
    told: (Nanos, Nanos),
}

impl SimulatedAgent {
    /// Creates an agent and its address.
    fn new(credentials: &Credentials) -> (SimulatedAgent, Agent) {
        let (near, far) = pair("agent");
        let agent = snmp::Agent::new(credentials.clone(), ENGINE_ID);
        let (owed, told) = (VecDeque::new(), (Nanos::ZERO, Nanos::ZERO));
        let asks = Agent::new(Box::new(near), credentials.clone(), 1);
        (SimulatedAgent { end: far, agent, owed, told }, asks)
    }

    /// Receives requests and sends replies; returns when the next reply is ready. `busy` is the
    /// node's total busy time.
    pub fn step(&mut self, node: &mut Node, busy: Nanos, now: Nanos) -> Option<Nanos> {
        let mut buffer = [0; QUESTION_BYTES_MAX];
        while let Ok(Some(count)) = self.end.receive(&mut buffer) {
            let table = self.table(node, busy, now);
            let time_s = (now.0 / 1_000_000_000) as u32;
            if let Some(answer) = self.agent.answer(&buffer[..count], &table, time_s) {
                self.owed.push_back((now.saturating_add(THINKS), answer));
            }
        }
        while self.owed.front().is_some_and(|(due, _)| *due <= now) {
            let (_, answer) = self.owed.pop_front()?;
            // A reply without room is lost, as on a network.
            let _ = self.end.send(&answer);
        }
        self.owed.front().map(|(due, _)| *due)
    }

    fn table(&mut self, node: &mut Node, busy: Nanos, now: Nanos) -> Vec<Binding> {
        let counters = node.answer(Request::Get(Resource::Counters), now).unwrap_or(Json::Null);
        let counters = testbed::peer::planimeter::control::flatten(&counters);
        let port = |port: usize| {
            let count = |name: &str| counters.get(&format!("ports.{port}.{name}")).copied();
            let lost = |name: &str| format!("ports.{port}.drops.{name}");
            let discards = |which: fn(&str) -> bool| {
                let all = counters
                    .iter()
                    .filter_map(|(name, count)| Some((name.strip_prefix(&lost(""))?, *count)));
                all.filter(|(reason, _)| which(reason)).map(|(_, count)| count).sum::<u64>()
            };
            let is_out = |reason: &str| reason.starts_with("transmit");
            Some(Interface {
                index: port as u32,
                name: format!("port{port}"),
                is_wide: true,
                frames_in: count("rx_frames")?,
                frames_out: count("tx_frames")?,
                discards: [discards(|reason| !reason.starts_with("transmit")), discards(is_out)],
                ..Interface::default()
            })
        };
        let interfaces: Vec<Interface> = (1..=PORTS_MAX).filter_map(port).collect();
        let mut table = mib::bindings(&interfaces);
        let (since, was_busy) = self.told;
        let span = now.since(since).0.max(1);
        let percent = (busy.since(was_busy).0.min(span) * 100).div_ceil(span);
        self.told = (now, busy);
        let load = mib::processor_load().child(&[1]).expect("a short name");
        table.push(Binding { name: load, value: Value::Integer(percent as i64) });
        let description = Value::Octets(b"a simulated switch".to_vec());
        table.push(Binding { name: mib::system_description(), value: description });
        table.push(Binding {
            name: mib::up_time(),
            value: Value::Ticks((now.0 / 10_000_000) as u32),
        });
        table.sort_by(|one, other| one.name.cmp(&other.name));
        table
    }
}
