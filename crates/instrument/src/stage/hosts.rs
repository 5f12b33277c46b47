//! Hosts that a stage sends on errands, beside its own ports.
//!
//! Whoever knows the links makes them: the stage hands over what a module said, looks whether it is done, and
//! ends it when the module is over. While hosts are busy the tester waits instead of spinning, so that programs
//! on its cores have them. Invariant: nothing that a host does outlasts its stage.

use packet::time::Nanos;

use crate::module::hosts::{Done, Errand};

/// How long the tester waits at most while hosts are busy, if nothing of its own is due.
pub const HOSTS_WAIT_NS_MAX: Nanos = Nanos::from_millis(5);

/// Hosts at the ends of a rig's ports.
pub trait Hosts: Send {
    /// Begins an errand; there is none under way.
    fn begin(&mut self, errand: Errand);

    /// What has come of the errand since this was last asked, without waiting. All but [`Done::Loading`] end it.
    fn done(&mut self) -> Option<Done>;

    /// Ends what is under way, and waits until that has ended; what it came to then.
    fn stop(&mut self) -> Option<Done>;
}

/// Hosts of any kind.
pub type AnyHosts = dyn Hosts + 'static;

/// The hosts of a stage, and whether they are busy.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    is_busy: bool,
    /// Whether any was begun.
    has_been: bool,
}

impl Busy {
    /// Begins an errand, or says why not.
    pub(crate) fn begin(&mut self, hosts: Option<&mut AnyHosts>, errand: Errand) -> Option<Done> {
        match hosts {
            None => Some(Done::Failed("no host can stand at the ends of these links".into())),
            Some(_) if self.is_busy => Some(Done::Failed("the hosts are on another errand".into())),
            Some(hosts) => {
                (self.is_busy, self.has_been) = (true, true);
                hosts.begin(errand);
                None
            }
        }
    }

    /// What came of it meanwhile.
    pub(crate) fn done(&mut self, hosts: Option<&mut AnyHosts>) -> Option<Done> {
        let done = hosts.filter(|_| self.is_busy)?.done()?;
        self.is_busy = matches!(done, Done::Loading);
        Some(done)
    }

    /// Ends what is under way.
    pub(crate) fn stop(&mut self, hosts: Option<&mut AnyHosts>) -> Option<Done> {
        if !std::mem::take(&mut self.is_busy) {
            return None;
        }
        hosts?.stop()
    }

    /// Whether hosts have been on an errand at all.
    pub(crate) fn has_been(&self) -> bool {
        self.has_been
    }

    /// Whether there is an errand under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }
}
