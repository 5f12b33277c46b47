//! A loaded program: blocks, links and their counters.
//!
//! All allocation and all failures happen when it is created, outside the forwarding path. At the
//! [swap](Loaded::take_over), the new program takes over:
//!
//! - blocks whose settings are the same as in the running program,
//! - tables and counters of other blocks with the same instance name, unless the program sets
//!   `reset`.
//!
//! The swap is its own inverse, which makes rollback possible.

use std::collections::HashMap;
use std::sync::Arc;

use dataplane::counter::Traffic;
use packet::time::Nanos;

use crate::diagnostic::{Code, Problems};
use crate::graph::Graph;
use crate::lfb::{DropReason, Lfb, Setup, Slots};
use crate::program::{Instance, Program, Source};

/// A loaded program, ready to run.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Arc<Program>,
    /// Links of the program.
    pub graph: Graph,
    /// Slots of its metadata.
    pub slots: Slots,
    /// Blocks. A block that will be taken over is `None` until the swap.
    pub blocks: Vec<Option<Lfb>>,
    /// Whether events of each block have a subscriber.
    pub watched: Vec<bool>,
    /// Traffic of each link.
    pub links: Vec<Traffic>,
    /// Drops of each block.
    pub drops: Vec<Drops>,
    /// Generation of the program in this element.
    pub generation: u64,
    /// Generation of the program that this one replaces.
    pub replaces: Option<u64>,
    /// Pairs of matching instances: index in this program, index in the replaced program, preserved
    /// part.
    same_blocks: Vec<(usize, usize, RetainedState)>,
    /// Pairs of matching links.
    same_links: Vec<(usize, usize)>,
    /// Whether the compiled form equals that of the replaced program: same graph, and each block
    /// [grows](Lfb::grow) the same nodes.
    pub grows_as_before: bool,
}

/// Successors of running blocks, by their indices in the new program.
pub type UpcomingBlocks = HashMap<usize, Lfb>;

/// The part of a block that is preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedState {
    /// The block itself, because its settings are the same.
    Whole,
    /// Tables and counters.
    State,
}

/// Dropped frames of a block: reason, output (if it has no link), count.
#[derive(Debug, Clone, Default)]
pub struct Drops(Vec<(DropReason, u32, u64)>);

impl Drops {
    /// Counts one drop.
    pub fn add(&mut self, reason: DropReason, output: u32) {
        self.add_many(reason, output, 1);
    }

    /// Counts several drops.
    pub fn add_many(&mut self, reason: DropReason, output: u32, frames: u64) {
        match self.0.iter_mut().find(|(why, at, _)| (*why, *at) == (reason, output)) {
            Some((_, _, count)) => *count += frames,
            None => self.0.push((reason, output, frames)),
        }
    }

    /// Returns reasons, outputs and counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u32, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the total number of drops.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, _, count)| count).sum()
    }

    /// Returns the number of drops with a reason.
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0.iter().filter(|(why, _, _)| *why == reason).map(|(_, _, count)| count).sum()
    }
}

