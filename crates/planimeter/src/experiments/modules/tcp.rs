//! Connections by TCP through the target: what a window brings, and what was lost and sent again on the way.
//!
//! Claim: throughput grows with the window until the target is the limit; where delays vary much, timers run out and
//! TCP slows down. Method: rules for both ways are put in; a program on a host at the end of one link sends to
//! another at the end of the other for a set time, as fast as the window lets it. How much its receiver had, what
//! was sent again, which timers ran out and which window was really offered is what both say. Source:
//! gelberger2013, section III. A target without a controller holds its entries already. Invariant: a
//! connection that failed measured nothing.

use instrument::module::hosts::{Done, Errand, Transfer, Transferred};
use instrument::module::{Desk, Ended, Event, Measured, Module, Needs, TimerId, What};
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;

use super::passage::UNANSWERED;
use super::rules::Rules;

/// What a program may take longer than it was told to send: its start, its end, and what is then under way.
const LONGER: Nanos = Nanos::from_secs(20);

/// Bits of a byte.
const BITS: f64 = 8.0;

/// A connection, and the rules by which its packets go.
#[derive(Debug, Clone)]
pub struct Tcp {
    /// The rules of both ways; none where the target has no controller.
    pub rules: Option<Vec<Message>>,
    /// The connection.
    pub transfer: Transfer,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// How long the switch may take for the rules.
    pub patience: Nanos,
}

/// State of the module.
pub struct Connection {
    tcp: Tcp,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    refused: Option<String>,
    found: Option<Transferred>,
}

impl Connection {
    /// The module for such a connection.
    pub fn new(tcp: Tcp) -> Connection {
        Connection { tcp, barrier: None, timer: None, refused: None, found: None }
    }

    fn prepare(&mut self, version: Option<Version>, desk: &mut Desk) {
        let Some(rules) = self.tcp.rules.clone() else { return self.send(desk) };
        let mut messages = vec![Message::FlowMod(Rules::cleared(version))];
        messages.extend(rules);
        messages.push(Message::BarrierRequest);
        self.barrier = desk.send_all(0, messages).xids().last();
        self.timer = Some(desk.timer_in(self.tcp.patience));
    }

    /// The switch has its rules: programs are at work from now on.
    fn send(&mut self, desk: &mut Desk) {
        self.timer.take().map(|timer| desk.cancel(timer));
        match &self.refused {
            Some(why) => desk.fail(format!("the switch refused a rule: {why}")),
            None => desk.errand(Errand::Transfer(self.tcp.transfer.clone())),
        }
    }

    fn tell(&self, desk: &mut Desk) {
        let Some(found) = &self.found else { return };
        let seconds = found.seconds.max(f64::MIN_POSITIVE);
        let said = |it: Measured| it.noting(format!("as {} says", found.program));
        let mut tell = |name: &'static str, unit: &'static str, value: f64| {
            desk.measured(said(Measured::new(name, unit, value, 0.0)));
        };
        tell("tcp_throughput_bps", "bps", found.received_bytes as f64 * BITS / seconds);
        tell("retransmits_count", "count", found.retransmits as f64);
        tell("retransmits_fast_count", "count", found.retransmits_fast as f64);
        tell("timeouts_count", "count", found.timeouts as f64);
        tell("timeouts_spurious_count", "count", found.timeouts_spurious as f64);
        if let Some(bytes) = found.segment_bytes.filter(|_| found.received_bytes > 0) {
            let segments = found.received_bytes as f64 / bytes as f64;
            tell("retransmits_ratio", "ratio", found.retransmits as f64 / segments);
        }
        let optional = [
            ("window_obtained_bytes", "bytes", found.window_bytes),
            ("window_congestion_bytes", "bytes", found.congestion_bytes),
            ("segment_payload_bytes", "bytes", found.segment_bytes),
            ("tcp_rtt_ns_mean", "ns", found.round_trip_us.map(|us| us * 1000)),
        ];
        for (name, unit, value) in optional {
            if let Some(value) = value {
                tell(name, unit, value as f64);
            }
        }
    }
}

impl Module for Connection {
    fn needs(&self) -> Needs {
        let Tcp { rules, transfer, versions, patience } = &self.tcp;
        let limit = Nanos(patience.0.saturating_add(transfer.span.0)).saturating_add(LONGER);
        let needs = Needs::new(limit).in_versions(versions);
        match rules {
            Some(_) => needs,
            None => Needs { connections: Vec::new(), ..needs },
        }
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => self.prepare(facts.version(0), desk),
            What::Message { message: Message::Error(error), .. } => {
                self.refused.get_or_insert(error.to_string());
            }
            What::Unsent { why, .. } => {
                self.refused.get_or_insert(why.to_string());
                self.send(desk);
            }
            What::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.send(desk);
            }
            What::Timer(timer) if self.timer == Some(timer) => desk.end_by_limit(UNANSWERED),
            What::Errand(Done::Transferred(found)) => {
                self.found = Some(found.clone());
                desk.end();
            }
            What::Errand(Done::Failed(why)) => desk.fail(why.as_str()),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        self.tell(desk);
    }
}
