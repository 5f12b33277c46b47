//! A maintenance end point: sends CCMs to its peers and checks theirs.
//!
//! IEEE 802.1Q 20.1:
//!
//! - A peer is lost after three and a half periods without a CCM. Our CCMs report this with the RDI
//!   flag.
//! - An unexpected CCM is a defect: another association, an unexpected end point or our own id,
//!   another period, or a lower level. A defect lasts three and a half periods of the sender.

use std::collections::BTreeMap;

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::pdu::{self, Header, Pdu, op};
use crate::agent::{Around, StatusValue};

/// Periods by their number in the CCM flags (IEEE 802.1Q table 21-16), with their names in
/// programs.
pub const PERIODS: [(Nanos, &str); 7] = [
    (Nanos(3_333_333), "3.33ms"),
    (Nanos::from_millis(10), "10ms"),
    (Nanos::from_millis(100), "100ms"),
    (Nanos::from_secs(1), "1s"),
    (Nanos::from_secs(10), "10s"),
    (Nanos::from_secs(60), "1min"),
    (Nanos::from_secs(600), "10min"),
];

/// Defect of a CCM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// From another association.
    Mismerge,
    /// From an unexpected end point, or one with our id.
    UnexpectedMep,
    /// With a period other than ours.
    UnexpectedPeriod,
    /// Of a lower level.
    UnexpectedLevel,
}

impl Defect {
    /// Returns the name of the event that reports its start.
    pub fn name(self) -> &'static str {
        match self {
            Defect::Mismerge => "Mismerge",
            Defect::UnexpectedMep => "UnexpectedMep",
            Defect::UnexpectedPeriod => "UnexpectedPeriod",
            Defect::UnexpectedLevel => "UnexpectedLevel",
        }
    }
}

/// Settings of an end point in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// MEP id, 1 to 8191.
    pub id: u16,
    /// Level.
    pub level: u8,
    /// Port number.
    pub port: u32,
    /// VLAN id; zero for untagged.
    pub vid: u16,
    /// Hardware address, if it differs from that of the port.
    pub mac: Option<Mac>,
    /// Maintenance association.
    pub maid: [u8; pdu::MAID_BYTES],
    /// Index of the period in [`PERIODS`]; none if the end point neither sends nor expects CCMs.
    pub period: Option<usize>,
    /// Ids of the expected peers.
    pub peers: Vec<u16>,
}

/// A maintenance end point.
#[derive(Debug)]
pub struct Mep {
    /// Settings.
    pub settings: Settings,
    peers: BTreeMap<u16, Peer>,
    /// End time of each defect.
    defects: BTreeMap<Defect, Nanos>,
    sequence: u32,
    next_ccm: Nanos,
    /// Whether it sends CCMs; a command can change this.
    pub sends: bool,
    counters: Counters,
}

/// A peer end point.
#[derive(Debug, Default)]
struct Peer {
    /// Time after which the peer is lost.
    until: Nanos,
    is_lost: bool,
    rdi: bool,
    mac: Option<Mac>,
    last: Option<u32>,
    received: u64,
    /// Number of CCMs out of sequence.
    out_of_sequence: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    sent: u64,
    received: u64,
}

impl Mep {
    /// Creates an end point that starts at its first time update.
    pub fn new(settings: Settings) -> Mep {
        let peers = settings.peers.iter().map(|id| (*id, Peer::default())).collect();
        Mep {
            settings,
            peers,
            defects: BTreeMap::new(),
            sequence: 0,
            next_ccm: Nanos::ZERO,
            sends: true,
            counters: Counters::default(),
        }
    }

    /// Returns the hardware address.
    pub fn mac(&self, around: &Around<'_>) -> Mac {
        self.settings.mac.unwrap_or_else(|| around.mac_of(self.settings.port))
    }

    /// Returns the tag of sent frames: the VLAN with the highest priority.
    pub fn tag(&self) -> Option<u16> {
        (self.settings.vid != 0).then_some(7 << packet::header::vlan::PCP_SHIFT | self.settings.vid)
    }

    /// Creates the header of a sent frame.
    pub fn header(&self, destination: Mac, op: u8, tlvs: u8, around: &Around<'_>) -> Header {
        let (source, tag) = (self.mac(around), self.tag());
        Header {
            destination,
            source,
            tag,
            level: self.settings.level,
            op,
            flags: 0,
            tlv_offset: tlvs,
        }
    }

    fn period(&self) -> Option<Nanos> {
        self.settings.period.map(|at| PERIODS[at].0)
    }

    /// Returns true if any peer is lost.
    fn misses(&self) -> bool {
        self.peers.values().any(|peer| peer.is_lost)
    }

