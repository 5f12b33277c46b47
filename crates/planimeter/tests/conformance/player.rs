//! Plays a case on a subject: runs each step, and compares the result with the expectation, frame
//! by frame and message by message.
//!
//! After each command it waits for a barrier reply, so that errors are known; after each frame it
//! waits until the subject is quiet. An unexpected frame or message fails the case, and so does a
//! missing one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use openflow::header::Xid;
use openflow::model::table::features::TableFeatures;
use openflow::model::{BundleFlags, Message, SwitchConfig};
use openflow::version::Version;

use crate::case::{Case, Do, Expect, Step};
use crate::connection::{Controller, PlainChannel};
use crate::features;
use crate::judge::{Outcome, compare};
use crate::orders::{PortChange, clearing};
use crate::subject::Subject;

/// Turns after which a simulated switch is idle.
pub const TURNS: usize = 12;

/// Turns after which a reply is late: long control work takes many turns.
const REPLY_TURNS: usize = 1000;

/// The connection that a case begins on.
const FIRST: &str = "c1";

/// Number of cases played so far.
static PLAYS: AtomicU64 = AtomicU64::new(0);

/// Returns the first generation ID of this play, which is above any earlier one.
pub fn generation_base() -> u64 {
    PLAYS.load(Ordering::Relaxed) * 100
}

/// Plays a case in one version; an error names the line and the result.
pub fn play(case: &Case, version: Version, subject: &mut dyn Subject) -> Result<(), String> {
    let mut player = Player {
        subject,
        controllers: BTreeMap::new(),
        plain: None,
        frames: Vec::new(),
        bundle_flags: BundleFlags::NONE,
        ports_changed: Vec::new(),
        tables_told: Vec::new(),
        at: FIRST.to_owned(),
    };
    PLAYS.fetch_add(1, Ordering::Relaxed);
    player.connect(FIRST, version)?;
    player.clear(version)?;
    let outcome = case.steps.iter().try_for_each(|step| {
        let place = format!("{}:{}: {}", case.file, step.line, step.text);
        player.step(step, version).map_err(|why| format!("{place}\n    {why}"))
    });
    player.leave(version)?;
    outcome
}

/// A case in progress.
pub struct Player<'a> {
    pub subject: &'a mut dyn Subject,
    pub controllers: BTreeMap<String, Controller>,
    pub plain: Option<PlainChannel>,
    /// Frames that left and that no step has consumed.
    frames: Vec<(u32, Vec<u8>)>,
    pub bundle_flags: BundleFlags,
    /// Ports with changed settings, to be restored at the end.
    pub ports_changed: Vec<u32>,
    /// Original table features, to be restored at the end.
    pub tables_told: Vec<TableFeatures>,
    /// The current connection.
    pub at: String,
}

/// Expected amount of results.
#[derive(Default)]
struct Awaited {
    frames: usize,
    messages: usize,
    kinds: usize,
    /// Nothing may arrive; what a barrier does not show can be checked later.
    nothing: bool,
}

