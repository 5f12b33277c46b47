//! EtherClassifier (RFC 6956 section 5.1.3): removes link-layer headers and selects an output by
//! their fields.
//!
//! - The outermost tag, if present, is removed with the header. Its VLAN and priority become
//!   metadata. An untagged frame belongs to VLAN 0.
//! - VlanInputTable maps port and VLAN to the logical port. Without a row, the incoming
//!   LogicalPortID remains, or else 0.
//! - EtherDispatchTable maps logical port and EtherType to the output.
//! - Frames that take ExceptionOut retain their headers, because the receiver needs them.

use std::collections::{BTreeMap, BTreeSet};

use forces::Value;
use packet::header::ethernet::{self, TYPE};
use packet::header::{array_at, u16_at, vlan};
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, exception, meta_id};
use crate::compile::build::{Continuation, TreeBuilder};
use crate::compile::path_state::{Known, PathState, Ranges, both, others, tags};
use crate::compile::symbolic_bytes::Read;
use crate::compile::tree::NodeId;
use crate::diagnostic::Code;

const CLASSIFIED: u32 = 0;
const EXCEPTION: u32 = 1;
/// The component EtherClassifyStats.
const STATS: u32 = 3;
/// Maximum number of separately counted EtherTypes without a row. It bounds the memory that a
/// sender can cause.
const STATS_TYPES_MAX: usize = 256;

/// The EtherClassifier block.
#[derive(Debug)]
pub struct Classifier {
    /// Output by logical port and EtherType.
    dispatch: BTreeMap<(u32, u16), u32>,
    /// Logical port by port and VLAN.
    logical: BTreeMap<(u32, u16), u32>,
    /// EtherTypes in the dispatch table.
    types: BTreeSet<u16>,
    frames: BTreeMap<u16, u64>,
    /// Frames with EtherTypes that are not in the dispatch table.
    others: BTreeMap<u16, u64>,
}

impl Classifier {
    /// Counts frames. EtherTypes in the dispatch table always have a counter, others only up to the
    /// limit.
    fn count(&mut self, ether_type: u16, frames: u64) {
        let (known, counted) = match self.types.contains(&ether_type) {
            true => (true, &mut self.frames),
            false => (false, &mut self.others),
        };
        if known || counted.len() < STATS_TYPES_MAX || counted.contains_key(&ether_type) {
            *counted.entry(ether_type).or_default() += frames;
        }
    }

    /// Branches on the EtherType after the header, for one logical port. If the header is untagged,
    /// `tagged` continues with tagged frames.
    fn classify<'a>(
        &self,
        way: PathState,
        (header, logical): (usize, u32),
        grower: &mut TreeBuilder<'a>,
        tagged: Option<Continuation<'_, 'a>>,
    ) -> NodeId {
        let Some(ether_type) = way.view.read(header * 8 - 16, 16) else { return grower.stand(way) };
        let rows = self.dispatch.range((logical, 0)..=(logical, u16::MAX));
        let rows: Vec<(u16, u32)> = rows.map(|((_, of), output)| (*of, *output)).collect();
        let one = |(of, _): &(u16, u32)| vec![(u64::from(*of), u64::from(*of))];
        let mut groups: Vec<Ranges> = rows.iter().map(one).collect();
        let mut tagged = tagged;
        if tagged.is_some() {
            let tags = tags();
            groups.iter_mut().for_each(|group| *group = both(group, &others(&tags, u64::MAX)));
            groups.push(tags);
        }
        groups.push(others(&groups.concat(), u64::MAX));
        grower.choose(way, ether_type, &groups, &mut |grower, mut way, at| {
            if let (Some(tagged), true) = (&mut tagged, at == rows.len()) {
                return tagged(grower, way);
            }
            let (slots, view) = (grower.slots, way.view.clone());
            let field = |at: usize, bits: usize| match view.read(at, bits)? {
                Read::Constant(value) => Some(Known::Constant(value.into())),
                Read::Field(field) => Some(Known::Field(field)),
            };
            // The slow path counts EtherTypes without a row.
            let (Some((of, output)), Some(destination), Some(source)) =
                (rows.get(at), field(0, 48), field(48, 48))
            else {
                return grower.stand(way);
            };
            let mut metas = vec![
                (meta_id::SRC_MAC, source),
                (meta_id::DST_MAC, destination),
                (meta_id::ETHER_TYPE, Known::Constant((*of).into())),
                (meta_id::LOGICAL_PORT, Known::Constant(logical.into())),
            ];
            if header > ethernet::HEADER_BYTES {
                let at = ethernet::HEADER_BYTES * 8;
                let (Some(priority), Some(vid)) = (field(at, 3), field(at + 4, 12)) else {
                    return grower.stand(way);
                };
                metas.push((meta_id::VLAN_ID, vid));
                metas.push((meta_id::VLAN_PRIORITY, priority));
            }
            if !way.view.clone().remove(0, header) {
                return grower.stand(way);
            }
            metas.into_iter().for_each(|(id, value)| way.set(slots.slot(id), value));
            grower.meet(&mut way, (*of).into());
            way.strip(header);
            grower.go(way, CLASSIFIED, *output)
        })
    }
}

