//! What passes between a stage and a process: events in batches, one batch at a time, and its answer.
//!
//! A batch is handed over as soon as the one before is answered and there is something that may not wait:
//! frames may, for as long as the module says, everything else may not. In real time answers are looked
//! for by a timer and nothing ever waits; in virtual time every batch waits for its answer. Invariant:
//! what waits for Python is bounded ([`PYTHON_EVENTS_MAX`], [`PYTHON_BYTES_MAX`]); what is beyond is counted
//! and told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use instrument::module::{Desk, Event, TimerId, What};
use lab::RunFolder;
use lab::talk::{Talk, TalkError};
use packet::time::Nanos;
use serde_json::{Value, json};

use super::commands::{self, Names};
use super::events;
use super::script::{Fault, PYTHON_START};

/// Events that may wait for Python.
pub const PYTHON_EVENTS_MAX: usize = 1 << 16;

/// Bytes of events that may wait for Python.
pub const PYTHON_BYTES_MAX: usize = 32 << 20;

/// So many events are told although they may wait for others.
const BATCH_EVENTS: usize = 512;

/// How often an answer is looked for in real time.
pub const POLL_NS: Nanos = Nanos::from_micros(50);

/// How a module wants to be told.
#[derive(Debug, Clone, Copy)]
pub struct Wants {
    /// How long frames may wait for others.
    pub frames_wait: Nanos,
    /// Whether frames are told with their bytes.
    pub frame_data: bool,
    /// How long an answer may take.
    pub answer: Duration,
}

/// What a conversation cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Events that were told.
    pub events: u64,
    /// Batches of them.
    pub batches: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Time in which an answer was waited for, the stage going on.
    pub answer_ns_total: u64,
    /// The longest such time.
    pub answer_ns_longest: u64,
    /// Time that the process ran on a core.
    pub cpu_ns: Option<u64>,
}

/// A process that is told events.
pub struct Conversation {
    path: PathBuf,
    talk: Talk,
    /// Removed when the process is gone.
    _folder: RunFolder,
    waiting: Vec<u8>,
    waiting_events: usize,
    waiting_since: Nanos,
    /// Something waits that may not.
    is_urgent: bool,
    /// When the batch was handed over whose answer is due.
    asked: Option<Nanos>,
    /// When this is looked after again.
    timer: Option<TimerId>,
    wants: Wants,
    names: Names,
    is_simulated: bool,
    costs: Costs,
    fault: Option<Fault>,
}

