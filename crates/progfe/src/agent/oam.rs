//! Ethernet OAM agent (IEEE 802.1Q clauses 18 to 22, ITU-T Y.1731).
//!
//! Its maintenance end points (MEPs) send CCMs to their peers, reply to loopback, linktrace and
//! delay messages, and measure with such messages. The program's graph selects the frames that come
//! here, mainly by level.
//!
//! Invariants: every frame gets a reply or is counted by the reason for none. The number of delayed
//! replies is limited.

use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::{Agent, AgentRequest, Around, Setup, StatusValue};
use crate::lfb::exceptions::DivertedFrame;
use crate::lfb::meta_id;
use crate::program::{AgentSetting, Program, class_id};

pub mod mep;
pub mod measure;
pub mod pdu;

use measure::{Kind, Measurement, Plan};
use mep::{Mep, PERIODS, Settings};
use pdu::{Pdu, op, tlv};

/// Type name of such an agent.
pub const KIND: &str = "y1731";
/// Events of such an agent.
pub const EVENTS: &[&str] = &[
    "PeerFound",
    "PeerLost",
    "RdiSeen",
    "RdiGone",
    "Mismerge",
    "UnexpectedMep",
    "UnexpectedPeriod",
    "UnexpectedLevel",
    "DefectGone",
    "MeasurementDone",
];

/// Maximum number of stored measurements.
pub const MEASUREMENTS_MAX: usize = 16;
/// Maximum number of delayed replies to multicast loopback messages.
pub const DELAYED_MAX: usize = 64;
/// Maximum number of end points per agent.
const MEPS_MAX: usize = 1024;

const COMMANDS: &[&str] = &["loopback", "linktrace", "delay", "result", "ccm"];

/// The OAM agent.
#[derive(Debug)]
pub struct Oam {
    meps: Vec<Mep>,
    replies: Replies,
    /// Delayed replies with their time and port.
    delayed: Vec<(Nanos, u32, Vec<u8>)>,
    measurements: Vec<Measurement>,
    measured: u64,
    transaction: u32,
    counters: Counters,
}

/// Messages that get replies.
#[derive(Debug, Default)]
struct Replies {
    loopback: bool,
    /// Name of the bridge table, if any.
    linktrace: Option<Option<String>>,
    delay: bool,
}

/// Frames by outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    loopback_answered: u64,
    linktrace_answered: u64,
    linktrace_relayed: u64,
    delay_answered: u64,
    not_oam: u64,
    no_mep: u64,
    not_for_us: u64,
    not_answered: u64,
    delayed_full: u64,
    unasked: u64,
}

impl Oam {
    /// Creates the agent from its settings.
    pub fn new(setup: &mut Setup<'_>) -> Option<Oam> {
        setup.own(&[]);
        let (mut meps, mut replies) = (Vec::new(), Replies::default());
        let settings = setup.elements(&["mep", "reply"]);
        let declared = settings.iter().filter(|setting| setting.name == "mep").count();
        for setting in settings {
            if setting.name == "mep" {
                meps.extend(mep(setup, setting).map(Mep::new));
                continue;
            }
            let fields = setup.fields(setting, &["op", "fdb", "stamp"]);
            match setup.needed(fields, "op") {
                Some("LBM") => replies.loopback = true,
                Some("LTM") => {
                    let fdb = setup.instance(fields, "fdb", class_id::LEARN_SEARCH);
                    replies.linktrace = Some(fdb);
                }
                Some("DMM") => replies.delay = true,
                Some(other) => {
                    setup.wrong(
                        fields,
                        "op",
                        format!("invalid value \"{other}\""),
                        "use LBM, LTM or DMM",
                    );
                }
                None => {}
            }
            if !matches!(fields.text("stamp"), None | Some("kernel" | "element")) {
                setup.wrong(fields, "stamp", "unknown timestamp", "use kernel or element");
            }
        }
        if declared == 0 {
            setup.lacks("no end point", "write <mep id=\"1\" level=\"0\" port=\"1\" ma=\"...\"/>");
        }
        if declared > MEPS_MAX {
            setup.lacks("too many end points", "use at most 1024");
        }
        Some(Oam {
            meps,
            replies,
            delayed: Vec::new(),
            measurements: Vec::new(),
            measured: 0,
            transaction: 0,
            counters: Counters::default(),
        })
    }

