//! A running element: a program that frames go through, and that can be changed under them.
//!
//! Whatever is to change, a whole program or one field of a row, is first [prepared](Element::prepare):
//! checked, and made ready, while the element runs on. [`Element::swap`] then puts it in place between two
//! frames, all or nothing; what ran before is kept until [`Element::settle`], so that it can be [rolled
//! back](Element::roll_back), as a ForCES transaction can until its completion (RFC 5810 section 4.3.1.2).
//! Time is an argument, and nothing is sent: frames for control elements and agents, and
//! events, wait until somebody takes them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{Decided, Decision, Forwarder, Outputs, SIGHTS_MAX, Sight};
use forces::Value;
use forces::association::Happening as Told;
use forces::model::{PathFault, Target};
use forces::value::ValueFault;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::check::{check, resources};
use crate::control::news;
use crate::enforce::Enforcer;
use crate::interpret::{Account, Interpreter};
use crate::lfb::told::{HAPPENINGS_MAX, ToldFrame};
use crate::lfb::{Lfb, ToldTo};
use crate::loaded::{Ahead, Drops, Loaded};
use crate::observe::{Observing, Watch};
use crate::problem::{Code, Problems};
use crate::program::Program;
use crate::trace::Trace;

/// Programs as they are to be.
mod draft;
/// What would become of what blocks hold.
mod foreseen;
/// Frames that are looked at.
mod observed;
/// Events that are watched, and how often they are told.
pub mod watching;

pub use draft::Draft;
pub use foreseen::{Fate, Held, Holding};
pub use watching::Report;

/// A running element.
#[derive(Debug)]
pub struct Element<E: Enforcer = Interpreter> {
    enforcer: E,
    seed: u64,
    /// Generations that there were.
    generations: u64,
    previous: Option<E::Prepared>,
    /// Programs that are over, until somebody takes them; none are kept where nobody does.
    gone: Option<Vec<E::Prepared>>,
    watching: watching::Watching,
    /// Blocks whose events somebody wants beside the program's watches.
    watched_also: BTreeSet<(u32, u32)>,
    /// Their events, the oldest first.
    for_control: VecDeque<Told>,
    /// Events that watches want told.
    reports: VecDeque<Report>,
    /// Events of either kind that nobody took.
    pub happenings_lost: u64,
    /// Whether frames are to be forwarded at all.
    forwards: bool,
    /// Frames that came while they were not.
    pub stopped: u64,
    /// Whether its ports tell when the kernel got frames.
    has_arrivals: bool,
    /// What somebody looks at.
    observing: Option<Box<Observing>>,
}

/// A program that is ready to run.
pub struct Prepared<E: Enforcer = Interpreter> {
    inner: E::Prepared,
    /// Counters that are set back with it.
    resets: Vec<(usize, u32)>,
    /// Rows that blocks learnt and are to forget with it.
    forgets: Vec<(usize, u32, u32)>,
    watching: watching::Watching,
}

/// What a program is made ready by apart from the element that is to run it: on another thread, for instance.
pub struct Basis<E: Enforcer> {
    shell: Loaded,
    generation: u64,
    seed: u64,
    has_arrivals: bool,
    of: PhantomData<fn() -> E>,
}

impl<E: Enforcer> Basis<E> {
    /// Checks a program and makes it ready to replace the one that ran when the basis was taken. Every problem.
    pub fn prepare(&self, program: Program) -> Result<Prepared<E>, Problems> {
        let problems = checked(&program, self.has_arrivals);
        if problems.refuses() {
            return Err(problems);
        }
        let watching = watching::Watching::of(&program);
        let inner = E::prepare_apart(&self.shell, Arc::new(program), self.generation, self.seed)?;
        Ok(Prepared { inner, resets: Vec::new(), forgets: Vec::new(), watching })
    }
}

