//! Random tables, entries, sets and frames that have to do with each other.

use std::sync::Arc;

use dataplane::action::Action;
use dataplane::flow::{FlowFlags, FlowSpec};
use dataplane::instruction::Instructions;
use dataplane::matching::{Asked, Match};
use dataplane::table::{Classifier, TableSettings};
use packet::field::Field;

use crate::dice::Dice;
use crate::kinds::{self, KINDS, LINKS};
use crate::model::Model;
use crate::switch::field_of;

/// A table with or without a hash of exact matches.
pub fn table(dice: &mut Dice) -> TableSettings {
    let exact = dice.pick(&[0, 1000]);
    let classifier = dice.pick(&[Classifier::Linear, Classifier::TupleSpace]);
    TableSettings { classifier, ..TableSettings::of(exact, 1000) }
}

/// Any frame, mostly a plain one.
pub fn frame(dice: &mut Dice) -> Model {
    let links = if dice.roll(2) == 0 { dice.roll(3) } else { dice.roll(LINKS) };
    kinds::frame(links, dice.roll(KINDS), dice)
}

/// A match and an entry for it.
pub fn flow(dice: &mut Dice, frames: &[Model], tables: u8) -> (Vec<Asked>, FlowSpec) {
    let table = (dice.roll(u64::from(tables)).min(dice.roll(u64::from(tables)))) as u8;
    let asked = matching(dice, frames);
    let instructions = instructions(dice, frames, table, tables);
    let miss = asked.is_empty() && dice.roll(2) == 0;
    let spec = FlowSpec {
        table,
        cookie: dice.roll(1 << 40),
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

/// Instructions that go nowhere else, for any table.
pub fn last(dice: &mut Dice, frames: &[Model]) -> Arc<Instructions> {
    Arc::new(instructions(dice, frames, 0, 1))
}

fn instructions(dice: &mut Dice, frames: &[Model], table: u8, tables: u8) -> Instructions {
    let further = tables - 1 - table;
    Instructions {
        apply: if dice.roll(2) == 0 { list(dice, frames).into() } else { [].into() },
        clear: dice.roll(6) == 0,
        write: if dice.roll(2) == 0 { set(dice, frames, 0).into() } else { [].into() },
        metadata: (dice.roll(3) == 0).then(|| metadata(dice)),
        goto: (further > 0 && dice.roll(4) > 0)
            .then(|| table + 1 + dice.roll(u64::from(further)) as u8),
        ..Instructions::default()
    }
}

/// Few bits, so that matches meet them.
fn metadata(dice: &mut Dice) -> (u64, u64) {
    let mask = dice.pick(&[3, 1, 1 << 40]);
    (dice.roll(4) << dice.pick(&[0, 40]) & mask, mask)
}

/// What a frame, or what the tables made of it, could match: fields with what they need, in order.
fn matching(dice: &mut Dice, frames: &[Model]) -> Vec<Asked> {
    let model = dice.roll(frames.len() as u64) as usize;
    let mut wanted: Vec<Field> = Vec::new();
    for _ in 0..dice.roll(5) {
        need(&mut wanted, dice.pick(&Field::ALL));
    }
    if dice.roll(8) == 0 {
        wanted = EXACT.to_vec();
    }
    wanted.sort_unstable();
    let asked = wanted.into_iter().filter_map(|field| ask(dice, &frames[model], field));
    let asked: Vec<Asked> = asked.collect();
    settled(&asked)
}

/// The fields of an exact match of OpenFlow 1.0, but for those of the transport.
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

fn ask(dice: &mut Dice, model: &Model, field: Field) -> Option<Asked> {
    let value = match field {
        Field::InPort | Field::InPhyPort => u128::from(1 + dice.roll(2)),
        Field::Metadata => u128::from(metadata(dice).0),
        Field::TunnelId => u128::from(dice.roll(2)),
        Field::PacketType => 0,
        Field::ActsetOutput | Field::Ipv6Exthdr => return None,
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
    // Now and then something else than the frame has.
    let other = if field == Field::VlanVid { value ^ 1 | 0x1000 } else { value ^ 1 };
    let value = if dice.roll(12) == 0 && field.needs().is_empty() { other } else { value };
    Some((field, value & mask, mask))
}

/// Without the fields whose needs are not met: a frame has them not, or a value is another.
fn settled(asked: &[Asked]) -> Vec<Asked> {
    let mut kept: Vec<Asked> = Vec::new();
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

/// Actions in any order and number.
fn list(dice: &mut Dice, frames: &[Model]) -> Vec<Action> {
    (0..dice.roll(5)).map(|_| action(dice, frames, 0)).collect()
}

/// Actions of different kinds. Those of a group send to groups of lower numbers only.
pub fn set(dice: &mut Dice, frames: &[Model], group: u32) -> Vec<Action> {
    let mut set: Vec<Action> = Vec::new();
    for _ in 0..dice.roll(5) {
        let new = action(dice, frames, group);
        let field = |action: &Action| match action {
            Action::SetField { field, .. } => Some(*field),
            _ => None,
        };
        let same = |other: &Action| {
            std::mem::discriminant(other) == std::mem::discriminant(&new)
                && field(other) == field(&new)
                || other.is_output() && new.is_output()
        };
        if !set.iter().any(same) {
            set.push(new);
        }
    }
    set
}

fn action(dice: &mut Dice, frames: &[Model], group: u32) -> Action {
    let ttl = dice.roll(256) as u8;
    match dice.roll(24) {
        0..=4 => Action::Output { port: 1 + dice.roll(5) as u32 },
        5 => Action::InPort,
        6 => dice.pick(&[Action::All, Action::Flood]),
        7 => Action::Controller { bytes_max: dice.pick(&[0, 64, 0xffff]) },
        8 | 9 => {
            let below = if group == 0 { 4 } else { group };
            match dice.roll(u64::from(below)) as u32 {
                0 => Action::Output { port: 3 },
                number => Action::Group(number),
            }
        }
        10 => Action::PushVlan(dice.pick(&[0x8100, 0x88a8])),
        11 => Action::PopVlan,
        12 => Action::PushMpls(0x8847),
        13 => Action::PushPbb(0x88e7),
        14 => Action::PopPbb,
        15 => dice.pick(&[Action::CopyTtlOut, Action::CopyTtlIn]),
        16 => dice.pick(&[Action::SetMplsTtl(ttl), Action::SetIpTtl(ttl)]),
        17 => dice.pick(&[Action::DecMplsTtl, Action::DecIpTtl]),
        18 => Action::SetQueue(dice.roll(3) as u32),
        _ => set_field(dice, frames),
    }
}

/// Sets a field to what another frame has there, or to little.
fn set_field(dice: &mut Dice, frames: &[Model]) -> Action {
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
    let model = &frames[dice.roll(frames.len() as u64) as usize];
    let field = dice.pick(&fields);
    let little = u128::from(dice.roll(2));
    let value = match field {
        Field::TunnelId => little,
        _ => model.get(field).unwrap_or(little),
    };
    Action::set(field, value)
}
