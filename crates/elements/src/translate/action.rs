//! Actions: conversion to the core with all checks, and back for statistics.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.3 and 5.4.4; 1.3.5, sections 5.12, 7.2.5
//! and 7.4.4 (`ofp_bad_action`).

use std::sync::Arc;

use dataplane::action::Action;
use dataplane::pipeline::Pipeline;
use openflow::model::nicira::NICIRA;
use openflow::model::{self, CopyField, FieldMatch, reserved};
use openflow::version::{ErrorCode, Version};
use packet::field::Field;

use super::{is_port, port_down, port_up};

/// Maximum number of actions in one list.
pub const ACTIONS_MAX: usize = 64;

/// Objects to which actions may refer, and the version of the message.
#[derive(Clone, Copy)]
pub struct ActionLimits<'a> {
    /// Numbers of the existing ports.
    pub ports: &'a [packet::frame::PortNo],
    /// Groups, meters and queues.
    pub pipeline: &'a Pipeline,
    /// Version of the message.
    pub version: Version,
}

/// Context of a list of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionContext {
    /// A flow entry.
    Flow,
    /// A bucket.
    Bucket,
    /// A packet-out. Only this may send the frame through the tables.
    PacketOut,
}

/// Converts actions to the core, or returns the error of the first invalid one.
pub fn actions_down(
    from: &[model::Action],
    place: ActionContext,
    world: &ActionLimits<'_>,
) -> Result<Vec<Action>, ErrorCode> {
    if from.len() > ACTIONS_MAX {
        return Err(ErrorCode::ActionTooMany);
    }
    from.iter().map(|action| action_down(action, place, world)).collect()
}

fn action_down(
    from: &model::Action,
    place: ActionContext,
    world: &ActionLimits<'_>,
) -> Result<Action, ErrorCode> {
    use model::Action as From;
    Ok(match *from {
        From::Output { port, bytes_max } => output_down(port, bytes_max, place, world)?,
        From::Group(group) if world.has_group(group) => Action::Group(group),
        From::Group(_) => return Err(ErrorCode::ActionBadOutGroup),
        From::SetQueue(queue) if world.has_queue(None, queue) => Action::SetQueue(queue),
        From::Enqueue { port, .. } if !world.has_port(port) => {
            return Err(ErrorCode::ActionBadOutPort);
        }
        From::Enqueue { port, queue } if world.has_queue(Some(port), queue) => {
            Action::Enqueue { port: port_down(port), queue }
        }
        From::SetQueue(_) | From::Enqueue { .. } => return Err(ErrorCode::ActionBadQueue),
        From::SetField(set) => set_field_down(&set, world.version)?,
        From::CopyField(copy) => copy_field_down(&copy)?,
        From::PushVlan(kind) if matches!(kind, 0x8100 | 0x88a8) => Action::PushVlan(kind),
        From::PushMpls(kind) if !matches!(kind, 0x8847 | 0x8848) => {
            return Err(ErrorCode::ActionBadArgument);
        }
        From::PushMpls(kind) if world.version < Version::V1_3 => Action::PushMplsBehindVlan(kind),
        From::PushMpls(kind) => Action::PushMpls(kind),
        From::PushPbb(0x88e7) => Action::PushPbb(0x88e7),
        From::PushVlan(_) | From::PushPbb(_) => return Err(ErrorCode::ActionBadArgument),
        From::PopVlan => Action::PopVlan,
        From::PopMpls(kind) => Action::PopMpls(kind),
        From::PopPbb => Action::PopPbb,
        From::CopyTtlOut => Action::CopyTtlOut,
        From::CopyTtlIn => Action::CopyTtlIn,
        From::SetMplsTtl(0) | From::SetNwTtl(0) => return Err(ErrorCode::ActionBadArgument),
        From::SetMplsTtl(ttl) => Action::SetMplsTtl(ttl),
        From::DecMplsTtl => Action::DecMplsTtl,
        From::SetNwTtl(ttl) => Action::SetIpTtl(ttl),
        From::DecNwTtl => Action::DecIpTtl,
        From::Meter(meter) if world.has_meter(meter) => Action::Meter(meter),
        From::Meter(_) => return Err(ErrorCode::ActionBadMeter),
        From::SetVlanVid(id) if id > 0xfff => return Err(ErrorCode::ActionBadArgument),
        From::SetVlanVid(id) => Action::SetVlan(id),
        From::SetVlanPcp(pcp) if pcp > 7 => return Err(ErrorCode::ActionBadArgument),
        From::SetVlanPcp(priority) => Action::SetVlanPriority(priority),
        From::SetTransportSrc(port) => Action::SetL4Src(port),
        From::SetTransportDst(port) => Action::SetL4Dst(port),
        From::Experimenter(ref other) => {
            // The codec has decoded the supported Nicira actions as other actions.
            let known = other.experimenter == NICIRA && world.version == Version::V1_0;
            return Err(match known {
                true => ErrorCode::ActionBadExperimenterType,
                false => ErrorCode::ActionBadExperimenter,
            });
        }
    })
}

