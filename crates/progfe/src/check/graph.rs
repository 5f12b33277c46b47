//! Cycles and unreachable blocks.
//!
//! A frame that returns to a block could loop forever within one batch. Only a queue on the cycle
//! (`GenericScheduler`) prevents this. The two directions of a port are not connected.

use crate::diagnostic::{Code, Problems};
use crate::program::{Program, base_id};

/// Adds cycles and unreachable blocks.
pub fn check(program: &Program, problems: &mut Problems) {
    cycles(program, problems);
    unreachable(program, problems);
}

/// Returns true if the input of an instance continues to its outputs immediately.
fn passes(program: &Program, instance: usize) -> bool {
    !matches!(program.instances[instance].class, base_id::PHY | base_id::SCHEDULER)
}

/// Returns true if frames start at an instance.
pub fn begins(program: &Program, instance: usize) -> bool {
    let class = program.class_of(instance);
    program.instances[instance].class == base_id::PHY
        || (class.inputs.is_empty() && !class.outputs.is_empty())
}

/// Returns the outgoing links of each instance.
pub fn links_out(program: &Program) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); program.instances.len()];
    for (at, link) in program.links.iter().enumerate() {
        out[link.from.instance].push(at);
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Fresh,
    Open,
    Done,
}

fn cycles(program: &Program, problems: &mut Problems) {
    let out = links_out(program);
    let mut marks = vec![Mark::Fresh; program.instances.len()];
    for start in 0..program.instances.len() {
        if marks[start] != Mark::Fresh {
            continue;
        }
        // Instances on the current path, each with the number of its links that were followed.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        marks[start] = Mark::Open;
        while let Some((at, followed)) = way.last_mut() {
            let at = *at;
            let link = out[at].get(*followed).filter(|_| passes(program, at));
            *followed += 1;
            let Some(link) = link else {
                marks[at] = Mark::Done;
                way.pop();
                continue;
            };
            let link = &program.links[*link];
            let to = link.to.instance;
            match marks[to] {
                Mark::Done => {}
                Mark::Fresh => {
                    marks[to] = Mark::Open;
                    way.push((to, 0));
                }
                Mark::Open if problems.is_full() => return,
                Mark::Open => {
                    let from = way.iter().position(|(known, _)| *known == to).unwrap_or(0);
                    let names =
                        way[from..].iter().map(|(at, _)| program.instances[*at].name.as_str());
                    let names: Vec<String> = names
                        .chain([program.instances[to].name.as_str()])
                        .map(str::to_owned)
                        .collect();
                    let what = format!("frames can loop: {}", shown(&names));
                    let hint = "add a GenericScheduler to break the loop";
                    problems.add(
                        Code::Cycle,
                        &link.place,
                        program.output_name(link.from),
                        what,
                        hint,
                    );
                }
            }
        }
    }
}

/// Formats the names on a path. A long path is abbreviated in the middle.
pub fn shown(names: &[String]) -> String {
    const NAMES_MAX: usize = 32;
    if names.len() <= NAMES_MAX {
        return names.join(" > ");
    }
    let (first, last) = (&names[..NAMES_MAX / 2], &names[names.len() - NAMES_MAX / 2..]);
    format!("{} > ... > {}", first.join(" > "), last.join(" > "))
}

fn unreachable(program: &Program, problems: &mut Problems) {
    let out = links_out(program);
    let mut reached: Vec<bool> =
        (0..program.instances.len()).map(|at| begins(program, at)).collect();
    let mut waiting: Vec<usize> = (0..reached.len()).filter(|at| reached[*at]).collect();
    while let Some(at) = waiting.pop() {
        for link in &out[at] {
            let to = program.links[*link].to.instance;
            if !std::mem::replace(&mut reached[to], true) {
                waiting.push(to);
            }
        }
    }
    for (at, instance) in program.instances.iter().enumerate() {
        if !reached[at] && !program.class_of(at).inputs.is_empty() {
            let what = "no frame reaches the instance".to_owned();
            let hint = "link an output to it, or remove it";
            problems.add(Code::Unreachable, &instance.place, &instance.name, what, hint);
        }
    }
}
