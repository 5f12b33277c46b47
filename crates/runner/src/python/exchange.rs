//! Exchange with a Python process: batches of events, and the reply to each batch.
//!
//! The next batch is sent when the last one has its reply and an urgent event is queued. Frames may
//! wait as long as the module permits; all other events are urgent. In real time a timer polls for
//! replies and nothing blocks; in virtual time every batch waits for its reply. Invariant: the
//! queue to Python is bounded ([`PYTHON_EVENTS_MAX`], [`PYTHON_BYTES_MAX`]); events beyond are
//! counted and reported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use packet::time::Nanos;
use serde_json::{Value, json};
use testbed::RunFolder;
use testbed::pipe_process::{PipeProcess, TalkError};
use tester::module::{Event, EventKind, ModuleContext, TimerId};

use super::commands::{self, Names};
use super::events;
use super::script::{PYTHON_START, ScriptFault};

/// Limit of events in the queue to Python.
pub const PYTHON_EVENTS_MAX: usize = 1 << 16;

/// Size limit of the queue to Python, in bytes.
pub const PYTHON_BYTES_MAX: usize = 32 << 20;

/// This many events form a batch although frames may wait longer.
const BATCH_EVENTS: usize = 512;

/// Interval at which a reply is polled for in real time.
pub const POLL_NS: Nanos = Nanos::from_micros(50);

/// Preferences of a module for its events.
#[derive(Debug, Clone, Copy)]
pub struct EventPreferences {
    /// How long frames may wait for a larger batch.
    pub frames_wait: Nanos,
    /// Whether frame events contain the frame's bytes.
    pub frame_data: bool,
    /// Time limit for a reply.
    pub answer: Duration,
}

/// Cost of the exchange.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Events sent.
    pub events: u64,
    /// Batches sent.
    pub batches: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Total time in which a reply was pending while the event loop continued.
    pub answer_ns_total: u64,
    /// The longest such time.
    pub answer_ns_longest: u64,
    /// CPU time of the process.
    pub cpu_ns: Option<u64>,
}

/// A process that receives events.
pub struct Exchange {
    path: PathBuf,
    talk: PipeProcess,
    /// Removed when the process has ended.
    _folder: RunFolder,
    waiting: Vec<u8>,
    waiting_events: usize,
    waiting_since: Nanos,
    /// Whether an urgent event is queued.
    is_urgent: bool,
    /// When the batch with a pending reply was sent.
    asked: Option<Nanos>,
    /// The timer of the next poll.
    timer: Option<TimerId>,
    wants: EventPreferences,
    names: Names,
    is_simulated: bool,
    costs: Costs,
    fault: Option<ScriptFault>,
}

impl Exchange {
    /// Creates the exchange with a process that was just started.
    pub fn new(path: &Path, talk: PipeProcess, folder: RunFolder) -> Exchange {
        let wants =
            EventPreferences { frames_wait: Nanos::ZERO, frame_data: false, answer: PYTHON_START };
        Exchange {
            path: path.into(),
            talk,
            _folder: folder,
            waiting: Vec::new(),
            waiting_events: 0,
            waiting_since: Nanos::ZERO,
            is_urgent: false,
            asked: None,
            timer: None,
            wants,
            names: Names::default(),
            is_simulated: false,
            costs: Costs::default(),
            fault: None,
        }
    }

    /// Creates the class in Python before any clock runs; returns its needs.
    pub fn introduce(&mut self, init: &Value) -> Result<Value, ScriptFault> {
        self.talk.say(format!("{}\n[\"batch\",0]\n", json!(["init", init])).as_bytes());
        let mut needs = Value::Null;
        loop {
            let line = self.wait_line("PYTHON_START", PYTHON_START)?;
            let (at, mut row) = ScriptFault::checked(&self.path, &line)?;
            match row.first().and_then(Value::as_str) {
                Some("needs") if row.len() == 2 => needs = row.remove(1),
                Some("done") => return Ok(needs),
                _ => return Err(self.said(at, "unexpected output before the first event".into())),
            }
        }
    }

    /// Sets the module's preferences.
    pub fn wants(&mut self, wants: EventPreferences) {
        self.wants = wants;
    }

    /// Queues an event and continues.
    pub fn react(
        &mut self,
        event: &Event<'_>,
        context: &mut ModuleContext,
    ) -> Result<(), ScriptFault> {
        if self.fault.is_some() {
            return Ok(());
        }
        let looks = match event.what {
            EventKind::Timer(timer) if self.timer == Some(timer) => {
                self.timer = None;
                true
            }
            _ => {
                self.hear(event, context);
                false
            }
        };
        let went = self.go_on(looks, context);
        self.fault = went.as_ref().err().cloned();
        went
    }

    /// Sends the end of the module, and executes its last commands.
    pub fn finish(
        &mut self,
        reason: Value,
        context: &mut ModuleContext,
    ) -> Result<(), ScriptFault> {
        if self.fault.is_some() {
            return Ok(());
        }
        let row = json!(["finish", context.now().0, reason]);
        self.waiting.extend_from_slice(format!("{row}\n").as_bytes());
        self.waiting_events += 1;
        let mut went = Ok(());
        while went.is_ok() && (self.asked.is_some() || self.waiting_events > 0) {
            if self.asked.is_none() {
                self.ask(context);
            }
            went = self.await_answer(context);
        }
        self.fault = went.as_ref().err().cloned();
        went
    }

    /// Ends the process.
    pub fn end(&mut self, patience: Duration) {
        self.costs.cpu_ns = self.talk.cpu_time().map(|time| time.as_nanos() as u64);
        self.costs.bytes = self.talk.bytes().iter().sum();
        // Its exit status carries no information, because the process was requested to exit.
        let _ = self.talk.end(patience);
    }