impl<E: Enforcer> Basis<E> {
    /// Makes the program that ran when the basis was taken, with some changes, ready to replace it: all of them or
    /// none.
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

/// All that is wrong with a program for an element whose ports tell when frames arrived, or do not.
fn checked(program: &Program, has_arrivals: bool) -> Problems {
    let mut problems = check(program);
    if !has_arrivals && let Some(agent) = program.agents.iter().find(|it| it.wants_arrivals()) {
        let what = "its ports were opened without the kernel's times of arrival";
        let hint = "start the element with this program, or leave stamp=\"kernel\" out";
        problems.add(Code::Value, &agent.place, agent.name.clone(), what, hint);
    }
    problems
}

/// One thing that is to be changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// What stands at a path is to be this.
    Set {
        /// The instance, by its place in the program.
        instance: usize,
        /// Component, fields, rows.
        path: Vec<u32>,
        /// The value.
        value: Value,
    },
    /// Some fields or rows of what stands at a path are to be these, the others as they are.
    Merge {
        /// The instance.
        instance: usize,
        /// The path.
        path: Vec<u32>,
        /// The fields and rows.
        value: Value,
    },
    /// A row, or a field that may be missing, is to go.
    Delete {
        /// The instance.
        instance: usize,
        /// The path.
        path: Vec<u32>,
    },
}

/// Why something cannot be read or changed.
#[derive(Debug)]
pub enum ElementError {
    /// There is no such instance.
    Instance(usize),
    /// The path leads nowhere.
    Path(PathFault),
    /// Nothing is there.
    NotThere,
    /// It is there already.
    There,
    /// It can only be read, or not even that.
    Access,
    /// The value is none of the type.
    Value(ValueFault),
    /// The program as it would be is refused.
    Refused(Problems),
    /// The program that runs is not the one that it was prepared for.
    Stale,
}

impl fmt::Display for ElementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementError::Instance(place) => write!(f, "the program has no instance {place}"),
            ElementError::Path(fault) => write!(f, "{fault}"),
            ElementError::NotThere => f.write_str("nothing is there"),
            ElementError::There => f.write_str("it is there already"),
            ElementError::Access => f.write_str("its class does not allow that"),
            ElementError::Value(fault) => write!(f, "{fault}"),
            ElementError::Refused(problems) => write!(f, "{}", problems.to_string().trim_end()),
            ElementError::Stale => f.write_str("another program has been put in place meanwhile"),
        }
    }
}

impl std::error::Error for ElementError {}

