//! A ProGFE element in the kernel.
//!
//! A program is the [decision tree](progfe::compile) of the element's program, with the tables of
//! its blocks. Blocks are lowered as far as they are in the tree: no block has a program of its own.
//!
//! A tree belongs to a generation, and programs run only while theirs is the current one. To change
//! the element's program:
//!
//! 1. The element suspends the mirror: there is no current generation, so all frames escape.
//! 2. The mirror waits until no CPU runs a program. Counts are then complete, and the element adds
//!    them to the counters of the old program.
//! 3. The element exchanges its programs.
//! 4. The tables are mirrored. If the tree changed, each port gets a program of a new generation.
//! 5. One store makes it the current one, for all ports together.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ebpf::{Assembly, Label, MappedArray};
use os::clock;
use packet::frame::PortNo;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::compile::tree::{Fate, Node, TableLookup};
use progfe::element::Element;
use progfe::element::mirror::ElementMirror;
use progfe::executor::{Enforcer, MirrorCount};
use progfe::lfb::Lfb;

use crate::Entries;
use crate::addresses::{AddressMirror, Addresses};
use crate::ports::{PairTraffic, Ports};
use crate::switch::PortExtra;

mod blocks;
mod generation;
mod lowering;
mod program;
mod routes;

pub use blocks::{BlockPath, block_paths};
use generation::Generation;
use lowering::Lowering;
use routes::Routes;

/// An element whose programs run compiled.
type RunningElement = Element<Compiled>;

/// Maximum number of instructions of a program: jumps reach 32,767.
const INSTRUCTIONS_MAX: usize = 32_000;

/// Time after which a CPU sees a store of another one, and after which that one sees its mark. The
/// store buffer of a CPU empties within some microseconds.
const STORE_TIME: Nanos = Nanos::from_micros(50);

/// Maximum time for which a change waits for the last frames.
const LAST_FRAMES_TIME: Nanos = Nanos::from_secs(1);

/// What an element requires after [`crate::FastPath::follow_element`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementStep {
    /// Nothing.
    None,
    /// Each port needs its program of the generation with this number; then
    /// [`crate::FastPath::resume`].
    Programs(u32),
}

/// The maps of an element.
#[derive(Debug)]
pub(crate) struct ElementPath {
    ports: Arc<Ports>,
    /// Number of the current generation, or 0.
    gate: MappedArray,
    seed: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    generation: Option<Arc<Generation>>,
    generations: u32,
    /// Whether the ports have its programs.
    is_installed: bool,
    /// Number of the tree that was lowered last.
    tree: u64,
    routes: Routes,
    /// Frames and bytes by ingress and egress port.
    pairs: Vec<[u64; 2]>,
    extra: Vec<PortExtra>,
    /// Tree whose programs could not be created.
    failed: Option<u64>,
}