    /// Replies to a loopback message for an end point.
    fn loopback(&mut self, at: usize, message: &Pdu<'_>, around: &mut Around<'_>) {
        let mep = &self.meps[at];
        let own = mep.mac(around);
        let to_all = message.destination == pdu::group(mep.settings.level, false);
        if !self.replies.loopback || ethernet::is_group(&message.source) {
            self.counters.not_answered += 1;
            return;
        }
        if message.destination != own && !to_all {
            self.counters.not_for_us += 1;
            return;
        }
        let mut header = mep.header(message.source, op::LBR, message.tlv_offset as u8, around);
        (header.flags, header.tag) = (message.flags, message.tag);
        let frame = header.frame(message.body);
        self.counters.loopback_answered += 1;
        if !to_all {
            around.send(mep.settings.port, &frame);
            return;
        }
        if self.delayed.len() == DELAYED_MAX {
            self.counters.loopback_answered -= 1;
            self.counters.delayed_full += 1;
            return;
        }
        // IEEE 802.1Q 20.2.2: delay of up to a second, so that not all stations reply at the same
        // time.
        let pause = Nanos(around.below(1_000_000_000));
        self.delayed.push((around.now.saturating_add(pause), mep.settings.port, frame));
    }

    /// Replies to a linktrace message, and relays it if the table knows the target (IEEE 802.1Q
    /// 20.3).
    fn linktrace(&mut self, at: usize, message: &Pdu<'_>, around: &mut Around<'_>) {
        let mep = &self.meps[at];
        let own = mep.mac(around);
        let fields = (message.u32(0), message.body.get(4), message.mac(5), message.mac(11));
        let (Some(number), Some(&ttl), Some(origin), Some(target)) = fields else {
            self.counters.not_oam += 1;
            return;
        };
        let for_us = [pdu::group(mep.settings.level, true), own].contains(&message.destination);
        let table = self.replies.linktrace.as_ref().filter(|_| for_us && ttl > 0 && origin != own);
        let Some(table) = table.filter(|_| !ethernet::is_group(&origin)) else {
            self.counters.not_answered += 1;
            return;
        };
        let known = table
            .as_ref()
            .and_then(|table| around.tables.station(table, target, mep.settings.vid, around.now));
        let egress = known.filter(|port| *port != mep.settings.port && target != own);
        let relay = match (target == own, egress) {
            (true, _) => 1,
            (false, Some(_)) => 2,
            (false, None) => {
                self.counters.not_answered += 1;
                return;
            }
        };
        let last = message.tlv(tlv::LTM_EGRESS).and_then(|id| id.first_chunk::<8>().copied());
        let relays = egress.filter(|_| ttl > 1);
        let egress_mac = egress.map(|port| around.mac_of(port));
        let next = relays.zip(egress_mac).map(|(port, mac)| measure::egress_id(port, mac));
        let mut body = number.to_be_bytes().to_vec();
        body.extend([ttl - 1, relay]);
        let ids = [last.unwrap_or_default(), next.unwrap_or_default()].concat();
        pdu::put(&mut body, tlv::LTR_EGRESS, &ids);
        pdu::put(&mut body, tlv::REPLY_INGRESS, &port_seen(own));
        if let Some(mac) = egress_mac {
            pdu::put(&mut body, tlv::REPLY_EGRESS, &port_seen(mac));
        }
        body.push(tlv::END);
        let mut header = mep.header(origin, op::LTR, 6, around);
        header.flags = message.flags & pdu::USE_FDB_ONLY
            | if relays.is_some() { pdu::FWD_YES } else { 0 }
            | if relay == 1 { pdu::TERMINAL_MEP } else { 0 };
        around.send(mep.settings.port, &header.frame(&body));
        self.counters.linktrace_answered += 1;
        let (Some(port), Some(mac), Some(id)) = (relays, egress_mac, next) else { return };
        let mut header = mep.header(pdu::group(mep.settings.level, true), op::LTM, 17, around);
        (header.source, header.flags, header.tag) = (mac, message.flags, message.tag);
        let mut body = message.body[..17].to_vec();
        body[4] = ttl - 1;
        pdu::put(&mut body, tlv::LTM_EGRESS, &id);
        body.push(tlv::END);
        around.send(port, &header.frame(&body));
        self.counters.linktrace_relayed += 1;
    }

