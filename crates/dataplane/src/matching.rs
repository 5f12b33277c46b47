//! Match of a flow entry: a value and a mask for each field of the key.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.4 and 5.2.3; 1.3.5, section 7.2.3. A
//! field is significant only if the match includes its prerequisites. An IP address requires the
//! Ethernet type of IP or ARP. A port requires the protocol TCP, UDP or ICMP. The constructors
//! resolve prerequisites once, so that lookup, comparison and overlap checks are plain arithmetic.
//!
//! Invariants: a match is canonical.
//! - Value bits outside of the mask are zero.
//! - A field whose prerequisites are wildcarded is wildcarded.
//! - A field that no matching frame can have must be zero, as in the key of such a frame.
//! - Two matches with the same meaning are equal.

use packet::field::{self, FieldSet, PrerequisiteCheck};

use crate::key::wide::{self, Family, Wide, WordSet};
use crate::key::{Field, Key, VLAN_PRESENT, WORDS, second_tag, second_tag_type};

const ETH_TYPE_IPV4: u64 = 0x0800;
const ETH_TYPE_ARP: u64 = 0x0806;
const L4_FIELDS: [Field; 2] = [Field::L4Src, Field::L4Dst];
const IP_FIELDS: [Field; 4] = [Field::IpDscp, Field::IpProto, Field::IpSrc, Field::IpDst];

/// A canonical match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Match {
    value: Key,
    mask: Key,
    wide_value: Wide,
    wide_mask: Wide,
}

/// A field, its required value, and the mask of significant bits.
pub type MatchedFields = (field::Field, u128, u128);

impl Match {
    /// Matches every frame.
    pub const ANY: Match =
        Match { value: Key::ZERO, mask: Key::ZERO, wide_value: Wide::ZERO, wide_mask: Wide::ZERO };

    /// Creates the canonical match of frames whose key has `value` in the bits of `mask`.
    pub fn new(value: Key, mask: Key) -> Match {
        Match { value, mask, ..Match::ANY }.settled()
    }

    /// Creates the canonical match of frames with these bits in these fields.
    ///
    /// A field without its prerequisites (see [`field::Field::needs`]) is wildcarded. Port numbers
    /// are the forwarder's. OpenFlow 1.0 matches on the lower byte of `arp_op` only.
    pub fn asking(fields: &[MatchedFields]) -> Match {
        Match::asking_each(fields.iter().copied())
    }

    /// Like [`Match::asking`](Match::asking), for an iterator that can be traversed more than once.
    pub fn asking_each(fields: impl Iterator<Item = MatchedFields> + Clone) -> Match {
        let mut ground = PrerequisiteCheck::default();
        fields.clone().for_each(|(field, value, mask)| ground.note(field, value, mask));
        let family = Family::of_type(ground.eth_type().unwrap_or_default() as u64);
        let mut matching = Match::ANY;
        let Match { value: key, mask: key_mask, wide_value, wide_mask } = &mut matching;
        for (field, value, mask) in fields.filter(|asked| ground.bears(asked.0)) {
            wide::set(field, family, key, wide_value, value);
            wide::set(field, family, key_mask, wide_mask, mask);
        }
        matching.settled()
    }

    /// Interprets the Ethernet type as in OpenFlow 1.0, whose flow chart parses one tag (1.0.0,
    /// section 3.4, figure 4). A frame with two tags has the type of the second tag, and no fields
    /// after it.
    #[must_use]
    pub fn behind_one_tag(mut self) -> Match {
        if !self.wants(Field::EthType) {
            return self;
        }
        let second = second_tag(self.value.get(Field::EthType) as u16);
        let untagged = self.requires_no_tag();
        if second != 0 && !untagged {
            for fields in [&[Field::EthType][..], &IP_FIELDS, &L4_FIELDS] {
                self.leave_open(fields);
            }
            self.value.set(Field::SecondTag, second);
        }
        self.mask.set(Field::SecondTag, u64::MAX);
        self.settled()
    }

