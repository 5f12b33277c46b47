//! The three workloads of the study, and the hosts that send the packets.
//!
//! Source: gelberger2013, section III-A ("IP routing, as a rather simple task, and VLAN tagging, which represented
//! a more complicated task"), III-C.2 ("switching, routing, and VLAN").
//!
//! A bridge switches and a router routes. An OpenFlow switch does all three by its flow entries: it matches the
//! destination address; or it sets both MAC addresses and decrements the TTL; or it pushes a tag. A cable is the
//! reference for all. [`RULES`] conditions select the frames for tags; the study does not print them.

use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match, PRIORITY_DEFAULT};
use tester::module::host_tasks::Host;

use crate::costa2017::common::ways;
use experiments::Context;
use experiments::control_plane::rules::{FAR, NEAR};
use targets::flow_setup::{PORT_IN, PORT_OUT, flows, routing};
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::{Table, Traffic};
use workload::{Setup, tags};

/// Name of the curves: the number of the workload.
pub const CURVE: &str = "workload";

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Forwards frames by their destination MAC address.
    Switching,
    /// Forwards packets by their destination IP address, as a router does.
    Routing,
    /// Pushes a VLAN tag.
    Tagging,
}

impl Workload {
    /// Returns the number of its curve; the report shows its name.
    pub fn number(self) -> f64 {
        match self {
            Workload::Switching => 1.0,
            Workload::Routing => 2.0,
            Workload::Tagging => 3.0,
        }
    }

    /// Returns the workloads that a technology supports.
    pub fn of(technology: Technology) -> &'static [Workload] {
        match technology {
            Technology::Bridging | Technology::Wire => &[Workload::Switching],
            Technology::Routing => &[Workload::Routing],
            Technology::Tagging => &[Workload::Tagging],
            Technology::OpenFlow => &[Workload::Switching, Workload::Routing, Workload::Tagging],
        }
    }

    /// Returns the setup of the target.
    pub fn setup(self, context: &Context) -> Setup {
        let own = context.setup();
        match (self, context.technology) {
            (Workload::Tagging, _) => {
                let entries = context.count(&RULES);
                Setup { table: Table::Tags, entries, traffic: Traffic::Sequential, ..own }
            }
            (Workload::Routing, Technology::OpenFlow) => Setup { table: Table::Routed, ..own },
            _ => own,
        }
    }

    /// Returns the hosts at both ends: client and server.
    pub fn hosts(self, context: &Context) -> [Host; 2] {
        let (technology, addresses) = match (self, context.technology) {
            // An OpenFlow switch that routes appears as a router to both ends.
            (Workload::Routing, Technology::OpenFlow) => {
                (Technology::Routing, context.addresses.routed())
            }
            (_, own) => (own, context.addresses),
        };
        let context = Context { technology, addresses, ..context.clone() };
        ways(&context, FRAME_BYTES).each_ref().map(Host::sending)
    }

    /// Returns the flow entries of an OpenFlow switch for both directions; `None` for a target without a
    /// controller.
    pub fn rules(self, context: &Context) -> Option<Vec<Message>> {
        if context.technology != Technology::OpenFlow {
            return None;
        }
        if self == Workload::Tagging {
            return Some(self.tagging(context));
        }
        let [near, far] = self.hosts(context);
        let ways = [(far, PORT_IN, PORT_OUT, FAR), (near, PORT_OUT, PORT_IN, NEAR)];
        Some(
            ways.map(|(to, port_in, port_out, end)| {
                self.rule(context, to, (port_in, port_out), end)
            })
            .into(),
        )
    }

    /// Returns the entries that tag packets, and forward untagged ones in the return direction.
    fn tagging(self, context: &Context) -> Vec<Message> {
        let tagging = flows(&self.setup(context), &context.addresses);
        let back = Match::ANY.with(Field::InPort, PORT_OUT).untagged();
        let back = FlowMod::add(back, PRIORITY_DEFAULT, vec![Action::output(PORT_IN.into())]);
        tagging.chain([back]).map(Message::FlowMod).collect()
    }

    /// Returns the VLAN ids whose tags the host at the far end must remove because it has no device for them.
    pub fn vlans(self, context: &Context) -> Vec<u16> {
        match self {
            Workload::Tagging if context.technology != Technology::Wire => {
                let rules = tags::rules(self.setup(context).entries);
                let mut vlans: Vec<u16> = rules.iter().map(|rule| rule.vlan).collect();
                vlans.sort_unstable();
                vlans.dedup();
                vlans
            }
            _ => Vec::new(),
        }
    }

    /// Returns the entry for packets to a host at this end.
    fn rule(
        self,
        context: &Context,
        to: Host,
        (port_in, port_out): (u16, u16),
        end: usize,
    ) -> Message {
        let by_port = Match::ANY.with(Field::InPort, port_in);
        let out = Action::output(port_out.into());
        let (matching, actions) = match self {
            Workload::Switching | Workload::Tagging => {
                (by_port.with_mac(Field::EthDst, to.mac), vec![out])
            }
            Workload::Routing => {
                let packets = by_port.with(Field::EthType, IPV4);
                let matching = packets.with(Field::Ipv4Dst, to.address.to_bits());
                let mut actions = routing((context.addresses.routed().target[end], to.mac));
                actions.push(out);
                (matching, actions)
            }
        };
        Message::FlowMod(FlowMod::add(matching, PRIORITY_DEFAULT, actions))
    }
}

/// Number of conditions for tags: all of them are evaluated for TCP packets, and only the last one matches.
pub const RULES: Parameter = Parameter {
    key: "entries",
    takes: ValueType::Integer(1, tags::RULES_MAX as u64),
    default: "16",
    unit: "",
    help: "number of tagging rules; only the last one matches the frames",
};

/// Frame size for the headers of hosts, which do not depend on it.
const FRAME_BYTES: usize = 64;
