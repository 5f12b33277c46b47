//! SNMP agents that a module queries while it measures, as an independent source of loss and load.
//!
//! Their sockets are polled only while a request is outstanding. The time spent here counts as
//! control time of the event loop. A failing agent does not end the module: silence, errors and
//! invalid replies are reported as results.

use channel::datagram::{DatagramError, Datagrams};
use packet::time::Nanos;
use snmp::{Client, Credentials, DATAGRAM_BYTES_MAX, SnmpRequest, Ticket};

use crate::module::{AgentReport, SnmpError, SnmpId, SnmpReply};

/// Datagrams to send and receive before other work continues.
const DATAGRAMS_AT_ONCE: usize = 8;

/// An SNMP agent, reused from module to module.
pub struct Agent {
    name: String,
    client: Client,
    way: Box<dyn Datagrams>,
    buffer: Vec<u8>,
}

impl Agent {
    /// Creates an agent for this path and these credentials. `seed` must differ each time.
    pub fn new(way: Box<dyn Datagrams>, credentials: Credentials, seed: u64) -> Agent {
        let name = format!("{} ({})", way.peer(), credentials.level());
        let client = Client::new(credentials, seed);
        Agent { name, client, way, buffer: vec![0; DATAGRAM_BYTES_MAX] }
    }

    /// Returns address and security level. Contains no secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Drops all outstanding requests.
    pub fn forget(&mut self) {
        self.client.forget();
    }

    /// Sends due datagrams and receives waiting ones. Returns whether it did any work.
    fn turn(&mut self, clock: &mut dyn FnMut() -> Nanos) -> Result<bool, DatagramError> {
        let mut moved = false;
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(datagram) = self.client.transmit(clock()) else { break };
            let at = clock();
            // Datagrams without room in the socket buffer are lost, as on a network.
            let sent = self.way.send(&datagram);
            self.client.sent(at);
            moved = true;
            sent?;
        }
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(count) = self.way.receive(&mut self.buffer)? else { break };
            let at = clock();
            self.client.receive(&self.buffer[..count], at);
            moved = true;
        }
        Ok(moved)
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish()
    }
}

/// Outstanding requests of a module.
#[derive(Debug, Default)]
pub struct OutstandingRequests {
    waiting: Vec<(usize, Ticket, SnmpId)>,
    next_due: Option<Nanos>,
    reports: Vec<AgentReport>,
    /// Rejected datagrams that the agents' clients counted before this module.
    strays_before: Vec<u64>,
}

/// Result of a request: agent index, request id, time and reply.
pub type RequestResult = (usize, SnmpId, Nanos, SnmpReply);

impl OutstandingRequests {
    /// Creates an empty set of requests for these agents.
    pub fn new(agents: &[Agent]) -> OutstandingRequests {
        let report = |agent: &Agent| AgentReport { name: agent.name.clone(), ..Default::default() };
        OutstandingRequests {
            reports: agents.iter().map(report).collect(),
            strays_before: agents.iter().map(strays).collect(),
            ..OutstandingRequests::default()
        }
    }

    /// Sends a request. Returns an error reply immediately if the request is impossible.
    pub fn ask(
        &mut self,
        agents: &mut [Agent],
        agent: usize,
        (asked, question): (SnmpId, SnmpRequest),
        now: Nanos,
    ) -> Option<SnmpReply> {
        let Some(it) = agents.get_mut(agent) else {
            return Some(SnmpReply { sent: None, rounds: 0, bindings: Err(SnmpError::NoAgent) });
        };
        let ticket = it.client.ask(question, now);
        self.reports[agent].asked += 1;
        self.waiting.push((agent, ticket, asked));
        self.next_due = Some(now);
        None
    }

    /// Returns whether a request is outstanding.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns when the next timeout is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.next_due.filter(|_| self.is_waiting())
    }

    /// Sends and receives datagrams. Returns whether it did any work, and the completed requests.
    pub fn turn(
        &mut self,
        agents: &mut [Agent],
        clock: &mut dyn FnMut() -> Nanos,
    ) -> (bool, Vec<RequestResult>) {
        let (mut moved, mut told) = (false, Vec::new());
        for (place, agent) in agents.iter_mut().enumerate() {
            if !self.waiting.iter().any(|(of, ..)| *of == place) {
                continue;
            }
            match agent.turn(clock) {
                Ok(did) => moved |= did,
                Err(DatagramError::Refused(_)) => agent.client.unreachable(clock()),
                Err(error) => {
                    let why = SnmpError::Unsendable(error.to_string());
                    let all = self.waiting.extract_if(.., |(of, ..)| *of == place);
                    let at = clock();
                    for (_, _, asked) in all {
                        let answer =
                            SnmpReply { sent: None, rounds: 0, bindings: Err(why.clone()) };
                        told.push((place, asked, at, answer));
                    }
                    agent.client.forget();
                }
            }
            while let Some(done) = agent.client.poll() {
                let is_it = |(of, ticket, _): &(usize, Ticket, SnmpId)| {
                    *of == place && *ticket == done.ticket
                };
                let Some(at) = self.waiting.iter().position(is_it) else { continue };
                let (_, _, asked) = self.waiting.remove(at);
                let bindings = done.outcome.map_err(SnmpError::Failed);
                let answer = SnmpReply { sent: done.sent, rounds: done.rounds, bindings };
                told.push((place, asked, done.at, answer));
            }
            self.reports[place].strays = strays(agent) - self.strays_before[place];
        }
        for (place, _, _, answer) in &told {
            let report = &mut self.reports[*place];
            match &answer.bindings {
                Ok(_) => report.answered += 1,
                Err(why) => report.failure = Some(why.to_string()),
            }
        }
        self.next_due = agents.iter().filter_map(|agent| agent.client.next_timeout()).min();
        (moved | !told.is_empty(), told)
    }

    /// Returns the request counts.
    pub fn report(self) -> Vec<AgentReport> {
        self.reports
    }
}

fn strays(agent: &Agent) -> u64 {
    let strays = agent.client.strays();
    strays.unreadable + strays.forged + strays.unasked
}