    /// Replies to a delay measurement with receive time and transmit time.
    fn delay(&mut self, at: usize, message: &Pdu<'_>, came: Nanos, around: &mut Around<'_>) {
        let mep = &self.meps[at];
        if message.destination != mep.mac(around)
            && message.destination != pdu::group(mep.settings.level, false)
        {
            self.counters.not_for_us += 1;
            return;
        }
        if !self.replies.delay
            || message.body.len() < pdu::DELAY_BYTES
            || ethernet::is_group(&message.source)
        {
            self.counters.not_answered += 1;
            return;
        }
        let mut body = message.body.to_vec();
        for (at, moment) in [(8, came), (16, around.now)] {
            let (seconds, nanos) = around.date(moment);
            body[at..at + 4].copy_from_slice(&seconds.to_be_bytes());
            body[at + 4..at + 8].copy_from_slice(&nanos.to_be_bytes());
        }
        let mut header = mep.header(message.source, op::DMR, message.tlv_offset as u8, around);
        (header.flags, header.tag) = (message.flags, message.tag);
        around.send(mep.settings.port, &header.frame(&body));
        self.counters.delay_answered += 1;
    }

    fn begin(
        &mut self,
        ask: &AgentRequest,
        around: &mut Around<'_>,
    ) -> Result<StatusValue, String> {
        let kind = match ask.what.as_str() {
            "loopback" => {
                ask.only(&["mep", "to", "count", "interval_ms", "bytes"])?;
                Kind::Loopback { bytes: ask.number("bytes", 0, 0..=1400)? as u16 }
            }
            "linktrace" => {
                ask.only(&["mep", "to", "ttl"])?;
                Kind::Linktrace { ttl: ask.number("ttl", 64, 1..=255)? as u8 }
            }
            _ => {
                ask.only(&["mep", "to", "count", "interval_ms"])?;
                Kind::Delay
            }
        };
        let mep = self.asked_mep(ask)?;
        let level = self.meps[mep].settings.level;
        let to = match ask.value("to") {
            Some("all") if matches!(kind, Kind::Loopback { .. }) => pdu::group(level, false),
            Some(text) => ethernet::mac_from_text(text)
                .filter(|mac| !ethernet::is_group(mac))
                .ok_or_else(|| format!("invalid to {text:?} (hint: use a unicast MAC address)"))?,
            None => {
                return Err(
                    "missing to (hint: use a unicast MAC address, or 'all' for loopback)".into()
                );
            }
        };
        let count = ask.number("count", 1, 1..=measure::COUNT_MAX)? as u32;
        let interval = Nanos::from_millis(ask.number("interval_ms", 1000, 1..=60_000)?);
        if self.measurements.len() == MEASUREMENTS_MAX {
            let over = self.measurements.iter().position(|it| it.due().is_none());
            let over = over.ok_or("too many measurements in progress (hint: retry later)")?;
            self.measurements.remove(over);
        }
        self.measured += 1;
        let (id, first) = (self.measured, self.transaction.wrapping_add(1));
        self.transaction = self.transaction.wrapping_add(count);
        let plan = Plan { kind, to, count, interval };
        let mut measurement = Measurement::new(id, mep, first, plan, around.now);
        measurement.time_came(&self.meps[mep], around);
        self.measurements.push(measurement);
        Ok(StatusValue::from([("id", id.into())]))
    }

    /// Returns the end point that a command names. A single end point needs no name.
    fn asked_mep(&self, ask: &AgentRequest) -> Result<usize, String> {
        let Some(text) = ask.value("mep") else {
            let only = (self.meps.len() == 1).then_some(0);
            return only.ok_or_else(|| "several end points (hint: select one with mep)".to_owned());
        };
        let found = self.meps.iter().position(|mep| mep.settings.id.to_string() == text);
        found.ok_or_else(|| format!("there is no end point {text:?}"))
    }
}