impl Player<'_> {
    /// Connects as a controller of this name, which becomes the current one.
    pub fn connect(&mut self, name: &str, version: Version) -> Result<(), String> {
        let channel = self.subject.connect()?;
        let controller = Controller::new(channel, version, self.subject.now());
        self.controllers.insert(name.to_owned(), controller);
        self.at = name.to_owned();
        let up = |player: &mut Self| {
            let controller = &player.controllers[&player.at];
            controller.session.version().is_some() || controller.down
        };
        self.until("the session comes up", up)?;
        match self.controllers[name].down {
            true => Err(format!("{} does not speak OpenFlow {version}", self.subject.name())),
            // By default Open vSwitch sends no asynchronous messages on connections that it
            // accepted. After the barrier the switch knows that the session is up.
            false => {
                let miss_send_bytes = 128;
                let config = SwitchConfig { miss_send_bytes, ..SwitchConfig::default() };
                self.order(&Message::SetConfig(config))
            }
        }
    }

    /// Runs the subject until `done`, with a time limit.
    fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let since = self.subject.now();
        for turn in 0.. {
            self.turn();
            if done(self) {
                return Ok(());
            }
            if turn >= REPLY_TURNS && self.subject.is_late(since) {
                break;
            }
        }
        Err(format!("timeout while waiting until {what}"))
    }

    /// Runs the subject for one turn, and reads all connections.
    pub fn turn(&mut self) {
        self.subject.turn(&mut self.frames);
        let now = self.subject.now();
        for controller in self.controllers.values_mut() {
            controller.turn(now);
        }
        if let Some(plain) = &mut self.plain {
            plain.turn();
        }
    }

    /// Removes state that an earlier case may have left in a reused subject.
    fn clear(&mut self, version: Version) -> Result<(), String> {
        if self.subject.is_spent() {
            return Ok(());
        }
        for message in clearing(version) {
            self.send(&message)?;
        }
        self.barrier()?;
        self.settle(Awaited::default());
        for controller in self.controllers.values_mut() {
            controller.came.clear();
        }
        Ok(())
    }

    /// Restores ports and tables.
    fn leave(&mut self, version: Version) -> Result<(), String> {
        if self.subject.is_spent() {
            return Ok(());
        }
        let changed = std::mem::take(&mut self.ports_changed);
        let tables = std::mem::take(&mut self.tables_told);
        if !changed.is_empty() || !tables.is_empty() {
            // The others may be slaves by now.
            self.connect("leaving", version)?;
        }
        for number in changed {
            self.act(&Do::PortMod(PortChange::none(number)), version)?;
        }
        if !tables.is_empty() {
            self.clear(version)?;
            self.order_in_parts(&features::in_parts(&tables))?;
        }
        Ok(())
    }

    /// Returns the current connection.
    pub fn here(&mut self) -> &mut Controller {
        self.controllers.get_mut(&self.at).expect("only known connections are chosen")
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Message) -> Result<Xid, String> {
        let now = self.subject.now();
        self.here().session.send(message, now).map_err(|error| error.to_string())
    }

    /// Sends a barrier and waits for its reply, or for the end of the connection.
    pub fn barrier(&mut self) -> Result<(), String> {
        if self.here().down {
            return Ok(());
        }
        let xid = self.send(&Message::BarrierRequest)?;
        self.until("the barrier is answered", move |player| {
            let here = player.here();
            let place = here
                .came
                .iter()
                .position(|(of, message)| *of == xid && *message == Message::BarrierReply);
            if let Some(place) = place {
                here.came.remove(place);
            }
            place.is_some() || here.down
        })
    }

    /// Runs the subject until it is quiet, longer if less than the expected amount has arrived.
    fn settle(&mut self, awaited: Awaited) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut seen, mut since) = (0, self.subject.now());
        for turn in 0.. {
            self.turn();
            let waiting = self.here().came.len();
            let kinds = self.plain.as_ref().map_or(0, PlainChannel::count);
            let count: usize = self.controllers.values().map(|one| one.count).sum();
            let progress = self.frames.len() + count + kinds;
            if progress != seen {
                (seen, since) = (progress, self.subject.now());
            }
            let less = self.frames.len() < awaited.frames
                || waiting < awaited.messages
                || kinds < awaited.kinds;
            if turn >= TURNS && (awaited.nothing || self.subject.is_quiet(since, less)) {
                break;
            }
        }
        outcome.frames = std::mem::take(&mut self.frames);
        outcome.messages = self.here().came.drain(..).map(|(_, message)| message).collect();
        if let Some(plain) = &mut self.plain {
            let kinds = plain.take_kinds().into_iter();
            outcome.kinds = kinds.filter(|name| name != "controller_status").collect();
        }
        outcome
    }

    fn step(&mut self, step: &Step, version: Version) -> Result<(), String> {
        self.act(&step.what, version)?;
        let frames = step.expect.iter().filter(|one| matches!(one, Expect::Frame { .. })).count();
        let kinds = step.expect.iter().filter(|one| matches!(one, Expect::Kind(_))).count();
        let rows = |one: &&Expect| matches!(one, Expect::Rows(_) | Expect::Row(_));
        let replies = usize::from(step.expect.iter().any(|one| rows(&one)));
        let single = |one: &&Expect| matches!(one, Expect::Message { .. });
        let messages = step.expect.iter().filter(single).count() + replies;
        let is_order = !matches!(step.what, Do::Frame { .. } | Do::Become { .. } | Do::Put(_));
        let nothing = is_order && step.expect.is_empty();
        let mut outcome = self.settle(Awaited { frames, messages, kinds, nothing });
        outcome.down = match step.what {
            Do::Plain | Do::Put(_) => self.plain.as_ref().is_some_and(|plain| plain.down),
            _ => self.here().down,
        };
        compare(&step.expect, outcome)
    }
}
