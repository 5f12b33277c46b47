//! VLAN tagger: tags frames by rules on their way to a trunk, and removes the tags on the way back.
//!
//! Source: IEEE 802.1Q-2018, clauses 6.9 and 9 (classification of untagged frames, and tags).
//! - An untagged frame from the access port gets the tag of the first matching rule and leaves by
//!   the trunk.
//! - A frame from the trunk in a VLAN of a rule leaves by the access port without its outermost
//!   tag.
//! - All other frames pass unchanged: tagged frames from the access port, frames without a matching
//!   rule, and other VLANs.
//!
//! Frames can be changed in their receive buffers: a tag is inserted or removed before the type, so
//! only the addresses move.
//!
//! The rules are compiled into a bitmap for each DSCP and for each UDP port in a rule. The first
//! common bit of both is the first matching rule, regardless of the number of rules.
//!
//! Invariant: every frame leaves by the other port, or is counted as dropped with one reason.

use std::ops::RangeInclusive;

use packet::frame::{Batch, FRAME_BYTES_MAX, PortNo};
use packet::header::ethernet::{HEADER_BYTES, TYPE, TYPE_IPV4, TYPE_VLAN};
use packet::header::{ipv4, u16_at, udp, vlan};
use packet::time::Nanos;

use crate::counter::{DropCounters, DropReason};
use crate::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, GROWS_MAX, Outputs, PendingBatch, SIGHTS_MAX,
    Sent,
};

/// Maximum number of rules: the number of bits in a bitmap.
pub const RULES_MAX: usize = 64;

/// The largest DSCP (RFC 2474, section 3).
pub const DSCP_MAX: u8 = 63;

/// A tagging rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// DSCPs of matching IPv4 packets; `None` matches all frames.
    pub dscp: Option<RangeInclusive<u8>>,
    /// UDP destination port of matching IPv4 packets; `None` matches all frames.
    pub udp_destination: Option<u16>,
    /// The VLAN, 0 to 4095.
    pub vlan: u16,
    /// The priority, 0 to 7.
    pub priority: u8,
}

/// Settings of a tagger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The port with untagged frames.
    pub access: PortNo,
    /// The port with tagged frames.
    pub trunk: PortNo,
    /// The rules, in order of precedence; rules after [`RULES_MAX`] are ignored.
    pub rules: Vec<Rule>,
}

/// Numbers of frames by change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaggerCounters {
    /// Frames to which a tag was added.
    pub tagged: u64,
    /// Frames from which a tag was removed.
    pub untagged: u64,
    /// Frames that passed unchanged.
    pub passed: u64,
}

/// A VLAN tagger.
#[derive(Debug)]
pub struct Tagger {
    settings: Settings,
    rules: Rules,
    /// Numbers of frames by change.
    pub counters: TaggerCounters,
    /// Dropped frames.
    pub drops: DropCounters,
    /// Changes of the last frames decided in receive buffers.
    changes: [Change; SIGHTS_MAX],
}

/// Change of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Add a tag with this control information.
    Push(u16),
    /// Remove the outermost tag.
    Pop,
    /// No change.
    Pass,
}

/// Compiled rules.
#[derive(Debug)]
struct Rules {
    /// For each DSCP, and last for frames without one, the matching rules.
    by_dscp: [u64; DSCP_MAX as usize + 2],
    /// Rules without a port.
    of_any_port: u64,
    /// Ports in rules, and the rules with each.
    by_port: Vec<(u16, u64)>,
    /// Tag control information, by rule.
    words: Vec<u16>,
    /// One bit for each VLAN of a rule.
    vlans: [u64; 64],
}

/// Index in `by_dscp` of frames without a DSCP.
const NO_DSCP: usize = DSCP_MAX as usize + 1;

impl Rules {
    fn new(rules: &[Rule]) -> Rules {
        let mut all = Rules {
            by_dscp: [0; DSCP_MAX as usize + 2],
            of_any_port: 0,
            by_port: Vec::new(),
            words: Vec::new(),
            vlans: [0; 64],
        };
        for (place, rule) in rules.iter().take(RULES_MAX).enumerate() {
            let bit = 1 << place;
            for (dscp, row) in all.by_dscp.iter_mut().enumerate() {
                let fits =
                    |range: &RangeInclusive<u8>| dscp != NO_DSCP && range.contains(&(dscp as u8));
                *row |= if rule.dscp.as_ref().is_none_or(fits) { bit } else { 0 };
            }
            match rule.udp_destination {
                None => all.of_any_port |= bit,
                Some(port) => match all.by_port.iter_mut().find(|(known, _)| *known == port) {
                    Some((_, row)) => *row |= bit,
                    None => all.by_port.push((port, bit)),
                },
            }
            let vlan = rule.vlan & vlan::VID_MASK;
            all.words.push(u16::from(rule.priority & 7) << vlan::PCP_SHIFT | vlan);
            all.vlans[usize::from(vlan) / 64] |= 1 << (vlan % 64);
        }
        all.by_port.sort_unstable();
        all
    }

