//! Recovery: a switch that fell silent or left is waited for, and emptied.
//!
//! Source: costa2017, section IV-E (switches that hang when their tables are nearly full have to be restarted). Method: a
//! connection is made, every flow of every table deleted, and the barrier behind that waited for; a connection that
//! is not made, is lost or stays silent is given up for a new one, until the switch has answered or has had its time.
//! Invariant: it has an end, and nothing is believed but the barrier's answer.

use instrument::module::{
    Connection, Desk, Ended, Event, Measured, Module, Needs, TIME_LIMIT, TimerId, What,
};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::table::TABLE_ALL;
use openflow::model::{FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;

use super::asking::PATIENCE_LIMIT;
use super::passage::UNANSWERED;

/// By what it ends where the switch does not answer again.
pub const NEEDS_RESET: &str = "the time in which a switch that hangs may answer again";

/// How long a connection may stay silent.
const SILENT: Nanos = Nanos::from_secs(5);

/// Time between two attempts.
const PAUSE: Nanos = Nanos::from_millis(200);

/// State of the module.
pub struct Recovery {
    switch: usize,
    limit: Nanos,
    begun: Nanos,
    attempts: u32,
    /// The end, and what is next until then.
    over: Option<TimerId>,
    timer: Option<TimerId>,
    barrier: Option<Xid>,
    is_connected: bool,
    took: Option<Nanos>,
}

/// Whether a switch is to be looked after once a module has ended so.
pub fn is_wanted(ended: &Ended) -> bool {
    match ended {
        Ended::Lost { .. } | Ended::NotReady { .. } => true,
        Ended::Limit(name) => [UNANSWERED, PATIENCE_LIMIT, TIME_LIMIT].contains(name),
        _ => false,
    }
}

impl Recovery {
    /// For this of the switches at hand, which may take so long.
    pub fn new(switch: usize, limit: Nanos) -> Recovery {
        let (begun, attempts, is_connected) = (Nanos(0), 0, false);
        let (over, timer, barrier, took) = (None, None, None, None);
        Recovery { switch, limit, begun, attempts, over, timer, barrier, is_connected, took }
    }

    /// How long it took until the switch had answered; none if it did not.
    pub fn took(&self) -> Option<Nanos> {
        self.took
    }

    fn wait(&mut self, span: Nanos, desk: &mut Desk) {
        self.timer.take().map(|timer| desk.cancel(timer));
        self.timer = Some(desk.timer_in(span));
    }

    fn connect(&mut self, desk: &mut Desk) {
        self.attempts += 1;
        (self.is_connected, self.barrier) = (true, None);
        desk.connect(0);
        self.wait(SILENT.saturating_add(instrument::stage::CONNECT_NS_MAX), desk);
    }

    /// The connection is of no use: another is made soon.
    fn give_up(&mut self, desk: &mut Desk) {
        if std::mem::take(&mut self.is_connected) {
            desk.disconnect(0);
        }
        self.wait(PAUSE, desk);
    }

    fn empty(&mut self, version: Option<Version>, desk: &mut Desk) {
        // What 1.0 says with 0 is every table.
        let table = if version == Some(Version::V1_0) { 0 } else { TABLE_ALL };
        let delete = FlowMod::delete(table, Match::ANY);
        let said = desk.send_all(0, vec![Message::FlowMod(delete), Message::BarrierRequest]);
        self.barrier = said.xids().last();
        self.wait(SILENT, desk);
    }
}

impl Module for Recovery {
    fn needs(&self) -> Needs {
        let opens =
            Connection { opens: false, asks_features: false, ..Connection::new(self.switch) };
        let limit = self.limit.saturating_add(SILENT);
        Needs { connections: vec![opens], ends_when_lost: false, ..Needs::new(limit) }
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(_) => {
                self.begun = desk.now();
                self.over = Some(desk.timer_in(self.limit));
                self.connect(desk);
            }
            What::Up { facts, .. } => self.empty(facts.version, desk),
            What::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.took = Some(event.at.since(self.begun));
                desk.end();
            }
            What::Lost { .. } => {
                self.is_connected = false;
                self.wait(PAUSE, desk);
            }
            What::Timer(timer) if self.over == Some(timer) => desk.end_by_limit(NEEDS_RESET),
            What::Timer(timer) if self.timer == Some(timer) => {
                self.timer = None;
                match self.is_connected {
                    true => self.give_up(desk),
                    false => self.connect(desk),
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        let attempts = f64::from(self.attempts);
        desk.measured(Measured::new("attempts_count", "count", attempts, 0.0));
    }
}
