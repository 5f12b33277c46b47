//! Layered layout of a graph, from left to right.
//!
//! Source: K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical
//! system structures", 1981.
//!
//! - Each box is in a layer after all its predecessors.
//! - A line that passes a layer has a slot in it.
//! - Slots in a layer are ordered by the mean position of their neighbours, and placed as near to
//!   it as the other slots permit.
//! - The same graph always gives the same drawing.
//!
//! Each line starts at its own height of a box, so that the text of the line fits in the box.

/// Size of a box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// A line from the right side of a box to the left side of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Index of the source box.
    pub from: usize,
    /// Distance of the start below the top of the source box.
    pub below_top: f64,
    /// Index of the target box.
    pub to: usize,
}

/// Positions of all boxes and lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    /// Left and top of each box.
    pub boxes: Vec<(f64, f64)>,
    /// Points of each line, two or more.
    pub lines: Vec<Vec<(f64, f64)>>,
    /// Total width.
    pub width: f64,
    /// Total height.
    pub height: f64,
}

/// Gap between two boxes of a layer.
const GAP: f64 = 14.0;
/// Gap between two lines that pass a layer.
const LINE_GAP: f64 = 7.0;
/// Gap between two layers, with an addition for each line that starts there.
const LAYER_GAP: f64 = 50.0;
const LAYER_GAP_MORE: f64 = 1.2;
const LAYER_GAP_MAX: f64 = 140.0;
/// Rounds of ordering and of moving slots.
const ROUNDS: usize = 24;

/// A slot of a layer: a box or a passing line.
#[derive(Debug, Clone, Default)]
struct Slot {
    layer: usize,
    height: f64,
    is_box: bool,
    middle: f64,
    /// Slots of the previous layer, and the offset of the line from their middles.
    before: Vec<(usize, f64)>,
    after: Vec<(usize, f64)>,
}

/// Computes the layout. Lines that lead back take a detour.
pub fn layout(sizes: &[Size], lines: &[Line]) -> Layout {
    let backward = backward(sizes.len(), lines);
    let layers = layers(sizes.len(), lines, &backward);
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut slots: Vec<Slot> = sizes
        .iter()
        .zip(&layers)
        .map(|(size, layer)| Slot {
            layer: *layer,
            height: size.height,
            is_box: true,
            ..Slot::default()
        })
        .collect();
    let mut passes: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !backward[*at]) {
        let (mut last, mut offset) = (line.from, line.below_top - sizes[line.from].height / 2.0);
        for layer in layers[line.from] + 1..layers[line.to] {
            let slot = slots.len();
            slots.push(Slot { layer, ..Slot::default() });
            join(&mut slots, last, slot, offset);
            passes[at].push(slot);
            (last, offset) = (slot, 0.0);
        }
        join(&mut slots, last, line.to, offset);
    }
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..slots.len()).for_each(|slot| order[slots[slot].layer].push(slot));
    put_in_order(&mut order, &slots);
    place(&order, &mut slots);
    drawn((sizes, lines), &order, &slots, &passes)
}

fn join(slots: &mut [Slot], from: usize, to: usize, offset: f64) {
    slots[from].after.push((to, -offset));
    slots[to].before.push((from, offset));
}

/// Finds the lines that close a cycle.
fn backward(boxes: usize, lines: &[Line]) -> Vec<bool> {
    let mut leads: Vec<Vec<usize>> = vec![Vec::new(); boxes];
    lines.iter().enumerate().for_each(|(at, line)| leads[line.from].push(at));
    let has_way_in = |at: usize| lines.iter().any(|line| line.to == at);
    let mut backward = vec![false; lines.len()];
    // 0: not visited, 1: on the current path, 2: done.
    let mut state = vec![0_u8; boxes];
    let mut roots: Vec<usize> = (0..boxes).collect();
    roots.sort_by_key(|at| has_way_in(*at));
    for root in roots {
        let mut stack = if state[root] == 0 { vec![(root, 0)] } else { Vec::new() };
        while let Some((at, next)) = stack.pop() {
            state[at] = 1;
            let Some(&line) = leads[at].get(next) else {
                state[at] = 2;
                continue;
            };
            stack.push((at, next + 1));
            match state[lines[line].to] {
                0 => stack.push((lines[line].to, 0)),
                1 => backward[line] = true,
                _ => {}
            }
        }
    }
    backward
}