    /// Returns the tag control information for an untagged frame of `bytes` bytes that begins with
    /// `head`, if a rule matches.
    #[inline]
    fn word(&self, head: &[u8], bytes: usize) -> Option<u16> {
        let (dscp, port) = facts(head, bytes);
        let named = |port| self.by_port.iter().find(|(known, _)| *known == port);
        let named = port.and_then(named).map_or(0, |(_, row)| *row);
        let row = self.by_dscp[dscp] & (self.of_any_port | named);
        self.words.get(row.trailing_zeros() as usize).copied()
    }

    #[inline]
    fn has_vlan(&self, word: u16) -> bool {
        let vlan = word & vlan::VID_MASK;
        self.vlans[usize::from(vlan) / 64] >> (vlan % 64) & 1 == 1
    }
}

/// Returns the index of a frame's DSCP, and its UDP destination port if it is the first or only
/// fragment.
#[inline]
fn facts(head: &[u8], bytes: usize) -> (usize, Option<u16>) {
    let packet = match head.split_at_checked(HEADER_BYTES) {
        Some((header, packet)) if u16_at(header, TYPE.start) == TYPE_IPV4 => packet,
        _ => return (NO_DSCP, None),
    };
    let Some(view) = ipv4::View::new(packet) else { return (NO_DSCP, None) };
    let (begin, end) = (view.header_length(), usize::from(view.total_length()));
    if view.version() != 4
        || begin < ipv4::HEADER_BYTES
        || end < begin
        || end > bytes - HEADER_BYTES
    {
        return (NO_DSCP, None);
    }
    let is_datagram = view.protocol() == ipv4::PROTOCOL_UDP && view.fragment_offset() == 0;
    let has_header = end - begin >= udp::HEADER_BYTES && begin + udp::HEADER_BYTES <= packet.len();
    let port =
        (is_datagram && has_header).then(|| u16_at(packet, begin + udp::DESTINATION_PORT_AT));
    (usize::from(view.tos() >> 2), port)
}

impl Tagger {
    /// Creates a tagger.
    pub fn new(settings: Settings) -> Tagger {
        let rules = Rules::new(&settings.rules);
        let (counters, drops) = (TaggerCounters::default(), DropCounters::default());
        let changes = [Change::Pass; SIGHTS_MAX];
        Tagger { settings, rules, counters, drops, changes }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Replaces the rules.
    pub fn set_rules(&mut self, rules: Vec<Rule>) {
        self.rules = Rules::new(&rules);
        self.settings.rules = rules;
    }

    /// Returns the port on the other side.
    #[inline]
    fn other(&self, port: PortNo) -> Option<PortNo> {
        match port {
            port if port == self.settings.access => Some(self.settings.trunk),
            port if port == self.settings.trunk => Some(self.settings.access),
            _ => None,
        }
    }

    /// Decides and counts the change of a frame of `bytes` bytes that begins with `head`.
    #[inline]
    fn judge(&mut self, port: PortNo, head: &[u8], bytes: usize) -> Result<Change, DropReason> {
        if head.len() < HEADER_BYTES {
            return Err(DropReason::TooShort);
        }
        let kind = u16_at(head, TYPE.start);
        if port == self.settings.access {
            let word = if vlan::is_tag(kind) { None } else { self.rules.word(head, bytes) };
            let Some(word) = word else { return Ok(self.passed()) };
            if bytes + vlan::TAG_BYTES > FRAME_BYTES_MAX {
                return Err(DropReason::TooLong);
            }
            self.counters.tagged += 1;
            return Ok(Change::Push(word));
        }
        let has_tag = kind == TYPE_VLAN && head.len() >= HEADER_BYTES + vlan::TAG_BYTES;
        if !has_tag || !self.rules.has_vlan(u16_at(head, TYPE.end)) {
            return Ok(self.passed());
        }
        self.counters.untagged += 1;
        Ok(Change::Pop)
    }

    #[inline]
    fn passed(&mut self) -> Change {
        self.counters.passed += 1;
        Change::Pass
    }
}

/// Writes a tag.
#[inline]
fn write_tag(tag: &mut [u8], word: u16) {
    tag[..2].copy_from_slice(&TYPE_VLAN.to_be_bytes());
    tag[2..vlan::TAG_BYTES].copy_from_slice(&word.to_be_bytes());
}

impl Forwarder for Tagger {
    type Pending<'a> = TaggerBatch<'a>;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, _now: Nanos, out: &mut Outputs) {
        let Some(to) = self.other(port) else {
            return self.drops.add_many(DropReason::NoDestination, batch.len() as u64);
        };
        for frame in batch.frames_mut() {
            match self.judge(port, frame.bytes(), frame.len()) {
                Ok(Change::Pass) => {}
                Ok(Change::Push(word)) => {
                    // `judge` has checked that there is space.
                    frame.insert(TYPE.start, vlan::TAG_BYTES);
                    write_tag(&mut frame.bytes_mut()[TYPE.start..], word);
                }
                Ok(Change::Pop) => {
                    frame.remove(TYPE.start, vlan::TAG_BYTES);
                }
                Err(why) => {
                    self.drops.add(why);
                    continue;
                }
            }
            match out.send(to, frame) {
                Sent::Queued => {}
                Sent::QueueFull => self.drops.add(DropReason::OutputQueueFull),
                Sent::NoSuchPort => self.drops.add(DropReason::NoSuchPort),
            }
        }
    }