    /// Processes a CCM of its port and VLAN.
    pub fn ccm_came(&mut self, ccm: &Pdu<'_>, around: &mut Around<'_>) {
        let Some(own) = self.settings.period else { return };
        let number = usize::from(ccm.flags & 7);
        let fields = ccm.body.get(..54).zip(number.checked_sub(1));
        let Some((fields, period)) = fields.filter(|_| !ethernet::is_group(&ccm.source)) else {
            return;
        };
        self.counters.received += 1;
        let sender = u16::from_be_bytes([fields[4], fields[5]]);
        let until = around.now.saturating_add(lost_after(PERIODS[period].0));
        let defect = if ccm.level < self.settings.level {
            Some(Defect::UnexpectedLevel)
        } else if fields[6..54] != self.settings.maid {
            Some(Defect::Mismerge)
        } else if sender == self.settings.id || !self.peers.contains_key(&sender) {
            Some(Defect::UnexpectedMep)
        } else if period != own {
            Some(Defect::UnexpectedPeriod)
        } else {
            None
        };
        if let Some(defect) = defect {
            if self.defects.insert(defect, until).is_none() {
                let facts = StatusValue::from([
                    ("mep", self.settings.id.into()),
                    ("from_mep", sender.into()),
                    ("from", StatusValue::text(ethernet::ShowMac(ccm.source))),
                ]);
                around.event(defect.name(), facts);
            }
            return;
        }
        let mep = self.settings.id;
        let Some(peer) = self.peers.get_mut(&sender) else { return };
        let about = || StatusValue::from([("mep", mep.into()), ("peer", sender.into())]);
        peer.until = around.now.saturating_add(lost_after(PERIODS[own].0));
        peer.received += 1;
        peer.mac = Some(ccm.source);
        let sequence = ccm.u32(0);
        // Zero means that the sender does not number its CCMs.
        let follows = peer.last.is_none_or(|last| sequence == Some(last.wrapping_add(1)));
        peer.out_of_sequence += u64::from(!follows && sequence != Some(0));
        peer.last = sequence;
        if std::mem::take(&mut peer.is_lost) || peer.received == 1 {
            around.event("PeerFound", about());
        }
        let rdi = ccm.flags & pdu::RDI != 0;
        if std::mem::replace(&mut peer.rdi, rdi) != rdi {
            around.event(if rdi { "RdiSeen" } else { "RdiGone" }, about());
        }
    }

    /// Sends due CCMs and detects lost peers.
    pub fn time_came(&mut self, around: &mut Around<'_>) {
        let (Some(period), Some(number)) = (self.period(), self.settings.period) else { return };
        let now = around.now;
        if self.next_ccm == Nanos::ZERO {
            // First time update: from now on peers are expected.
            self.next_ccm = now;
            let until = now.saturating_add(lost_after(period));
            self.peers.values_mut().for_each(|peer| peer.until = until);
        }
        let mep = self.settings.id;
        for (id, peer) in &mut self.peers {
            if !peer.is_lost && peer.until <= now {
                (peer.is_lost, peer.last) = (true, None);
                around.event(
                    "PeerLost",
                    StatusValue::from([("mep", mep.into()), ("peer", (*id).into())]),
                );
                if std::mem::take(&mut peer.rdi) {
                    let about = StatusValue::from([("mep", mep.into()), ("peer", (*id).into())]);
                    around.event("RdiGone", about);
                }
            }
        }
        self.defects.retain(|defect, until| {
            let lasts = *until > now;
            if !lasts {
                let about = [("mep", mep.into()), ("defect", defect.name().into())];
                around.event("DefectGone", StatusValue::from(about));
            }
            lasts
        });
        if self.next_ccm > now {
            return;
        }
        // A late update sends one CCM, and none for the missed times.
        let next = self.next_ccm.saturating_add(period);
        self.next_ccm = if next > now { next } else { now.saturating_add(period) };
        if !self.sends {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let mut header =
            self.header(pdu::group(self.settings.level, false), op::CCM, pdu::CCM_TLVS, around);
        header.flags = (number as u8 + 1) | if self.misses() { pdu::RDI } else { 0 };
        let body = pdu::ccm(self.sequence, self.settings.id, &self.settings.maid);
        around.send(self.settings.port, &header.frame(&body));
        self.counters.sent += 1;
    }

    /// Returns the time of the next work.
    pub fn due(&self) -> Option<Nanos> {
        self.period()?;
        let peers = self.peers.values().filter(|peer| !peer.is_lost).map(|peer| peer.until);
        peers.chain(self.defects.values().copied()).chain([self.next_ccm]).min()
    }

    /// Returns state and counters.
    pub fn facts(&self) -> StatusValue {
        let peers = self.peers.iter().map(|(id, peer)| {
            StatusValue::from([
                ("mep", (*id).into()),
                ("lost", peer.is_lost.into()),
                ("rdi", peer.rdi.into()),
                ("mac", peer.mac.map(|mac| StatusValue::text(ethernet::ShowMac(mac))).into()),
                ("ccms_received", peer.received.into()),
                ("ccms_out_of_sequence", peer.out_of_sequence.into()),
            ])
        });
        let defects = self.defects.keys().map(|defect| StatusValue::from(defect.name()));
        StatusValue::from([
            ("mep", self.settings.id.into()),
            ("level", self.settings.level.into()),
            ("port", self.settings.port.into()),
            ("vlan", self.settings.vid.into()),
            ("sends_rdi", self.misses().into()),
            ("ccms_sent", self.counters.sent.into()),
            ("ccms_received", self.counters.received.into()),
            ("defects", defects.collect::<Vec<_>>().into()),
            ("peers", peers.collect::<Vec<_>>().into()),
        ])
    }
}

/// Returns three and a half periods.
fn lost_after(period: Nanos) -> Nanos {
    Nanos(period.0 * 7 / 2)
}