/// Assigns each box to a layer after all its predecessors.
fn layers(boxes: usize, lines: &[Line], backward: &[bool]) -> Vec<usize> {
    let mut layers = vec![0; boxes];
    for _ in 0..boxes {
        let mut is_done = true;
        for (line, _) in lines.iter().zip(backward).filter(|(_, backward)| !**backward) {
            if layers[line.to] <= layers[line.from] {
                layers[line.to] = layers[line.from] + 1;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    layers
}

/// Orders slots in each layer by the mean position of their neighbours, in alternating sweeps.
/// Retains the order with the fewest crossings.
fn put_in_order(order: &mut Vec<Vec<usize>>, slots: &[Slot]) {
    let mut rank = vec![0.0; slots.len()];
    let note = |layer: &[usize], rank: &mut Vec<f64>| {
        layer.iter().enumerate().for_each(|(at, slot)| rank[*slot] = at as f64);
    };
    order.iter().for_each(|layer| note(layer, &mut rank));
    let mut best = (crossings(order, slots, &rank), order.clone());
    for round in 0..ROUNDS {
        let forth = round % 2 == 0;
        let layers: Vec<usize> = match forth {
            true => (1..order.len()).collect(),
            false => (0..order.len().saturating_sub(1)).rev().collect(),
        };
        for layer in layers {
            let middle = |slot: usize| {
                let joined = if forth { &slots[slot].before } else { &slots[slot].after };
                // The start offset decides between lines of the same box.
                let sum: f64 = joined.iter().map(|(to, by)| rank[*to] + by / 10_000.0).sum();
                if joined.is_empty() { rank[slot] } else { sum / joined.len() as f64 }
            };
            let mut sorted: Vec<(f64, usize)> =
                order[layer].iter().map(|slot| (middle(*slot), *slot)).collect();
            sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
            order[layer] = sorted.into_iter().map(|(_, slot)| slot).collect();
            note(&order[layer], &mut rank);
        }
        let crossings = crossings(order, slots, &rank);
        if crossings < best.0 {
            best = (crossings, order.clone());
        }
    }
    *order = best.1;
}

/// Counts crossings of lines between adjacent layers.
fn crossings(order: &[Vec<usize>], slots: &[Slot], rank: &[f64]) -> usize {
    let between = |layer: &Vec<usize>| {
        let mut ends: Vec<(f64, f64)> = Vec::new();
        for slot in layer {
            let lines = slots[*slot].after.iter();
            ends.extend(lines.map(|(to, by)| (rank[*slot] - by / 10_000.0, rank[*to])));
        }
        ends.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let crossed = |at: usize| ends[..at].iter().filter(|(_, to)| *to > ends[at].1).count();
        (0..ends.len()).map(crossed).sum::<usize>()
    };
    order.iter().map(between).sum()
}

/// Moves slots of each layer towards their neighbours, without overlap.
fn place(order: &[Vec<usize>], slots: &mut [Slot]) {
    for layer in order {
        let wanted = vec![0.0; layer.len()];
        settle(layer, &wanted, slots);
    }
    for round in 0..ROUNDS {
        let forth = round % 2 == 0;
        for at in 0..order.len() {
            let layer = &order[if forth { at } else { order.len() - 1 - at }];
            let wanted = layer.iter().map(|slot| {
                let slot = &slots[*slot];
                let sides = match round + 2 >= ROUNDS {
                    true => [&slot.before[..], &slot.after[..]],
                    false if forth => [&slot.before[..], &[]],
                    false => [&[], &slot.after[..]],
                };
                let joined = sides.iter().copied().flatten();
                let (count, sum) = joined.fold((0, 0.0), |(count, sum), (to, by)| {
                    (count + 1, sum + slots[*to].middle + by)
                });
                if count == 0 { slot.middle } else { sum / f64::from(count) }
            });
            let wanted: Vec<f64> = wanted.collect();
            settle(layer, &wanted, slots);
        }
    }
}

/// Places slots of a layer as near as possible to their wanted positions, by least squares. Slots
/// that would overlap form a group around the mean of their wanted positions.
fn settle(layer: &[usize], wanted: &[f64], slots: &mut [Slot]) {
    // Offset of each slot from the first of its layer, without free space.
    let mut packed = Vec::with_capacity(layer.len());
    let mut end = 0.0;
    for (at, slot) in layer.iter().enumerate() {
        let slot = &slots[*slot];
        let is_line = |slot: &Slot| !slot.is_box;
        let gap = match at.checked_sub(1).map(|at| &slots[layer[at]]) {
            None => 0.0,
            Some(before) if is_line(before) && is_line(slot) => LINE_GAP,
            Some(_) => GAP,
        };
        packed.push(end + gap + slot.height / 2.0);
        end += gap + slot.height;
    }
    // Groups of adjacent slots: sum of the wanted positions of the first slot, and number of slots.
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for (wanted, packed) in wanted.iter().zip(&packed) {
        let mut group = (wanted - packed, 1.0);
        while let Some(before) = groups.pop_if(|it| it.0 / it.1 >= group.0 / group.1) {
            group = (group.0 + before.0, group.1 + before.1);
        }
        groups.push(group);
    }
    let mut at = 0;
    for (sum, count) in groups {
        for _ in 0..count as usize {
            slots[layer[at]].middle = sum / count + packed[at];
            at += 1;
        }
    }
}

fn drawn(
    (sizes, lines): (&[Size], &[Line]),
    order: &[Vec<usize>],
    slots: &[Slot],
    passes: &[Vec<usize>],
) -> Layout {
    let top = slots.iter().map(|slot| slot.middle - slot.height / 2.0).fold(f64::MAX, f64::min);
    let bottom = slots.iter().map(|slot| slot.middle + slot.height / 2.0).fold(0.0, f64::max);
    let (mut lefts, mut left) = (Vec::new(), 0.0);
    for layer in order {
        let widths = layer.iter().filter_map(|slot| Some(sizes.get(*slot)?.width));
        let width = widths.fold(0.0, f64::max);
        let leaving: usize = layer.iter().map(|slot| slots[*slot].after.len()).sum();
        lefts.push((left, width));
        left += width + (LAYER_GAP + LAYER_GAP_MORE * leaving as f64).min(LAYER_GAP_MAX);
    }
    let width = lefts.last().map_or(0.0, |(left, width)| left + width);
    let boxes: Vec<(f64, f64)> = sizes
        .iter()
        .zip(slots)
        .map(|(size, slot)| {
            let (left, width) = lefts[slot.layer];
            (left + (width - size.width) / 2.0, slot.middle - slot.height / 2.0 - top)
        })
        .collect();
    let path = |(line, passes): (&Line, &Vec<usize>)| {
        let mut points = vec![(
            boxes[line.from].0 + sizes[line.from].width,
            boxes[line.from].1 + line.below_top,
        )];
        for slot in passes {
            let (left, width) = lefts[slots[*slot].layer];
            let middle = slots[*slot].middle - top;
            points.extend([(left, middle), (left + width, middle)]);
        }
        points.push((boxes[line.to].0, boxes[line.to].1 + sizes[line.to].height / 2.0));
        points
    };
    let lines = lines.iter().zip(passes).map(path).collect();
    Layout { boxes, lines, width, height: if slots.is_empty() { 0.0 } else { bottom - top } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: usize, to: usize) -> Line {
        Line { from, below_top: 5.0, to }
    }

    fn sizes(count: usize) -> Vec<Size> {
        vec![Size { width: 40.0, height: 20.0 }; count]
    }

    #[test]
    fn boxes_follow_their_predecessors_and_do_not_overlap() {
        let lines = [line(0, 1), line(0, 2), line(1, 3), line(2, 3), line(0, 3), line(3, 1)];
        let layout = layout(&sizes(5), &lines);
        let left = |at: usize| layout.boxes[at].0;
        assert!(left(0) < left(1) && left(1) == left(2) && left(2) < left(3), "{layout:?}");
        for one in 0..5 {
            for other in one + 1..5 {
                let (a, b) = (layout.boxes[one], layout.boxes[other]);
                assert!((a.0 - b.0).abs() >= 40.0 || (a.1 - b.1).abs() >= 20.0, "{layout:?}");
            }
        }
        // A line that passes a layer has a slot there; a line that leads back has none.
        assert_eq!(layout.lines[4].len(), 4);
        assert_eq!(layout.lines[5].len(), 2);
        let inside = |(left, top): &(f64, f64)| *left >= 0.0 && *top >= 0.0;
        assert!(layout.boxes.iter().all(inside));
        assert!(layout.boxes.iter().all(|(left, _)| left + 40.0 <= layout.width));
    }

    #[test]
    fn avoidable_crossings_are_avoided() {
        // The first two boxes lead to the last two in reverse order.
        let lines = [line(0, 3), line(1, 2)];
        let layout = layout(&sizes(4), &lines);
        let is_above = |one: usize, other: usize| layout.boxes[one].1 < layout.boxes[other].1;
        assert_eq!(is_above(0, 1), is_above(3, 2), "{layout:?}");
    }

    #[test]
    fn empty_graphs_and_loops_are_laid_out() {
        assert_eq!(layout(&[], &[]), Layout::default());
        let layout = layout(&sizes(2), &[line(0, 0), line(0, 1), line(1, 0)]);
        assert!(layout.boxes[0].0 < layout.boxes[1].0);
    }
}
