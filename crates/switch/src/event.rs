//! What a running switch tells whoever runs it: one line for each change worth knowing.

use std::fmt;

use packet::frame::PortNo;
use ports::channel::admission::Refusal;

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
    /// A connection was refused because there were too many: its name, and which limit was reached.
    ControllerTooMany(String, Refusal),
    /// So many connections ended before they came up, and were not worth a line each.
    ControllersUnlogged(u64),
    /// It listens for controllers there.
    Listening(String),
    /// It listens there, and nothing authenticates those who connect.
    AcceptsAnyone(String),
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
    /// A key of the configuration has no effect any more: which one, and which one has it now.
    ObsoleteKey(&'static str, &'static str),
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
            Event::ControllerTooMany(peer, Refusal::Total) => write!(
                f,
                "controller {peer}: refused: all places are taken (hint: raise limits.connections)"
            ),
            Event::ControllerTooMany(peer, Refusal::PerSource) => write!(
                f,
                "controller {peer}: refused: its host has as many connections as one may have (hint: raise \
                 limits.connections_per_source)"
            ),
            Event::ControllersUnlogged(count) => {
                write!(f, "controllers: {count} more connections ended before they came up")
            }
            Event::ObsoleteKey(key, now) => {
                write!(f, "configuration: {key} has no effect any more (hint: set {now})")
            }
            Event::Listening(url) => write!(f, "listening for controllers on {url}"),
            Event::AcceptsAnyone(url) => write!(
                f,
                "warning: {url} accepts any client without authentication (hint: use pssl: with --ca-cert, or \
                 listen on 127.0.0.1)"
            ),
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
