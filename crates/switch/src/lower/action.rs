//! Actions: down with the checks that a switch owes its controller, and up for statistics.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3, 5.2.4 and 5.4.4 (`ofp_bad_action`).

use std::net::Ipv4Addr;

use dataplane::action::Action;
use openflow::model::{self, MacAddress, reserved};
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
        model::Action::StripVlan => Action::PopVlan,
        model::Action::SetEthSrc(mac) => Action::set(Field::EthSrc, mac_down(mac)),
        model::Action::SetEthDst(mac) => Action::set(Field::EthDst, mac_down(mac)),
        model::Action::SetIpSrc(ip) => Action::set(Field::Ipv4Src, ip.to_bits().into()),
        model::Action::SetIpDst(ip) => Action::set(Field::Ipv4Dst, ip.to_bits().into()),
        model::Action::SetIpDscp(dscp) if dscp > 63 => return Err(ErrorCode::ActionBadArgument),
        model::Action::SetIpDscp(dscp) => Action::set(Field::IpDscp, dscp.into()),
        model::Action::SetTransportSrc(port) => Action::SetL4Src(port),
        model::Action::SetTransportDst(port) => Action::SetL4Dst(port),
        model::Action::Experimenter(_) => return Err(ErrorCode::ActionBadExperimenter),
    })
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
        Action::PopVlan => model::Action::StripVlan,
        Action::SetField { field, value, .. } => field_up(field, value),
        Action::SetL4Src(port) => model::Action::SetTransportSrc(port),
        Action::SetL4Dst(port) => model::Action::SetTransportDst(port),
        other => unreachable!("OpenFlow 1.0 installs no {other:?}"),
    }
}

fn field_up(field: Field, value: u128) -> model::Action {
    match field {
        Field::EthSrc => model::Action::SetEthSrc(mac_up(value)),
        Field::EthDst => model::Action::SetEthDst(mac_up(value)),
        Field::Ipv4Src => model::Action::SetIpSrc(Ipv4Addr::from_bits(value as u32)),
        Field::Ipv4Dst => model::Action::SetIpDst(Ipv4Addr::from_bits(value as u32)),
        Field::IpDscp => model::Action::SetIpDscp(value as u8),
        other => unreachable!("OpenFlow 1.0 sets no {other}"),
    }
}

fn mac_down(mac: MacAddress) -> u128 {
    mac.iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte))
}

fn mac_up(bits: u128) -> MacAddress {
    std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8)
}
