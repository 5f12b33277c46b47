//! How a switch that somebody else started is reached: at its address, or when it calls.
//!
//! Whoever speaks to it calls its ports 1, 2, 3 in the order of their cables, whatever numbers they have.
//! A switch that calls has one connection at a time. Whoever wants one to begin anew gives the last one up
//! and waits for the next call; calls that came meanwhile may be dead by then and are not answered.
//! Invariant: every wait has an end, and Ctrl-C ends it too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use instrument::controller::{ControlError, Controller, RealTime, Settings};
use openflow::session;
use openflow::version::{End, Version};
use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Connecting, Listener, Tls, Url};
use ports::clock;

use super::Said;
use super::renumbered::Numbering;

/// How long a switch may take for some progress with what it was told.
const REPLY_TIMEOUT: Nanos = Nanos::from_secs(60);

/// One attempt to connect.
const ATTEMPT: Nanos = Nanos::from_secs(5);

/// Time between attempts, and between looks for a call.
const PAUSE: Nanos = Nanos::from_millis(50);

/// How often a connection that is held is looked after.
const KEEP_INTERVAL: Nanos = Nanos::from_millis(250);

/// The way to a switch.
pub struct Reach {
    url: Url,
    tls: Option<Tls>,
    listener: Option<Listener>,
    /// What the switch's ports are called, where that is not what it calls them.
    numbering: Option<Arc<Numbering>>,
    patience: Nanos,
    stop: Arc<AtomicBool>,
}

impl Reach {
    /// A way that is ready to be gone; where the switch calls, it is listened from now on.
    pub fn open(
        said: &Said,
        patience: Nanos,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Reach>, ChannelError> {
        let Some(url) = said.url.clone() else { return Ok(None) };
        let tls = if said.files.is_empty() { None } else { Some(Tls::load(&said.files)?) };
        let listener = match url.is_passive() {
            true => Some(Listener::open_with(&url, tls.as_ref())?),
            false => Tls::check(tls.as_ref(), &url).map(|()| None)?,
        };
        let numbers: Vec<u32> = said.ports.iter().map(|(number, _)| *number).collect();
        let (numbering, stop) = (Numbering::of(&numbers), Arc::clone(stop));
        Ok(Some(Reach { url, tls, listener, numbering, patience, stop }))
    }

    /// As the user wrote it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What connections over TLS are made from.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Whether the switch connects to us.
    pub fn is_called(&self) -> bool {
        self.listener.is_some()
    }

    /// The switch's number of a port that is called so here.
    pub fn there(&self, here: u32) -> u32 {
        self.numbering.as_ref().map_or(here, |numbering| numbering.there(here))
    }

    /// A channel on which the switch's ports are called 1, 2, 3 in the order of their cables.
    pub fn around(&self, channel: Box<dyn Channel>) -> Box<dyn Channel> {
        match &self.numbering {
            Some(numbering) => numbering.around(channel),
            None => channel,
        }
    }

    /// The next call, without waiting; none where the switch is to be called.
    pub fn accept(&mut self) -> Result<Option<Box<dyn Channel>>, ChannelError> {
        let called = self.listener.as_mut().map_or(Ok(None), Listener::accept)?;
        Ok(called.map(|channel| self.around(channel)))
    }

    /// A new connection, waited for.
    pub fn channel(&mut self) -> Result<Box<dyn Channel>, ControlError> {
        let deadline = clock::now().saturating_add(self.patience);
        // What called while nobody answered may have hung up.
        while self.accept()?.is_some() {}
        self.channel_until(deadline)
    }

    fn channel_until(&mut self, deadline: Nanos) -> Result<Box<dyn Channel>, ControlError> {
        loop {
            let (url, is_called) = (self.url.clone(), self.is_called());
            let failed = match is_called {
                true => match self.accept()? {
                    Some(channel) => return Ok(channel),
                    None => ControlError::Nobody(url),
                },
                false => {
                    let left = deadline.since(clock::now()).min(ATTEMPT);
                    match Connecting::wait_with(&url, self.tls.as_ref(), left) {
                        Ok(channel) => return Ok(self.around(channel)),
                        Err(error) => error.into(),
                    }
                }
            };
            let now = clock::now();
            if now >= deadline || self.stop.load(Ordering::Relaxed) {
                return Err(failed);
            }
            clock::sleep_until(now.saturating_add(PAUSE).min(deadline));
        }
    }

    /// A controller on a new connection that offers these versions. A connection that is lost while the two
    /// greet each other is made again, as long as there is time.
    pub fn controller(&mut self, versions: &[Version]) -> Result<Controller, ControlError> {
        let deadline = clock::now().saturating_add(self.patience);
        while self.accept()?.is_some() {}
        loop {
            let channel = self.channel_until(deadline)?;
            let started = Controller::start(channel, settings(versions), &mut RealTime::default());
            match started {
                Err(ControlError::Channel(error)) => {
                    if clock::now() >= deadline || self.stop.load(Ordering::Relaxed) {
                        return Err(error.into());
                    }
                    clock::sleep_until(clock::now().saturating_add(PAUSE));
                }
                started => return started,
            }
        }
    }
}

/// How a controller talks to a switch of which nothing is known.
fn settings(versions: &[Version]) -> Settings {
    let mut session = session::Settings::new(End::Controller);
    session.versions = versions.to_vec();
    session.hello_timeout = ATTEMPT;
    Settings { session, reply_timeout: REPLY_TIMEOUT, ..Settings::new() }
}

/// A connection that is held while frames are sent, so that the switch does not take its controller for
/// lost and go on by itself.
pub struct Kept {
    thread: JoinHandle<Option<Controller>>,
    end: Arc<AtomicBool>,
}

impl Kept {
    /// Has a thread answer what the switch asks.
    pub fn keep(mut controller: Controller) -> Kept {
        let end = Arc::new(AtomicBool::new(false));
        let wanted = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            while !wanted.load(Ordering::Relaxed) {
                controller.turn(clock::now()).ok()?;
                controller.take_unasked();
                clock::sleep_until(clock::now().saturating_add(KEEP_INTERVAL));
            }
            Some(controller)
        });
        Kept { thread, end }
    }

    /// The connection, if it still stands.
    pub fn take(self) -> Option<Controller> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("a thread that answers echoes does not panic")
    }
}
