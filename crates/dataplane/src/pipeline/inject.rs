//! Packet-outs: action lists for frames of the control plane. Some of these frames go to the
//! tables.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.3.7, and 1.5.1, section 7.3.6
//! (packet-out). The control plane specifies the ingress port and, from 1.5 on, other pipeline
//! fields. The tables see the frame and these fields as the preceding actions changed them.

use packet::frame::Frame;
use packet::time::Nanos;

use super::engine::start;
use super::{Pipeline, Worker};
use crate::action::Action;
use crate::counter::DropReason;
use crate::egress::{ActionOutcome, EgressContext};
use crate::forwarder::{Context, Outputs, PacketInReason};
use crate::rewrite;

impl Pipeline {
    /// Executes the actions of a packet-out, as if the frame had been received with these fields
    /// ([`rewrite::Context::at`] a port, if no other fields are given). [`Action::Table`] has an
    /// effect only here. Consumes the frame.
    pub fn execute(
        &mut self,
        frame: &mut Frame,
        fields: rewrite::Context,
        actions: &[Action],
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.tables.publish();
        self.worker.execute(frame, fields, actions, now, out);
        self.worker.rest();
        self.hear_all(now, out);
    }
}

impl Worker {
    fn execute(
        &mut self,
        frame: &mut Frame,
        mut fields: rewrite::Context,
        actions: &[Action],
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.lookup.begin();
        let mut segments = actions.split(|action| *action == Action::Table).peekable();
        let mut sent = false;
        while let Some(segment) = segments.next() {
            let keep = segments.peek().is_some();
            let context = Context { why: PacketInReason::PacketOut, ..start(fields) };
            let mut way = EgressContext { in_port: fields.in_port, now, out, context };
            let ran = self.run_by_engine(segment, frame, keep, &mut way);
            fields = way.context.fields;
            match ran {
                ActionOutcome::Sent => sent = true,
                ActionOutcome::Nowhere => {}
                ActionOutcome::Over => return,
            }
            if keep {
                let mut copy = frame.clone();
                self.forward_stage(fields, std::slice::from_mut(&mut copy), now, out);
                sent = true;
            }
        }
        if !sent {
            self.drops.add(DropReason::NoDestination);
        }
    }
}
