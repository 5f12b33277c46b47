//! A controller in this process; the node runs while the controller waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elements::node::Node;
use os::clock;
use packet::time::Nanos;
use tester::controller::{self, ControlError, Controller, WaitHook};

use super::adopted;
use crate::model::SETTLE_MAX;
use crate::network::Hop;
use crate::{ADDRESSES, TargetError, flow_setup};
use workload::Setup;

/// Duration of a control turn in virtual time, so that timeouts can expire.
const CONTROL_TURN: Nanos = Nanos::from_micros(1);

/// Installs a setup's entries in a switch, for its hop on the path, and removes all others; returns
/// the connection and the duration.
pub(super) fn installed(
    node: &mut Node,
    setup: &Setup,
    hop: Hop,
    (now, is_live): (Nanos, bool),
    stop: &Arc<AtomicBool>,
) -> Result<(Controller, Nanos), TargetError> {
    let channel = adopted(node, now);
    let own = controller::Settings { stop: Arc::clone(stop), ..flow_setup::settings(setup) };
    let settings = patient(own);
    let mut turns = NodeWait { node, now, is_live };
    let mut controller = Controller::start(channel, settings, &mut turns).map_err(failed)?;
    controller.delete_all(&mut turns).map_err(failed)?;
    let flows = flow_setup::flows(setup, &ADDRESSES).map(|flow| hop.led(flow));
    let installed = controller.install(flows, &mut turns).map_err(failed)?;
    flow_setup::checked(&installed)?;
    turns.settle(stop)?;
    Ok((controller, turns.now.since(now)))
}

fn failed(error: ControlError) -> TargetError {
    TargetError::failed("cannot install flows by OpenFlow", error)
}

/// Disables the keep-alive, which nothing serves between trials.
pub(super) fn patient(mut settings: controller::Settings) -> controller::Settings {
    settings.session.echo_idle = None;
    settings
}

/// Waiting of a controller: the node takes a turn.
pub(super) struct NodeWait<'a> {
    pub(super) node: &'a mut Node,
    pub(super) now: Nanos,
    pub(super) is_live: bool,
}

impl NodeWait<'_> {
    /// Waits until the installed entries are active, where the target emulates a model.
    pub(super) fn settle(&mut self, stop: &AtomicBool) -> Result<(), TargetError> {
        let until = self.now().saturating_add(SETTLE_MAX);
        while self.node.forward.forwarder.behaviour().is_some_and(|model| !model.is_settled()) {
            if stop.load(Ordering::Relaxed) {
                return Err(failed(ControlError::Interrupted));
            }
            if self.now() >= until {
                let why =
                    format!("some entries are not active after {} s", SETTLE_MAX.as_secs_f64());
                return Err(TargetError::failed("cannot install flows by OpenFlow", why));
            }
            self.rest(None, false, until);
        }
        Ok(())
    }
}

impl WaitHook for NodeWait<'_> {
    fn now(&mut self) -> Nanos {
        if self.is_live { clock::now() } else { self.now }
    }

    fn rest(&mut self, _: Option<std::os::fd::RawFd>, _wants_to_write: bool, deadline: Nanos) {
        let now = self.now();
        self.node.turn(now);
        self.node.serve(now);
        self.node.events.clear();
        if !self.is_live {
            let soon = now.saturating_add(CONTROL_TURN);
            // A model may work for minutes, in which nothing else happens.
            let behaviour = self.node.forward.forwarder.behaviour();
            let next = behaviour.and_then(|_| self.node.next_event(now));
            self.now = deadline.min(next.map_or(soon, |next| next.max(soon)));
        }
    }
}