    fn decides(&self) -> bool {
        true
    }

    fn decide(
        &mut self,
        port: PortNo,
        [sights, _]: [&[FrameHead<'_>]; 2],
        _now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<TaggerBatch<'_>> {
        let to = self.other(port);
        for (place, sight) in sights.iter().enumerate() {
            let judged = match to {
                Some(to) => self.judge(port, sight.head, sight.bytes).map(|change| (to, change)),
                None => Err(DropReason::NoDestination),
            };
            decisions[place] = match judged {
                Ok((to, change)) => {
                    self.changes[place] = change;
                    Decision::Output(to)
                }
                Err(why) => {
                    self.drops.add(why);
                    Decision::Dropped
                }
            };
        }
        BatchDecision::Rewrites(sights.len(), TaggerBatch(&self.changes))
    }

    fn tick(&mut self, _now: Nanos, _out: &mut Outputs) -> Option<Nanos> {
        None
    }
}

/// The changes of the frames of a batch.
pub struct TaggerBatch<'a>(&'a [Change; SIGHTS_MAX]);

impl PendingBatch for TaggerBatch<'_> {
    #[inline]
    fn rewrite(&self, place: usize, head: &mut [u8], bytes: usize) -> (usize, usize) {
        const TAG: usize = vlan::TAG_BYTES;
        let addresses = GROWS_MAX..GROWS_MAX + TYPE.start;
        match self.0[place] {
            Change::Push(word) => {
                head.copy_within(addresses, GROWS_MAX - TAG);
                write_tag(&mut head[GROWS_MAX - TAG + TYPE.start..], word);
                (GROWS_MAX - TAG, bytes + TAG)
            }
            Change::Pop => {
                head.copy_within(addresses, GROWS_MAX + TAG);
                (GROWS_MAX + TAG, bytes - TAG)
            }
            Change::Pass => (GROWS_MAX, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::build::Builder;
    use packet::header::tcp;

    use super::*;

    const ACCESS: PortNo = 1;
    const TRUNK: PortNo = 2;

    fn rule(dscp: Option<RangeInclusive<u8>>, udp: Option<u16>, vlan: u16, priority: u8) -> Rule {
        Rule { dscp, udp_destination: udp, vlan, priority }
    }

    fn tagger() -> Tagger {
        let rules = vec![
            rule(Some(46..=46), Some(5060), 300, 7),
            rule(Some(40..=47), None, 100, 5),
            rule(None, Some(5060), 101, 4),
            rule(None, None, 200, 0),
        ];
        Tagger::new(Settings { access: ACCESS, trunk: TRUNK, rules })
    }

    fn plain() -> Builder {
        Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
    }

    fn ip(dscp: u8) -> Builder {
        let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        plain().ipv4(ipv4::Header { tos: dscp << 2, ..header })
    }

    /// Returns the output frame and port if the frame is decided in its receive buffer with `seen`
    /// visible bytes.
    fn in_place(
        tagger: &mut Tagger,
        port: PortNo,
        bytes: &[u8],
        seen: usize,
    ) -> Vec<(PortNo, Vec<u8>)> {
        let seen = seen.min(bytes.len());
        let sight = FrameHead { head: &bytes[..seen], bytes: bytes.len() };
        let mut decisions = [Decision::Dropped; SIGHTS_MAX];
        let decided = tagger.decide(port, [&[sight], &[]], Nanos::ZERO, &mut decisions);
        let BatchDecision::Rewrites(1, batch) = decided else { panic!("it decides all frames") };
        let Decision::Output(to) = decisions[0] else { return Vec::new() };
        let mut head = [&[0; GROWS_MAX], &bytes[..seen]].concat();
        let (start, left) = batch.rewrite(0, &mut head, bytes.len());
        let frame = [&head[start..], &bytes[seen..]].concat();
        assert_eq!(frame.len(), left);
        vec![(to, frame)]
    }

    /// Returns the output frames and ports, and checks that both ways of processing agree.
    fn passed(tagger: &mut Tagger, port: PortNo, bytes: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
        let before = tagger.counters;
        let drops = tagger.drops.clone();
        let moved = moved(tagger, port, bytes);
        let after = (tagger.counters, tagger.drops.clone());
        (tagger.counters, tagger.drops) = (before, drops);
        assert_eq!(in_place(tagger, port, bytes, 128), moved);
        assert_eq!((tagger.counters, tagger.drops.clone()), after);
        moved
    }

    /// Returns the output of processing with `forward`.
    fn moved(tagger: &mut Tagger, port: PortNo, bytes: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
        let mut out = Outputs::new(&[ACCESS, TRUNK, 3]);
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        tagger.forward(port, &mut batch, Nanos::ZERO, &mut out);
        let all = |(port, queue): &(PortNo, Batch)| -> Vec<(PortNo, Vec<u8>)> {
            queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())).collect()
        };
        out.queues().iter().flat_map(all).collect()
    }

    #[test]
    fn the_first_matching_rule_sets_the_tag_and_the_reverse_path_removes_it() {
        let mut tagger = tagger();
        let udp = |dscp, port| ip(dscp).udp(9, port).payload(b"abcdefghijklmnopqrst").bytes();
        let tcp = ip(0).tcp(tcp::Header::new(9, 5060, tcp::SYN)).payload(b"abcdefgh").bytes();
        let cut = [&udp(0, 5060)[..40], &[0; 20]].concat();
        for (frame, vlan, priority) in [
            (udp(46, 5060), 300, 7),
            (udp(46, 53), 100, 5),
            (udp(40, 5060), 100, 5),
            (udp(39, 5060), 101, 4),
            (udp(48, 53), 200, 0),
            (tcp, 200, 0),
            (cut, 200, 0),
            (plain().payload(&[0; 46]).bytes(), 200, 0),
        ] {
            let word = (u16::from(priority as u8) << 13 | vlan).to_be_bytes();
            let tagged = [&frame[..12], &[0x81, 0], &word, &frame[12..]].concat();
            assert_eq!(passed(&mut tagger, ACCESS, &frame), [(TRUNK, tagged.clone())]);
            assert_eq!(passed(&mut tagger, TRUNK, &tagged), [(ACCESS, frame)]);
        }
        assert_eq!(tagger.counters, TaggerCounters { tagged: 8, untagged: 8, passed: 0 });
    }

    #[test]
    fn frames_without_a_rule_pass_unchanged() {
        let mut tagger = tagger();
        tagger.set_rules(vec![rule(Some(1..=1), None, 5, 0)]);
        let frame = ip(0).udp(1, 2).payload(&[0; 20]).bytes();
        let tagged = |kind: u16, word: u16| {
            let tag = [kind.to_be_bytes(), word.to_be_bytes()].concat();
            [&frame[..12], &tag, &frame[12..]].concat()
        };
        for (port, to, bytes) in [
            (ACCESS, TRUNK, frame.clone()),
            (ACCESS, TRUNK, tagged(0x8100, 5)),
            (ACCESS, TRUNK, tagged(0x88a8, 5)),
            (TRUNK, ACCESS, frame.clone()),
            (TRUNK, ACCESS, tagged(0x8100, 6)),
            (TRUNK, ACCESS, tagged(0x88a8, 5)),
        ] {
            assert_eq!(passed(&mut tagger, port, &bytes), [(to, bytes)]);
        }
        assert_eq!(tagger.counters.passed, 6);
    }

    #[test]
    fn drops_are_counted_by_reason() {
        let mut tagger = tagger();
        for (port, bytes, why) in [
            (ACCESS, vec![1; 13], DropReason::TooShort),
            (TRUNK, vec![], DropReason::TooShort),
            (3, vec![0; 60], DropReason::NoDestination),
            (ACCESS, vec![0; packet::frame::FRAME_BYTES_MAX], DropReason::TooLong),
        ] {
            let before = tagger.drops.of(why);
            assert_eq!(passed(&mut tagger, port, &bytes), []);
            assert_eq!(tagger.drops.of(why), before + 1, "{why:?}");
        }
    }
}
