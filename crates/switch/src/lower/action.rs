//! Actions: down with the checks that a switch owes its controller, and up for statistics.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3, 5.2.4 and 5.4.4 (`ofp_bad_action`).

use dataplane::action::Action;
use openflow::model::matching::FieldMatch;
use openflow::model::{self, reserved};
use openflow::version::ErrorCode;
use packet::field::Field;

use super::{port_down, port_up};

/// Most actions of one entry or packet-out.
pub const ACTIONS_MAX: usize = 64;

/// The ports that the switch has.
pub type PortNumbers<'a> = &'a [packet::frame::PortNo];

/// The core's actions, or what is wrong with the first that cannot be done. `from_packet_out`
/// allows what only a packet-out may do: send the frame through the tables.
pub fn actions_down(
    from: &[model::Action],
    ports: PortNumbers<'_>,
    from_packet_out: bool,
) -> Result<Vec<Action>, ErrorCode> {
    if from.len() > ACTIONS_MAX {
        return Err(ErrorCode::ActionTooMany);
    }
    from.iter().map(|action| action_down(action, ports, from_packet_out)).collect()
}

fn action_down(
    from: &model::Action,
    ports: PortNumbers<'_>,
    from_packet_out: bool,
) -> Result<Action, ErrorCode> {
    Ok(match *from {
        model::Action::Output { port: reserved::TABLE, .. } if !from_packet_out => {
            return Err(ErrorCode::ActionBadOutPort);
        }
        model::Action::Output { port, bytes_max } => output_down(port, bytes_max, ports)?,
        model::Action::Enqueue { port, queue } => match ports.contains(&port) {
            true => Action::Enqueue { port, queue },
            false => return Err(ErrorCode::ActionBadOutPort),
        },
        model::Action::SetVlanVid(id) if id > 0xfff => return Err(ErrorCode::ActionBadArgument),
        model::Action::SetVlanVid(id) => Action::SetVlan(id),
        model::Action::SetVlanPcp(pcp) if pcp > 7 => return Err(ErrorCode::ActionBadArgument),
        model::Action::SetVlanPcp(priority) => Action::SetVlanPriority(priority),
        model::Action::PopVlan => Action::PopVlan,
        model::Action::SetField(row) => field_down(&row)?,
        model::Action::SetTransportSrc(port) => Action::SetL4Src(port),
        model::Action::SetTransportDst(port) => Action::SetL4Dst(port),
        model::Action::Experimenter(_) => return Err(ErrorCode::ActionBadExperimenter),
        _ => return Err(ErrorCode::ActionBadType),
    })
}

fn field_down(row: &FieldMatch) -> Result<Action, ErrorCode> {
    let FieldMatch { field, value, mask } = *row;
    match field {
        _ if !row.is_exact() => Err(ErrorCode::ActionBadArgument),
        Field::EthSrc | Field::EthDst | Field::Ipv4Src | Field::Ipv4Dst | Field::IpDscp => {
            Ok(Action::SetField { field, value, mask })
        }
        _ => Err(ErrorCode::ActionBadType),
    }
}

fn output_down(
    port: model::PortNo,
    bytes_max: u16,
    ports: PortNumbers<'_>,
) -> Result<Action, ErrorCode> {
    Ok(match port {
        reserved::IN_PORT => Action::InPort,
        reserved::TABLE => Action::Table,
        reserved::NORMAL => Action::Normal,
        reserved::FLOOD => Action::Flood,
        reserved::ALL => Action::All,
        reserved::CONTROLLER => Action::Controller { bytes_max },
        reserved::LOCAL => Action::Local,
        port if ports.contains(&port) => Action::Output { port },
        _ => return Err(ErrorCode::ActionBadOutPort),
    })
}

/// The action by which entries are filtered that send frames to `port`; none for all entries.
pub fn destination_down(port: model::PortNo) -> Option<Action> {
    match port {
        reserved::NONE => None,
        reserved::IN_PORT => Some(Action::InPort),
        reserved::TABLE => Some(Action::Table),
        reserved::NORMAL => Some(Action::Normal),
        reserved::FLOOD => Some(Action::Flood),
        reserved::ALL => Some(Action::All),
        reserved::CONTROLLER => Some(Action::Controller { bytes_max: 0 }),
        reserved::LOCAL => Some(Action::Local),
        port => Some(Action::Output { port: port_down(port) }),
    }
}

/// The actions in OpenFlow's terms.
pub fn actions_up(from: &[Action]) -> Vec<model::Action> {
    from.iter().map(action_up).collect()
}

fn action_up(from: &Action) -> model::Action {
    let output = |port| model::Action::Output { port, bytes_max: 0 };
    match *from {
        Action::Output { port } => output(port_up(port)),
        Action::InPort => output(reserved::IN_PORT),
        Action::All => output(reserved::ALL),
        Action::Flood => output(reserved::FLOOD),
        Action::Controller { bytes_max } => {
            model::Action::Output { port: reserved::CONTROLLER, bytes_max }
        }
        Action::Normal => output(reserved::NORMAL),
        Action::Local => output(reserved::LOCAL),
        Action::Table => output(reserved::TABLE),
        Action::Enqueue { port, queue } => model::Action::Enqueue { port: port_up(port), queue },
        Action::SetVlan(id) => model::Action::SetVlanVid(id),
        Action::SetVlanPriority(priority) => model::Action::SetVlanPcp(priority),
        Action::PopVlan => model::Action::PopVlan,
        Action::SetField { field, value, mask } => {
            model::Action::SetField(FieldMatch::masked(field, value, mask))
        }
        Action::SetL4Src(port) => model::Action::SetTransportSrc(port),
        Action::SetL4Dst(port) => model::Action::SetTransportDst(port),
        other => unreachable!("OpenFlow 1.0 installs no {other:?}"),
    }
}
