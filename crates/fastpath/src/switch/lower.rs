//! Lowering: translates flow entries into entries that the program executes.
//!
//! An entry that the program cannot execute becomes one that escapes, with the same precedence and
//! with a match that covers the original one. So no frame is decided by an entry of lower rank. The
//! reason is reported for statistics.

use dataplane::action::Action;
use dataplane::action_set::ActionSet;
use dataplane::instruction::Instructions;
use dataplane::key::Key;
use dataplane::matching::Match;
use packet::field::Field;
use packet::frame::PortNo;
use packet::header::ethernet;

/// An entry for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The values of the key.
    pub value: Key,
    /// The significant bits of the key.
    pub mask: Key,
    /// What happens to frames.
    pub deed: Deed,
}

/// What the program does with a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The frame escapes to user space.
    Escape(Reason),
    /// The frame is dropped.
    Drop,
    /// The frame is looked up in this table, unchanged.
    Goto(u8),
    /// The frame is changed, if there is a rewrite, and leaves.
    Output(Target, Option<Box<Rewrite>>),
}

/// Where a frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// By this port, unless it is the ingress port.
    Port(PortNo),
    /// By the ingress port.
    InPort,
}

/// Declares [`Reason`]: variant, name in reports, meaning.
macro_rules! reasons {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Why frames of an entry escape to user space.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $meaning] $variant,)*
        }

        impl Reason {
            /// All reasons, in order of declaration.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// Returns the reason's name in reports: stable, lower case, words joined by
            /// underscores.
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    Field "match_field" "Matches on IPv6, MPLS, metadata or others beyond the fields of 1.0.",
    Trigger "statistics_trigger" "Has a statistics trigger.",
    Meter "meter" "Uses a meter.",
    Goto "goto_table" "Continues with another table after actions, or with one that is not here.",
    Controller "packet_in" "Sends packet-ins.",
    Group "group" "Uses a group.",
    Queue "queue" "Uses a queue.",
    Flood "flood" "Outputs to ALL, FLOOD or NORMAL.",
    Local "local" "Outputs to LOCAL or TABLE.",
    Outputs "several_outputs" "Outputs more than once.",
    NoOutput "no_output" "Changes frames and outputs them nowhere.",
    SetField "set_field" "Sets or copies a field that the program cannot set.",
    Header "push_pop" "Pushes or pops MPLS or PBB headers, or copies TTLs.",
    Order "action_order" "Has its changes in an order that the program cannot keep.",
    Port "port" "Outputs to a port that is not in the fast path.",
    Rewrites "rewrites_full" "Needs one more distinct rewrite than fit.",
}

/// Changes of a frame before it leaves, in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Rewrite {
    /// Change of the VLAN tag.
    pub tag: Option<Tag>,
    /// New Ethernet destination.
    pub eth_dst: Option<[u8; 6]>,
    /// New Ethernet source.
    pub eth_src: Option<[u8; 6]>,
    /// Changes of IPv4 source and destination.
    pub addresses: [Bits<u32>; 2],
    /// Change of the first 16 bits of the IPv4 header, which end with DSCP and ECN.
    pub service: Bits<u16>,
    /// Change of the TTL.
    pub ttl: Option<Ttl>,
    /// Changes of TCP source and destination port.
    pub tcp: [Bits<u16>; 2],
    /// Changes of UDP source and destination port.
    pub udp: [Bits<u16>; 2],
}

/// Bits of a field to set: the bits, and the mask of set bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Bits<T> {
    /// The bits, zero outside of the mask.
    pub value: T,
    /// The mask.
    pub mask: T,
}

/// Change of the TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ttl {
    /// Decrement it. A frame whose TTL would become zero escapes.
    Decrement,
    /// Set it.
    Set(u8),
}

/// Change of the outermost VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Sets bits of the control information, if there is a tag.
    Set(Bits<u16>),
    /// Sets bits of the control information; adds an 802.1Q tag to a frame without one.
    Require(Bits<u16>),
    /// Pushes a tag of this type. It has the control information of the outermost one, or zero,
    /// with these bits set.
    Push(u16, Bits<u16>),
    /// Pops the tag, if there is one.
    Pop,
}

/// Translates an entry.
pub fn lower(matching: &Match, instructions: &Instructions) -> Lowered {
    let deed = match matching.wide_words() {
        0 => deed(instructions).unwrap_or_else(Deed::Escape),
        _ => Deed::Escape(Reason::Field),
    };
    Lowered { value: *matching.value(), mask: *matching.mask(), deed }
}

