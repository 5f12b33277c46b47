//! Random tables, entries, action sets and frames that are related to each other.

use std::sync::Arc;

use dataplane::action::{Action, UNSET};
use dataplane::flow::{FlowFlags, FlowSpec};
use dataplane::instruction::Instructions;
use dataplane::matching::{Match, MatchedFields};
use dataplane::table::{Classifier, TableSettings};
use packet::field::Field;
use packet::time::Nanos;

use crate::fields::field_of;
use crate::kinds::{self, KINDS, LINKS};
use crate::model::Model;
use crate::rng::Rng;
use crate::set::same_kind;

/// Context from which entries are drawn.
pub struct Scene {
    /// Source of frames and of match values.
    pub frames: Vec<Model>,
    pub tables: u8,
    pub first_egress: Option<u8>,
    /// The highest numbers of groups and of meters.
    pub groups: u32,
    pub meters: u32,
}

impl Scene {
    fn leaves_by(&self, table: u8) -> bool {
        self.first_egress.is_some_and(|first| table >= first)
    }

    fn any(&self, dice: &mut Rng) -> &Model {
        &self.frames[dice.roll(self.frames.len() as u64) as usize]
    }
}

/// Context of actions; not every context permits output actions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An action list or action set of an entry.
    Entry,
    /// A bucket of this group, which sends only to groups with lower numbers.
    Bucket(u32),
    /// An action list of an entry in an egress table.
    Leaving,
    /// An action set of such an entry.
    LeavingSet,
}

/// Draws a table with or without a hash of exact matches.
pub fn table(dice: &mut Rng) -> TableSettings {
    let exact = dice.pick(&[0, 1000]);
    let classifier =
        dice.pick(&[Classifier::Linear, Classifier::TupleSpace, Classifier::Automatic]);
    TableSettings { classifier, ..TableSettings::of(exact, 1000) }
}

/// Draws a frame, usually a plain one.
pub fn frame(dice: &mut Rng) -> Model {
    let links = if dice.roll(2) == 0 { dice.roll(3) } else { dice.roll(LINKS) };
    kinds::frame(links, dice.roll(KINDS), dice)
}

/// Varies traffic class, TTL and ECN of a frame, so that it is in the same flow.
pub fn varied(dice: &mut Rng, model: &Model) -> Model {
    let mut varied = model.clone();
    varied.set(Field::IpDscp, dice.pick(&[0, 10, 12, 18, 46]), 0x3f);
    varied.set(Field::IpEcn, dice.pick(&[0, 1, 3]), 3);
    varied.set(Field::VlanPcp, dice.roll(8).into(), 7);
    varied
}

/// Draws a match and an entry for it.
pub fn flow(dice: &mut Rng, scene: &Scene) -> (Vec<MatchedFields>, FlowSpec) {
    let tables = u64::from(scene.tables);
    let table = (dice.roll(tables).min(dice.roll(tables))) as u8;
    let asked = matching(dice, scene);
    let instructions = instructions(dice, scene, table);
    let miss = asked.is_empty() && dice.roll(2) == 0;
    let span = |dice: &mut Rng| match dice.roll(4) {
        0 => Nanos::from_millis(10 * (1 + dice.roll(300))),
        _ => Nanos::ZERO,
    };
    let spec = FlowSpec {
        table,
        cookie: dice.roll(1 << 40),
        idle_timeout: span(dice),
        hard_timeout: span(dice),
        flags: FlowFlags {
            notify_removed: dice.roll(2) == 0,
            reset_counts: dice.roll(2) == 0,
            miss,
            ..FlowFlags::default()
        },
        ..FlowSpec::doing(Match::asking(&asked), dice.roll(60) as u16, instructions)
    };
    (asked, spec)
}

/// Draws instructions without goto-table, for any table.
pub fn last(dice: &mut Rng, scene: &Scene) -> Arc<Instructions> {
    Arc::new(instructions(dice, scene, scene.tables - 1))
}

