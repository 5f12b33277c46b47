//! Pushing and popping of VLAN tags, MPLS entries and PBB headers.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.12 and 7.2.5. A pushed header is the
//! outermost of its kind and copies the previous outermost one. It copies VLAN identifier and
//! priority, or MPLS label, class and TTL, or the service instance. Without a previous MPLS entry,
//! the TTL is that of IP. The priority of a PBB header is that of the VLAN. Fields without a source
//! are zero.
//!
//! An MPLS entry replaces a type field. The payload after the stack has no type, so a pop action
//! supplies it. From 1.3 on, a pushed entry follows the Ethernet header, before the VLAN tags; in
//! earlier versions, it follows the tags. Frames of IEEE 802.3 have their type in the SNAP header,
//! and their length is adjusted. Without SNAP, there is no type that MPLS could replace.
//!
//! Invariant: a frame without the header, or without space for another, does not change.

use packet::frame::Frame;
use packet::header::{ethernet, mpls, pbb, put_u16, put_u32, u16_at, u32_at, vlan};

use super::ttl;
use crate::parse::{Headers, Network};

/// Bytes that a PBB header adds to a frame.
const PBB_BYTES: usize = 2 + pbb::TAG_BYTES;

/// Offset of the outermost tag's control information.
const CONTROL_AT: usize = ethernet::HEADER_BYTES;

/// Position of a pushed MPLS entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MplsPlace {
    /// After the Ethernet header (1.3 and later).
    Outermost,
    /// After the VLAN tags (1.1 and 1.2).
    BehindVlan,
}

/// Whether the frame has a tag, as in [`Headers`].
fn is_tagged(bytes: &[u8]) -> bool {
    let at = ethernet::TYPE.start;
    bytes.len() >= at + vlan::TAG_BYTES + 2 && vlan::is_tag(u16_at(bytes, at))
}

/// Pushes an outermost tag of this type.
pub fn push_vlan(frame: &mut Frame, type_: u16) {
    let copied = vlan::VID_MASK | 7 << vlan::PCP_SHIFT;
    let control =
        if is_tagged(frame.bytes()) { u16_at(frame.bytes(), CONTROL_AT) & copied } else { 0 };
    insert_tag(frame, type_, control);
}

/// Pops the outermost tag, if there is one.
pub fn pop_vlan(frame: &mut Frame) {
    if is_tagged(frame.bytes()) {
        frame.remove(ethernet::TYPE.start, vlan::TAG_BYTES);
    }
}

/// Sets the bits of `mask` in the control information of the outermost tag; adds a tag to a frame
/// without one (OpenFlow 1.0).
pub fn set_tag(frame: &mut Frame, mask: u16, bits: u16) {
    if is_tagged(frame.bytes()) {
        let control = u16_at(frame.bytes(), CONTROL_AT);
        put_u16(frame.bytes_mut(), CONTROL_AT, control & !mask | bits & mask);
    } else {
        insert_tag(frame, ethernet::TYPE_VLAN, bits & mask);
    }
}

fn insert_tag(frame: &mut Frame, type_: u16, control: u16) {
    let long_enough = frame.len() >= ethernet::HEADER_BYTES;
    if long_enough && frame.insert(ethernet::TYPE.start, vlan::TAG_BYTES) {
        put_u16(frame.bytes_mut(), ethernet::TYPE.start, type_);
        put_u16(frame.bytes_mut(), CONTROL_AT, control);
    }
}