fn deed(instructions: &Instructions) -> Result<Deed, Reason> {
    let Instructions { trigger, meter, apply, clear: _, write, metadata, goto, .. } = instructions;
    if trigger.is_some() {
        return Err(Reason::Trigger);
    }
    if meter.is_some() {
        return Err(Reason::Meter);
    }
    if let Some(table) = goto {
        let is_pure = apply.is_empty() && write.is_empty() && metadata.is_none();
        return if is_pure { Ok(Deed::Goto(*table)) } else { Err(Reason::Goto) };
    }
    let mut set = ActionSet::default();
    set.write(write);
    let actions = || apply.iter().chain(set.actions());
    if actions().next().is_none() {
        return Ok(Deed::Drop);
    }
    let mut rewrite = Rewrite::default();
    let mut target = None;
    for action in actions() {
        match target {
            None => target = step(action, &mut rewrite)?,
            // Changes after the output have no effect, unless they fail.
            Some(_) if *action == Action::DecIpTtl || *action == Action::DecMplsTtl => {
                return Err(Reason::Order);
            }
            Some(_) => {
                if step(action, &mut Rewrite::default())?.is_some() {
                    return Err(Reason::Outputs);
                }
            }
        }
    }
    let target = target.ok_or(Reason::NoOutput)?;
    if !rewrite.changes_ports_alike() {
        return Err(Reason::SetField);
    }
    let rewrite = (rewrite != Rewrite::default()).then(|| Box::new(rewrite));
    Ok(Deed::Output(target, rewrite))
}

/// Adds an action to the rewrite, or returns the target of an output.
fn step(action: &Action, rewrite: &mut Rewrite) -> Result<Option<Target>, Reason> {
    match *action {
        Action::Output { port } => return Ok(Some(Target::Port(port))),
        Action::InPort => return Ok(Some(Target::InPort)),
        Action::All | Action::Flood | Action::Normal => return Err(Reason::Flood),
        Action::Controller { .. } => return Err(Reason::Controller),
        Action::Local | Action::Table => return Err(Reason::Local),
        Action::Enqueue { .. } | Action::SetQueue(_) => return Err(Reason::Queue),
        Action::Group(_) => return Err(Reason::Group),
        Action::Meter(_) => return Err(Reason::Meter),
        Action::SetField { field, value, mask } => set_field(rewrite, field, value, mask)?,
        Action::PushVlan(type_) => match rewrite.tag.replace(Tag::Push(type_, Bits::default())) {
            None => {}
            Some(_) => return Err(Reason::Order),
        },
        Action::PopVlan => match rewrite.tag.replace(Tag::Pop) {
            // A change of a tag that is popped has no effect.
            None | Some(Tag::Set(_)) => {}
            Some(_) => return Err(Reason::Order),
        },
        Action::SetVlan(id) => set_tag(rewrite, id & 0x0fff, 0x0fff, true)?,
        Action::SetVlanPriority(priority) => {
            set_tag(rewrite, u16::from(priority) << 13, 0xe000, true)?;
        }
        Action::DecIpTtl => set_ttl(rewrite, Ttl::Decrement)?,
        Action::SetIpTtl(ttl) => set_ttl(rewrite, Ttl::Set(ttl))?,
        Action::SetL4Src(port) => {
            rewrite.tcp[0].set(port, u16::MAX)?;
            rewrite.udp[0].set(port, u16::MAX)?;
        }
        Action::SetL4Dst(port) => {
            rewrite.tcp[1].set(port, u16::MAX)?;
            rewrite.udp[1].set(port, u16::MAX)?;
        }
        Action::CopyField { .. } => return Err(Reason::SetField),
        Action::PushMpls(_)
        | Action::PushMplsBehindVlan(_)
        | Action::PopMpls(_)
        | Action::PushPbb(_)
        | Action::PopPbb
        | Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl => return Err(Reason::Header),
    }
    Ok(None)
}

