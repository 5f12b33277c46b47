//! A running element: forwards frames by a program that can change at run time.
//!
//! - [`Element::prepare`] checks and loads a change while the element runs. A change is a whole
//!   program or a single field of a row.
//! - [`Element::swap`] activates it between two frames, all or nothing.
//! - [`Element::roll_back`] restores the previous program until [`Element::settle`] discards it. A
//!   ForCES transaction works the same way until its completion (RFC 5810 section 4.3.1.2).
//!
//! The caller passes the time as an argument. The element sends nothing itself: redirected frames
//! and events wait in queues until the caller takes them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{BatchDecision, Decision, Forwarder, FrameHead, Outputs, SIGHTS_MAX};
use forces::Value;
use forces::association::Happening;
use forces::model::value::ValueFault;
use forces::model::{PathFault, Target};
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::check::{check, resources};
use crate::compiled_program::{Drops, Loaded, UpcomingBlocks};
use crate::diagnostic::{Code, Problems};
use crate::executor::Enforcer;
use crate::interpret::{Account, Interpreter};
use crate::lfb::exceptions::{DivertedFrame, EVENTS_QUEUED_MAX};
use crate::lfb::{DivertDestination, Lfb};
use crate::observe::{ObservationHook, Observing};
use crate::program::Program;
use crate::trace::Trace;

mod staged_config;
mod reload_diff;
pub mod mirror;
mod observation;
pub mod subscriptions;

pub use reload_diff::{Fate, Held, StateDiff};
pub use staged_config::Draft;
pub use subscriptions::Report;

/// A running element.
#[derive(Debug)]
pub struct Element<E: Enforcer = Interpreter> {
    enforcer: E,
    seed: u64,
    /// Number of generations so far.
    generations: u64,
    previous: Option<E::Prepared>,
    /// Retired programs that wait for the caller; `None` if the element frees them.
    gone: Option<Vec<E::Prepared>>,
    watching: subscriptions::Watching,
    /// Blocks whose events have a subscriber in addition to the program's watches.
    watched_also: BTreeSet<(u32, u32)>,
    /// Events of these blocks, oldest first.
    for_control: VecDeque<Happening>,
    /// Events that watches report.
    reports: VecDeque<Report>,
    /// Number of events of either kind that were lost because the queue was full.
    pub happenings_lost: u64,
    /// Whether the element forwards frames.
    forwards: bool,
    /// Number of frames that arrived while forwarding was off.
    pub stopped: u64,
    /// Whether the ports deliver kernel receive time stamps.
    has_arrivals: bool,
    /// Active tracing and cost measurement.
    observing: Option<Box<Observing>>,
    /// Mirror in another data plane.
    mirror: Option<Box<dyn mirror::ElementMirror>>,
}

/// A loaded program, ready to run.
pub struct Prepared<E: Enforcer = Interpreter> {
    inner: E::Prepared,
    /// Counters to reset when the program is activated.
    resets: Vec<(usize, u32)>,
    /// Learned rows to delete when the program is activated.
    forgets: Vec<(usize, u32, u32)>,
    watching: subscriptions::Watching,
}

/// Data to prepare a program without the element, for instance on another thread.
pub struct Basis<E: Enforcer> {
    shell: Loaded,
    generation: u64,
    seed: u64,
    has_arrivals: bool,
    of: PhantomData<fn() -> E>,
}

impl<E: Enforcer> Basis<E> {
    /// Checks and loads a program that replaces the one that ran when the basis was taken. Returns
    /// all problems.
    pub fn prepare(&self, program: Program) -> Result<Prepared<E>, Problems> {
        let problems = checked(&program, self.has_arrivals);
        if problems.refuses() {
            return Err(problems);
        }
        let watching = subscriptions::Watching::of(&program);
        let inner = E::prepare_apart(&self.shell, Arc::new(program), self.generation, self.seed)?;
        Ok(Prepared { inner, resets: Vec::new(), forgets: Vec::new(), watching })
    }
}