impl Agent for Oam {
    fn frame_came(&mut self, told: DivertedFrame, around: &mut Around<'_>) {
        let Some(pdu) = Pdu::read(told.frame.bytes()) else {
            self.counters.not_oam += 1;
            return;
        };
        let port = told.meta.iter().find(|(id, _)| *id == meta_id::PHY_PORT).map(|(_, port)| *port);
        let is_its = |mep: &Mep| {
            port.is_none_or(|port| port == mep.settings.port.into())
                && mep.settings.vid == pdu.vid()
        };
        if pdu.op == op::CCM {
            let mut known = false;
            for mep in self.meps.iter_mut().filter(|mep| is_its(mep)) {
                if pdu.level <= mep.settings.level {
                    known = true;
                    mep.ccm_came(&pdu, around);
                }
            }
            self.counters.no_mep += u64::from(!known);
            return;
        }
        let found = self.meps.iter().position(|mep| is_its(mep) && mep.settings.level == pdu.level);
        let Some(at) = found else {
            self.counters.no_mep += 1;
            return;
        };
        match pdu.op {
            op::LBM => self.loopback(at, &pdu, around),
            op::LTM => self.linktrace(at, &pdu, around),
            op::DMM => self.delay(at, &pdu, told.came, around),
            op::LBR | op::LTR | op::DMR => {
                let ours = pdu.destination == self.meps[at].mac(around);
                let asked = self.measurements.iter_mut().filter(|it| ours && it.mep == at);
                for it in asked {
                    if it.answer_came(&pdu, told.came, around) {
                        if it.due().is_none() {
                            around.event("MeasurementDone", it.facts());
                        }
                        return;
                    }
                }
                self.counters.unasked += 1;
            }
            _ => self.counters.not_answered += 1,
        }
    }

    fn time_came(&mut self, around: &mut Around<'_>) {
        self.meps.iter_mut().for_each(|mep| mep.time_came(around));
        for measurement in &mut self.measurements {
            let was_under_way = measurement.due().is_some();
            measurement.time_came(&self.meps[measurement.mep], around);
            if was_under_way && measurement.due().is_none() {
                around.event("MeasurementDone", measurement.facts());
            }
        }
        self.delayed.retain(|(at, port, frame)| {
            let waits = *at > around.now;
            if !waits {
                around.send(*port, frame);
            }
            waits
        });
    }

    fn due(&self) -> Option<Nanos> {
        let meps = self.meps.iter().filter_map(Mep::due);
        let measurements = self.measurements.iter().filter_map(Measurement::due);
        meps.chain(measurements).chain(self.delayed.iter().map(|(at, ..)| *at)).min()
    }

    fn asked(
        &mut self,
        ask: &AgentRequest,
        around: &mut Around<'_>,
    ) -> Result<StatusValue, String> {
        match ask.what.as_str() {
            "loopback" | "linktrace" | "delay" => self.begin(ask, around),
            "result" => {
                ask.only(&["id"])?;
                let id = ask.number("id", self.measured, 1..=u64::MAX)?;
                let found = self.measurements.iter().find(|it| it.id == id);
                let facts = found.map(Measurement::facts);
                facts.ok_or_else(|| format!("no measurement {id}"))
            }
            "ccm" => {
                ask.only(&["mep", "send"])?;
                let sends = match ask.value("send") {
                    Some("on") => true,
                    Some("off") => false,
                    _ => return Err("invalid send (hint: use on or off)".to_owned()),
                };
                let mep = self.asked_mep(ask)?;
                self.meps[mep].sends = sends;
                Ok(StatusValue::from([("sends", sends.into())]))
            }
            _ => ask.unknown(COMMANDS),
        }
    }

