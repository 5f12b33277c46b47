//! SNMP agents with an event loop in virtual time: answering, silent and missing ones.

use std::collections::VecDeque;

use channel::ChannelError;
use channel::datagram::{Datagrams, Memory, pair};
use netio::memory;
use packet::time::Nanos;
use snmp::client::ANSWER_NS_MAX;
use snmp::{Binding, Credentials, Failure, Secret, SnmpRequest, Value, mib};
use tester::executor::TopologyInfo;
use tester::module::*;
use tester::rig::agents::Agent;
use tester::rig::sim::{Device, SimRig};

/// Processing delay of the agent.
const THINKS: Nanos = Nanos::from_micros(150);

/// A host with only an agent.
struct Host {
    end: Memory,
    agent: snmp::Agent,
    owed: VecDeque<(Nanos, Vec<u8>)>,
    _port: memory::MemoryPort,
}

impl Device for Host {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        let value = Value::Ticks((now.0 / 1_000) as u32);
        let table = [Binding { name: mib::system_description(), value }];
        let mut buffer = [0; 2000];
        while let Ok(Some(count)) = self.end.receive(&mut buffer) {
            if let Some(answer) = self.agent.answer(&buffer[..count], &table, 0) {
                self.owed.push_back((now + THINKS, answer));
            }
        }
        while self.owed.front().is_some_and(|(due, _)| *due <= now) {
            let (_, answer) = self.owed.pop_front()?;
            let _ = self.end.send(&answer);
        }
        self.owed.front().map(|(due, _)| *due)
    }
}

/// Sends the same request to agents and collects the replies.
#[derive(Default)]
struct Asks {
    agents: Vec<usize>,
    answers: Vec<(usize, SnmpId, Nanos, SnmpReply)>,
    asked: Vec<SnmpId>,
    named: Vec<String>,
}

impl Module for Asks {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements {
            connections: Vec::new(),
            ..ModuleRequirements::new(Nanos::from_secs(60))
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.named = facts.agents.clone();
                for agent in self.agents.clone() {
                    let question = SnmpRequest::Get(vec![mib::system_description()]);
                    self.asked.push(context.snmp(agent, question));
                }
            }
            EventKind::Snmp { agent, asked, answer } => {
                self.answers.push((agent, asked, event.at, answer.clone()));
                if self.answers.len() == self.asked.len() {
                    context.end();
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

fn host(knows: &str) -> (SimRig<Host>, Nanos) {
    let (near, far) = pair("agent");
    let community = |name: &str| Credentials::Community(Secret::new(name));
    let agent = snmp::Agent::new(community(knows), b"");
    let (port, other) = memory::pair(4, "port");
    let device = Host { end: far, agent, owed: VecDeque::new(), _port: other };
    let mut rig = SimRig::new(vec![Box::new(port)], device, 1);
    rig.agents = vec![Agent::new(Box::new(near), community("public"), 5)];
    let now = rig.now();
    (rig, now)
}

fn carry_out(rig: &mut SimRig<Host>, agents: &[usize]) -> (Asks, StageReport) {
    let mut module = Asks { agents: agents.to_vec(), ..Asks::default() };
    let mut connect = |_: &mut Host, _, _| Err(ChannelError::Closed("no switch".into()));
    let report = rig.stage(&mut module, &TopologyInfo::default(), &mut connect);
    (module, report)
}

#[test]
fn agent_replies_have_their_times() {
    let (mut rig, begun) = host("public");
    let (module, report) = carry_out(&mut rig, &[0, 0, 7]);
    assert_eq!(report.ended, Ended::Completed, "{report:?}");
    assert_eq!(module.named, ["agent.1 (v2c)"]);
    // The missing agent is reported first, and ends nothing.
    let (agent, asked, _, answer) = &module.answers[0];
    assert_eq!((*agent, *asked), (7, module.asked[2]));
    assert_eq!(answer.bindings, Err(SnmpError::NoAgent));
    for (place, (agent, asked, at, answer)) in module.answers[1..].iter().enumerate() {
        assert_eq!((*agent, *asked, answer.sent), (0, module.asked[place], Some(begun)));
        assert_eq!((at.since(begun), answer.rounds), (THINKS, 1));
        let Ok(bindings) = &answer.bindings else { panic!("{:?}", answer.bindings) };
        assert_eq!(bindings[0].value, Value::Ticks((begun.0 / 1_000) as u32));
    }
    let agent = &report.agents[0];
    assert_eq!((agent.asked, agent.answered, &agent.failure, agent.strays), (2, 2, &None, 0));
}

#[test]
fn a_silent_agent_times_out_and_late_replies_are_ignored() {
    let (mut rig, begun) = host("another");
    let (module, report) = carry_out(&mut rig, &[0]);
    assert_eq!(report.ended, Ended::Completed, "{report:?}");
    let (.., at, answer) = &module.answers[0];
    assert_eq!(answer.bindings, Err(SnmpError::Failed(Failure::TimedOut)));
    assert_eq!(at.since(begun).0, ANSWER_NS_MAX.0 * 3);
    assert_eq!((report.agents[0].asked, report.agents[0].answered), (1, 0));
    assert!(report.agents[0].failure.as_ref().unwrap().contains("no reply"), "{report:?}");
    // The next module queries the same agent again.
    let (module, report) = carry_out(&mut rig, &[0, 7]);
    assert_eq!((module.answers.len(), &report.ended), (2, &Ended::Completed));
}