impl<E: Enforcer> Basis<E> {
    /// Applies changes to the program that ran when the basis was taken, and loads the result: all
    /// changes or none.
    pub fn prepare_changes(
        &self,
        running: &Program,
        changes: Vec<Change>,
    ) -> Result<Prepared<E>, ElementError> {
        let mut draft = Draft::of(running);
        changes.into_iter().try_for_each(|change| draft.change(change))?;
        draft.is_whole(running)?;
        let (resets, forgets) = draft.places();
        let mut prepared = self.prepare(draft.program).map_err(ElementError::Refused)?;
        (prepared.resets, prepared.forgets) = (resets, forgets);
        Ok(prepared)
    }
}

/// Returns all problems of a program, for ports with or without kernel time stamps.
fn checked(program: &Program, has_arrivals: bool) -> Problems {
    let mut problems = check(program);
    if !has_arrivals && let Some(agent) = program.agents.iter().find(|it| it.wants_arrivals()) {
        let what = "the ports were opened without arrival timestamps of the kernel";
        let hint = "start the element with this program, or remove stamp=\"kernel\"";
        problems.add(Code::Value, &agent.place, agent.name.clone(), what, hint);
    }
    problems
}

/// A change of an instance.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sets the value at a path.
    Set {
        /// Index of the instance in the program.
        instance: usize,
        /// Path of component, fields and rows.
        path: Vec<u32>,
        /// New value.
        value: Value,
    },
    /// Sets some fields or rows of the value at a path and leaves the others unchanged.
    Merge {
        /// Index of the instance in the program.
        instance: usize,
        /// Path.
        path: Vec<u32>,
        /// New fields and rows.
        value: Value,
    },
    /// Deletes a row or an optional field.
    Delete {
        /// Index of the instance in the program.
        instance: usize,
        /// Path.
        path: Vec<u32>,
    },
}

/// Reason why a read or a change failed.
#[derive(Debug)]
pub enum ElementError {
    /// The instance does not exist.
    Instance(usize),
    /// The path is invalid.
    Path(PathFault),
    /// Nothing exists at the path.
    NotThere,
    /// The item exists already.
    There,
    /// The class does not allow this access.
    Access,
    /// The value does not match the type.
    Value(ValueFault),
    /// The resulting program is rejected.
    Refused(Problems),
    /// The running program is not the one that the change was prepared for.
    Stale,
}

impl fmt::Display for ElementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementError::Instance(place) => write!(f, "the program has no instance {place}"),
            ElementError::Path(fault) => write!(f, "{fault}"),
            ElementError::NotThere => f.write_str("not found"),
            ElementError::There => f.write_str("exists already"),
            ElementError::Access => f.write_str("not allowed by its class"),
            ElementError::Value(fault) => write!(f, "{fault}"),
            ElementError::Refused(problems) => write!(f, "{}", problems.to_string().trim_end()),
            ElementError::Stale => f.write_str("another program has been loaded"),
        }
    }
}

impl std::error::Error for ElementError {}

impl<E: Enforcer> Element<E> {
    /// Starts a program. `seed` is a secret for hashing.
    pub fn start(program: Program, seed: u64) -> Result<Element<E>, Problems> {
        let problems = check(&program);
        if problems.refuses() {
            return Err(problems);
        }
        let watching = subscriptions::Watching::of(&program);
        let enforcer = E::start(Arc::new(program), seed)?;
        Ok(Element {
            enforcer,
            seed,
            generations: 1,
            previous: None,
            gone: None,
            watching,
            watched_also: BTreeSet::new(),
            for_control: VecDeque::new(),
            reports: VecDeque::new(),
            happenings_lost: 0,
            forwards: true,
            stopped: 0,
            has_arrivals: true,
            observing: None,
            mirror: None,
        })
    }

    /// Returns the engine that runs the program.
    pub fn enforcer(&self) -> &E {
        &self.enforcer
    }