impl<E: Enforcer> Element<E> {
    /// Runs a program. `seed` is a secret for hashing.
    pub fn start(program: Program, seed: u64) -> Result<Element<E>, Problems> {
        let problems = check(&program);
        if problems.refuses() {
            return Err(problems);
        }
        let watching = watching::Watching::of(&program);
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
        })
    }

    /// What runs the program.
    pub fn enforcer(&self) -> &E {
        &self.enforcer
    }

    /// The program that runs.
    pub fn program(&self) -> &Arc<Program> {
        self.enforcer.program()
    }

    /// Its number: numbers rise from one program to the next, and one that was refused may have had one too.
    pub fn generation(&self) -> u64 {
        self.enforcer.generation()
    }

    /// Checks a program and makes it ready to replace the one that runs. Every problem.
    pub fn prepare(&mut self, program: Program) -> Result<Prepared<E>, Problems> {
        let problems = checked(&program, self.has_arrivals);
        if problems.refuses() {
            return Err(problems);
        }
        self.prepare_with(program, Ahead::new())
    }

    fn prepare_with(&mut self, program: Program, ahead: Ahead) -> Result<Prepared<E>, Problems> {
        self.generations += 1;
        let watching = watching::Watching::of(&program);
        let program = Arc::new(program);
        let inner = self.enforcer.prepare(program, self.generations, self.seed, ahead)?;
        Ok(Prepared { inner, resets: Vec::new(), forgets: Vec::new(), watching })
    }

    /// Makes the program that runs, with some changes, ready to replace it: all of them or none.
    pub fn prepare_changes(&mut self, changes: &[Change]) -> Result<Prepared<E>, ElementError> {
        let mut draft = Draft::of(self.enforcer.program());
        for change in changes {
            draft.change(change.clone())?;
        }
        self.prepare_draft(draft)
    }

    /// Does ahead of its being made ready what a draft's tables cost: whoever makes many changes has this
    /// done between them, so that frames have their turn.
    pub fn go_ahead(&self, draft: &mut Draft) {
        // A version that may come back is looked at still.
        if self.previous.is_none() {
            draft.go_ahead(self.enforcer.program(), |at| self.enforcer.block(at)?.follow());
        }
    }

    /// Makes a draft of the program that runs ready to replace it.
    pub fn prepare_draft(&mut self, mut draft: Draft) -> Result<Prepared<E>, ElementError> {
        self.go_ahead(&mut draft);
        draft.is_whole(self.enforcer.program())?;
        // What a row of such a table says is its block's to judge, and the memory that all take.
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
            Some((program.find(&name)?, block.and_then(draft::Following::block)?))
        });
        let ahead = ahead.collect();
        let mut prepared = self.prepare_with(program, ahead).map_err(ElementError::Refused)?;
        (prepared.resets, prepared.forgets) = (resets, forgets);
        Ok(prepared)
    }

    /// Runs what was prepared from now on. What ran before is kept.
    pub fn swap(
        &mut self,
        prepared: Prepared<E>,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<(), ElementError> {
        let Prepared { mut inner, resets, forgets, watching } = prepared;
        // What happened was in the blocks of the program that goes.
        self.sort_happenings();
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
        self.let_go(before);
        self.watching.become_like(watching);
        self.program_changed();
        Ok(())
    }

    /// Runs again what ran before the last swap, with what was learnt and counted meanwhile. False if that
    /// is not kept any more.
    pub fn roll_back(&mut self, now: Nanos, out: &mut Outputs) -> bool {
        let Some(mut previous) = self.previous.take() else { return false };
        self.sort_happenings();
        let done = self.enforcer.exchange(&mut previous, now, out);
        self.watching.become_like(watching::Watching::of(self.enforcer.program()));
        self.program_changed();
        self.let_go(Some(previous));
        done
    }

    /// From now on programs that are over are not freed here, which takes as long as they are large, but wait to be
    /// [taken](Element::take_gone).
    pub fn keep_gone(&mut self) {
        self.gone.get_or_insert_default();
    }

    /// Programs that are over.
    pub fn take_gone(&mut self) -> Vec<E::Prepared> {
        self.gone.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn let_go(&mut self, program: Option<E::Prepared>) {
        if let Some(gone) = &mut self.gone {
            gone.extend(program);
        }
    }

    /// Says that its ports do not tell when the kernel got frames, since no program wanted that when they were
    /// opened: one that wants it is refused from now on.
    pub fn without_arrivals(&mut self) {
        self.has_arrivals = false;
    }

    /// What another program is made ready by apart from this element.
    pub fn basis(&mut self) -> Basis<E> {
        self.generations += 1;
        let (generation, seed) = (self.generations, self.seed);
        let (shell, has_arrivals) = (self.enforcer.shell(), self.has_arrivals);
        Basis { shell, generation, seed, has_arrivals, of: PhantomData }
    }

    /// Forgets what ran before: the last swap is for good.
    pub fn settle(&mut self) {
        let before = self.previous.take();
        self.let_go(before);
    }

    /// Does some changes at once, for good: all of them or none.
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

    /// What stands at a path of an instance.
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

    /// A block by its name, to be told what agents know.
    pub(crate) fn block_mut(&mut self, name: &str) -> Option<&mut Lfb> {
        let instance = self.program().find(name)?;
        self.enforcer.block_mut(instance)
    }

    /// What went over a link, by its place in the program.
    pub fn link(&self, link: usize) -> Traffic {
        self.enforcer.link(link)
    }

    /// What a block let go no further.
    pub fn drops(&self, instance: usize) -> &Drops {
        self.enforcer.drops(instance)
    }

    /// Frames by what became of them.
    pub fn account(&self) -> Account {
        self.enforcer.account()
    }

    /// Says whether frames are to be forwarded: those that come while they are not are counted and
    /// dropped. An element that was just started forwards.
    pub fn set_forwarding(&mut self, forwards: bool) {
        self.forwards = forwards;
    }

    /// Whether frames are forwarded.
    pub fn is_forwarding(&self) -> bool {
        self.forwards
    }

    /// Forwards one frame, and says what happened to it block by block.
    pub fn trace(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
    ) -> Trace {
        let mut trace = Trace::default();
        self.enforcer.pass(port, frame, now, out, Watch::Trace(&mut trace));
        trace
    }

    /// Puts a frame with metadata into a block that has no inputs: RedirectIn, Inject.
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

    /// Says whether a port's link carries frames.
    pub fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        self.enforcer.set_link(port, up, now, out);
    }

    /// Has blocks, by class and number, tell their events although no watch of the program wants them;
    /// until others are given, whichever program runs.
    pub fn watch_also(&mut self, instances: BTreeSet<(u32, u32)>) {
        if self.watched_also != instances {
            self.watched_also = instances;
            self.set_watched();
        }
    }

    /// Says to each block whether somebody wants its events.
    fn set_watched(&mut self) {
        let program = self.enforcer.program().clone();
        for (at, instance) in program.instances.iter().enumerate() {
            let also = self.watched_also.contains(&(instance.class, instance.number));
            let source = crate::program::Source::Instance(at);
            let watched = also || program.watches.iter().any(|watch| watch.source == source);
            self.enforcer.set_watched(at, watched);
        }
    }

    /// The next frame that waits for a control element or an agent.
    pub fn next_told(&mut self) -> Option<ToldFrame> {
        self.enforcer.told().frames.pop_front()
    }

    /// The next frame that waits for somebody of whom `is_for` says so.
    pub fn next_told_to(&mut self, is_for: impl Fn(&ToldTo) -> bool) -> Option<ToldFrame> {
        let frames = &mut self.enforcer.told().frames;
        let at = frames.iter().position(|frame| is_for(&frame.to))?;
        frames.remove(at)
    }

    /// Sorts what happened by who is to be told.
    fn sort_happenings(&mut self) {
        while let Some(happening) = self.enforcer.told().happenings.pop_front() {
            let told = news::happening(self.enforcer.program(), &happening);
            let wanted = |it: &Told| self.watched_also.contains(&(it.class, it.instance));
            if let Some(told) = told.filter(wanted) {
                keep(&mut self.for_control, told, &mut self.happenings_lost);
            }
            if let Some(report) = self.watching.report(happening) {
                keep(&mut self.reports, report, &mut self.happenings_lost);
            }
        }
    }

    /// The next event of a block whose events [somebody wants](Element::watch_also) beside the program's
    /// watches.
    pub fn next_happening(&mut self) -> Option<Told> {
        self.sort_happenings();
        self.for_control.pop_front()
    }

    /// The next event that waits and that its watch wants told.
    pub fn next_report(&mut self) -> Option<Report> {
        self.sort_happenings();
        self.reports.pop_front()
    }
}

/// Adds what waits to be told, or counts it as lost if nobody takes any.
fn keep<T>(queue: &mut VecDeque<T>, what: T, lost: &mut u64) {
    match queue.len() < HAPPENINGS_MAX {
        true => queue.push_back(what),
        false => *lost += 1,
    }
}

impl<E: Enforcer> Forwarder for Element<E> {
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
        sights: [&[Sight<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        match &mut self.observing {
            None if self.forwards => self.enforcer.decide(port, sights, now, decisions),
            Some(observing) if self.forwards && !observing.wants(port, now) => {
                observing.pass_by(sights[0].len());
                self.enforcer.decide(port, sights, now, decisions)
            }
            // All of them come to be forwarded, and are counted or looked at there.
            _ => self.enforcer.leave(),
        }
    }

    fn resume(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.enforcer.resume(frames, now, out);
    }

    fn rewrites(&self) -> bool {
        self.enforcer.rewrites()
    }

    fn grows(&self, place: usize) -> isize {
        self.enforcer.grows(place)
    }

    fn rewrite(&mut self, place: usize, head: &mut [u8], bytes: usize) -> usize {
        self.enforcer.rewrite(place, head, bytes)
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.enforcer.tick(now, out)
    }
}