impl Conversation {
    /// With a process that was just started.
    pub fn new(path: &Path, talk: Talk, folder: RunFolder) -> Conversation {
        let wants = Wants { frames_wait: Nanos::ZERO, frame_data: false, answer: PYTHON_START };
        Conversation {
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

    /// Has the class be made, before any clock runs; what it needs.
    pub fn introduce(&mut self, init: &Value) -> Result<Value, Fault> {
        self.talk.say(format!("{}\n[\"batch\",0]\n", json!(["init", init])).as_bytes());
        let mut needs = Value::Null;
        loop {
            let line = self.wait_line("PYTHON_START", PYTHON_START)?;
            let (at, mut row) = Fault::checked(&self.path, &line)?;
            match row.first().and_then(Value::as_str) {
                Some("needs") if row.len() == 2 => needs = row.remove(1),
                Some("done") => return Ok(needs),
                _ => return Err(self.said(at, "something before it was told anything".into())),
            }
        }
    }

    /// How it wants to be told.
    pub fn wants(&mut self, wants: Wants) {
        self.wants = wants;
    }

    /// Takes an event and goes on.
    pub fn react(&mut self, event: &Event<'_>, desk: &mut Desk) -> Result<(), Fault> {
        if self.fault.is_some() {
            return Ok(());
        }
        let looks = match event.what {
            What::Timer(timer) if self.timer == Some(timer) => {
                self.timer = None;
                true
            }
            _ => {
                self.hear(event, desk);
                false
            }
        };
        let went = self.go_on(looks, desk);
        self.fault = went.as_ref().err().cloned();
        went
    }

    /// Tells that it is over, and hears its last words.
    pub fn finish(&mut self, reason: Value, desk: &mut Desk) -> Result<(), Fault> {
        if self.fault.is_some() {
            return Ok(());
        }
        let row = json!(["finish", desk.now().0, reason]);
        self.waiting.extend_from_slice(format!("{row}\n").as_bytes());
        self.waiting_events += 1;
        let mut went = Ok(());
        while went.is_ok() && (self.asked.is_some() || self.waiting_events > 0) {
            if self.asked.is_none() {
                self.ask(desk);
            }
            went = self.await_answer(desk);
        }
        self.fault = went.as_ref().err().cloned();
        went
    }

    /// Ends the process.
    pub fn end(&mut self, patience: Duration) {
        self.costs.cpu_ns = self.talk.cpu_time().map(|time| time.as_nanos() as u64);
        self.costs.bytes = self.talk.bytes().iter().sum();
        // How it ended says nothing any more: it was told to.
        let _ = self.talk.end(patience);
    }

    /// What it printed, and how many bytes of that are lost.
    pub fn printed(&mut self) -> (String, u64) {
        self.talk.take_print()
    }

    /// What went wrong, if something did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// What it cost.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Whether time is virtual.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Puts an event behind those that wait.
    fn hear(&mut self, event: &Event<'_>, desk: &mut Desk) {
        if let What::Start(facts) = event.what {
            self.is_simulated = facts.is_simulated;
            self.names.begin(facts);
        }
        let is_limit = matches!(event.what, What::LimitReached(_));
        if self.waiting_events >= PYTHON_EVENTS_MAX && !is_limit {
            return desk.leave_out("PYTHON_EVENTS_MAX", 1);
        }
        if self.waiting.len() >= PYTHON_BYTES_MAX && !is_limit {
            return desk.leave_out("PYTHON_BYTES_MAX", 1);
        }
        if self.waiting_events == 0 {
            self.waiting_since = desk.now();
        }
        self.waiting_events += 1;
        self.is_urgent |= !matches!(event.what, What::Frame(_));
        events::write(&mut self.waiting, event, &mut self.names, self.wants.frame_data);
    }

    /// Does what there is to do; `looks` if the answer is to be looked for.
    fn go_on(&mut self, looks: bool, desk: &mut Desk) -> Result<(), Fault> {
        loop {
            match self.asked {
                Some(_) if self.is_simulated => self.await_answer(desk)?,
                Some(since) if looks => {
                    if !self.take_answer(desk)? {
                        let waited = desk.now().since(since);
                        if u128::from(waited.0) > self.wants.answer.as_nanos() {
                            return Err(self.blocked());
                        }
                        break;
                    }
                }
                None if self.is_due(desk.now()) => self.ask(desk),
                _ => break,
            }
        }
        self.set_timer(desk);
        Ok(())
    }

    /// Whether what waits is to be told now.
    fn is_due(&self, now: Nanos) -> bool {
        let waited = now.since(self.waiting_since);
        let is_time = self.waiting_events >= BATCH_EVENTS || waited >= self.wants.frames_wait;
        self.waiting_events > 0 && (self.is_urgent || is_time)
    }

    /// Hands over what waits.
    fn ask(&mut self, desk: &mut Desk) {
        self.costs.batches += 1;
        self.costs.events += self.waiting_events as u64;
        self.waiting.extend_from_slice(format!("[\"batch\",{}]\n", self.costs.batches).as_bytes());
        self.talk.say(&self.waiting);
        self.waiting.clear();
        (self.waiting_events, self.is_urgent) = (0, false);
        self.asked = Some(desk.now());
        if let Some(timer) = self.timer.take() {
            desk.cancel(timer);
        }
        if !self.is_simulated {
            // What goes wrong here shows when the answer is looked for.
            let _ = self.talk.turn();
        }
    }

    /// Has this looked after when there will be something to do.
    fn set_timer(&mut self, desk: &mut Desk) {
        if self.timer.is_some() {
            return;
        }
        let due = match self.asked {
            Some(_) => Some(desk.now().saturating_add(POLL_NS)),
            None if self.waiting_events > 0 => {
                Some(self.waiting_since.saturating_add(self.wants.frames_wait))
            }
            None => None,
        };
        self.timer = due.map(|due| desk.timer_at(due));
    }

    /// Waits for the answer.
    fn await_answer(&mut self, desk: &mut Desk) -> Result<(), Fault> {
        let limit = self.wants.answer;
        loop {
            let line = self.wait_line("PYTHON_ANSWER", limit)?;
            if self.carry_out(&line, desk)? {
                return Ok(());
            }
        }
    }

    /// Takes what has come of the answer; whether that was all of it.
    fn take_answer(&mut self, desk: &mut Desk) -> Result<bool, Fault> {
        let turned = self.talk.turn();
        turned.map_err(|error| self.gone(error))?;
        loop {
            let line = self.talk.line();
            match line.map_err(|error| self.gone(error))? {
                None => return Ok(false),
                Some(line) => {
                    if self.carry_out(&line, desk)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Does what a line says; whether it ends the answer.
    fn carry_out(&mut self, line: &[u8], desk: &mut Desk) -> Result<bool, Fault> {
        let (at, row) = Fault::checked(&self.path, line)?;
        if row.first().and_then(Value::as_str) == Some("done") {
            if let Some(since) = self.asked.take() {
                let took = desk.now().since(since).0;
                self.costs.answer_ns_total += took;
                self.costs.answer_ns_longest = self.costs.answer_ns_longest.max(took);
            }
            return Ok(true);
        }
        commands::carry_out(&row, &mut self.names, desk).map_err(|why| self.said(at, why))?;
        Ok(false)
    }

    fn wait_line(&mut self, name: &'static str, limit: Duration) -> Result<Vec<u8>, Fault> {
        match self.talk.wait_line(limit) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(Fault::blocked(&self.path, name, limit, &mut self.talk)),
            Err(error) => Err(self.gone(error)),
        }
    }

    fn blocked(&mut self) -> Fault {
        Fault::blocked(&self.path, "PYTHON_ANSWER", self.wants.answer, &mut self.talk)
    }

    fn said(&self, line: Option<u64>, why: String) -> Fault {
        Fault::Said { path: self.path.clone(), line, why }
    }

    fn gone(&mut self, error: TalkError) -> Fault {
        match error {
            TalkError::Over => Fault::left(&self.path, &mut self.talk),
            other => self.said(None, format!("what cannot be read: {other}")),
        }
    }
}
