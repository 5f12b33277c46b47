//! Order in which blocks process batches of frames.
//!
//! Every block comes after all its predecessors, so that it gets all its frames together. A queue
//! breaks the order, because its frames continue later. There is no plan if no such order exists or
//! frames of different blocks could not be separated. Frames are then processed one by one.

use std::collections::BTreeSet;

use crate::graph::Graph;
use crate::interpret::STEPS_MAX;
use crate::lfb::{At, Lfb};
use crate::program::{Program, base_id, class_id};

/// Order of the blocks.
#[derive(Debug)]
pub struct Plan {
    /// Blocks in order.
    pub order: Vec<u32>,
    /// For each link: position of the target block in the order, and the input.
    pub targets: Vec<(u32, At)>,
    /// Blocks in which frames wait.
    pub queues: Vec<usize>,
    /// Maximum number of redirected frames that one frame can produce.
    pub told_max: u64,
}

/// Maximum effect of one frame after a block.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    steps: u64,
    told: u64,
}

impl Reach {
    fn or(self, other: Reach) -> Reach {
        Reach { steps: self.steps.max(other.steps), told: self.told.max(other.told) }
    }

    fn and(self, other: Reach) -> Reach {
        Reach {
            steps: self.steps.saturating_add(other.steps),
            told: self.told.saturating_add(other.told),
        }
    }

    fn times(self, count: u64) -> Reach {
        Reach { steps: self.steps.saturating_mul(count), told: self.told.saturating_mul(count) }
    }
}

impl Plan {
    /// Returns the order of a program's blocks, if there is one.
    pub fn of(program: &Program, graph: &Graph) -> Option<Plan> {
        let count = program.instances.len();
        let classes: Vec<u32> = (0..count).map(|at| runs_as(program, at)).collect();
        let ports = program.instances.iter().zip(&classes);
        let mut numbers = BTreeSet::new();
        for (instance, _) in ports.filter(|(_, class)| **class == base_id::PHY) {
            // Two blocks would send by one port.
            if !numbers.insert(instance.number) {
                return None;
            }
        }
        // Frames from these blocks do not belong to the current batch.
        let begins = |at: usize| [base_id::PHY, base_id::SCHEDULER].contains(&classes[at]);
        let mut waits = vec![0u32; count];
        for link in &program.links {
            waits[link.to.instance] += u32::from(!begins(link.from.instance));
        }
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (number, link) in program.links.iter().enumerate() {
            after[link.from.instance].push(number);
        }
        let mut order: Vec<usize> = (0..count).filter(|at| waits[*at] == 0).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            for &link in after[at].iter().filter(|_| !begins(at)) {
                let to = program.links[link].to.instance;
                waits[to] -= 1;
                if waits[to] == 0 {
                    order.push(to);
                }
            }
        }
        if order.len() < count {
            return None;
        }
        let mut reaches = vec![Reach::default(); count];
        let mut most = Reach::default();
        for &at in order.iter().rev() {
            let reach = |links: &[usize]| {
                let ends = links.iter().map(|link| program.links[*link].to.instance);
                let ways = ends.map(|to| Reach { steps: 1, told: 0 }.and(reaches[to]));
                ways.collect::<Vec<_>>()
            };
            let ways = reach(&after[at]);
            let one = ways.iter().fold(Reach::default(), |sum, way| sum.or(*way));
            let told = Reach { steps: 0, told: 1 };
            reaches[at] = match classes[at] {
                base_id::SCHEDULER => Reach::default(),
                base_id::PHY => {
                    most = most.or(one);
                    Reach::default()
                }
                class_id::MIRROR => ways.iter().fold(Reach::default(), |sum, way| sum.and(*way)),
                class_id::REPLICATE => {
                    let rows = program.instances[at].components.get(&2);
                    let rows = rows.and_then(forces::Value::rows).map_or(0, |rows| rows.len());
                    one.times(rows.max(graph.linked(at)[0].len()) as u64)
                }
                class_id::DIVERT | base_id::REDIRECT_OUT => one.and(told),
                _ => one,
            };
        }
        if most.steps > STEPS_MAX as u64 {
            return None;
        }
        let mut places = vec![0u32; count];
        for (place, at) in order.iter().enumerate() {
            places[*at] = place as u32;
        }
        let targets = (0..program.links.len() as u32).map(|link| {
            let (instance, at) = graph.target(link);
            (places[instance], at)
        });
        Some(Plan {
            targets: targets.collect(),
            queues: (0..count).filter(|at| classes[*at] == base_id::SCHEDULER).collect(),
            told_max: most.told,
            order: order.into_iter().map(|at| at as u32).collect(),
        })
    }
}

/// Returns the class that implements an instance's block; zero if there is none.
fn runs_as(program: &Program, instance: usize) -> u32 {
    let class = program.class_of(instance);
    let known = std::iter::once(class.id).chain(class.parents.iter().copied());
    known.into_iter().find(|id| Lfb::CLASSES.contains(id)).unwrap_or(0)
}
