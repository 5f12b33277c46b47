//! Measurements of an end point on request: loopback, linktrace and delay.
//!
//! A measurement sends its messages at a fixed interval, waits for outstanding replies and stores
//! the result. Two-way delay (Y.1731 clause 8.1) excludes the processing time of the peer: (RxB -
//! TxF) - (TxB - RxF). Each difference uses only one clock.

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::mep::Mep;
use super::pdu::{self, Pdu, op, tlv};
use crate::agent::{Around, StatusValue};

/// Timeout for a reply (IEEE 802.1Q 20.31: five seconds).
pub const PATIENCE: Nanos = Nanos::from_secs(5);
/// Maximum number of messages per measurement.
pub const COUNT_MAX: u64 = 1024;
/// Maximum number of stored replies per measurement.
pub const ANSWERS_MAX: usize = 4096;

/// Kind of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reachability and reply time.
    Loopback {
        /// Size of the data TLV in bytes.
        bytes: u16,
    },
    /// Stations on the path.
    Linktrace {
        /// Maximum number of hops.
        ttl: u8,
    },
    /// Two-way delay.
    Delay,
}

impl Kind {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Loopback { .. } => "loopback",
            Kind::Linktrace { .. } => "linktrace",
            Kind::Delay => "delay",
        }
    }
}

/// A measurement.
#[derive(Debug)]
pub struct Measurement {
    /// Id of the measurement.
    pub id: u64,
    /// Index of its end point.
    pub mep: usize,
    kind: Kind,
    to: Mac,
    interval: Nanos,
    /// Number of the first message.
    first: u32,
    count: u32,
    /// Transmit time of each message.
    sent: Vec<Nanos>,
    due: Option<Nanos>,
    answers: Vec<StatusValue>,
    answers_lost: u64,
    /// Messages with at least one reply.
    answered: Vec<bool>,
    values: Vec<i64>,
}

/// Parameters of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Kind.
    pub kind: Kind,
    /// Target address.
    pub to: Mac,
    /// Number of messages.
    pub count: u32,
    /// Interval between messages.
    pub interval: Nanos,
}

impl Measurement {
    /// Creates a measurement that starts immediately. Its messages are numbered from `first` on.
    pub fn new(id: u64, mep: usize, first: u32, plan: Plan, now: Nanos) -> Measurement {
        Measurement {
            id,
            mep,
            kind: plan.kind,
            to: plan.to,
            interval: plan.interval,
            first,
            count: plan.count,
            sent: Vec::new(),
            due: Some(now),
            answers: Vec::new(),
            answers_lost: 0,
            answered: vec![false; plan.count as usize],
            values: Vec::new(),
        }
    }

    /// Returns the time of the next work; none after the end.
    pub fn due(&self) -> Option<Nanos> {
        self.due
    }

    /// Sends the next message, or ends the measurement.
    pub fn time_came(&mut self, mep: &Mep, around: &mut Around<'_>) {
        if self.due.is_none_or(|due| due > around.now) {
            return;
        }
        if self.sent.len() < self.count as usize {
            let number = self.first.wrapping_add(self.sent.len() as u32);
            let (header, body) = self.message(number, mep, around);
            around.send(mep.settings.port, &header.frame(&body));
            self.sent.push(around.now);
        }
        let is_last = self.sent.len() == self.count as usize;
        let last = self.sent.last().copied().unwrap_or(around.now);
        self.due = match is_last {
            false => Some(last.saturating_add(self.interval)),
            true if last.saturating_add(PATIENCE) > around.now && !self.is_answered() => {
                Some(last.saturating_add(PATIENCE))
            }
            true => None,
        };
    }

    /// Returns true if no further replies are expected.
    fn is_answered(&self) -> bool {
        let one_each =
            !ethernet::is_group(&self.to) && !matches!(self.kind, Kind::Linktrace { .. });
        one_each && self.answered.iter().all(|answered| *answered)
    }

    fn message(&self, number: u32, mep: &Mep, around: &Around<'_>) -> (pdu::Header, Vec<u8>) {
        let mut body = number.to_be_bytes().to_vec();
        match self.kind {
            Kind::Loopback { bytes } => {
                if bytes > 0 {
                    pdu::put(&mut body, tlv::DATA, &vec![0xa5; bytes.into()]);
                }
                body.push(tlv::END);
                (mep.header(self.to, op::LBM, 4, around), body)
            }
            Kind::Linktrace { ttl } => {
                let own = mep.mac(around);
                body.push(ttl);
                body.extend(own);
                body.extend(self.to);
                pdu::put(&mut body, tlv::LTM_EGRESS, &egress_id(mep.settings.port, own));
                body.push(tlv::END);
                let group = pdu::group(mep.settings.level, true);
                let mut header = mep.header(group, op::LTM, 17, around);
                header.flags = pdu::USE_FDB_ONLY;
                (header, body)
            }
            Kind::Delay => {
                let (seconds, nanos) = around.date(around.now);
                body = [seconds.to_be_bytes(), nanos.to_be_bytes()].concat();
                body.resize(pdu::DELAY_BYTES, 0);
                body.push(tlv::END);
                (mep.header(self.to, op::DMM, pdu::DELAY_BYTES as u8, around), body)
            }
        }
    }