    /// Returns the running program.
    pub fn program(&self) -> &Arc<Program> {
        self.enforcer.program()
    }

    /// Returns the generation of the running program. Generations increase; a rejected program may
    /// have used one.
    pub fn generation(&self) -> u64 {
        self.enforcer.generation()
    }

    /// Checks and loads a program that replaces the running one. Returns all problems.
    pub fn prepare(&mut self, program: Program) -> Result<Prepared<E>, Problems> {
        let problems = checked(&program, self.has_arrivals);
        if problems.refuses() {
            return Err(problems);
        }
        self.prepare_with(program, UpcomingBlocks::new())
    }

    fn prepare_with(
        &mut self,
        program: Program,
        ahead: UpcomingBlocks,
    ) -> Result<Prepared<E>, Problems> {
        self.generations += 1;
        let watching = subscriptions::Watching::of(&program);
        let program = Arc::new(program);
        let inner = self.enforcer.prepare(program, self.generations, self.seed, ahead)?;
        Ok(Prepared { inner, resets: Vec::new(), forgets: Vec::new(), watching })
    }

    /// Applies changes to the running program and loads the result: all changes or none.
    pub fn prepare_changes(&mut self, changes: &[Change]) -> Result<Prepared<E>, ElementError> {
        let mut draft = Draft::of(self.enforcer.program());
        for change in changes {
            draft.change(change.clone())?;
        }
        self.prepare_draft(draft)
    }

    /// Updates the tables of a draft in advance. A caller with many changes calls this between
    /// them, so that frames are not delayed.
    pub fn prepare_commit(&self, draft: &mut Draft) {
        // While a rollback is possible, its blocks must not change.
        if self.previous.is_none() {
            draft.prepare_commit(self.enforcer.program(), |at| self.enforcer.block(at)?.follow());
        }
    }

    /// Loads a draft of the running program.
    pub fn prepare_draft(&mut self, mut draft: Draft) -> Result<Prepared<E>, ElementError> {
        self.prepare_commit(&mut draft);
        draft.is_whole(self.enforcer.program())?;
        // For row changes, the blocks check the rows; only the memory check remains.
        let mut problems = Problems::default();
        match draft.changes_rows_only() {
            true => resources::check(&draft.program, &mut problems),
            false => problems = check(&draft.program),
        }
        if problems.refuses() {
            return Err(ElementError::Refused(problems));
        }
        let (resets, forgets) = draft.places();
        let Draft { program, ahead, .. } = draft;
        let ahead = ahead.into_iter().filter_map(|(name, block)| {
            Some((program.find(&name)?, block.and_then(staged_config::Following::block)?))
        });
        let ahead = ahead.collect();
        let mut prepared = self.prepare_with(program, ahead).map_err(ElementError::Refused)?;
        (prepared.resets, prepared.forgets) = (resets, forgets);
        Ok(prepared)
    }

    /// Activates a prepared program. The previous program remains available for a rollback.
    pub fn swap(
        &mut self,
        prepared: Prepared<E>,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), ElementError> {
        let Prepared { mut inner, resets, forgets, watching } = prepared;
        // Pending events and counts belong to blocks of the old program.
        self.sort_happenings();
        self.suspend_mirror();
        if !self.enforcer.exchange(&mut inner, now, out) {
            return Err(ElementError::Stale);
        }
        for (instance, component) in resets {
            self.enforcer.reset(instance, component);
        }
        for (instance, component, index) in forgets {
            self.enforcer.forget(instance, component, index);
        }
        let before = self.previous.replace(inner);
        self.release(before);
        self.watching.become_like(watching);
        self.program_changed();
        Ok(())
    }

    /// Restores the program before the last swap, including state learned and counted since.
    /// Returns false if it is no longer available.
    pub fn roll_back(&mut self, now: Nanos, out: &mut Outputs) -> bool {
        let Some(mut previous) = self.previous.take() else { return false };
        self.sort_happenings();
        self.suspend_mirror();
        let done = self.enforcer.exchange(&mut previous, now, out);
        self.watching.become_like(subscriptions::Watching::of(self.enforcer.program()));
        self.program_changed();
        self.release(Some(previous));
        done
    }