    /// Returns what the match requires of these fields, in order, without wildcarded fields.
    pub fn asked(&self, fields: FieldSet) -> Vec<MatchedFields> {
        let family = self.family();
        let asked = fields.iter().map(|field| {
            if field == field::Field::EthType
                && let Some(tag_type) = second_tag_type(self.value.get(Field::SecondTag))
            {
                return (field, tag_type.into(), field.ones());
            }
            let value = wide::get(field, family, &self.value, &self.wide_value);
            let mask = wide::get(field, family, &self.mask, &self.wide_mask);
            (field, value, if mask == field.ones() & in_key(field) { field.ones() } else { mask })
        });
        asked.filter(|asked| asked.2 != 0).collect()
    }

    /// Returns the fields that the match requires a value of. Fields that must be zero because no
    /// matching frame has them are not included.
    pub fn fields_asked(&self) -> FieldSet {
        let (mut set, mut ground) = (FieldSet::NONE, PrerequisiteCheck::default());
        let untagged = self.value.get(Field::Vlan) & VLAN_PRESENT == 0;
        for (field, value, mask) in self.asked(FieldSet::ALL) {
            if ground.bears(field) && !(untagged && field == field::Field::VlanPcp) {
                ground.note(field, value, mask);
                set = set.with(field);
            }
        }
        set
    }

    /// Returns the wide words that the match depends on.
    pub fn wide_words(&self) -> WordSet {
        self.wide_mask.used()
    }

    /// Whether every frame matches.
    pub fn is_any(&self) -> bool {
        self.mask == Key::ZERO && self.wide_mask == Wide::ZERO
    }

    fn family(&self) -> Family {
        Family::of(&self.value)
    }

    fn settled(mut self) -> Match {
        self.settle_vlan();
        self.settle_eth_type();
        self.value = self.value.and(&self.mask);
        for (value, mask) in self.wide_value.0.iter_mut().zip(self.wide_mask.0) {
            *value &= mask;
        }
        self
    }

    /// Creates the canonical match of frames with these values of whole fields.
    pub fn of(fields: &[(Field, u64)]) -> Match {
        let (mut value, mut mask) = (Key::ZERO, Key::ZERO);
        for &(field, wanted) in fields {
            value.set(field, wanted);
            mask.set(field, field.full());
        }
        Match::new(value, mask)
    }

    /// Creates the match of frames with exactly this key.
    pub fn exact(key: Key) -> Match {
        Match::new(key, Key::FULL)
    }

    /// Returns the values; wildcarded bits are zero.
    pub fn value(&self) -> &Key {
        &self.value
    }

    /// Returns the mask of significant bits.
    pub fn mask(&self) -> &Key {
        &self.mask
    }

    /// Returns the values of the wide fields; wildcarded bits are zero.
    pub fn wide_value(&self) -> &Wide {
        &self.wide_value
    }

    /// Returns the mask of significant bits of the wide fields.
    pub fn wide_mask(&self) -> &Wide {
        &self.wide_mask
    }

    /// Recreates a match from its own values and masks.
    pub(crate) fn again(value: Key, mask: Key, wide: Option<&(Wide, Wide)>) -> Match {
        let (wide_value, wide_mask) = wide.copied().unwrap_or_default();
        Match { value, mask, wide_value, wide_mask }
    }

    /// Returns a field's value and mask.
    pub fn field(&self, field: Field) -> (u64, u64) {
        (self.value.get(field), self.mask.get(field))
    }

    /// Whether the match has every bit of the key, and nothing else.
    pub fn is_exact(&self) -> bool {
        self.mask == Key::FULL && self.wide_mask == Wide::ZERO
    }

    /// Whether the match names every field that a matching frame can have, apart from the wide
    /// fields, which are wildcarded. Matches of OpenFlow 1.1 and later cannot name the second tag.
    pub fn names_every_field(&self) -> bool {
        let mut named = self.mask.with(Field::SecondTag, u64::MAX);
        if self.value.get(Field::SecondTag) != 0 {
            let hidden = [&[Field::EthType][..], &IP_FIELDS, &L4_FIELDS].concat();
            hidden.into_iter().for_each(|field| named.set(field, u64::MAX));
        }
        named == Key::FULL && self.wide_mask == Wide::ZERO
    }