fn set_field(rewrite: &mut Rewrite, field: Field, value: u128, mask: u128) -> Result<(), Reason> {
    let is_whole = mask == field.ones();
    let (low, low_mask) = (value as u16, mask as u16);
    match field {
        Field::EthDst if is_whole => set_mac(&mut rewrite.eth_dst, value),
        Field::EthSrc if is_whole => set_mac(&mut rewrite.eth_src, value),
        // The value has a bit for the presence of a tag.
        Field::VlanVid => set_tag(rewrite, low & 0x0fff, low_mask & 0x0fff, false),
        Field::VlanPcp => set_tag(rewrite, low << 13, low_mask << 13, false),
        Field::IpDscp => rewrite.service.set(low << 2, low_mask << 2),
        Field::IpEcn => rewrite.service.set(low, low_mask),
        Field::Ipv4Src => rewrite.addresses[0].set(value as u32, mask as u32),
        Field::Ipv4Dst => rewrite.addresses[1].set(value as u32, mask as u32),
        Field::TcpSrc => rewrite.tcp[0].set(low, low_mask),
        Field::TcpDst => rewrite.tcp[1].set(low, low_mask),
        Field::UdpSrc => rewrite.udp[0].set(low, low_mask),
        Field::UdpDst => rewrite.udp[1].set(low, low_mask),
        _ => Err(Reason::SetField),
    }
}

fn set_mac(place: &mut Option<[u8; 6]>, value: u128) -> Result<(), Reason> {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    match place.replace([a, b, c, d, e, f]) {
        None => Ok(()),
        Some(_) => Err(Reason::Order),
    }
}

fn set_ttl(rewrite: &mut Rewrite, ttl: Ttl) -> Result<(), Reason> {
    match rewrite.ttl.replace(ttl) {
        None => Ok(()),
        Some(_) => Err(Reason::Order),
    }
}

/// Sets bits of the control information. Actions of OpenFlow 1.0 add a missing tag.
fn set_tag(rewrite: &mut Rewrite, value: u16, mask: u16, adds: bool) -> Result<(), Reason> {
    let tag = rewrite.tag.get_or_insert(match adds {
        true => Tag::Require(Bits::default()),
        false => Tag::Set(Bits::default()),
    });
    match (tag, adds) {
        (Tag::Push(_, bits), _) | (Tag::Require(bits), true) | (Tag::Set(bits), false) => {
            bits.set(value, mask)
        }
        _ => Err(Reason::Order),
    }
}

impl<T> Bits<T>
where
    T: Copy + Default + PartialEq + std::ops::BitAnd<Output = T> + std::ops::BitOr<Output = T>,
{
    /// Adds bits to set. Fails if some of them are set already.
    fn set(&mut self, value: T, mask: T) -> Result<(), Reason> {
        if self.mask & mask != T::default() {
            return Err(Reason::Order);
        }
        (self.value, self.mask) = (self.value | value & mask, self.mask | mask);
        Ok(())
    }
}

impl Rewrite {
    /// Whether fields of IPv4, TCP or UDP change.
    pub fn changes_ip(&self) -> bool {
        let Rewrite { tag, eth_dst, eth_src, .. } = *self;
        *self != Rewrite { tag, eth_dst, eth_src, ..Rewrite::default() }
    }

    /// Whether TCP and UDP ports change alike, as far as both change.
    fn changes_ports_alike(&self) -> bool {
        let none = [Bits::default(); 2];
        self.tcp == self.udp || self.tcp == none || self.udp == none
    }
}