fn instructions(dice: &mut Rng, scene: &Scene, table: u8) -> Instructions {
    let leaving = scene.leaves_by(table);
    let end = scene.first_egress.filter(|_| !leaving).unwrap_or(scene.tables);
    let further = end - 1 - table;
    let (list_place, set_place) = match leaving {
        true => (Place::Leaving, Place::LeavingSet),
        false => (Place::Entry, Place::Entry),
    };
    let meter = dice.roll(6) == 0;
    Instructions {
        meter: meter.then(|| 1 + dice.roll(scene.meters.into()) as u32),
        apply: if dice.roll(2) == 0 { list(dice, scene, list_place).into() } else { [].into() },
        clear: dice.roll(6) == 0,
        write: if dice.roll(2) == 0 { set(dice, scene, set_place).into() } else { [].into() },
        metadata: (dice.roll(3) == 0).then(|| metadata(dice)),
        goto: (further > 0 && dice.roll(4) > 0)
            .then(|| table + 1 + dice.roll(u64::from(further)) as u8),
        ..Instructions::default()
    }
}

/// Draws few bits, so that matches occur.
fn metadata(dice: &mut Rng) -> (u64, u64) {
    let mask = dice.pick(&[3, 1, 1 << 40]);
    (dice.roll(4) << dice.pick(&[0, 40]) & mask, mask)
}

/// Draws match fields that a frame could have, before or after table actions: fields with their
/// prerequisites, in order.
fn matching(dice: &mut Rng, scene: &Scene) -> Vec<MatchedFields> {
    let model = scene.any(dice);
    let mut wanted: Vec<Field> = Vec::new();
    for _ in 0..dice.roll(5) {
        need(&mut wanted, dice.pick(&Field::ALL));
    }
    if dice.roll(8) == 0 {
        wanted = EXACT.to_vec();
    }
    wanted.sort_unstable();
    let asked = wanted.into_iter().filter_map(|field| ask(dice, model, field));
    let asked: Vec<MatchedFields> = asked.collect();
    settled(&asked)
}

/// The fields of an exact match of OpenFlow 1.0, except those of the transport header.
const EXACT: [Field; 9] = [
    Field::InPort,
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpDscp,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
];

fn need(wanted: &mut Vec<Field>, field: Field) {
    if wanted.contains(&field) {
        return;
    }
    for (needed, _) in field.needs() {
        need(wanted, *needed);
    }
    if field == Field::VlanPcp {
        need(wanted, Field::VlanVid);
    }
    wanted.push(field);
}

fn ask(dice: &mut Rng, model: &Model, field: Field) -> Option<MatchedFields> {
    let value = match field {
        Field::InPort | Field::InPhyPort => u128::from(1 + dice.roll(2)),
        Field::Metadata => u128::from(metadata(dice).0),
        Field::TunnelId => u128::from(dice.roll(2)),
        Field::PacketType => 0,
        Field::ActsetOutput => dice.pick(&[1, 2, 3, 4, u128::from(UNSET), 0xfffd]),
        Field::Ipv6Exthdr => return None,
        Field::VlanVid => field_of(field, model).unwrap_or(0),
        _ => field_of(field, model)?,
    };
    let some = u128::from(dice.roll(1 << 50)) << 70 | u128::from(dice.roll(1 << 50)) << 20;
    let mask = match dice.roll(4) {
        0 if field == Field::VlanVid && value != 0 => 0x1000 | some >> 20 & 0xfff,
        0 if field.maskable() && field != Field::VlanVid => {
            some & field.ones() | field.ones() >> 1 ^ field.ones()
        }
        _ => field.ones(),
    };
    // Sometimes a value that differs from the frame's.
    let other = if field == Field::VlanVid { value ^ 1 | 0x1000 } else { value ^ 1 };
    let value = if dice.roll(12) == 0 && field.needs().is_empty() { other } else { value };
    Some((field, value & mask, mask))
}