    /// Returns its output, and the number of lost bytes of output.
    pub fn printed(&mut self) -> (String, u64) {
        self.talk.take_print()
    }

    /// Returns the fault, if there was one.
    pub fn fault(&self) -> Option<&ScriptFault> {
        self.fault.as_ref()
    }

    /// Returns the cost.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Returns whether time is virtual.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Appends an event to the queue.
    fn hear(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        if let EventKind::Start(facts) = event.what {
            self.is_simulated = facts.is_simulated;
            self.names.begin(facts);
        }
        let is_limit = matches!(event.what, EventKind::LimitReached(_));
        if self.waiting_events >= PYTHON_EVENTS_MAX && !is_limit {
            return context.count_left_out("PYTHON_EVENTS_MAX", 1);
        }
        if self.waiting.len() >= PYTHON_BYTES_MAX && !is_limit {
            return context.count_left_out("PYTHON_BYTES_MAX", 1);
        }
        if self.waiting_events == 0 {
            self.waiting_since = context.now();
        }
        self.waiting_events += 1;
        self.is_urgent |= !matches!(event.what, EventKind::Frame(_));
        events::write(&mut self.waiting, event, &mut self.names, self.wants.frame_data);
    }

    /// Advances the exchange; polls for the reply if `looks` is set.
    fn go_on(&mut self, looks: bool, context: &mut ModuleContext) -> Result<(), ScriptFault> {
        loop {
            match self.asked {
                Some(_) if self.is_simulated => self.await_answer(context)?,
                Some(since) if looks => {
                    if !self.take_answer(context)? {
                        let waited = context.now().since(since);
                        if u128::from(waited.0) > self.wants.answer.as_nanos() {
                            return Err(self.blocked());
                        }
                        break;
                    }
                }
                None if self.is_due(context.now()) => self.ask(context),
                _ => break,
            }
        }
        self.set_timer(context);
        Ok(())
    }

    /// Returns whether the queue is to be sent now.
    fn is_due(&self, now: Nanos) -> bool {
        let waited = now.since(self.waiting_since);
        let is_time = self.waiting_events >= BATCH_EVENTS || waited >= self.wants.frames_wait;
        self.waiting_events > 0 && (self.is_urgent || is_time)
    }

    /// Sends the queue as a batch.
    fn ask(&mut self, context: &mut ModuleContext) {
        self.costs.batches += 1;
        self.costs.events += self.waiting_events as u64;
        self.waiting.extend_from_slice(format!("[\"batch\",{}]\n", self.costs.batches).as_bytes());
        self.talk.say(&self.waiting);
        self.waiting.clear();
        (self.waiting_events, self.is_urgent) = (0, false);
        self.asked = Some(context.now());
        if let Some(timer) = self.timer.take() {
            context.cancel(timer);
        }
        if !self.is_simulated {
            // An error here shows up when the reply is polled for.
            let _ = self.talk.turn();
        }
    }

    /// Sets the timer of the next poll.
    fn set_timer(&mut self, context: &mut ModuleContext) {
        if self.timer.is_some() {
            return;
        }
        let due = match self.asked {
            Some(_) => Some(context.now().saturating_add(POLL_NS)),
            None if self.waiting_events > 0 => {
                Some(self.waiting_since.saturating_add(self.wants.frames_wait))
            }
            None => None,
        };
        self.timer = due.map(|due| context.timer_at(due));
    }

    /// Waits for the reply.
    fn await_answer(&mut self, context: &mut ModuleContext) -> Result<(), ScriptFault> {
        let limit = self.wants.answer;
        loop {
            let line = self.wait_line("PYTHON_ANSWER", limit)?;
            if self.carry_out(&line, context)? {
                return Ok(());
            }
        }
    }

    /// Takes the lines of the reply that arrived; returns whether it is complete.
    fn take_answer(&mut self, context: &mut ModuleContext) -> Result<bool, ScriptFault> {
        let turned = self.talk.turn();
        turned.map_err(|error| self.gone(error))?;
        loop {
            let line = self.talk.line();
            match line.map_err(|error| self.gone(error))? {
                None => return Ok(false),
                Some(line) => {
                    if self.carry_out(&line, context)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Executes a line; returns whether it ends the reply.
    fn carry_out(&mut self, line: &[u8], context: &mut ModuleContext) -> Result<bool, ScriptFault> {
        let (at, row) = ScriptFault::checked(&self.path, line)?;
        if row.first().and_then(Value::as_str) == Some("done") {
            if let Some(since) = self.asked.take() {
                let took = context.now().since(since).0;
                self.costs.answer_ns_total += took;
                self.costs.answer_ns_longest = self.costs.answer_ns_longest.max(took);
            }
            return Ok(true);
        }
        commands::carry_out(&row, &mut self.names, context).map_err(|why| self.said(at, why))?;
        Ok(false)
    }

    fn wait_line(&mut self, name: &'static str, limit: Duration) -> Result<Vec<u8>, ScriptFault> {
        match self.talk.wait_line(limit) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(ScriptFault::blocked(&self.path, name, limit, &mut self.talk)),
            Err(error) => Err(self.gone(error)),
        }
    }

    fn blocked(&mut self) -> ScriptFault {
        ScriptFault::blocked(&self.path, "PYTHON_ANSWER", self.wants.answer, &mut self.talk)
    }

    fn said(&self, line: Option<u64>, why: String) -> ScriptFault {
        ScriptFault::Said { path: self.path.clone(), line, why }
    }

    fn gone(&mut self, error: TalkError) -> ScriptFault {
        match error {
            TalkError::Over => ScriptFault::left(&self.path, &mut self.talk),
            other => self.said(None, format!("unreadable output: {other}")),
        }
    }
}