impl Loaded {
    /// Loads a program of a generation, which replaces `running` if given, with
    /// [successors](Lfb::follow) of its blocks. Returns all problems of the blocks.
    pub fn new(
        program: Arc<Program>,
        running: Option<&Loaded>,
        generation: u64,
        seed: u64,
        mut ahead: UpcomingBlocks,
    ) -> Result<Loaded, Problems> {
        let mut problems = Problems::default();
        let Some(slots) = Slots::of(&program.catalog) else {
            let what = "the libraries define too many metadata";
            let most = format!("use at most {}", crate::lfb::packet::METADATA_MAX);
            problems.add(Code::Resources, &program.place, "", what, most);
            return Err(problems);
        };
        let is_same_graph = running.is_some_and(|running| is_same_graph(&program, running));
        let graph = match running.filter(|_| is_same_graph) {
            Some(running) => running.graph.clone(),
            None => Graph::of(&program),
        };
        let same_blocks = running.map(|running| same_blocks(&program, &graph, running));
        let same_blocks = same_blocks.unwrap_or_default();
        let same_links = match is_same_graph {
            true => (0..program.links.len()).map(|at| (at, at)).collect(),
            false => running.map(|running| same_links(&program, running)).unwrap_or_default(),
        };
        let mut grows_as_before = is_same_graph;
        let taken: std::collections::HashSet<usize> = same_blocks
            .iter()
            .filter(|(_, _, kept)| *kept == RetainedState::Whole)
            .map(|(new, _, _)| *new)
            .collect();
        let mut blocks = Vec::with_capacity(program.instances.len());
        for at in 0..program.instances.len() {
            if taken.contains(&at) {
                blocks.push(None);
                continue;
            }
            let followed = |running: &Loaded| can_follow(&program, &graph, running, at);
            if let Some(block) = ahead.remove(&at)
                && running.is_some_and(followed)
            {
                let before = running.and_then(|running| running.blocks[at].as_ref());
                grows_as_before &= before.is_some_and(|before| block.grows_as(before));
                blocks.push(Some(block));
                continue;
            }
            grows_as_before = false;
            let mut setup = Setup {
                program: &program,
                instance: at,
                linked: graph.linked(at),
                slots: &slots,
                seed,
                problems: &mut problems,
            };
            blocks.push(block(&mut setup));
        }
        if problems.refuses() {
            return Err(problems);
        }
        let watched = (0..program.instances.len())
            .map(|at| program.watches.iter().any(|watch| watch.source == Source::Instance(at)));
        Ok(Loaded {
            watched: watched.collect(),
            links: vec![Traffic::default(); program.links.len()],
            drops: vec![Drops::default(); program.instances.len()],
            generation,
            replaces: running.map(|running| running.generation),
            program,
            graph,
            slots,
            blocks,
            same_blocks,
            same_links,
            grows_as_before,
        })
    }

    /// Returns the data to load another program without the blocks of this one.
    pub fn shell(&self) -> Loaded {
        Loaded {
            program: Arc::clone(&self.program),
            graph: self.graph.clone(),
            slots: self.slots.clone(),
            blocks: self.blocks.iter().map(|_| None).collect(),
            watched: self.watched.clone(),
            links: Vec::new(),
            drops: Vec::new(),
            generation: self.generation,
            replaces: None,
            same_blocks: Vec::new(),
            same_links: Vec::new(),
            grows_as_before: false,
        }
    }

    /// Exchanges the preserved blocks and state with the running program. A second call reverts it.
    pub fn take_over(&mut self, running: &mut Loaded) {
        for (new, old, kept) in &self.same_blocks {
            let (new, old) = (&mut self.blocks[*new], &mut running.blocks[*old]);
            match (kept, &mut *new, &mut *old) {
                (RetainedState::State, Some(new), Some(old)) => new.keep(old),
                (RetainedState::State, ..) => {}
                (RetainedState::Whole, ..) => std::mem::swap(new, old),
            }
        }
        for (new, old, _) in &self.same_blocks {
            std::mem::swap(&mut self.drops[*new], &mut running.drops[*old]);
        }
        for (new, old) in &self.same_links {
            std::mem::swap(&mut self.links[*new], &mut running.links[*old]);
        }
    }

    /// Returns a block, unless another program has taken it over.
    pub fn block(&self, instance: usize) -> Option<&Lfb> {
        self.blocks.get(instance)?.as_ref()
    }

    /// Returns a block, or the block of the running program that this one will take over.
    pub fn at_home<'l>(&'l self, instance: usize, running: Option<&'l Loaded>) -> Option<&'l Lfb> {
        let kept = |running: &'l Loaded| {
            let mut same = self.same_blocks.iter();
            let (_, old, _) =
                same.find(|(new, _, kept)| (*new, *kept) == (instance, RetainedState::Whole))?;
            running.block(*old)
        };
        self.block(instance).or_else(|| kept(running?))
    }

    /// Returns the preserved part of a block of the running program, by its index there.
    pub fn keeps(&self, old: usize) -> Option<RetainedState> {
        let mut same = self.same_blocks.iter();
        same.find(|(_, of, _)| *of == old).map(|(_, _, kept)| *kept)
    }

    /// Returns the links of the running program whose counters are preserved, by their indices
    /// there.
    pub fn keeps_links(&self) -> impl Iterator<Item = usize> + '_ {
        self.same_links.iter().map(|(_, old)| *old)
    }

    /// Returns the number of frames that wait in blocks.
    pub fn held(&self) -> u64 {
        self.blocks.iter().flatten().map(Lfb::held).sum()
    }

    /// Returns the current value of a component of an instance.
    pub fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<forces::Value> {
        let own = self.block(instance).and_then(|block| block.get(component, now));
        let class = self.program.class_of(instance);
        let set = || self.program.instances[instance].components.get(&component).cloned();
        let default = || Some(class.component_by_id(component)?.default_value());
        own.or_else(set).or_else(default)
    }
}

