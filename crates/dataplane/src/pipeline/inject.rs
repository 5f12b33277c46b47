//! Frames that the control plane sends: a list of actions, of which some lead through the tables.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.3.7, and 1.5.1, section 7.3.6 (packet-out): the
//! control plane says on which port such a frame came in and, from 1.5 on, which other pipeline
//! fields it has. What the actions before it changed, in the frame and in these fields, is what the
//! tables see.

use packet::frame::Frame;
use packet::time::Nanos;

use super::engine::start;
use super::{Pipeline, Worker};
use crate::action::Action;
use crate::counter::DropReason;
use crate::egress::{Ran, Way};
use crate::forwarder::{Context, Outputs, PacketInReason};
use crate::rewrite;

impl Pipeline {
    /// Does actions with a frame that the control plane sends as if it had come in with these
    /// fields ([`rewrite::Context::at`] a port, if nothing else is known). This is the one place
    /// where [`Action::Table`] means something. The frame is used up.
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
            let mut way = Way { in_port: fields.in_port, now, out, context };
            let ran = self.run_by_engine(segment, frame, keep, &mut way);
            fields = way.context.fields;
            match ran {
                Ran::Sent => sent = true,
                Ran::Nowhere => {}
                Ran::Over => return,
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