impl Block for Classifier {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let (mut dispatch, mut logical) = (BTreeMap::new(), BTreeMap::new());
        for row in setup.rows(1) {
            let key = (row.number(1), row.number(2) as u16);
            if dispatch.insert(key, row.number(4)).is_some() {
                let what = "two rows have this logical port and type";
                setup.refuse(Code::DuplicateKey, &row.path, what, "remove one");
            }
        }
        for row in setup.rows(2) {
            let key = (row.number(1), row.number(2) as u16 & vlan::VID_MASK);
            if logical.insert(key, row.number(4)).is_some() {
                let what = "two rows have this port and VLAN";
                setup.refuse(Code::DuplicateKey, &row.path, what, "remove one");
            }
        }
        let types = dispatch.keys().map(|(_, of)| *of).collect();
        Classifier { dispatch, logical, types, frames: BTreeMap::new(), others: BTreeMap::new() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let bytes = packet.bytes();
        if bytes.len() < ethernet::HEADER_BYTES {
            return Verdict::Dropped(DropReason::TooShort);
        }
        let number =
            |mac: [u8; 6]| mac.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
        let destination = number(array_at(bytes, 0));
        let source = number(array_at(bytes, ethernet::SOURCE.start));
        let (mut ether_type, mut header) = (u16_at(bytes, TYPE.start), ethernet::HEADER_BYTES);
        let mut tag = None;
        if vlan::is_tag(ether_type) && bytes.len() >= header + vlan::TAG_BYTES {
            let control = u16_at(bytes, header);
            tag = Some((control & vlan::VID_MASK, control >> vlan::PCP_SHIFT));
            ether_type = u16_at(bytes, header + 2);
            header += vlan::TAG_BYTES;
        }
        let slots = env.slots;
        let port = packet.meta(slots, meta_id::PHY_PORT).unwrap_or(0) as u32;
        let said = packet.meta(slots, meta_id::LOGICAL_PORT).unwrap_or(0) as u32;
        let vid = tag.map_or(0, |(vid, _)| vid);
        let logical = self.logical.get(&(port, vid)).copied().unwrap_or(said);
        self.count(ether_type, 1);
        for (id, value) in [
            (meta_id::SRC_MAC, source),
            (meta_id::DST_MAC, destination),
            (meta_id::ETHER_TYPE, ether_type.into()),
            (meta_id::LOGICAL_PORT, logical.into()),
        ] {
            packet.set_meta(slots, id, value);
        }
        if let Some((vid, priority)) = tag {
            packet.set_meta(slots, meta_id::VLAN_ID, vid.into());
            packet.set_meta(slots, meta_id::VLAN_PRIORITY, priority.into());
        }
        match self.dispatch.get(&(logical, ether_type)) {
            Some(&output) => {
                packet.strip(header, env.frames);
                Verdict::Out(CLASSIFIED, output)
            }
            None => {
                packet.set_meta(slots, meta_id::EXCEPTION, exception::CLASSIFY_NO_MATCH);
                Verdict::Out(EXCEPTION, 0)
            }
        }
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let constant = |id: u32| match grower.slots.slot(id).and_then(|slot| way.meta[slot]) {
            Some(Known::Constant(value)) => Some(value as u32),
            None => Some(0),
            Some(_) => None,
        };
        let (port, said) = (constant(meta_id::PHY_PORT)?, constant(meta_id::LOGICAL_PORT)?);
        let tag = ethernet::HEADER_BYTES * 8;
        let vid = way.view.read(tag + 4, 12)?;
        let logical = |vid: u16| self.logical.get(&(port, vid)).copied().unwrap_or(said);
        let rows = self.logical.range((port, 0)..=(port, vlan::VID_MASK));
        let vids: Vec<u16> = rows.map(|((_, vid), _)| *vid).collect();
        let mut by_vid: Vec<Ranges> =
            vids.iter().map(|vid| vec![(u64::from(*vid), u64::from(*vid))]).collect();
        by_vid.push(others(&by_vid.concat(), u64::MAX));
        let header = ethernet::HEADER_BYTES + vlan::TAG_BYTES;
        let by_tag = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            let long = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
                grower.choose(way, vid, &by_vid, &mut |grower, way, at| {
                    let logical = vids.get(at).map_or(said, |vid| logical(*vid));
                    self.classify(way, (header, logical), grower, None)
                })
            };
            grower.length(way, header, long, &mut |grower, way| grower.stand(way))
        };
        let long = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            let plain = (ethernet::HEADER_BYTES, logical(0));
            self.classify(way, plain, grower, Some(&mut *by_tag))
        };
        let short = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            grower.drop(way, DropReason::TooShort, 0)
        };
        Some(grower.length(way, ethernet::HEADER_BYTES, long, short))
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        self.count(what as u16, frames);
    }

    fn keep(&mut self, old: &mut Self) {
        // The dispatch tables may differ, so each block classifies the counters that it gets again.
        let all = |it: &mut Self| {
            let mut all = std::mem::take(&mut it.frames);
            all.append(&mut it.others);
            all
        };
        let (new, olds) = (all(self), all(old));
        olds.into_iter().for_each(|(of, frames)| self.count(of, frames));
        new.into_iter().for_each(|(of, frames)| old.count(of, frames));
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        let row = |(&ether_type, &frames): (&u16, &u64)| {
            Value::struct_of([
                (1, Value::Unsigned(ether_type.into())),
                (2, Value::Unsigned(0)),
                (3, Value::Unsigned(frames)),
            ])
        };
        (component == STATS).then(|| {
            let all: BTreeMap<_, _> = self.frames.iter().chain(&self.others).collect();
            Value::rows_of(all.into_iter().map(row))
        })
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.frames.clear();
            self.others.clear();
        }
    }
}
