//! The distinct rewrites of entries, which share them.

use std::collections::HashMap;

use super::layout::{REWRITES_MAX, action, rewrite};
use super::lower::{ADDED_TAG_TYPE, Bits, Rewrite, Tag, Ttl};
use super::memory::Memory;

/// A rewrite and the action that follows, in the layout that programs read.
pub(super) type Words = [u64; rewrite::BYTES / 8];

/// Rewrites by contents, with their numbers and how many entries use them.
#[derive(Debug)]
pub(super) struct Rewrites {
    used: HashMap<Words, (u16, usize)>,
    contents: Vec<Words>,
    free: Vec<u16>,
}

impl Rewrites {
    pub(super) fn new() -> Rewrites {
        Rewrites {
            used: HashMap::new(),
            contents: vec![[0; rewrite::BYTES / 8]; REWRITES_MAX],
            free: (0..REWRITES_MAX as u16).rev().collect(),
        }
    }

    /// Returns the action of a rewrite and the action after it, or `None` if there is no space.
    pub(super) fn share(&mut self, memory: &Memory, change: &Rewrite, then: u32) -> Option<u32> {
        let words = words(change, then);
        let (number, users) = match self.used.get_mut(&words) {
            Some(known) => known,
            None => {
                let number = self.free.pop()?;
                memory.set_rewrite(number.into(), &words);
                self.contents[usize::from(number)] = words;
                self.used.entry(words).or_insert((number, 0))
            }
        };
        *users += 1;
        Some(action::REWRITE << action::KIND_SHIFT | u32::from(*number))
    }

    /// Releases the rewrite of an action, if it has one. No program uses it for that entry.
    pub(super) fn release(&mut self, action: u32) {
        if action >> action::KIND_SHIFT != action::REWRITE {
            return;
        }
        let number = action as u16;
        let words = &self.contents[usize::from(number)];
        if let Some((_, users)) = self.used.get_mut(words) {
            *users -= 1;
            if *users == 0 {
                self.used.remove(words);
                self.free.push(number);
            }
        }
    }
}

/// Returns a rewrite in the layout that programs read.
fn words(change: &Rewrite, then: u32) -> Words {
    let Rewrite { tag, eth_dst, eth_src, addresses, service, ttl, tcp, udp } = change;
    let mut bytes = [0; rewrite::BYTES];
    let mut put = |offset: i16, part: &[u8]| {
        bytes[offset as usize..offset as usize + part.len()].copy_from_slice(part);
    };
    let mut flags = if change.changes_ip() { rewrite::CHANGES_IP } else { 0 };
    for (mac, flag, offset) in [
        (eth_dst, rewrite::SETS_DST, rewrite::ETH_DST),
        (eth_src, rewrite::SETS_SRC, rewrite::ETH_SRC),
    ] {
        if let Some(mac) = mac {
            flags |= flag;
            put(offset, mac);
        }
    }
    for (bits, offset) in addresses.iter().zip(rewrite::ADDRESSES) {
        put(offset, &(!bits.mask).to_ne_bytes());
        put(offset + 4, &bits.value.to_ne_bytes());
    }
    let mut put_half = |offset: i16, bits: &Bits<u16>| {
        put(offset, &(!bits.mask).to_ne_bytes());
        put(offset + 2, &bits.value.to_ne_bytes());
    };
    put_half(rewrite::SERVICE, service);
    let ttl = match ttl {
        None => Bits::default(),
        Some(Ttl::Set(ttl)) => Bits { value: u16::from(*ttl) << 8, mask: 0xff00 },
        Some(Ttl::Decrement) => {
            flags |= rewrite::DECREMENTS;
            Bits::default()
        }
    };
    put_half(rewrite::TTL, &ttl);
    let mut ports = tcp;
    let none = [Bits::default(); 2];
    if *tcp != none {
        flags |= rewrite::CHANGES_TCP;
    }
    if *udp != none {
        flags |= rewrite::CHANGES_UDP;
        ports = udp;
    }
    for (bits, offset) in ports.iter().zip(rewrite::PORTS) {
        put_half(offset, bits);
    }
    let (tag_flag, type_, bits) = match tag {
        None => (0, 0, Bits::default()),
        Some(Tag::Set(bits)) => (rewrite::SETS_TAG, 0, *bits),
        Some(Tag::Require(bits)) => (rewrite::NEEDS_TAG, ADDED_TAG_TYPE, *bits),
        Some(Tag::Push(type_, bits)) => (rewrite::PUSHES, *type_, *bits),
        Some(Tag::Pop) => (rewrite::POPS, 0, Bits::default()),
    };
    put_half(rewrite::TAG, &bits);
    put(rewrite::TAG_TYPE, &type_.to_ne_bytes());
    put(rewrite::FLAGS, &(flags | tag_flag).to_ne_bytes());
    put(rewrite::THEN, &then.to_ne_bytes());
    let words = bytes.as_chunks::<8>().0;
    std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
}