    fn facts(&self, _now: Nanos) -> StatusValue {
        let counts = &self.counters;
        StatusValue::from([
            ("meps", self.meps.iter().map(Mep::facts).collect::<Vec<_>>().into()),
            (
                "measurements",
                self.measurements.iter().map(Measurement::facts).collect::<Vec<_>>().into(),
            ),
            ("loopback_answered", counts.loopback_answered.into()),
            ("linktrace_answered", counts.linktrace_answered.into()),
            ("linktrace_relayed", counts.linktrace_relayed.into()),
            ("delay_answered", counts.delay_answered.into()),
            ("not_oam", counts.not_oam.into()),
            ("no_mep", counts.no_mep.into()),
            ("not_for_us", counts.not_for_us.into()),
            ("not_answered", counts.not_answered.into()),
            ("delayed_full", counts.delayed_full.into()),
            ("unasked", counts.unasked.into()),
        ])
    }
}

/// A point that replies to loopback messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopbackPoint {
    /// Required destination address.
    pub mac: Mac,
    /// Level.
    pub level: u8,
    /// VLAN id; zero for untagged.
    pub vid: u16,
}

/// Returns the first end point of a port that replies to loopback messages and whose address the
/// program sets.
pub fn loopback_point(program: &Program, port: u32) -> Option<LoopbackPoint> {
    let value = |setting: &AgentSetting, name: &str| {
        let found = setting.attributes.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone())
    };
    let answers = |agent: &&crate::program::Agent| {
        let mut replies = agent.settings.iter().filter(|it| it.name == "reply");
        agent.kind == KIND && replies.any(|it| value(it, "op").as_deref() == Some("LBM"))
    };
    let point = |setting: &AgentSetting| {
        let number = |name: &str| value(setting, name).and_then(|text| text.parse::<u32>().ok());
        (setting.name == "mep" && number("port") == Some(port)).then_some(())?;
        Some(LoopbackPoint {
            mac: ethernet::mac_from_text(&value(setting, "mac")?)?,
            level: number("level")? as u8,
            vid: number("vlan").unwrap_or(0) as u16,
        })
    };
    let agents = program.agents.iter().filter(answers);
    agents.flat_map(|agent| &agent.settings).find_map(point)
}

/// Parses the settings of an end point.
fn mep<'a>(setup: &mut Setup<'a>, setting: &'a AgentSetting) -> Option<Settings> {
    let known = ["id", "level", "port", "ma", "md", "vlan", "mac", "ccm", "peers"];
    let fields = setup.fields(setting, &known);
    let id = setup.number(fields, "id", None, 1..=8191);
    let level = setup.number(fields, "level", None, 0..=7);
    let vid = setup.number(fields, "vlan", Some(0), 0..=4094);
    let (port, mac) = (setup.port(fields), setup.mac(fields, "mac"));
    let association = setup.needed(fields, "ma").unwrap_or_default();
    let maid = pdu::maid(fields.text("md"), association);
    if maid.is_none() {
        setup.wrong(
            fields,
            "ma",
            "the names are empty or too long",
            "use at most 44 bytes together",
        );
    }
    let period = fields.text("ccm").map(|text| {
        let found = PERIODS.iter().position(|(_, name)| *name == text);
        if found.is_none() {
            let known = PERIODS.map(|(_, name)| name).join(", ");
            let hint = format!("use one of {known}");
            setup.wrong(fields, "ccm", format!("invalid value \"{text}\""), &hint);
        }
        found.unwrap_or(0)
    });
    let mut peers = Vec::new();
    for text in fields.text("peers").unwrap_or_default().split([' ', ',']) {
        match text.parse().ok().filter(|peer| (1..=8191).contains(peer)) {
            Some(peer) => peers.push(peer),
            None if text.is_empty() => {}
            None => setup.wrong(
                fields,
                "peers",
                format!("invalid value \"{text}\""),
                "use numbers from 1 to 8191",
            ),
        }
    }
    Some(Settings {
        id: id? as u16,
        level: level? as u8,
        port: port?,
        vid: vid? as u16,
        mac,
        maid: maid?,
        period,
        peers,
    })
}

/// Value of a port TLV: state OK and address (IEEE 802.1Q 21.9.8).
fn port_seen(mac: Mac) -> [u8; 7] {
    const OK: u8 = 1;
    let [a, b, c, d, e, f] = mac;
    [OK, a, b, c, d, e, f]
}

#[cfg(test)]
mod tests;
