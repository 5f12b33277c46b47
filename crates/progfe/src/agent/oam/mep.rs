//! One maintenance end point: what it tells its peers in CCMs, and what it finds in theirs.
//!
//! IEEE 802.1Q 20.1: a peer from which nothing came for three and a half periods is lost, and this is told
//! in our CCMs (RDI). A CCM that is not as agreed (another association, an end point that is not
//! expected or ours, another period, a lower level) is a defect, which lasts three and a half periods of
//! whoever sent it.

use std::collections::BTreeMap;

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::pdu::{self, Header, Pdu, op};
use crate::agent::{Around, Fact};

/// Periods, by their number in a CCM's flags (IEEE 802.1Q table 21-16), and as programs write them.
pub const PERIODS: [(Nanos, &str); 7] = [
    (Nanos(3_333_333), "3.33ms"),
    (Nanos::from_millis(10), "10ms"),
    (Nanos::from_millis(100), "100ms"),
    (Nanos::from_secs(1), "1s"),
    (Nanos::from_secs(10), "10s"),
    (Nanos::from_secs(60), "1min"),
    (Nanos::from_secs(600), "10min"),
];

/// What can be wrong with a CCM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// Of another association.
    Mismerge,
    /// From an end point that is not expected, or that has our number.
    UnexpectedMep,
    /// With another period than ours.
    UnexpectedPeriod,
    /// Of a lower level.
    UnexpectedLevel,
}

impl Defect {
    /// The name of the event that it has begun.
    pub fn name(self) -> &'static str {
        match self {
            Defect::Mismerge => "Mismerge",
            Defect::UnexpectedMep => "UnexpectedMep",
            Defect::UnexpectedPeriod => "UnexpectedPeriod",
            Defect::UnexpectedLevel => "UnexpectedLevel",
        }
    }
}

/// What a program sets an end point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its number, 1 to 8191.
    pub id: u16,
    /// Its level.
    pub level: u8,
    /// Its port.
    pub port: u32,
    /// Its VLAN; zero without tags.
    pub vid: u16,
    /// Its address, if it is not its port's.
    pub mac: Option<Mac>,
    /// Its association.
    pub maid: [u8; pdu::MAID_BYTES],
    /// The place of its period in [`PERIODS`]; none if it sends no CCMs and expects none.
    pub period: Option<usize>,
    /// Who is expected.
    pub peers: Vec<u16>,
}

/// An end point.
#[derive(Debug)]
pub struct Mep {
    /// What it is set to.
    pub settings: Settings,
    peers: BTreeMap<u16, Peer>,
    /// Until when each defect lasts.
    defects: BTreeMap<Defect, Nanos>,
    sequence: u32,
    next_ccm: Nanos,
    /// Whether it sends CCMs, as somebody said last.
    pub sends: bool,
    counters: Counters,
}

/// Another end point.
#[derive(Debug, Default)]
struct Peer {
    /// When it is taken for lost.
    until: Nanos,
    is_lost: bool,
    rdi: bool,
    mac: Option<Mac>,
    last: Option<u32>,
    received: u64,
    /// CCMs that did not follow the one before.
    out_of_sequence: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    sent: u64,
    received: u64,
}

impl Mep {
    /// One that begins as soon as it is told a time.
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

    /// Its address.
    pub fn mac(&self, around: &Around<'_>) -> Mac {
        self.settings.mac.unwrap_or_else(|| around.mac_of(self.settings.port))
    }

    /// The tag of what it sends: its VLAN at the highest priority.
    pub fn tag(&self) -> Option<u16> {
        (self.settings.vid != 0).then_some(7 << packet::header::vlan::PCP_SHIFT | self.settings.vid)
    }

    /// The beginning of a frame that it sends.
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

    /// Whether any peer is lost.
    fn misses(&self) -> bool {
        self.peers.values().any(|peer| peer.is_lost)
    }

    /// A CCM of its port and VLAN came.
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
                let facts = Fact::from([
                    ("mep", self.settings.id.into()),
                    ("from_mep", sender.into()),
                    ("from", Fact::text(ethernet::ShowMac(ccm.source))),
                ]);
                around.event(defect.name(), facts);
            }
            return;
        }
        let mep = self.settings.id;
        let Some(peer) = self.peers.get_mut(&sender) else { return };
        let about = || Fact::from([("mep", mep.into()), ("peer", sender.into())]);
        peer.until = around.now.saturating_add(lost_after(PERIODS[own].0));
        peer.received += 1;
        peer.mac = Some(ccm.source);
        let sequence = ccm.u32(0);
        // Who does not number CCMs sends zeros.
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

    /// Sends what is due, and notices who is lost.
    pub fn time_came(&mut self, around: &mut Around<'_>) {
        let (Some(period), Some(number)) = (self.period(), self.settings.period) else { return };
        let now = around.now;
        if self.next_ccm == Nanos::ZERO {
            // The first look at the clock: from now on peers are expected.
            self.next_ccm = now;
            let until = now.saturating_add(lost_after(period));
            self.peers.values_mut().for_each(|peer| peer.until = until);
        }
        let mep = self.settings.id;
        for (id, peer) in &mut self.peers {
            if !peer.is_lost && peer.until <= now {
                (peer.is_lost, peer.last) = (true, None);
                around.event("PeerLost", Fact::from([("mep", mep.into()), ("peer", (*id).into())]));
                if std::mem::take(&mut peer.rdi) {
                    let about = Fact::from([("mep", mep.into()), ("peer", (*id).into())]);
                    around.event("RdiGone", about);
                }
            }
        }
        self.defects.retain(|defect, until| {
            let lasts = *until > now;
            if !lasts {
                let about = [("mep", mep.into()), ("defect", defect.name().into())];
                around.event("DefectGone", Fact::from(about));
            }
            lasts
        });
        if self.next_ccm > now {
            return;
        }
        // Whoever looks at the clock late sends one, and none for the times that were missed.
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

    /// When it has something to do.
    pub fn due(&self) -> Option<Nanos> {
        self.period()?;
        let peers = self.peers.values().filter(|peer| !peer.is_lost).map(|peer| peer.until);
        peers.chain(self.defects.values().copied()).chain([self.next_ccm]).min()
    }

    /// What it knows.
    pub fn facts(&self) -> Fact {
        let peers = self.peers.iter().map(|(id, peer)| {
            Fact::from([
                ("mep", (*id).into()),
                ("lost", peer.is_lost.into()),
                ("rdi", peer.rdi.into()),
                ("mac", peer.mac.map(|mac| Fact::text(ethernet::ShowMac(mac))).into()),
                ("ccms_received", peer.received.into()),
                ("ccms_out_of_sequence", peer.out_of_sequence.into()),
            ])
        });
        let defects = self.defects.keys().map(|defect| Fact::from(defect.name()));
        Fact::from([
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

/// Three and a half periods.
fn lost_after(period: Nanos) -> Nanos {
    Nanos(period.0 * 7 / 2)
}
