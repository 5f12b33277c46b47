//! TCP connections through the target: throughput by window size, and retransmissions.
//!
//! Claim: throughput grows with the window until the target is the limit. Where delays vary much, retransmission
//! timers expire and TCP slows down.
//!
//! Method: the module installs entries for both directions. A program on a host at one end sends to another at the
//! other end for a set time, as fast as the window allows. The programs report received bytes, retransmissions,
//! expired timers and the offered window.
//!
//! Source: gelberger2013, section III. A target without a controller has its entries already.
//!
//! Invariant: a failed connection gives no values.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::host_tasks::{HostTask, HostTaskResult, Transfer, TransferResult};
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};

use super::forwarding_check::UNANSWERED;
use super::rules::Rules;

/// Additional time of a program over its sending time: start, end and data in flight.
const LONGER: Nanos = Nanos::from_secs(20);

/// Bits per byte.
const BITS: f64 = 8.0;

/// A connection, and the entries for its packets.
#[derive(Debug, Clone)]
pub struct Tcp {
    /// Entries of both directions; `None` if the target has no controller.
    pub rules: Option<Vec<Message>>,
    /// Settings of the connection.
    pub transfer: Transfer,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time of the switch for the entries.
    pub patience: Nanos,
}

/// State of the module.
pub struct Connection {
    tcp: Tcp,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    refused: Option<String>,
    found: Option<TransferResult>,
}

impl Connection {
    /// Creates the module for this connection.
    pub fn new(tcp: Tcp) -> Connection {
        Connection { tcp, barrier: None, timer: None, refused: None, found: None }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        let Some(rules) = self.tcp.rules.clone() else { return self.send(context) };
        let mut messages = vec![Message::FlowMod(Rules::cleared(version))];
        messages.extend(rules);
        messages.push(Message::BarrierRequest);
        self.barrier = context.send_all(0, messages).xids().last();
        self.timer = Some(context.timer_in(self.tcp.patience));
    }

    /// Starts the programs once the entries are installed.
    fn send(&mut self, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        match &self.refused {
            Some(why) => context.fail(format!("the switch rejected an entry: {why}")),
            None => context.run_host_task(HostTask::Transfer(self.tcp.transfer.clone())),
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        let Some(found) = &self.found else { return };
        let seconds = found.seconds.max(f64::MIN_POSITIVE);
        let said = |it: MeasuredValue| it.noting(format!("reported by {}", found.program));
        let mut tell = |name: &'static str, unit: &'static str, value: f64| {
            context.measured(said(MeasuredValue::new(name, unit, value, 0.0)));
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
    fn needs(&self) -> ModuleRequirements {
        let Tcp { rules, transfer, versions, patience } = &self.tcp;
        let limit = Nanos(patience.0.saturating_add(transfer.span.0)).saturating_add(LONGER);
        let needs = ModuleRequirements::new(limit).in_versions(versions);
        match rules {
            Some(_) => needs,
            None => ModuleRequirements { connections: Vec::new(), ..needs },
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Message { message: Message::Error(error), .. } => {
                self.refused.get_or_insert(error.to_string());
            }
            EventKind::SendFailed { why, .. } => {
                self.refused.get_or_insert(why.to_string());
                self.send(context);
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.send(context);
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => {
                context.end_by_limit(UNANSWERED)
            }
            EventKind::HostTask(HostTaskResult::Transferred(found)) => {
                self.found = Some(found.clone());
                context.end();
            }
            EventKind::HostTask(HostTaskResult::Failed(why)) => context.fail(why.as_str()),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}