/// Creates a block of an instance's class, or of its nearest supported base class.
fn block(setup: &mut Setup<'_>) -> Option<Lfb> {
    let (program, instance) = (setup.program, setup.instance);
    let class = program.class_of(instance);
    let known = std::iter::once(class.id).chain(class.parents.iter().copied());
    let Some(id) = known.into_iter().find(|id| Lfb::CLASSES.contains(id)) else {
        let what = format!("unsupported class {}", class.name);
        let place = &program.instances[instance].place;
        let name = &program.instances[instance].name;
        setup.problems.add(Code::UnknownClass, place, name, what, "use a supported class");
        return None;
    };
    Lfb::new(id, setup)
}

/// Finds the blocks of a program that match blocks of the running program.
fn same_blocks(
    program: &Program,
    graph: &Graph,
    running: &Loaded,
) -> Vec<(usize, usize, RetainedState)> {
    let olds = running.program.instances.iter().enumerate();
    let olds: HashMap<&str, usize> = olds.map(|(at, it)| (it.name.as_str(), at)).collect();
    // Fields and metadata of a block depend on definitions of the whole program.
    let same_words = Arc::ptr_eq(&program.catalog, &running.program.catalog)
        && has_same_frames(program, running);
    let mut same = Vec::new();
    for (new, instance) in program.instances.iter().enumerate() {
        let Some(&old) = olds.get(instance.name.as_str()) else { continue };
        let before = &running.program.instances[old];
        if instance.reset || instance.class != before.class {
            continue;
        }
        let whole = same_words
            && instance.number == before.number
            && instance.components == before.components
            && graph.linked(new) == running.graph.linked(old)
            && running.blocks[old].is_some()
            && !is_alias_user(program, new);
        same.push((new, old, if whole { RetainedState::Whole } else { RetainedState::State }));
    }
    same
}

/// Returns true if a successor of a running block is equivalent to a new block.
fn can_follow(program: &Program, graph: &Graph, running: &Loaded, at: usize) -> bool {
    let instance = &program.instances[at];
    let old = running.program.find(&instance.name);
    old.is_some_and(|old| {
        let before = &running.program.instances[old];
        Arc::ptr_eq(&program.catalog, &running.program.catalog)
            && has_same_frames(program, running)
            && !instance.reset
            && (instance.class, instance.number) == (before.class, before.number)
            && graph.linked(at) == running.graph.linked(old)
    })
}

/// Returns true if both programs have the same frame formats.
fn has_same_frames(program: &Program, running: &Loaded) -> bool {
    let (new, old) = (&program.frames, &running.program.frames);
    Arc::ptr_eq(new, old) || new == old
}

/// Returns true if blocks have the same names and indices, and the same links connect them.
fn is_same_graph(program: &Program, running: &Loaded) -> bool {
    let old = &*running.program;
    let ends = |program: &Program| -> Vec<_> {
        program.links.iter().map(|link| (link.from, link.to)).collect()
    };
    let is_same = |(new, old): (&Instance, &Instance)| {
        (new.class, new.number, &new.name) == (old.class, old.number, &old.name) && !new.reset
    };
    Arc::ptr_eq(&program.catalog, &old.catalog)
        && has_same_frames(program, running)
        && program.watches == old.watches
        && program.instances.len() == old.instances.len()
        && program.instances.iter().zip(&old.instances).all(is_same)
        && ends(program) == ends(old)
}

/// Returns true if a block reads components of other blocks.
fn is_alias_user(program: &Program, instance: usize) -> bool {
    program.class_of(instance).components.iter().any(|it| it.data_type.is_alias())
}

/// Finds the links of a program that connect the same ends as links of the running program.
fn same_links(program: &Program, running: &Loaded) -> Vec<(usize, usize)> {
    let old = &running.program;
    let name = |program: &Program, link: &crate::program::Link| {
        (program.output_name(link.from), program.input_name(link.to))
    };
    let olds = old.links.iter().enumerate().map(|(at, link)| (name(old, link), at));
    let olds: HashMap<(String, String), usize> = olds.collect();
    let news = program.links.iter().enumerate();
    news.filter_map(|(at, link)| Some((at, *olds.get(&name(program, link))?))).collect()
}