    /// Whether the match has every bit of the key, and perhaps wide fields.
    pub fn asks_whole_key(&self) -> bool {
        self.mask == Key::FULL
    }

    /// Whether a frame with this key matches, if its wide fields do.
    pub fn matches_key(&self, key: &Key) -> bool {
        differing(key, &self.value, &self.mask) == 0
    }

    /// Whether a frame with this key and these wide fields matches.
    #[inline]
    pub fn matches(&self, key: &Key, wide: &Wide) -> bool {
        differing(key, &self.value, &self.mask) == 0
            && differing_wide(wide, &self.wide_value, &self.wide_mask) == 0
    }

    /// Whether every frame that matches `other` matches this too.
    pub fn covers(&self, other: &Match) -> bool {
        let words = other.wide_mask.0.iter().zip(self.wide_mask.0);
        other.mask.and(&self.mask) == self.mask
            && words.into_iter().all(|(theirs, ours)| theirs & ours == ours)
            && self.matches(&other.value, &other.wide_value)
    }

    /// Whether the mask includes every bit of the mask of `other`.
    pub fn asks_all_of(&self, other: &Match) -> bool {
        let mut words = other.wide_mask.0.iter().zip(self.wide_mask.0);
        self.mask.and(&other.mask).is(&other.mask)
            && words.all(|(theirs, ours)| theirs & ours == *theirs)
    }

    /// Whether some key matches both.
    pub fn overlaps(&self, other: &Match) -> bool {
        let both = |word: usize| self.wide_mask.0[word] & other.wide_mask.0[word];
        let wide = Wide(std::array::from_fn(both));
        differing(&self.value, &other.value, &self.mask.and(&other.mask)) == 0
            && differing_wide(&self.wide_value, &other.wide_value, &wide) == 0
    }

    fn wants(&self, field: Field) -> bool {
        self.mask.get(field) == field.full()
    }

    fn leave_open(&mut self, fields: &[Field]) {
        for &field in fields {
            self.mask.set(field, 0);
        }
    }

    fn require_zero(&mut self, fields: &[Field]) {
        for &field in fields {
            self.value.set(field, 0);
            self.mask.set(field, field.full());
        }
    }

    fn requires_no_tag(&self) -> bool {
        let (value, mask) = self.field(Field::Vlan);
        mask & VLAN_PRESENT != 0 && value & VLAN_PRESENT == 0
    }

    /// A frame without a tag has no priority and no second tag, so a match on one of these requires
    /// a tag.
    fn settle_vlan(&mut self) {
        let has_second = self.value.and(&self.mask).get(Field::SecondTag) != 0;
        if self.requires_no_tag() {
            self.require_zero(&[Field::Vlan, Field::VlanPriority, Field::SecondTag]);
        } else if has_second || self.mask.get(Field::VlanPriority) != 0 {
            self.value.set(Field::Vlan, self.value.get(Field::Vlan) | VLAN_PRESENT);
            self.mask.set(Field::Vlan, self.mask.get(Field::Vlan) | VLAN_PRESENT);
        }
    }

    /// Resolves the IP fields by the Ethernet type.
    fn settle_eth_type(&mut self) {
        if !self.wants(Field::EthType) {
            self.leave_open(&IP_FIELDS);
            self.leave_open(&L4_FIELDS);
            return;
        }
        match self.value.get(Field::EthType) {
            ETH_TYPE_IPV4 => self.settle_ipv4(),
            ETH_TYPE_ARP => {
                self.require_zero(&[Field::IpDscp]);
                self.require_zero(&L4_FIELDS);
            }
            _ => {
                self.require_zero(&IP_FIELDS);
                self.require_zero(&L4_FIELDS);
            }
        }
    }

