//! Metadata at inputs.
//!
//! Every path to an input must produce the metadata that it needs (RFC 5812 section 4.8.3).
//! Metadata remain with a frame from block to block.
//!
//! - Settings count in addition to class declarations: the item of a dispatch, the fields of a key,
//!   the item that a search sets.
//! - An item that a block produces only sometimes counts as produced.
//! - The sender sets the metadata of frames from a control element or an agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use forces::Value;
use forces::model::{Expected, Produced};

use super::graph::{begins, links_out, shown};
use crate::condition::Operand;
use crate::diagnostic::{Code, Problems};
use crate::program::{End, Program, base_id, class_id, text};

/// Metadata that all frames certainly have; `None` means all metadata.
type Known = Option<BTreeSet<u32>>;

/// A requirement of an instance: the metadata item, and the component that causes it, if any.
type Need = (u32, Vec<u32>);

/// Adds missing metadata.
pub fn check(program: &Program, problems: &mut Problems) {
    let out = links_out(program);
    let rules = Rules::of(program);
    let produced: Vec<Known> =
        program.links.iter().map(|link| produces(program, &rules, link.from)).collect();
    let needs: Vec<Vec<Need>> = (0..program.instances.len()).map(|at| needs(program, at)).collect();
    let known = flow(program, &out, &produced);
    let mut told: BTreeSet<(usize, u32)> = BTreeSet::new();
    for (link, produced_here) in program.links.iter().zip(&produced) {
        let (to, from) = (link.to.instance, &known[link.from.instance]);
        for (id, path) in missing(program, &needs[to], link.to, |id| has(from, produced_here, id)) {
            if problems.is_full() || !told.insert((to, id)) {
                continue;
            }
            let name = program.catalog.metadata_by_id(id).map_or("?", |m| m.name.as_str());
            let way = way_without(program, &out, &produced, id, link.to.instance);
            let what = format!("{name} is not produced on the path {way}");
            let instance = &program.instances[to];
            let place = program.place_of(to, &path);
            let shown = match path.is_empty() {
                true => program.input_name(link.to),
                false => format!("{}/{}", instance.name, program.class_of(to).show_path(&path)),
            };
            problems.add(
                Code::MetadataMissing,
                place,
                shown,
                what,
                "produce it before, or read another item",
            );
        }
    }
}

fn has(known: &Known, produced: &Known, id: u32) -> bool {
    let in_set = |set: &Known| set.as_ref().is_none_or(|set| set.contains(&id));
    in_set(known) || in_set(produced)
}

/// Returns the metadata of all frames that reach each instance; `None` if none reach it or all are
/// known.
fn flow(program: &Program, out: &[Vec<usize>], produced: &[Known]) -> Vec<Known> {
    let starts = |at: usize| begins(program, at).then(BTreeSet::new);
    let mut known: Vec<Known> = (0..program.instances.len()).map(starts).collect();
    let mut waiting: Vec<usize> = (0..known.len()).filter(|at| begins(program, *at)).collect();
    while let Some(at) = waiting.pop() {
        for link in &out[at] {
            let to = program.links[*link].to.instance;
            if begins(program, to) {
                continue;
            }
            let (Some(before), Some(more)) = (&known[at], &produced[*link]) else { continue };
            let here: BTreeSet<u32> = before.union(more).copied().collect();
            let met = match &known[to] {
                None => here,
                Some(there) => there.intersection(&here).copied().collect(),
            };
            if known[to].as_ref() != Some(&met) {
                known[to] = Some(met);
                waiting.push(to);
            }
        }
    }
    known
}

/// Describes a path that does not produce a metadata item.
fn way_without(
    program: &Program,
    out: &[Vec<usize>],
    produced: &[Known],
    id: u32,
    to: usize,
) -> String {
    let mut from: Vec<Option<usize>> = vec![None; program.instances.len()];
    let mut waiting: VecDeque<usize> = (0..from.len()).filter(|at| begins(program, *at)).collect();
    while let Some(at) = waiting.pop_front() {
        for link in &out[at] {
            let next = program.links[*link].to.instance;
            let without = produced[*link].as_ref().is_some_and(|set| !set.contains(&id));
            if without && from[next].is_none() && !begins(program, next) {
                from[next] = Some(*link);
                waiting.push_back(next);
            }
        }
    }
    let mut names = vec![program.instances[to].name.clone()];
    let mut at = to;
    while let Some(link) = from[at] {
        at = program.links[link].from.instance;
        names.push(program.output_name(program.links[link].from));
        if names.len() > program.instances.len() {
            break;
        }
    }
    names.reverse();
    shown(&names)
}

