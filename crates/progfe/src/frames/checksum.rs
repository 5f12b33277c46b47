//! Checksum computation.
//!
//! Only the checksum of a pushed header is computed from scratch. The checksum of a received header
//! is updated incrementally (RFC 1624). A wrong checksum therefore remains wrong. A fragment, which
//! lacks a part of the covered data, retains a correct checksum.

use packet::checksum::{InternetChecksum, update_u16, update_udp_u16};

use super::{Checksum, Cover, FrameSet, Item, Located};

/// A checksum field of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Offset of its first byte.
    pub at: usize,
    /// Kind.
    pub kind: Checksum,
}

impl Site {
    /// Reads the value.
    pub fn value(self, bytes: &[u8]) -> u16 {
        u16::from_be_bytes([bytes[self.at], bytes[self.at + 1]])
    }

    /// Returns the value after the sum of the covered data changed from `old` to `new`.
    pub fn updated(self, bytes: &[u8], old: u16, new: u16) -> u16 {
        let update = if self.kind.optional { update_udp_u16 } else { update_u16 };
        if old == new { self.value(bytes) } else { update(self.value(bytes), old, new) }
    }

    /// Returns the value for a sum.
    pub fn fresh(self, sum: u16) -> u16 {
        let sum = InternetChecksum::default().u16(sum);
        if self.kind.optional { sum.checksum_udp() } else { sum.checksum() }
    }
}

impl FrameSet {
    /// Returns the checksum field of a header, by its index among the headers.
    pub fn checksum_site(&self, located: &Located, position: usize) -> Option<Site> {
        let header = located.headers.get(position)?;
        let items = self.format(header.format).items.iter().enumerate();
        let mut kinds = items.filter_map(|(at, item)| match item {
            Item::Field(field) => field.checksum.map(|kind| (at as u16, kind)),
            Item::Repeat(_) => None,
        });
        let (item, kind) = kinds.next()?;
        let span = header.item(item)?;
        Some(Site { at: span.at as usize / 8, kind })
    }

    /// Sums all data that a header's checksum covers, except the checksum itself. Returns `None`
    /// without a checksum, or without the header of its pseudo-header.
    pub fn checksum_sum(&self, located: &Located, position: usize, bytes: &[u8]) -> Option<u16> {
        let site = self.checksum_site(located, position)?;
        let header = &located.headers[position];
        let end = if site.kind.cover == Cover::Header { header.end } else { header.limit };
        let covered = bytes.get(header.at..end)?;
        let mut sum = InternetChecksum::default().bytes_around(covered, site.at - header.at);
        if let Cover::Pseudo(protocol) = site.kind.cover {
            let length = (end - header.at) as u32;
            sum = sum.plus(self.pseudo(located, position, bytes)?).u16(protocol.into()).u32(length);
        }
        Some(sum.fold())
    }

    /// Sums the marked fields of the nearest enclosing header that has any.
    fn pseudo(&self, located: &Located, position: usize, bytes: &[u8]) -> Option<InternetChecksum> {
        located.headers[..position].iter().rev().find_map(|header| {
            let items = self.format(header.format).items.iter().enumerate();
            let marked = items.filter(|(_, item)| item.field().is_some_and(|field| field.pseudo));
            let spans = marked.filter_map(|(at, _)| header.item(at as u16));
            let parts = spans.filter_map(|span| {
                bytes.get(span.at as usize / 8..(span.at + span.bits) as usize / 8)
            });
            parts.fold(None, |sum: Option<InternetChecksum>, part| {
                Some(sum.unwrap_or_default().bytes(part))
            })
        })
    }

    /// Returns whether a header's checksum is correct; `None` if there is none to verify.
    pub fn checksum_holds(&self, located: &Located, position: usize, bytes: &[u8]) -> Option<bool> {
        let site = self.checksum_site(located, position)?;
        let value = site.value(bytes);
        if site.kind.optional && value == 0 {
            return None;
        }
        let sum = self.checksum_sum(located, position, bytes)?;
        Some(InternetChecksum::default().u16(sum).u16(value).fold() == 0xffff)
    }
}
