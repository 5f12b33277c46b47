//! Recovery: waits for a switch that disconnected or stopped replying, then clears its tables.
//!
//! Source: costa2017, section IV-E (switches that hang when their tables are nearly full have to be restarted).
//!
//! Method: the module opens a connection, deletes all entries of all tables and waits for the barrier reply. If the
//! connection fails, closes or stays silent, it opens another one. It ends when the switch replies, or after the
//! time limit.
//!
//! Invariants:
//!
//! - It always ends.
//! - Only the barrier reply shows success.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::table::TABLE_ALL;
use openflow::model::{FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Connection, Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements,
    TIME_LIMIT, TimerId,
};

use super::forwarding_check::UNANSWERED;
use super::requests::PATIENCE_LIMIT;

/// Limit that ends the module if the switch does not reply again.
pub const NEEDS_RESET: &str = "timeout for a switch that stopped replying";

/// Maximum time without a message on a connection.
const SILENT: Nanos = Nanos::from_secs(5);

/// Time between two attempts.
const PAUSE: Nanos = Nanos::from_millis(200);

/// State of the module.
pub struct Recovery {
    switch: usize,
    limit: Nanos,
    begun: Nanos,
    attempts: u32,
    /// Timers of the end and of the next step.
    over: Option<TimerId>,
    timer: Option<TimerId>,
    barrier: Option<Xid>,
    is_connected: bool,
    took: Option<Nanos>,
}

/// Returns whether a switch needs recovery after a module ended like this.
pub fn is_wanted(ended: &Ended) -> bool {
    match ended {
        Ended::Lost { .. } | Ended::NotReady { .. } => true,
        Ended::Limit(name) => [UNANSWERED, PATIENCE_LIMIT, TIME_LIMIT].contains(name),
        _ => false,
    }
}

impl Recovery {
    /// Creates the module for one of the switches, with a time limit.
    pub fn new(switch: usize, limit: Nanos) -> Recovery {
        let (begun, attempts, is_connected) = (Nanos(0), 0, false);
        let (over, timer, barrier, took) = (None, None, None, None);
        Recovery { switch, limit, begun, attempts, over, timer, barrier, is_connected, took }
    }

    /// Returns the time until the switch replied; `None` if it did not.
    pub fn took(&self) -> Option<Nanos> {
        self.took
    }

    fn wait(&mut self, span: Nanos, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(span));
    }

    fn connect(&mut self, context: &mut ModuleContext) {
        self.attempts += 1;
        (self.is_connected, self.barrier) = (true, None);
        context.connect(0);
        self.wait(SILENT.saturating_add(tester::executor::CONNECT_NS_MAX), context);
    }

    /// Closes the connection and opens another one soon.
    fn give_up(&mut self, context: &mut ModuleContext) {
        if std::mem::take(&mut self.is_connected) {
            context.disconnect(0);
        }
        self.wait(PAUSE, context);
    }

    fn empty(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        // In OpenFlow 1.0, table 0 stands for all tables.
        let table = if version == Some(Version::V1_0) { 0 } else { TABLE_ALL };
        let delete = FlowMod::delete(table, Match::ANY);
        let said = context.send_all(0, vec![Message::FlowMod(delete), Message::BarrierRequest]);
        self.barrier = said.xids().last();
        self.wait(SILENT, context);
    }
}

impl Module for Recovery {
    fn needs(&self) -> ModuleRequirements {
        let opens =
            Connection { opens: false, requests_features: false, ..Connection::new(self.switch) };
        let limit = self.limit.saturating_add(SILENT);
        ModuleRequirements {
            connections: vec![opens],
            stops_on_disconnect: false,
            ..ModuleRequirements::new(limit)
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                self.begun = context.now();
                self.over = Some(context.timer_in(self.limit));
                self.connect(context);
            }
            EventKind::Connected { facts, .. } => self.empty(facts.version, context),
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.took = Some(event.at.since(self.begun));
                context.end();
            }
            EventKind::Disconnected { .. } => {
                self.is_connected = false;
                self.wait(PAUSE, context);
            }
            EventKind::Timer(timer) if self.over == Some(timer) => {
                context.end_by_limit(NEEDS_RESET)
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => {
                self.timer = None;
                match self.is_connected {
                    true => self.give_up(context),
                    false => self.connect(context),
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let attempts = f64::from(self.attempts);
        context.measured(MeasuredValue::new("attempts_count", "count", attempts, 0.0));
    }
}
