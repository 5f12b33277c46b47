//! Packet-outs: frames that a controller sends, or that the switch buffered for it.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3.6; 1.3.5, section 7.3.7; 1.5.1, section
//! 7.3.6.
//!
//! From 1.5 on a packet-out has a match with pipeline fields, which the tables see if the actions
//! lead there:
//! - `in_port` is required; `metadata` and `tunnel_id` are optional.
//! - `in_phy_port` must be the same port, as no port is stacked on another.
//! - `packet_type` must be Ethernet.
//! - `actset_output` has no effect, as the action set is empty at the start.
//!
//! A packet-out without a buffer and without data sends nothing.
//!
//! Invariant: a packet-out is executed completely, or is rejected and sends nothing.

use dataplane::action::Action;
use dataplane::rewrite::Context;
use openflow::model::matching::FieldMatch;
use openflow::model::{Match, PacketOut, reserved};
use openflow::version::{ErrorCode, Version};
use packet::field::Field;
use packet::frame::{FRAME_BYTES_MAX, Frame, PortNo};

use super::buffers::{Buffers, NoBuffer};
use super::change::Origin;
use super::commit::DeferredWork;
use super::{Agent, Datapath};
use crate::translate;
use crate::translate::action::ActionContext;

/// Packet type of Ethernet.
const ETHERNET: u128 = 0;

/// A frame to be sent.
#[derive(Debug)]
pub(super) struct DeferredPacketOut {
    what: FrameSource,
    /// Initial pipeline fields, if other than the ingress port.
    begins: Option<Context>,
    actions: Vec<Action>,
}

/// Source of the frame.
#[derive(Debug)]
enum FrameSource {
    Frame(Frame),
    /// A buffered frame, which is reserved.
    Buffer(u32),
}

impl DeferredPacketOut {
    /// Executes the actions on the frame.
    pub(super) fn leave(self, buffers: &mut Buffers, datapath: &mut Datapath<'_>) {
        let (port, mut frame) = match self.what {
            FrameSource::Frame(frame) => (reserved::NONE, frame),
            FrameSource::Buffer(id) => {
                buffers.unreserve(id);
                let Ok(kept) = buffers.take(id) else { return };
                kept
            }
        };
        let begins = self.begins.unwrap_or_else(|| Context::at(port));
        let Datapath { pipeline, outputs, now, .. } = datapath;
        pipeline.execute(&mut frame, begins, &self.actions, *now, outputs);
    }

    /// Releases a buffered frame that is not sent.
    pub(super) fn cancel(self, buffers: &mut Buffers) {
        if let FrameSource::Buffer(id) = self.what {
            buffers.unreserve(id);
        }
    }
}

impl Agent {
    pub(super) fn packet_out(
        &mut self,
        who: Origin,
        packet: &PacketOut,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let world = self.world(who, datapath);
        let actions = translate::actions_down(&packet.actions, ActionContext::PacketOut, &world)?;
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
        let what = FrameSource::Frame(Frame::from_bytes(&packet.data));
        self.send(DeferredPacketOut { what, begins: Some(begins), actions }, datapath);
        Ok(())
    }

    /// Sends a frame. During a bundle commit, it is sent when the whole bundle is visible.
    fn send(&mut self, departure: DeferredPacketOut, datapath: &mut Datapath<'_>) {
        match &mut self.transaction {
            Some(transaction) => transaction.late.push_back(DeferredWork::Frame(departure)),
            None => departure.leave(&mut self.buffers, datapath),
        }
    }

    /// Executes actions on a buffered frame. It starts with the pipeline fields of the packet-out,
    /// or else with its ingress port.
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
            DeferredPacketOut { what: FrameSource::Buffer(id), begins, actions: actions.to_vec() },
            datapath,
        );
        Ok(())
    }
}

/// Converts the ingress port of a packet-out to the number of the forwarding core. The port need
/// not exist, as in Open vSwitch. In 1.5 it must be among the pipeline fields (section 7.3.6).
fn in_port_down(port: u32, version: Version) -> Result<PortNo, ErrorCode> {
    let is_valid = match port {
        reserved::CONTROLLER | reserved::LOCAL => true,
        reserved::NONE => version < Version::V1_5,
        port if port >= reserved::MAX => version == Version::V1_0,
        port => translate::has_core_number(port),
    };
    if is_valid { Ok(translate::port_down(port)) } else { Err(ErrorCode::RequestBadPort) }
}

/// Converts the pipeline fields of a packet-out. `named` is the controller's number of the ingress
/// port, `in_port` that of the forwarding core.
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
