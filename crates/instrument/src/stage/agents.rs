//! Agents of SNMP that a module asks while it measures: independent witnesses of loss and load.
//!
//! Their sockets are looked at only while an answer is waited for, so that whoever asks nothing pays
//! nothing; what an answer costs is part of the stage's time for control. An agent that is silent,
//! refuses or lies ends no module: that is an answer too.

use packet::time::Nanos;
use ports::datagram::{DatagramError, Datagrams};
use snmp::{Client, Credentials, DATAGRAM_BYTES_MAX, Question, Ticket};

use crate::module::{AgentReport, Answer, SnmpId, Unanswered};

/// Datagrams that are sent and taken before others have their turn.
const DATAGRAMS_AT_ONCE: usize = 8;

/// An agent that can be asked, from module to module.
pub struct Agent {
    name: String,
    client: Client,
    way: Box<dyn Datagrams>,
    buffer: Vec<u8>,
}

impl Agent {
    /// The agent at the other end of this way, asked by these credentials. `seed` is another each time.
    pub fn new(way: Box<dyn Datagrams>, credentials: Credentials, seed: u64) -> Agent {
        let name = format!("{} ({})", way.peer(), credentials.level());
        let client = Client::new(credentials, seed);
        Agent { name, client, way, buffer: vec![0; DATAGRAM_BYTES_MAX] }
    }

    /// Where it is, and how we are believed: nothing of this is secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for no answer any more.
    pub fn forget(&mut self) {
        self.client.forget();
    }

    /// Sends what is due and takes what has come; whether that was anything.
    fn turn(&mut self, clock: &mut dyn FnMut() -> Nanos) -> Result<bool, DatagramError> {
        let mut moved = false;
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(datagram) = self.client.transmit(clock()) else { break };
            let at = clock();
            // What there is no room for is lost, as on a network.
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

/// What a module asked of agents and has not been told.
#[derive(Debug, Default)]
pub struct Asked {
    waiting: Vec<(usize, Ticket, SnmpId)>,
    next_due: Option<Nanos>,
    reports: Vec<AgentReport>,
    /// What agents' clients had put aside before this module.
    strays_before: Vec<u64>,
}

/// What came of a question: of which agent, which, when, and what.
pub type Told = (usize, SnmpId, Nanos, Answer);

impl Asked {
    /// Nothing was asked yet of these agents.
    pub fn new(agents: &[Agent]) -> Asked {
        let report = |agent: &Agent| AgentReport { name: agent.name.clone(), ..Default::default() };
        Asked {
            reports: agents.iter().map(report).collect(),
            strays_before: agents.iter().map(strays).collect(),
            ..Asked::default()
        }
    }

    /// Asks; the answer if there can be none.
    pub fn ask(
        &mut self,
        agents: &mut [Agent],
        agent: usize,
        (asked, question): (SnmpId, Question),
        now: Nanos,
    ) -> Option<Answer> {
        let Some(it) = agents.get_mut(agent) else {
            return Some(Answer { sent: None, rounds: 0, bindings: Err(Unanswered::NoAgent) });
        };
        let ticket = it.client.ask(question, now);
        self.reports[agent].asked += 1;
        self.waiting.push((agent, ticket, asked));
        self.next_due = Some(now);
        None
    }

    /// Whether an answer is waited for.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When something is due although nothing comes.
    pub fn next_due(&self) -> Option<Nanos> {
        self.next_due.filter(|_| self.is_waiting())
    }

    /// Sends and takes what there is; whether that was anything, and what has come of questions.
    pub fn turn(
        &mut self,
        agents: &mut [Agent],
        clock: &mut dyn FnMut() -> Nanos,
    ) -> (bool, Vec<Told>) {
        let (mut moved, mut told) = (false, Vec::new());
        for (place, agent) in agents.iter_mut().enumerate() {
            if !self.waiting.iter().any(|(of, ..)| *of == place) {
                continue;
            }
            match agent.turn(clock) {
                Ok(did) => moved |= did,
                Err(DatagramError::Refused(_)) => agent.client.unreachable(clock()),
                Err(error) => {
                    let why = Unanswered::Unsendable(error.to_string());
                    let all = self.waiting.extract_if(.., |(of, ..)| *of == place);
                    let at = clock();
                    for (_, _, asked) in all {
                        let answer = Answer { sent: None, rounds: 0, bindings: Err(why.clone()) };
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
                let bindings = done.outcome.map_err(Unanswered::Failed);
                let answer = Answer { sent: done.sent, rounds: done.rounds, bindings };
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

    /// What passed.
    pub fn report(self) -> Vec<AgentReport> {
        self.reports
    }
}

fn strays(agent: &Agent) -> u64 {
    let strays = agent.client.strays();
    strays.unreadable + strays.forged + strays.unasked
}