impl ActionLimits<'_> {
    /// Whether the port exists and is not reserved.
    pub fn has_port(&self, port: model::PortNo) -> bool {
        self.ports.contains(&port)
    }

    /// Whether the group exists.
    pub fn has_group(&self, group: u32) -> bool {
        self.pipeline.groups().contains(group)
    }

    /// Whether the meter exists.
    pub fn has_meter(&self, meter: u32) -> bool {
        self.pipeline.meters().contains(meter)
    }

    /// Whether the queue exists at this port, or at any.
    pub fn has_queue(&self, port: Option<model::PortNo>, queue: u32) -> bool {
        let has = |port: &model::PortNo| self.pipeline.egress().shaped().contains(*port, queue);
        port.as_ref().map_or_else(|| self.ports.iter().any(has), has)
    }
}

fn output_down(
    port: model::PortNo,
    bytes_max: u16,
    place: ActionContext,
    world: &ActionLimits<'_>,
) -> Result<Action, ErrorCode> {
    Ok(match port {
        reserved::TABLE if place != ActionContext::PacketOut => {
            return Err(ErrorCode::ActionBadOutPort);
        }
        reserved::IN_PORT => Action::InPort,
        reserved::TABLE => Action::Table,
        reserved::NORMAL => Action::Normal,
        reserved::FLOOD => Action::Flood,
        reserved::ALL => Action::All,
        reserved::CONTROLLER => Action::Controller { bytes_max },
        reserved::LOCAL => Action::Local,
        port if world.has_port(port) => Action::Output { port },
        _ => return Err(ErrorCode::ActionBadOutPort),
    })
}

/// Pipeline fields, which cannot be set before 1.5. The tunnel ID can.
const OF_THE_WAY: [Field; 5] =
    [Field::InPort, Field::InPhyPort, Field::Metadata, Field::ActsetOutput, Field::PacketType];

/// Whether set-field and copy-field may write the field. `ipv6_exthdr` is not a field of the frame:
/// it follows from the headers.
pub fn is_writable(field: Field, version: Version) -> bool {
    let metadata = field == Field::Metadata && version >= Version::V1_5;
    metadata || (!OF_THE_WAY.contains(&field) && field != Field::Ipv6Exthdr)
}

fn set_field_down(set: &FieldMatch, version: Version) -> Result<Action, ErrorCode> {
    let FieldMatch { field, value, mask } = *set;
    if !is_writable(field, version) {
        return Err(ErrorCode::ActionBadSetType);
    }
    Ok(Action::SetField { field, value, mask })
}

fn copy_field_down(copy: &CopyField) -> Result<Action, ErrorCode> {
    let CopyField { bits, src, src_offset, dst, dst_offset } = *copy;
    let fits = |field: Field, offset: u16| {
        u32::from(offset) + u32::from(bits) <= field.bits() && !is_port(field)
    };
    if bits == 0 || !fits(src, src_offset) || !fits(dst, dst_offset) {
        return Err(ErrorCode::ActionBadArgument);
    }
    if !is_writable(dst, Version::V1_5) {
        return Err(ErrorCode::ActionBadSetType);
    }
    Ok(Action::CopyField {
        from: src,
        from_bit: src_offset as u8,
        to: dst,
        to_bit: dst_offset as u8,
        bits: bits as u8,
    })
}

