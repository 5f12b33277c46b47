//! News: frames for the controllers, and entries that are gone.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.4.1 and 5.4.2. A frame is kept once,
//! whoever is told of it; the first controller to answer gets it.

use dataplane::forwarder::{Event, PacketInReason};
use openflow::model::{self, Message, PacketIn};
use packet::frame::Frame;
use packet::time::Nanos;

use crate::lower;

use super::{Agent, Datapath};

impl Agent {
    /// Tells every controller what the data plane has to tell.
    pub(super) fn tell_news(&mut self, datapath: &mut Datapath<'_>) {
        let mut events = std::mem::take(&mut datapath.outputs.events);
        for event in events.drain(..) {
            match event {
                Event::PacketIn { port, bytes_max, context, frame } => {
                    self.tell_frame(port, context.why, bytes_max, frame, datapath.now);
                }
                Event::FlowRemoved { flow, why } => {
                    let message = Message::FlowRemoved(lower::flow_removed_up(&flow, why));
                    self.tell_all(&message);
                }
                Event::FlowChanged { .. } | Event::FlowTriggered { .. } | Event::Vacancy { .. } => {
                }
            }
        }
        // The vector goes back, so that it is not allocated anew for every turn.
        datapath.outputs.events = events;
    }

    fn tell_frame(
        &mut self,
        port: packet::frame::PortNo,
        why: PacketInReason,
        bytes_max: Option<u16>,
        frame: Frame,
        now: Nanos,
    ) {
        self.counters.frames += 1;
        if self.controllers() == 0 {
            self.counters.frames_unheard += 1;
            return;
        }
        let mut message = PacketIn {
            buffer_id: None,
            frame_bytes: frame.len() as u16,
            in_port: lower::port_up(port),
            reason: match why {
                PacketInReason::NoMatch => model::PacketInReason::NoMatch,
                _ => model::PacketInReason::Action,
            },
            data: frame.bytes().to_vec(),
            ..PacketIn::default()
        };
        message.buffer_id = self.buffers.store(port, frame, now);
        self.counters.frames_not_kept += u64::from(message.buffer_id.is_none());
        let whole = std::mem::take(&mut message.data);
        for connection in self.connections.iter_mut().filter(|connection| connection.up) {
            let wanted = usize::from(bytes_max.unwrap_or(connection.miss_send_bytes));
            let length = match message.buffer_id {
                Some(_) => wanted.min(whole.len()),
                None => whole.len(),
            };
            let data = whole[..length].to_vec();
            let told = connection.tell(&Message::PacketIn(PacketIn { data, ..message.clone() }));
            self.counters.news_lost += u64::from(!told);
        }
    }
}
