//! Connections to a switch that the user started: to its address, or by waiting for its connection.
//!
//! Callers number its ports 1, 2, 3 in the order of their cables; the switch may number them
//! differently. A switch that connects to the tester has only one connection. To start a new one,
//! the caller closes the last one and waits for the next; connections that arrived in the meantime
//! may be dead and are discarded.
//!
//! Invariant: every wait has a time limit, and Ctrl-C ends it too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use channel::{Channel, ChannelError, Connecting, Listener, Tls, Url};
use openflow::session;
use openflow::version::{End, Version};
use os::clock;
use packet::time::Nanos;
use tester::controller::{ControlError, Controller, RealTime, Settings};

use super::DeviceSpec;
use super::port_mapping::PortMap;

/// Time limit for progress with a switch's requests.
const REPLY_TIMEOUT: Nanos = Nanos::from_secs(60);

/// Time limit of one connection attempt.
const ATTEMPT: Nanos = Nanos::from_secs(5);

/// Interval between attempts, and between checks for a new connection.
const PAUSE: Nanos = Nanos::from_millis(50);

/// Interval at which an open connection is served.
const KEEP_INTERVAL: Nanos = Nanos::from_millis(250);

/// The way to connect to a switch.
pub struct ConnectMethod {
    url: Url,
    tls: Option<Tls>,
    listener: Option<Listener>,
    /// Numbering of the switch's ports, where it differs from 1, 2, 3.
    numbering: Option<Arc<PortMap>>,
    patience: Nanos,
    stop: Arc<AtomicBool>,
}

impl ConnectMethod {
    /// Prepares connections; if the switch connects to the tester, it listens from now on.
    pub fn open(
        said: &DeviceSpec,
        patience: Nanos,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<ConnectMethod>, ChannelError> {
        let Some(url) = said.url.clone() else { return Ok(None) };
        let tls = if said.files.is_empty() { None } else { Some(Tls::load(&said.files)?) };
        let listener = match url.is_passive() {
            true => Some(Listener::open_with(&url, tls.as_ref())?),
            false => Tls::check(tls.as_ref(), &url).map(|()| None)?,
        };
        let numbers: Vec<u32> = said.ports.iter().map(|(number, _)| *number).collect();
        let (numbering, stop) = (PortMap::of(&numbers), Arc::clone(stop));
        Ok(Some(ConnectMethod { url, tls, listener, numbering, patience, stop }))
    }

    /// Returns the address as the user wrote it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the TLS settings of its connections.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Returns whether the switch connects to the tester.
    pub fn is_called(&self) -> bool {
        self.listener.is_some()
    }

    /// Returns the switch's number of a port, from its number here.
    pub fn there(&self, here: u32) -> u32 {
        self.numbering.as_ref().map_or(here, |numbering| numbering.there(here))
    }

    /// Wraps a channel so that the switch's ports are 1, 2, 3 in the order of their cables.
    pub fn around(&self, channel: Box<dyn Channel>) -> Box<dyn Channel> {
        match &self.numbering {
            Some(numbering) => numbering.around(channel),
            None => channel,
        }
    }

    /// Accepts the next connection without waiting; `None` if the tester connects to the switch.
    pub fn accept(&mut self) -> Result<Option<Box<dyn Channel>>, ChannelError> {
        let called = self.listener.as_mut().map_or(Ok(None), Listener::accept)?;
        Ok(called.map(|channel| self.around(channel)))
    }

    /// Waits for a new connection.
    pub fn channel(&mut self) -> Result<Box<dyn Channel>, ControlError> {
        let deadline = clock::now().saturating_add(self.patience);
        // Connections that arrived earlier may be closed by now.
        while self.accept()?.is_some() {}
        self.channel_until(deadline)
    }

    fn channel_until(&mut self, deadline: Nanos) -> Result<Box<dyn Channel>, ControlError> {
        loop {
            let (url, is_called) = (self.url.clone(), self.is_called());
            let failed = match is_called {
                true => match self.accept()? {
                    Some(channel) => return Ok(channel),
                    None => ControlError::NotConnected(url),
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

    /// Opens a controller on a new connection that offers these versions. If the connection is lost
    /// during the handshake, it retries as long as there is time.
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

/// Returns the controller settings for an unknown switch.
fn settings(versions: &[Version]) -> Settings {
    let mut session = session::Settings::new(End::Controller);
    session.versions = versions.to_vec();
    session.hello_timeout = ATTEMPT;
    Settings { session, reply_timeout: REPLY_TIMEOUT, ..Settings::new() }
}

/// A connection that is served while frames are sent, so that the switch does not enter fail-secure
/// or standalone mode.
pub struct ServedConnection {
    thread: JoinHandle<Option<Controller>>,
    end: Arc<AtomicBool>,
}

impl ServedConnection {
    /// Starts a thread that replies to the switch's requests.
    pub fn keep(mut controller: Controller) -> ServedConnection {
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
        ServedConnection { thread, end }
    }

    /// Returns the connection if it is still open.
    pub fn take(self) -> Option<Controller> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("the echo thread does not panic")
    }
}