    /// Resolves the L4 fields by the protocol.
    fn settle_ipv4(&mut self) {
        if self.wants(Field::IpProto) && self.value.get(Field::IpProto) == 1 {
            self.settle_icmp();
        }
        if !self.wants(Field::IpProto) {
            self.leave_open(&L4_FIELDS);
        } else if !matches!(self.value.get(Field::IpProto), 1 | 6 | 17) {
            self.require_zero(&L4_FIELDS);
        }
    }

    /// Limits ICMP type and code to 8 bits; the upper half of their fields is zero.
    fn settle_icmp(&mut self) {
        for field in L4_FIELDS {
            let (value, mask) = self.field(field);
            self.value.set(field, value & 0xff);
            self.mask.set(field, if mask & 0xff == 0xff { 0xffff } else { mask & 0xff });
        }
    }
}

/// Returns the bits of a field that a key has: port numbers are shorter there.
fn in_key(field: field::Field) -> u128 {
    if field == field::Field::InPort { 0xffff } else { u128::MAX }
}

/// Returns the OR over all wide words of the masked differences.
#[inline]
pub(crate) fn differing_wide(one: &Wide, other: &Wide, mask: &Wide) -> u64 {
    let differ = |word: usize| (one.0[word] ^ other.0[word]) & mask.0[word];
    (0..wide::WORDS).fold(0, |bits, word| bits | differ(word))
}