    /// Defers freeing of retired programs, which takes time in proportion to their size. The caller
    /// gets them from [`Element::take_retired`].
    pub fn keep_gone(&mut self) {
        self.gone.get_or_insert_default();
    }

    /// Returns the retired programs.
    pub fn take_retired(&mut self) -> Vec<E::Prepared> {
        self.gone.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn release(&mut self, program: Option<E::Prepared>) {
        if let Some(gone) = &mut self.gone {
            gone.extend(program);
        }
    }

    /// Declares that the ports deliver no kernel time stamps. Programs that need them are rejected
    /// from now on.
    pub fn without_arrivals(&mut self) {
        self.has_arrivals = false;
    }

    /// Returns the data to prepare a program without this element.
    pub fn basis(&mut self) -> Basis<E> {
        self.generations += 1;
        let (generation, seed) = (self.generations, self.seed);
        let (shell, has_arrivals) = (self.enforcer.shell(), self.has_arrivals);
        Basis { shell, generation, seed, has_arrivals, of: PhantomData }
    }

    /// Discards the previous program. The last swap becomes final.
    pub fn settle(&mut self) {
        let before = self.previous.take();
        self.release(before);
    }

    /// Applies changes and commits them: all or none.
    pub fn change(
        &mut self,
        changes: &[Change],
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), ElementError> {
        let prepared = self.prepare_changes(changes)?;
        self.swap(prepared, now, out)?;
        self.settle();
        Ok(())
    }

    /// Returns the value at a path of an instance.
    pub fn get(&self, instance: usize, path: &[u32], now: Nanos) -> Result<Value, ElementError> {
        let program = self.enforcer.program();
        if instance >= program.instances.len() {
            return Err(ElementError::Instance(instance));
        }
        match program.class_of(instance).target(path).map_err(ElementError::Path)? {
            Target::Value { access, .. } if access.is_readable() => {}
            Target::Value { component, .. }
                if component.kind == forces::model::ComponentKind::Capability => {}
            _ => return Err(ElementError::Access),
        }
        let whole = self.enforcer.component(instance, path[0], now);
        let part = whole.as_ref().and_then(|whole| whole.at(&path[1..]));
        part.cloned().ok_or(ElementError::NotThere)
    }

    /// Returns a block by name, so that agents can update it.
    pub(crate) fn block_mut(&mut self, name: &str) -> Option<&mut Lfb> {
        let instance = self.program().find(name)?;
        self.enforcer.block_mut(instance)
    }

    /// Returns the traffic of a link, by its index in the program.
    pub fn link(&self, link: usize) -> Traffic {
        self.enforcer.link(link)
    }

    /// Returns the drops of a block.
    pub fn drops(&self, instance: usize) -> &Drops {
        self.enforcer.drops(instance)
    }

    /// Returns the frame accounting.
    pub fn account(&self) -> Account {
        self.enforcer.account()
    }

    /// Turns forwarding on or off. While it is off, the element counts and drops frames. A new
    /// element forwards.
    pub fn set_forwarding(&mut self, forwards: bool) {
        if self.forwards != forwards {
            self.suspend_mirror();
        }
        self.forwards = forwards;
    }

    /// Forwards one frame and returns its trace, block by block.
    pub fn trace(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) -> Trace {
        let mut trace = Trace::default();
        self.enforcer.pass(port, frame, now, out, ObservationHook::Trace(&mut trace));
        trace
    }

    /// Puts a frame with metadata into a block without inputs: RedirectIn or Inject.
    pub fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), ElementError> {
        let program = self.enforcer.program();
        if instance >= program.instances.len() {
            return Err(ElementError::Instance(instance));
        }
        if !program.class_of(instance).inputs.is_empty() {
            return Err(ElementError::Access);
        }
        self.enforcer.inject(instance, frame, now, out);
        Ok(())
    }