/// Returns the metadata that frames get at an output; `None` for all metadata.
fn produces(program: &Program, rules: &Rules, from: End) -> Known {
    let class = program.class_of(from.instance);
    if matches!(class.id, base_id::REDIRECT_IN | class_id::INJECT) {
        return None;
    }
    let mut set = BTreeSet::new();
    let output = &class.outputs[from.port as usize];
    output.metadata.iter().for_each(|produced| add(program, produced, &mut set));
    let meta = |name: &str| {
        let id = program.component(from.instance, name).and_then(|value| value.unsigned());
        id.filter(|id| *id != 0).map(|id| id as u32)
    };
    match (class.id, output.name.as_str()) {
        (class_id::LEARN_SEARCH, "KnownOut" | "SamePortOut")
        | (class_id::SEARCH, "HitOut")
        | (class_id::HASH, _) => set.extend(meta("ResultMeta")),
        (class_id::MATCH, "HitOut") => set.extend(rules.sets(from)),
        _ => {}
    }
    Some(set)
}

/// The metadata item that all rules of a Match output set, by instance and index; none if a rule
/// sets none or another.
struct Rules(BTreeMap<(usize, u32), Option<u32>>);

impl Rules {
    fn of(program: &Program) -> Rules {
        let mut sets = BTreeMap::new();
        let matches = program.instances.iter().enumerate();
        for (at, instance) in matches.filter(|(_, one)| one.class == class_id::MATCH) {
            let rows = instance.components.get(&1).and_then(Value::rows).into_iter().flatten();
            for (_, row) in rows {
                let number = |field| row.step(field).and_then(Value::unsigned).unwrap_or(0) as u32;
                let meta = Some(number(4)).filter(|meta| *meta != 0);
                let known = sets.entry((at, number(3))).or_insert(meta);
                if *known != meta {
                    *known = None;
                }
            }
        }
        Rules(sets)
    }

    fn sets(&self, from: End) -> Option<u32> {
        self.0.get(&(from.instance, from.index)).copied().flatten()
    }
}

fn add(program: &Program, produced: &Produced, set: &mut BTreeSet<u32>) {
    match produced {
        Produced::One { name, .. } => {
            set.extend(program.catalog.metadata(name).map(|metadata| metadata.id));
        }
        Produced::OneOf(list) | Produced::All(list) => {
            list.iter().for_each(|one| add(program, one, set));
        }
    }
}

/// Returns the metadata that an input needs and frames do not have.
fn missing(program: &Program, needs: &[Need], to: End, has: impl Fn(u32) -> bool) -> Vec<Need> {
    let class = program.class_of(to.instance);
    let mut needs: Vec<Need> = needs.to_vec();
    // An EtherMACOut sends to the port that it is linked to, regardless of the metadata.
    if class.id != base_id::MAC_OUT {
        for expected in &class.inputs[to.port as usize].metadata {
            if let Some(id) = unmet(program, expected, &has) {
                needs.push((id, Vec::new()));
            }
        }
    }
    needs.retain(|(id, _)| !has(*id));
    needs
}

/// Returns the first missing metadata item of an unmet expectation.
fn unmet(program: &Program, expected: &Expected, has: &impl Fn(u32) -> bool) -> Option<u32> {
    match expected {
        Expected::One { optional: true, .. } => None,
        Expected::One { name, .. } => {
            program.catalog.metadata(name).map(|metadata| metadata.id).filter(|id| !has(*id))
        }
        Expected::All(list) => list.iter().find_map(|one| unmet(program, one, has)),
        Expected::OneOf(list) => {
            let unmet: Vec<Option<u32>> = list.iter().map(|one| unmet(program, one, has)).collect();
            if unmet.contains(&None) { None } else { unmet.into_iter().flatten().next() }
        }
    }
}

/// Returns the metadata that an instance needs because of its settings.
fn needs(program: &Program, instance: usize) -> Vec<Need> {
    let class = program.class_of(instance);
    let mut needs = Vec::new();
    let number = |name: &str| {
        let component = class.component(name)?;
        let value = program.component(instance, name)?.unsigned()?;
        (value != 0).then_some((value as u32, vec![component.id]))
    };
    match class.id {
        base_id::METADATA_DISPATCH => needs.extend(number("MetadataID")),
        class_id::REPLICATE => needs.extend(number("ExcludeMeta")),
        class_id::LEARN_SEARCH | class_id::SEARCH | class_id::STATE => {
            for name in ["Key", "LearnKey", "LearnValue", "SearchKey"] {
                let Some(component) = class.component(name) else { continue };
                let Some(value) = program.component(instance, name) else { continue };
                let operands =
                    text::key(value.text().unwrap_or(""), &program.frames, &program.catalog);
                for operand in operands.unwrap_or_default() {
                    if let Operand::Meta { id, .. } = operand {
                        needs.push((id, vec![component.id]));
                    }
                }
            }
        }
        class_id::EDIT => {
            let ops = program.component(instance, "Ops");
            for (index, row) in ops.as_ref().and_then(Value::rows).into_iter().flatten() {
                let from = row.step(6).and_then(Value::text).unwrap_or("");
                let operand = text::operand(from, &program.frames, &program.catalog);
                if let Ok(Operand::Meta { id, .. }) = operand {
                    needs.push((id, vec![1, *index, 6]));
                }
            }
        }
        _ => {}
    }
    needs
}