/// Returns the OR over all key words of the masked differences.
#[inline]
pub(crate) fn differing(one: &Key, other: &Key, mask: &Key) -> u64 {
    (0..WORDS).fold(0, |bits, word| bits | ((one.0[word] ^ other.0[word]) & mask.0[word]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: (Field, u64) = (Field::EthType, ETH_TYPE_IPV4);

    fn prefix(field: Field, value: u64, mask: u64) -> Match {
        let value = Key::ZERO.with(Field::EthType, ETH_TYPE_IPV4).with(field, value);
        Match::new(value, Key::ZERO.with(Field::EthType, 0xffff).with(field, mask))
    }

    #[test]
    fn fields_without_their_prerequisites_are_wildcards() {
        assert_eq!(Match::of(&[(Field::IpSrc, 5), (Field::L4Dst, 80)]), Match::ANY);
        assert_eq!(Match::of(&[IPV4, (Field::L4Dst, 80)]), Match::of(&[IPV4]));
    }

    #[test]
    fn fields_that_the_frame_cannot_have_must_be_zero() {
        let ipv6 = Match::of(&[(Field::EthType, 0x86dd), (Field::IpSrc, 7), (Field::L4Src, 9)]);
        assert_eq!(ipv6, Match::of(&[(Field::EthType, 0x86dd)]));
        assert_eq!(ipv6.field(Field::IpSrc), (0, 0xffff_ffff));
        let gre = Match::of(&[IPV4, (Field::IpProto, 47), (Field::L4Src, 9)]);
        assert_eq!(gre.field(Field::L4Src), (0, 0xffff));
        let untagged = Match::of(&[(Field::Vlan, 0), (Field::VlanPriority, 5)]);
        assert_eq!(untagged, Match::of(&[(Field::Vlan, 0)]));
    }

    #[test]
    fn a_match_on_all_possible_fields_is_exact() {
        let arp = [
            (Field::InPort, 1),
            (Field::EthDst, 2),
            (Field::EthSrc, 3),
            (Field::Vlan, 0),
            (Field::EthType, ETH_TYPE_ARP),
            (Field::IpProto, 1),
            (Field::IpSrc, 4),
            (Field::IpDst, 5),
        ];
        assert!(Match::of(&arp).is_exact());
        assert!(!Match::of(&arp[..7]).is_exact());
        assert!(Match::exact(Key::ZERO.with(Field::EthType, 0x9000)).is_exact());
    }

    #[test]
    fn priority_zero_does_not_match_an_untagged_frame() {
        let matching = Match::of(&[(Field::VlanPriority, 0)]);
        assert!(!matching.matches(&Key::ZERO, &Wide::ZERO));
        assert!(matching.matches(&Key::ZERO.with(Field::Vlan, VLAN_PRESENT | 9), &Wide::ZERO));
    }

    /// Returns the key of a tagged IPv4 frame, with a second tag of this type.
    fn tagged(tag_type: u16) -> Key {
        let key = Key::ZERO.with(Field::Vlan, VLAN_PRESENT | 9);
        key.with(Field::SecondTag, second_tag(tag_type)).with(Field::EthType, ETH_TYPE_IPV4)
    }

    #[test]
    fn after_one_tag_the_type_of_a_second_tag_is_the_ethernet_type() {
        let (one, two) = (tagged(0), tagged(0x8100));
        let chosen = |matching: Match| [one, two].map(|key| matching.matches(&key, &Wide::ZERO));
        let ipv4 = Match::of(&[IPV4, (Field::IpProto, 0)]);
        let tag = Match::of(&[(Field::EthType, 0x8100), (Field::IpProto, 17)]);
        assert_eq!((chosen(ipv4), chosen(tag)), ([true, true], [false, false]));
        assert_eq!(chosen(ipv4.behind_one_tag()), [true, false]);
        assert_eq!(chosen(tag.behind_one_tag()), [false, true]);
        assert_eq!(chosen(Match::of(&[(Field::EthType, 0x88a8)]).behind_one_tag()), [false; 2]);
        assert_eq!(
            chosen(Match::of(&[(Field::Vlan, VLAN_PRESENT | 9)]).behind_one_tag()),
            [true; 2]
        );
        let untagged = Match::of(&[(Field::EthType, 0x8100), (Field::Vlan, 0)]).behind_one_tag();
        assert!(!untagged.matches(&Key::ZERO, &Wide::ZERO));
        let named = FieldSet::NONE.with(field::Field::EthType);
        assert_eq!(tag.behind_one_tag().asked(named), [(field::Field::EthType, 0x8100, 0xffff)]);
        assert_eq!(ipv4.behind_one_tag().asked(named), ipv4.asked(named));
        assert!(ipv4.covers(&ipv4.behind_one_tag()) && ipv4.overlaps(&tag.behind_one_tag()));
        assert!(!ipv4.behind_one_tag().overlaps(&tag.behind_one_tag()));
    }

    #[test]
    fn a_match_on_all_fields_of_a_tagged_frame_is_exact() {
        let whole = Match::new(tagged(0), Key::FULL.with(Field::SecondTag, 0));
        assert!(whole.names_every_field() && !whole.is_exact());
        assert!(whole.behind_one_tag().is_exact() && whole.behind_one_tag().names_every_field());
        let second =
            Match::new(tagged(0).with(Field::EthType, 0x8100), *whole.mask()).behind_one_tag();
        assert!(second.names_every_field() && !second.is_exact());
        let open = Match::new(*second.value(), second.mask().with(Field::EthSrc, 0));
        assert!(!open.names_every_field());
        // A frame without a tag has no second tag.
        let untagged = Match::new(*whole.value(), *whole.mask());
        let untagged = Match::new(untagged.value().with(Field::Vlan, 0), *untagged.mask());
        assert!(untagged.is_exact());
        assert_eq!(untagged.behind_one_tag(), untagged);
    }

    #[test]
    fn covering_and_overlapping_respect_prefix_lengths() {
        let ten = prefix(Field::IpDst, 0x0a00_0000, 0xff00_0000);
        let ten_one = prefix(Field::IpDst, 0x0a01_0000, 0xffff_0000);
        let eleven = prefix(Field::IpDst, 0x0b00_0000, 0xff00_0000);
        let from = prefix(Field::IpSrc, 0x0101_0101, 0xffff_ffff);
        assert!(ten.covers(&ten_one) && !ten_one.covers(&ten));
        assert!(ten.overlaps(&ten_one) && ten_one.overlaps(&ten));
        assert!(!ten.overlaps(&eleven));
        assert!(ten.overlaps(&from) && !ten.covers(&from));
        assert!(Match::ANY.covers(&ten) && ten.covers(&ten));
    }
}