    /// Sets the link state of a port.
    pub fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        self.enforcer.set_link(port, up, now, out);
    }

    /// Subscribes to events of blocks, by class and number, in addition to the program's watches.
    /// The subscription survives program changes and lasts until the next call.
    pub fn watch_also(&mut self, instances: BTreeSet<(u32, u32)>) {
        if self.watched_also != instances {
            self.watched_also = instances;
            self.set_watched();
        }
    }

    /// Informs each block whether its events have a subscriber.
    fn set_watched(&mut self) {
        let program = self.enforcer.program().clone();
        for (at, instance) in program.instances.iter().enumerate() {
            let also = self.watched_also.contains(&(instance.class, instance.number));
            let source = crate::program::Source::Instance(at);
            let watched = also || program.watches.iter().any(|watch| watch.source == source);
            self.enforcer.set_watched(at, watched);
        }
    }

    /// Returns the next frame for a control element or an agent.
    pub fn next_told(&mut self) -> Option<DivertedFrame> {
        self.enforcer.told().frames.pop_front()
    }

    /// Returns the next frame whose receiver satisfies `is_for`.
    pub fn next_told_to(
        &mut self,
        is_for: impl Fn(&DivertDestination) -> bool,
    ) -> Option<DivertedFrame> {
        let frames = &mut self.enforcer.told().frames;
        let at = frames.iter().position(|frame| is_for(&frame.to))?;
        frames.remove(at)
    }

    /// Sorts pending events by receiver.
    fn sort_happenings(&mut self) {
        while let Some(happening) = self.enforcer.told().happenings.pop_front() {
            let told = subscriptions::happening(self.enforcer.program(), &happening);
            let wanted = |it: &Happening| self.watched_also.contains(&(it.class, it.instance));
            if let Some(told) = told.filter(wanted) {
                keep(&mut self.for_control, told, &mut self.happenings_lost);
            }
            if let Some(report) = self.watching.report(happening) {
                keep(&mut self.reports, report, &mut self.happenings_lost);
            }
        }
    }

    /// Returns the next event of the blocks subscribed with [`Element::watch_also`].
    pub fn poll_event(&mut self) -> Option<Happening> {
        self.sort_happenings();
        self.for_control.pop_front()
    }

    /// Returns the next event that a watch reports.
    pub fn next_report(&mut self) -> Option<Report> {
        self.sort_happenings();
        self.reports.pop_front()
    }
}

/// Appends an item to a queue, or counts it as lost if the queue is full.
fn keep<T>(queue: &mut VecDeque<T>, what: T, lost: &mut u64) {
    match queue.len() < EVENTS_QUEUED_MAX {
        true => queue.push_back(what),
        false => *lost += 1,
    }
}

impl<E: Enforcer> Forwarder for Element<E> {
    type Pending<'a>
        = E::Pending<'a>
    where
        Self: 'a;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        if !self.forwards {
            self.stopped += batch.frames().len() as u64;
            return;
        }
        match &mut self.observing {
            None => self.enforcer.forward(port, batch, now, out),
            Some(observing) => observing.forward(&mut self.enforcer, port, batch, (now, out)),
        }
    }

    fn decides(&self) -> bool {
        self.enforcer.decides()
    }

    fn decide(
        &mut self,
        port: PortNo,
        sights: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<E::Pending<'_>> {
        match &mut self.observing {
            None if self.forwards => self.enforcer.decide(port, sights, now, decisions),
            Some(observing) if self.forwards && !observing.wants(port, now) => {
                observing.pass_by(sights[0].len());
                self.enforcer.decide(port, sights, now, decisions)
            }
            // All frames arrive in `forward`, which counts or observes them.
            _ => {
                self.enforcer.skip_batch();
                BatchDecision::Done(0)
            }
        }
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.enforcer.tick(now, out)
    }
}
