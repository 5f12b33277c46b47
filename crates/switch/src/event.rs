//! What a running switch tells whoever runs it: one line for each change worth knowing.

use std::fmt;

use packet::frame::PortNo;

/// Something happened that a person wants in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A controller's session came up (its name).
    ControllerUp(String),
    /// A controller's connection ended: its name, and why.
    ControllerDown(String, String),
    /// A controller could not be reached: where, and why.
    ControllerUnreachable(String, String),
    /// A controller's message was not understood, the first one on its connection (its name, and
    /// what is wrong with it). It was answered with an error.
    ControllerRefused(String, String),
    /// A connection was refused because there were too many (its name).
    ControllerTooMany(String),
    /// So many connections ended before they came up, and were not worth a line each.
    ControllersUnlogged(u64),
    /// It listens for controllers there.
    Listening(String),
    /// It takes programs there.
    TakesPrograms(String),
    /// No controller: frames without match are dropped, flows stay.
    FailSecure,
    /// No controller: it forwards as a learning bridge.
    FailStandalone,
    /// A port's link went down: its number, and why.
    PortDown(PortNo, String),
    /// A port's link came up.
    PortUp(PortNo),
    /// A port lost frames since this was last reported: its number, and how many by reason.
    FramesLost(PortNo, Vec<(&'static str, u64)>),
    /// An association with a control element was made: which one, and whether it is the primary one.
    CeAssociated(String, bool),
    /// An association is over: with which one, and why.
    CeLost(String, String),
    /// A control element could not be reached: where, and why.
    CeUnreachable(String, String),
    /// It listens for control elements there.
    ListeningForCes(String),
    /// The program is ready to forward.
    Ready,
    /// The program was told to stop and has stopped.
    Stopped,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::ControllerUp(peer) => write!(f, "controller {peer}: connected"),
            Event::ControllerDown(peer, why) => write!(f, "controller {peer}: {why}"),
            Event::ControllerUnreachable(url, why) => {
                write!(f, "controller {url}: {why}; trying again")
            }
            Event::ControllerRefused(peer, why) => {
                write!(f, "controller {peer}: sent what cannot be understood: {why}")
            }
            Event::ControllerTooMany(peer) => {
                write!(f, "controller {peer}: refused, as many are connected as may be")
            }
            Event::ControllersUnlogged(count) => {
                write!(f, "controllers: {count} more connections ended before they came up")
            }
            Event::Listening(url) => write!(f, "listening for controllers on {url}"),
            Event::TakesPrograms(url) => write!(f, "taking programs on {url}"),
            Event::FailSecure => {
                f.write_str("no controller: frames that match no flow are dropped")
            }
            Event::FailStandalone => {
                f.write_str("no controller: frames that match no flow are bridged")
            }
            Event::PortDown(number, why) => write!(f, "port {number}: down: {why}"),
            Event::PortUp(number) => write!(f, "port {number}: up"),
            Event::FramesLost(number, lost) => {
                let total: u64 = lost.iter().map(|(_, frames)| frames).sum();
                write!(f, "port {number}: {total} frames lost:")?;
                let mut separator = "";
                for (reason, frames) in lost {
                    write!(f, "{separator} {reason} {frames}")?;
                    separator = ",";
                }
                Ok(())
            }
            Event::CeAssociated(name, true) => {
                write!(f, "control element {name}: associated, and the primary one")
            }
            Event::CeAssociated(name, false) => write!(f, "control element {name}: associated"),
            Event::CeLost(name, why) => write!(f, "control element {name}: {why}"),
            Event::CeUnreachable(url, why) => {
                write!(f, "control element {url}: {why}; trying again")
            }
            Event::ListeningForCes(url) => {
                write!(f, "listening for control elements on {url}")
            }
            Event::Ready => f.write_str("ready"),
            Event::Stopped => f.write_str("stopped"),
        }
    }
}