/// Removes fields with unmet prerequisites: absent from the match, or with another value.
fn settled(asked: &[MatchedFields]) -> Vec<MatchedFields> {
    let mut kept: Vec<MatchedFields> = Vec::new();
    for one in asked {
        let met = one.0.needs().iter().all(|(needed, values)| {
            kept.iter().any(|(field, value, mask)| {
                field == needed && *mask == field.ones() && values.contains(value)
            })
        });
        let tagged =
            kept.iter().any(|(field, value, _)| *field == Field::VlanVid && value & 0x1000 != 0);
        if met && (one.0 != Field::VlanPcp || tagged) {
            kept.push(*one);
        }
    }
    kept
}

/// Draws actions in any order and number.
fn list(dice: &mut Rng, scene: &Scene, place: Place) -> Vec<Action> {
    (0..dice.roll(5)).map(|_| action(dice, scene, place)).collect()
}

/// Draws actions of different kinds.
pub fn set(dice: &mut Rng, scene: &Scene, place: Place) -> Vec<Action> {
    let mut set: Vec<Action> = Vec::new();
    for _ in 0..dice.roll(5) {
        let new = action(dice, scene, place);
        if !set.iter().any(|other| same_kind(&new, other)) {
            set.push(new);
        }
    }
    set
}

fn action(dice: &mut Rng, scene: &Scene, place: Place) -> Action {
    let ttl = dice.roll(256) as u8;
    match dice.roll(27) {
        0..=11 if matches!(place, Place::Leaving | Place::LeavingSet) => {
            if place == Place::Leaving && dice.roll(4) == 0 {
                return Action::Controller { bytes_max: dice.pick(&[0, 64, 0xffff]) };
            }
            set_field(dice, scene)
        }
        // Ports that do not exist are permitted only without egress tables.
        0..=4 if scene.first_egress.is_none() => Action::Output { port: 1 + dice.roll(5) as u32 },
        0..=4 => Action::Output { port: 1 + dice.roll(4) as u32 },
        5 => Action::InPort,
        6 => dice.pick(&[Action::All, Action::Flood]),
        7 => Action::Controller { bytes_max: dice.pick(&[0, 64, 0xffff]) },
        8..=11 => {
            let below = if let Place::Bucket(number) = place { number } else { scene.groups + 1 };
            match dice.roll(u64::from(below)) as u32 {
                0 => Action::Output { port: 3 },
                number => Action::Group(number),
            }
        }
        12 => Action::PushVlan(dice.pick(&[0x8100, 0x88a8])),
        13 => Action::PopVlan,
        14 => Action::PushMpls(0x8847),
        15 => Action::PushPbb(0x88e7),
        16 => Action::PopPbb,
        17 => dice.pick(&[Action::CopyTtlOut, Action::CopyTtlIn]),
        18 => dice.pick(&[Action::SetMplsTtl(ttl), Action::SetIpTtl(ttl)]),
        19 => dice.pick(&[Action::DecMplsTtl, Action::DecIpTtl]),
        20 => Action::SetQueue(dice.roll(3) as u32),
        21 => Action::Meter(1 + dice.roll(scene.meters.into()) as u32),
        _ => set_field(dice, scene),
    }
}

/// Draws a field to set, with another frame's value or a small one.
fn set_field(dice: &mut Rng, scene: &Scene) -> Action {
    let fixed = [
        Field::InPort,
        Field::InPhyPort,
        Field::EthType,
        Field::IpProto,
        Field::Ipv6Exthdr,
        Field::ActsetOutput,
        Field::PacketType,
        Field::MplsBos,
        Field::Icmpv6Type,
        Field::Metadata,
    ];
    let fields: Vec<Field> =
        Field::ALL.into_iter().filter(|field| !fixed.contains(field)).collect();
    let model = scene.any(dice);
    let field = dice.pick(&fields);
    let little = u128::from(dice.roll(2));
    let value = match field {
        Field::TunnelId => little,
        _ => model.get(field).unwrap_or(little),
    };
    Action::set(field, value)
}