    /// Stores a reply with its receive time. Returns false if it does not belong to this
    /// measurement.
    pub fn answer_came(&mut self, answer: &Pdu<'_>, came: Nanos, around: &Around<'_>) -> bool {
        let index = match (self.kind, answer.op) {
            (Kind::Loopback { .. }, op::LBR) | (Kind::Linktrace { .. }, op::LTR) => {
                answer.u32(0).map(|number| number.wrapping_sub(self.first) as usize)
            }
            (Kind::Delay, op::DMR) => answer.stamp(0).and_then(|stamp| {
                let date = |at: &Nanos| around.epoch.wrapping_add(at.0);
                self.sent.iter().position(|sent| date(sent) == stamp)
            }),
            _ => None,
        };
        let Some(index) = index.filter(|index| *index < self.sent.len()) else { return false };
        if self.due.is_none() {
            return false;
        }
        let facts = match self.kind {
            Kind::Loopback { .. } => {
                let time = came.since(self.sent[index]);
                self.values.push(time.0 as i64);
                vec![("time_ns", time.0.into())]
            }
            Kind::Delay => {
                let (Some(sent), Some(their_in), Some(their_out)) =
                    (answer.stamp(0), answer.stamp(8), answer.stamp(16))
                else {
                    return false;
                };
                let whole = around.epoch.wrapping_add(came.0) as i64 - sent as i64;
                let theirs = their_out as i64 - their_in as i64;
                self.values.push(whole - theirs);
                vec![("delay_ns", (whole - theirs).into()), ("theirs_ns", theirs.into())]
            }
            Kind::Linktrace { .. } => traced(answer),
        };
        self.answered[index] = true;
        if self.answers.len() < ANSWERS_MAX {
            let mut all = vec![
                ("message", index.into()),
                ("from", StatusValue::text(ethernet::ShowMac(answer.source))),
            ];
            all.extend(facts);
            self.answers.push(StatusValue::Named(all));
        } else {
            self.answers_lost += 1;
        }
        if self.sent.len() == self.count as usize && self.is_answered() {
            self.due = None;
        }
        true
    }

    /// Returns the results so far.
    pub fn facts(&self) -> StatusValue {
        let answered = self.answered.iter().filter(|answered| **answered).count();
        let values = &self.values;
        let mean = || values.iter().sum::<i64>().checked_div(values.len() as i64);
        StatusValue::from([
            ("id", self.id.into()),
            ("what", self.kind.name().into()),
            ("to", StatusValue::text(ethernet::ShowMac(self.to))),
            ("done", self.due.is_none().into()),
            ("sent", self.sent.len().into()),
            ("answered", answered.into()),
            ("ns_min", values.iter().min().copied().into()),
            ("ns_mean", mean().into()),
            ("ns_max", values.iter().max().copied().into()),
            ("answers_not_kept", self.answers_lost.into()),
            ("answers", self.answers.clone().into()),
        ])
    }
}

/// Returns the egress identifier of a linktrace message: port and address (IEEE 802.1Q 21.8.8).
pub fn egress_id(port: u32, mac: Mac) -> [u8; 8] {
    let [.., high, low] = port.to_be_bytes();
    let [a, b, c, d, e, f] = mac;
    [high, low, a, b, c, d, e, f]
}

/// Returns the contents of a linktrace reply.
fn traced(answer: &Pdu<'_>) -> Vec<(&'static str, StatusValue)> {
    let relay = match answer.body.get(5) {
        Some(1) => "hit",
        Some(2) => "table",
        Some(3) => "database",
        _ => "unknown",
    };
    let mac = |value: Option<&[u8]>| {
        let mac: Option<Mac> = value.and_then(|value| value.get(1..7)?.try_into().ok());
        mac.map(|mac| StatusValue::text(ethernet::ShowMac(mac)))
    };
    vec![
        ("ttl", answer.body.get(4).copied().into()),
        ("relay", relay.into()),
        ("relayed", (answer.flags & pdu::FWD_YES != 0).into()),
        ("ingress", mac(answer.tlv(tlv::REPLY_INGRESS)).into()),
        ("egress", mac(answer.tlv(tlv::REPLY_EGRESS)).into()),
    ]
}