/// Type of the tag that actions of OpenFlow 1.0 add.
pub const ADDED_TAG_TYPE: u16 = ethernet::TYPE_VLAN;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use packet::time::Nanos;

    use super::*;
    use dataplane::instruction::StatTrigger;

    fn of(instructions: Instructions) -> Deed {
        lower(&Match::ANY, &instructions).deed
    }

    fn apply(actions: &[Action]) -> Deed {
        of(Instructions::apply(actions))
    }

    const OUT: Action = Action::Output { port: 2 };
    const TO: Target = Target::Port(2);

    fn rewritten(actions: &[Action]) -> Rewrite {
        match apply(&[actions, &[OUT]].concat()) {
            Deed::Output(TO, Some(rewrite)) => *rewrite,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn outputs_and_drops_are_lowered_from_both_kinds_of_lists() {
        assert_eq!(apply(&[]), Deed::Drop);
        assert_eq!(apply(&[OUT]), Deed::Output(TO, None));
        assert_eq!(apply(&[Action::InPort]), Deed::Output(Target::InPort, None));
        assert_eq!(of(Instructions::write(&[OUT])), Deed::Output(TO, None));
        let set = Action::set(Field::EthDst, 7);
        let first = of(Instructions::write(&[OUT, set]));
        assert_eq!(first, apply(&[set, OUT]), "an action set has its own order");
        assert_eq!(apply(&[OUT, set]), Deed::Output(TO, None), "a change after the output");
        let goto = Instructions { goto: Some(3), ..Instructions::default() };
        assert_eq!(of(goto), Deed::Goto(3));
    }

    #[test]
    fn changes_are_combined() {
        let rewrite = rewritten(&[
            Action::PushVlan(0x88a8),
            Action::set(Field::VlanVid, 0x1005),
            Action::set(Field::VlanPcp, 3),
            Action::set(Field::EthSrc, 0x0102_0304_0506),
            Action::DecIpTtl,
            Action::SetField { field: Field::Ipv4Dst, value: 0x0a00_0000, mask: 0xff00_0000 },
            Action::set(Field::IpDscp, 1),
            Action::SetL4Dst(80),
        ]);
        let port = Bits { value: 80, mask: u16::MAX };
        let expected = Rewrite {
            tag: Some(Tag::Push(0x88a8, Bits { value: 0x6005, mask: 0xefff })),
            eth_src: Some([1, 2, 3, 4, 5, 6]),
            addresses: [Bits::default(), Bits { value: 0x0a00_0000, mask: 0xff00_0000 }],
            service: Bits { value: 4, mask: 0xfc },
            ttl: Some(Ttl::Decrement),
            tcp: [Bits::default(), port],
            udp: [Bits::default(), port],
            ..Rewrite::default()
        };
        assert_eq!(rewrite, expected);
        assert!(rewrite.changes_ip());
        let tag = |actions: &[Action]| rewritten(actions).tag;
        let five = Bits { value: 5, mask: 0x0fff };
        assert_eq!(tag(&[Action::SetVlan(5)]), Some(Tag::Require(five)));
        assert_eq!(tag(&[Action::set(Field::VlanVid, 0x1005)]), Some(Tag::Set(five)));
        assert_eq!(tag(&[Action::set(Field::VlanVid, 5), Action::PopVlan]), Some(Tag::Pop));
    }

    #[test]
    fn everything_else_escapes_with_a_reason() {
        let trigger = StatTrigger { idle: Some(Nanos(1)), ..StatTrigger::default() };
        let plain = Instructions::apply(&[OUT]);
        let more = [
            (Instructions { meter: Some(1), ..plain.clone() }, Reason::Meter),
            (Instructions { goto: Some(1), ..plain.clone() }, Reason::Goto),
            (Instructions { trigger: Some(trigger), ..plain.clone() }, Reason::Trigger),
            (Instructions { write: Arc::new([OUT]), ..plain }, Reason::Outputs),
        ];
        for (instructions, why) in more {
            assert_eq!(of(instructions), Deed::Escape(why));
        }
        let lists: &[(&[Action], Reason)] = &[
            (&[Action::Controller { bytes_max: 9 }, OUT], Reason::Controller),
            (&[Action::Group(1)], Reason::Group),
            (&[Action::Enqueue { port: 1, queue: 1 }], Reason::Queue),
            (&[Action::Flood], Reason::Flood),
            (&[Action::Local], Reason::Local),
            (&[OUT, OUT], Reason::Outputs),
            (&[Action::SetVlan(1)], Reason::NoOutput),
            (&[Action::set(Field::Ipv6Dst, 1), OUT], Reason::SetField),
            (&[Action::PushMpls(0x8847), OUT], Reason::Header),
            (
                &[Action::set(Field::TcpSrc, 1), Action::set(Field::UdpSrc, 2), OUT],
                Reason::SetField,
            ),
            (&[OUT, Action::DecIpTtl], Reason::Order),
            (&[Action::DecIpTtl, Action::DecIpTtl, OUT], Reason::Order),
            (&[Action::SetVlan(1), Action::PopVlan, OUT], Reason::Order),
            (&[Action::PopVlan, Action::set(Field::VlanVid, 1), OUT], Reason::Order),
            (&[Action::set(Field::EthDst, 1), Action::set(Field::EthDst, 2), OUT], Reason::Order),
        ];
        for (actions, why) in lists {
            assert_eq!(apply(actions), Deed::Escape(*why), "{actions:?}");
        }
    }

    #[test]
    fn a_match_beyond_the_key_escapes_and_covers_the_original() {
        let fields = [(Field::EthType, 0x86dd, 0xffff), (Field::Ipv6Dst, 1, u128::MAX)];
        let matching = Match::asking(&fields);
        let lowered = lower(&matching, &Instructions::apply(&[OUT]));
        assert_eq!(lowered.deed, Deed::Escape(Reason::Field));
        assert!(Match::new(lowered.value, lowered.mask).covers(&matching));
    }
}