/// Pushes an outermost MPLS entry and sets the Ethernet type to `type_`.
pub fn push_mpls(frame: &mut Frame, type_: u16, place: MplsPlace) {
    let headers = Headers::of(frame.bytes());
    let before_tags = headers.tags > 0 && place == MplsPlace::Outermost;
    let type_at = if before_tags { ethernet::TYPE.start } else { headers.type_at.into() };
    let has_type = before_tags || headers.eth_type != ethernet::TYPE_NONE;
    if frame.len() < ethernet::HEADER_BYTES || !has_type {
        return;
    }
    let stacked = headers.network == Network::Mpls && !before_tags;
    let entry = copied_entry(&headers, frame.bytes(), !stacked);
    let adjusted = before_tags || adjust_length(&headers, frame.bytes_mut(), 4);
    if adjusted && frame.insert(type_at + 2, mpls::ENTRY_BYTES) {
        put_u16(frame.bytes_mut(), type_at, type_);
        put_u32(frame.bytes_mut(), type_at + 2, entry);
    } else if adjusted && !before_tags {
        adjust_length(&headers, frame.bytes_mut(), -4);
    }
}

/// Returns a new entry with label, class and TTL of the outermost one, or with the IP TTL.
fn copied_entry(headers: &Headers, bytes: &[u8], bottom: bool) -> u32 {
    let bottom = if bottom { mpls::BOTTOM } else { 0 };
    match headers.network {
        Network::Mpls => u32_at(bytes, headers.network_at.into()) & !mpls::BOTTOM | bottom,
        _ => ttl::outermost(headers).map_or(0, |ttl| ttl.get(bytes).into()) | bottom,
    }
}

/// Pops the outermost MPLS entry, if there is one; `type_` is the type of the payload.
pub fn pop_mpls(frame: &mut Frame, type_: u16) {
    let headers = Headers::of(frame.bytes());
    if headers.network == Network::Mpls {
        put_u16(frame.bytes_mut(), headers.type_at.into(), type_);
        adjust_length(&headers, frame.bytes_mut(), -4);
        frame.remove(headers.network_at.into(), mpls::ENTRY_BYTES);
    }
}

/// Pushes an outermost PBB header: the frame becomes the customer frame, and the backbone addresses
/// are copies of its addresses until they are set.
pub fn push_pbb(frame: &mut Frame, type_: u16) {
    let headers = Headers::of(frame.bytes());
    let bytes = frame.bytes();
    let priority = match headers.tags {
        0 => 0,
        _ => u32::from(u16_at(bytes, CONTROL_AT) >> vlan::PCP_SHIFT) << pbb::PCP_SHIFT,
    };
    let instance = match headers.network {
        Network::Pbb => u32_at(bytes, headers.network_at.into()) & pbb::ISID_MASK,
        _ => 0,
    };
    if frame.len() < ethernet::HEADER_BYTES || !frame.insert(0, PBB_BYTES) {
        return;
    }
    let bytes = frame.bytes_mut();
    bytes.copy_within(PBB_BYTES..PBB_BYTES + 12, 0);
    put_u16(bytes, ethernet::TYPE.start, type_);
    put_u32(bytes, ethernet::HEADER_BYTES, priority | instance);
}

/// Pops the outermost service tag, if there is one, and restores the customer addresses. A backbone
/// VLAN tag before it stays.
pub fn pop_pbb(frame: &mut Frame) {
    let headers = Headers::of(frame.bytes());
    if headers.network != Network::Pbb {
        return;
    }
    let customer_at = usize::from(headers.network_at) + pbb::CUSTOMER_AT;
    let bytes = frame.bytes_mut();
    bytes.copy_within(customer_at..customer_at + 12, 0);
    adjust_length(&headers, bytes, -(PBB_BYTES as i32));
    frame.remove(headers.type_at.into(), PBB_BYTES);
}

/// Adds to the length of an IEEE 802.3 frame. Returns false without a change if the result would
/// not be a valid length.
fn adjust_length(headers: &Headers, bytes: &mut [u8], by: i32) -> bool {
    if !headers.has_length() {
        return true;
    }
    let at = headers.length_at().into();
    let length = i32::from(u16_at(bytes, at)) + by;
    let fits = (0..i32::from(ethernet::TYPE_MIN)).contains(&length);
    if fits {
        put_u16(bytes, at, length as u16);
    }
    fits
}
