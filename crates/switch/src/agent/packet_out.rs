//! Frames that a controller has the switch send, or that the switch had kept for it.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3.6; 1.3.5, section 7.3.7; 1.5.1, section 7.3.6.
//! From 1.5 on a packet-out has a match of pipeline fields, which are what the tables see if the
//! actions lead there: `in_port` has to be among them, `metadata` and `tunnel_id` may be.
//! `in_phy_port` can only be the same port, as none is stacked on another here, `packet_type` only
//! Ethernet. `actset_output` changes nothing: an action set is empty at its beginning.
//!
//! A packet-out without a buffer and without data sends nothing.
//!
//! Invariant: a packet-out is done whole, or is refused and sends nothing.

use dataplane::action::Action;
use dataplane::rewrite::Context;
use openflow::model::matching::FieldMatch;
use openflow::model::{Match, PacketOut, reserved};
use openflow::version::{ErrorCode, Version};
use packet::field::Field;
use packet::frame::{FRAME_BYTES_MAX, Frame, PortNo};

use super::buffers::{Buffers, NoBuffer};
use super::change::Who;
use super::commit::Late;
use super::{Agent, Datapath};
use crate::lower;
use crate::lower::action::Place;

/// Number of Ethernet as a type of packets.
const ETHERNET: u128 = 0;

/// A frame that is to be sent.
#[derive(Debug)]
pub(super) struct Departure {
    what: What,
    /// With which fields it begins, if it is not just where it was received.
    begins: Option<Context>,
    actions: Vec<Action>,
}

/// Which frame.
#[derive(Debug)]
enum What {
    Frame(Frame),
    /// A kept one, which is reserved.
    Buffer(u32),
}

impl Departure {
    /// Does its actions; the frame is used up.
    pub(super) fn leave(self, buffers: &mut Buffers, datapath: &mut Datapath<'_>) {
        let (port, mut frame) = match self.what {
            What::Frame(frame) => (reserved::NONE, frame),
            What::Buffer(id) => {
                buffers.unreserve(id);
                let Ok(kept) = buffers.take(id) else { return };
                kept
            }
        };
        let begins = self.begins.unwrap_or_else(|| Context::at(port));
        let Datapath { pipeline, outputs, now, .. } = datapath;
        pipeline.execute(&mut frame, begins, &self.actions, *now, outputs);
    }

    /// Gives back a kept frame that is not sent after all.
    pub(super) fn cancel(self, buffers: &mut Buffers) {
        if let What::Buffer(id) = self.what {
            buffers.unreserve(id);
        }
    }
}

impl Agent {
    pub(super) fn packet_out(
        &mut self,
        who: Who,
        packet: &PacketOut,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let world = self.world(who, datapath);
        let actions = lower::actions_down(&packet.actions, Place::PacketOut, &world)?;
        let in_port = in_port_down(packet.in_port, who.version)?;
        let begins = fields_down(&packet.fields, packet.in_port, in_port)?;
        if let Some(id) = packet.buffer_id {
            let named = (packet.in_port != reserved::NONE).then_some(begins);
            return self.release(id, named, &actions, datapath);
        }
        if packet.data.is_empty() {
            return Ok(());
        }
        if packet.data.len() > FRAME_BYTES_MAX {
            return Err(ErrorCode::RequestBadLength);
        }
        if packet.data.len() < packet::header::ethernet::HEADER_BYTES {
            return Err(ErrorCode::RequestBadPacket);
        }
        let what = What::Frame(Frame::from_bytes(&packet.data));
        self.send(Departure { what, begins: Some(begins), actions }, datapath);
        Ok(())
    }

    /// Lets a frame go by its actions; of a bundle, when all of it can be seen.
    fn send(&mut self, departure: Departure, datapath: &mut Datapath<'_>) {
        match &mut self.transaction {
            Some(transaction) => transaction.late.push_back(Late::Frame(departure)),
            None => departure.leave(&mut self.buffers, datapath),
        }
    }

    /// Does actions with a kept frame, which begins as the packet-out says or else came in on the
    /// port that it was kept with.
    pub(super) fn release(
        &mut self,
        id: u32,
        begins: Option<Context>,
        actions: &[Action],
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let known = match &self.transaction {
            Some(_) => self.buffers.reserve(id),
            None => self.buffers.check(id),
        };
        known.map_err(buffer_error_up)?;
        self.send(
            Departure { what: What::Buffer(id), begins, actions: actions.to_vec() },
            datapath,
        );
        Ok(())
    }
}

/// The ingress port of a packet-out as the core numbers it. It need not exist: the switch takes the
/// number as it is, as Open vSwitch does. In 1.5 it has to be among the fields (section 7.3.6).
fn in_port_down(port: u32, version: Version) -> Result<PortNo, ErrorCode> {
    let is_valid = match port {
        reserved::CONTROLLER | reserved::LOCAL => true,
        reserved::NONE => version < Version::V1_5,
        port if port >= reserved::MAX => version == Version::V1_0,
        port => lower::has_core_number(port),
    };
    if is_valid { Ok(lower::port_down(port)) } else { Err(ErrorCode::RequestBadPort) }
}

/// With which fields a frame begins that came in on this port (as the controller and as the core
/// numbers it).
fn fields_down(fields: &Match, named: u32, in_port: PortNo) -> Result<Context, ErrorCode> {
    let mut begins = Context::at(in_port);
    if !fields.experimenter().is_empty() {
        return Err(ErrorCode::RequestPipelineFieldsOnly);
    }
    for &FieldMatch { field, value, .. } in fields.fields() {
        match field {
            Field::Metadata | Field::TunnelId => begins.set(field, value as u64, u64::MAX),
            Field::InPhyPort if value != named.into() => return Err(ErrorCode::RequestBadPort),
            Field::PacketType if value != ETHERNET => return Err(ErrorCode::MatchBadValue),
            Field::InPort | Field::InPhyPort | Field::PacketType | Field::ActsetOutput => {}
            _ => return Err(ErrorCode::RequestPipelineFieldsOnly),
        }
    }
    Ok(begins)
}

pub(super) fn buffer_error_up(why: NoBuffer) -> ErrorCode {
    match why {
        NoBuffer::Unknown => ErrorCode::RequestBufferUnknown,
        NoBuffer::Empty => ErrorCode::RequestBufferEmpty,
    }
}