impl ElementPath {
    pub(crate) fn new(ports: Arc<Ports>, seed: u64) -> io::Result<ElementPath> {
        let count = ports.numbers().len();
        let state = State {
            generation: None,
            generations: 0,
            is_installed: false,
            tree: 0,
            routes: Routes::default(),
            pairs: vec![[0; 2]; count * count],
            extra: vec![PortExtra::default(); count],
            failed: None,
        };
        Ok(ElementPath { ports, gate: MappedArray::new(1, 8)?, seed, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> &AtomicU64 {
        self.gate.double_at(0)
    }

    /// Returns the mirror for the element.
    pub(crate) fn mirror(self: &Arc<Self>) -> Box<dyn ElementMirror> {
        Box::new(Mirror(Arc::clone(self)))
    }

    /// Follows the element's program, unless programs run already or must not.
    pub(crate) fn follow(
        &self,
        element: &mut RunningElement,
        now: Nanos,
    ) -> io::Result<ElementStep> {
        if self.runs() || !element.allows_mirror(now) {
            return Ok(ElementStep::None);
        }
        let tree = element.enforcer().tree_number();
        let mut state = self.state();
        if state.failed == Some(tree) {
            return Ok(ElementStep::None);
        }
        let followed = self.lower(&mut state, tree, element);
        if followed.is_err() {
            state.failed = Some(tree);
        }
        followed
    }

    fn lower(
        &self,
        state: &mut State,
        tree: u64,
        element: &mut RunningElement,
    ) -> io::Result<ElementStep> {
        let (addresses, routes) = self.tables(state, element)?;
        let has_same_tables =
            |of: &Generation| has_same(&of.addresses, &addresses) && has_same(&of.routes, &routes);
        let current = state.generation.clone().filter(|of| has_same_tables(of));
        let is_same_tree = std::mem::replace(&mut state.tree, tree) == tree;
        if let Some(current) = current.as_ref().filter(|_| is_same_tree) {
            return Ok(self.use_again(current, state.is_installed));
        }
        let numbers = self.ports.numbers();
        let mut depth_max = usize::MAX;
        let generation = loop {
            let lowering = Lowering::new(element.enforcer().tree(), numbers, depth_max);
            // Another tree may be equal, for example if only routes changed.
            if let Some(current) = current.as_ref().filter(|of| of.lowering == lowering) {
                return Ok(self.use_again(current, state.is_installed));
            }
            let deepest = lowering.depth;
            let tables = (addresses.clone(), routes.clone());
            let gate = self.gate.descriptor();
            let number = state.generations + 1;
            let generation = Generation::new(number, lowering, gate, numbers.len(), tables)?;
            let longest = numbers.iter().map(|port| self.length(&generation, *port)).max();
            if longest.unwrap_or(0) <= INSTRUCTIONS_MAX {
                break generation;
            }
            // Frames with longer paths escape.
            depth_max = deepest.min(depth_max) * 3 / 4;
        };
        state.generations += 1;
        (state.generation, state.is_installed) = (Some(Arc::new(generation)), false);
        Ok(ElementStep::Programs(state.generations))
    }

    /// Lets programs run that the ports have already.
    fn use_again(&self, generation: &Generation, is_installed: bool) -> ElementStep {
        if !is_installed {
            return ElementStep::Programs(generation.number);
        }
        self.gate().store(generation.number.into(), SeqCst);
        ElementStep::None
    }

    /// Mirrors the tables that the tree reads, by the index of their block.
    #[allow(clippy::type_complexity, reason = "two maps by block")]
    fn tables(
        &self,
        state: &mut State,
        element: &mut RunningElement,
    ) -> io::Result<(HashMap<u32, Arc<Addresses>>, HashMap<u32, Arc<crate::trie::Cells>>)> {
        let (mut learning, mut routing) = (Vec::new(), Vec::new());
        for node in element.enforcer().tree().nodes() {
            let Node::Ask(question) = node else { continue };
            let (list, instance) = match &**question {
                TableLookup::Learn(of) => (&mut learning, of.instance),
                TableLookup::Route(of) => (&mut routing, of.instance),
            };
            if !list.contains(&instance) {
                list.push(instance);
            }
        }
        let mut addresses = HashMap::new();
        for instance in learning {
            let Some(table) = element.stations_mut(instance as usize) else { continue };
            let known = table.mirror::<AddressMirror>().map(|mirror| Arc::clone(&mirror.0));
            let mirror = match known {
                Some(mirror) => mirror,
                None => {
                    let mirror = Arc::new(Addresses::new(table.entries_max(), self.seed, None)?);
                    table.set_mirror(Some(Box::new(AddressMirror(Arc::clone(&mirror)))));
                    mirror
                }
            };
            addresses.insert(instance, mirror);
        }
        let table = |instance: u32| match element.enforcer().block(instance as usize) {
            Some(Lfb::Ipv4Lpm(block)) => Some((instance, block.routes())),
            _ => None,
        };
        let tables: Vec<_> = routing.into_iter().filter_map(table).collect();
        Ok((addresses, state.routes.mirror(&tables)?))
    }

    /// Makes the new generation the current one. All ports have its programs.
    pub(crate) fn resume(&self) {
        let mut state = self.state();
        if let Some(number) = state.generation.as_ref().map(|generation| generation.number) {
            state.is_installed = true;
            self.gate().store(number.into(), SeqCst);
        }
    }

    /// Returns true if programs run.
    pub(crate) fn runs(&self) -> bool {
        self.gate().load(Relaxed) != 0
    }

    /// Gives up the programs of the current tree: its frames escape.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        state.generation = None;
        state.failed = Some(state.tree);
    }

    /// Appends the program of a port to one that is under construction.
    pub(crate) fn emitter(&self, port: PortNo, is_partial: bool) -> crate::Emit {
        let (generation, ports) = (self.state().generation.clone(), Arc::clone(&self.ports));
        let index = ports.index(port).expect("the port is one of the fast path");
        Box::new(move |program: &mut Assembly, escape: Label| match &generation {
            Some(of) => program::emit(of, &ports, (port, index), is_partial, program, escape),
            None => program.jump(escape),
        })
    }

    /// Returns the number of instructions of a program.
    fn length(&self, generation: &Generation, port: PortNo) -> usize {
        let Some(index) = self.ports.index(port) else { return 0 };
        let mut program = Assembly::new();
        let escape = program.label("escape");
        program::emit(generation, &self.ports, (port, index), true, &mut program, escape);
        program.len()
    }

    pub(crate) fn entries(&self) -> Entries {
        let state = self.state();
        let tables = state.generation.iter().flat_map(|generation| generation.addresses.values());
        let mut entries =
            Entries { routes_without_room: state.routes.without_room(), ..Entries::default() };
        for table in tables {
            entries.macs += table.len();
            entries.others_without_room += table.without_room();
        }
        entries
    }

    /// Returns the traffic between ports, as of the last counts that the element added.
    pub(crate) fn traffic(&self) -> Vec<PairTraffic> {
        let (numbers, state) = (self.ports.numbers(), self.state());
        let pair = |(place, [frames, bytes]): (usize, &[u64; 2])| PairTraffic {
            from: numbers[place / numbers.len()],
            to: numbers[place % numbers.len()],
            frames: *frames,
            bytes: *bytes,
        };
        let pairs = state.pairs.iter().enumerate().filter(|(_, [frames, _])| *frames > 0);
        pairs.map(pair).collect()
    }

    pub(crate) fn extra(&self, port: PortNo) -> PortExtra {
        self.ports.index(port).map(|index| self.state().extra[index]).unwrap_or_default()
    }

    fn suspend(&self) {
        if self.gate().swap(0, SeqCst) == 0 {
            return;
        }
        let Some(generation) = self.state().generation.clone() else { return };
        let begun = clock::now();
        clock::sleep_until(begun.saturating_add(STORE_TIME));
        // A program takes less than a microsecond, unless its CPU is interrupted.
        while generation.runs() && clock::now().since(begun) < LAST_FRAMES_TIME {
            std::hint::spin_loop();
        }
    }

    fn take_counts(&self) -> Vec<MirrorCount> {
        let mut state = self.state();
        let Some(generation) = state.generation.clone() else { return Vec::new() };
        let (counts, ends) = generation.take();
        let numbers = self.ports.numbers();
        for end in ends {
            match end.fate {
                Fate::Leaves(port, _) => {
                    let Some(to) = self.ports.index(port) else { continue };
                    let pair = &mut state.pairs[end.from * numbers.len() + to];
                    pair[0] += end.frames;
                    pair[1] += end.bytes;
                    state.extra[to].bytes_grown += end.grown;
                }
                Fate::Gone => {
                    state.extra[end.from].frames_dropped += end.frames;
                    state.extra[end.from].bytes_dropped += end.bytes;
                }
                Fate::Goes => {}
            }
        }
        counts
    }
}

/// Returns true if two maps have the same mirrors.
fn has_same<T>(one: &HashMap<u32, Arc<T>>, two: &HashMap<u32, Arc<T>>) -> bool {
    one.len() == two.len()
        && one.iter().all(|(at, of)| two.get(at).is_some_and(|other| Arc::ptr_eq(of, other)))
}

/// The mirror of an element.
#[derive(Debug)]
struct Mirror(Arc<ElementPath>);

impl ElementMirror for Mirror {
    fn suspend(&mut self) {
        self.0.suspend();
    }

    fn take_counts(&mut self) -> Vec<MirrorCount> {
        self.0.take_counts()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.0.suspend();
    }
}
