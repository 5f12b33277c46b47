//! Events that a running switch reports for the log, one line each.

use std::fmt;

use channel::admission::AdmissionRefusal;
use packet::frame::PortNo;

/// An event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A controller's session was established: its name.
    ControllerUp(String),
    /// A controller's connection ended: its name, and why.
    ControllerDown(String, String),
    /// A controller could not be reached: its address, and why.
    ControllerUnreachable(String, String),
    /// A controller sent an invalid message, the first one on its connection: its name, and the
    /// error. The switch replied with an error message.
    ControllerRefused(String, String),
    /// A connection was rejected because of a limit: its name, and the limit.
    ControllerTooMany(String, AdmissionRefusal),
    /// Number of connections that ended during the handshake and were not logged.
    ControllersUnlogged(u64),
    /// The switch listens for controllers on this address.
    Listening(String),
    /// The switch listens on this address without authentication.
    AcceptsAnyone(String),
    /// The switch accepts programs on this address.
    TakesPrograms(String),
    /// No controller: table-miss frames are dropped, flow entries stay.
    FailSecure,
    /// No controller: the switch forwards as a learning bridge.
    FailStandalone,
    /// A port's link went down: its number, and why.
    PortDown(PortNo, String),
    /// A port's link came up.
    PortUp(PortNo),
    /// A port lost frames since the last report: its number, and counts by reason.
    FramesLost(PortNo, Vec<(&'static str, u64)>),
    /// A control element was associated: its name, and whether it is the primary one.
    CeAssociated(String, bool),
    /// An association ended: the control element, and why.
    CeLost(String, String),
    /// A control element could not be reached: its address, and why.
    CeUnreachable(String, String),
    /// The element listens for control elements on this address.
    ListeningForCes(String),
    /// A configuration key is obsolete: its name, and the key that replaces it.
    ObsoleteKey(&'static str, &'static str),
    /// The kernel forwards known frames between this number of ports, in this XDP mode.
    FastPathOn(usize, &'static str),
    /// All frames are forwarded in user space, for this reason.
    FastPathOff(String),
    /// Frames for a port are now forwarded in the kernel (`true`), or in user space because its
    /// interface does not send redirected frames: its number.
    FastPathPort(PortNo, bool),
    /// The process is ready to forward.
    Ready,
    /// The process stopped on request.
    Stopped,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::ControllerUp(peer) => write!(f, "controller {peer}: connected"),
            Event::ControllerDown(peer, why) => write!(f, "controller {peer}: {why}"),
            Event::ControllerUnreachable(url, why) => {
                write!(f, "controller {url}: {why}; retrying")
            }
            Event::ControllerRefused(peer, why) => {
                write!(f, "controller {peer}: invalid message: {why}")
            }
            Event::ControllerTooMany(peer, AdmissionRefusal::Total) => write!(
                f,
                "controller {peer}: rejected: too many connections (hint: raise limits.connections)"
            ),
            Event::ControllerTooMany(peer, AdmissionRefusal::PerSource) => write!(
                f,
                "controller {peer}: rejected: too many connections from its host (hint: raise \
                 limits.connections_per_source)"
            ),
            Event::ControllersUnlogged(count) => {
                write!(f, "controllers: {count} more connections ended during the handshake")
            }
            Event::ObsoleteKey(key, now) => {
                write!(f, "configuration: {key} is obsolete and has no effect (hint: set {now})")
            }
            Event::Listening(url) => write!(f, "listening for controllers on {url}"),
            Event::AcceptsAnyone(url) => write!(
                f,
                "warning: {url} accepts any client without authentication (hint: use pssl: with --ca-cert, or \
                 listen on 127.0.0.1)"
            ),
            Event::TakesPrograms(url) => write!(f, "accepting programs on {url}"),
            Event::FailSecure => {
                f.write_str("no controller: frames that match no flow entry are dropped")
            }
            Event::FailStandalone => {
                f.write_str("no controller: frames that match no flow entry are bridged")
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
                write!(f, "control element {name}: associated as primary")
            }
            Event::CeAssociated(name, false) => write!(f, "control element {name}: associated"),
            Event::CeLost(name, why) => write!(f, "control element {name}: {why}"),
            Event::CeUnreachable(url, why) => {
                write!(f, "control element {url}: {why}; retrying")
            }
            Event::ListeningForCes(url) => {
                write!(f, "listening for control elements on {url}")
            }
            Event::FastPathOn(ports, mode) => {
                write!(f, "fast path: {ports} ports, forwarding in the kernel ({mode} XDP)")
            }
            Event::FastPathOff(why) => {
                write!(f, "fast path: off, forwarding in user space: {why}")
            }
            Event::FastPathPort(number, true) => {
                write!(f, "port {number}: known frames to it are forwarded in the kernel")
            }
            Event::FastPathPort(number, false) => write!(
                f,
                "port {number}: frames to it are forwarded in user space: the peer of its \
                 interface does not poll (hint: run 'ethtool -K PEER gro on' for the peer)"
            ),
            Event::Ready => f.write_str("ready"),
            Event::Stopped => f.write_str("stopped"),
        }
    }
}