/// Returns the action that selects flow entries with output to `port`, or `None` for all entries.
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

/// Returns the `max_len` of each output to other ports than the controller, in order, for
/// [`actions_up`]. Returns an empty list if all are zero. For the controller, the core's action has
/// it.
pub fn output_bytes_max<'a>(from: impl Iterator<Item = &'a model::Action>) -> Arc<[u16]> {
    let outputs = from.filter_map(|action| match *action {
        model::Action::Output { port: reserved::CONTROLLER, .. } => None,
        model::Action::Output { bytes_max, .. } => Some(bytes_max),
        _ => None,
    });
    let sent: Vec<u16> = outputs.collect();
    if sent.iter().all(|bytes_max| *bytes_max == 0) { Arc::default() } else { sent.into() }
}

/// Converts actions to OpenFlow. Each output to other ports than the controller takes the next
/// number of `bytes_max`.
pub fn actions_up(
    from: &[Action],
    bytes_max: &mut impl Iterator<Item = u16>,
) -> Vec<model::Action> {
    let with_bytes_max = |action| {
        let mut action = action_up(action);
        if let model::Action::Output { port, bytes_max: sent } = &mut action
            && *port != reserved::CONTROLLER
            && let Some(next) = bytes_max.next()
        {
            *sent = next;
        }
        action
    };
    from.iter().map(with_bytes_max).collect()
}

fn action_up(from: &Action) -> model::Action {
    use model::Action as To;
    let output = |port| To::Output { port, bytes_max: 0 };
    match *from {
        Action::Output { port } => output(port_up(port)),
        Action::InPort => output(reserved::IN_PORT),
        Action::All => output(reserved::ALL),
        Action::Flood => output(reserved::FLOOD),
        Action::Controller { bytes_max } => To::Output { port: reserved::CONTROLLER, bytes_max },
        Action::Normal => output(reserved::NORMAL),
        Action::Local => output(reserved::LOCAL),
        Action::Table => output(reserved::TABLE),
        Action::Enqueue { port, queue } => To::Enqueue { port: port_up(port), queue },
        Action::SetQueue(queue) => To::SetQueue(queue),
        Action::Group(group) => To::Group(group),
        Action::Meter(meter) => To::Meter(meter),
        Action::SetField { field, value, mask } => To::SetField(FieldMatch { field, value, mask }),
        Action::CopyField { from, from_bit, to, to_bit, bits } => To::CopyField(CopyField {
            bits: bits.into(),
            src: from,
            src_offset: from_bit.into(),
            dst: to,
            dst_offset: to_bit.into(),
        }),
        Action::PushVlan(kind) => To::PushVlan(kind),
        Action::PopVlan => To::PopVlan,
        Action::PushMpls(kind) | Action::PushMplsBehindVlan(kind) => To::PushMpls(kind),
        Action::PopMpls(kind) => To::PopMpls(kind),
        Action::PushPbb(kind) => To::PushPbb(kind),
        Action::PopPbb => To::PopPbb,
        Action::CopyTtlOut => To::CopyTtlOut,
        Action::CopyTtlIn => To::CopyTtlIn,
        Action::SetMplsTtl(ttl) => To::SetMplsTtl(ttl),
        Action::DecMplsTtl => To::DecMplsTtl,
        Action::SetIpTtl(ttl) => To::SetNwTtl(ttl),
        Action::DecIpTtl => To::DecNwTtl,
        Action::SetVlan(id) => To::SetVlanVid(id),
        Action::SetVlanPriority(priority) => To::SetVlanPcp(priority),
        Action::SetL4Src(port) => To::SetTransportSrc(port),
        Action::SetL4Dst(port) => To::SetTransportDst(port),
    }
}
