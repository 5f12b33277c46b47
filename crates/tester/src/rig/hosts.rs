//! Host tasks that the event loop starts and polls.
//!
//! The caller creates the hosts, because it knows the links. The event loop starts a task for the
//! module, polls for its result, and stops it at the module's end. While a task runs, the tester
//! blocks instead of busy-polling and leaves its cores to the host's programs.
//!
//! Invariant: no host task outlives the event loop.

use packet::time::Nanos;

use crate::module::host_tasks::{HostTask, HostTaskResult};

/// Maximum time to block while a host task runs.
pub const HOSTS_WAIT_NS_MAX: Nanos = Nanos::from_millis(5);

/// Hosts at the ends of a rig's links.
pub trait Hosts: Send {
    /// Starts a task. No other task may be running.
    fn begin(&mut self, run_host_task: HostTask);

    /// Polls for a result of the task. Every result but [`HostTaskResult::Loading`] ends the task.
    fn done(&mut self) -> Option<HostTaskResult>;

    /// Stops the task, waits for its end, and returns its result.
    fn stop(&mut self) -> Option<HostTaskResult>;
}

/// Hosts of any kind.
pub type AnyHosts = dyn Hosts + 'static;

/// State of the host tasks.
#[derive(Debug, Default)]
pub(crate) struct HostTasks {
    is_busy: bool,
    /// Whether any task was started.
    has_been: bool,
}

impl HostTasks {
    /// Starts a task. Returns the failure if it cannot start.
    pub(crate) fn begin(
        &mut self,
        hosts: Option<&mut AnyHosts>,
        run_host_task: HostTask,
    ) -> Option<HostTaskResult> {
        match hosts {
            None => Some(HostTaskResult::Failed("these links have no hosts at their ends".into())),
            Some(_) if self.is_busy => {
                Some(HostTaskResult::Failed("the hosts run another task".into()))
            }
            Some(hosts) => {
                (self.is_busy, self.has_been) = (true, true);
                hosts.begin(run_host_task);
                None
            }
        }
    }

    /// Polls for a result of the task.
    pub(crate) fn done(&mut self, hosts: Option<&mut AnyHosts>) -> Option<HostTaskResult> {
        let done = hosts.filter(|_| self.is_busy)?.done()?;
        self.is_busy = matches!(done, HostTaskResult::Loading);
        Some(done)
    }

    /// Stops the task.
    pub(crate) fn stop(&mut self, hosts: Option<&mut AnyHosts>) -> Option<HostTaskResult> {
        if !std::mem::take(&mut self.is_busy) {
            return None;
        }
        hosts?.stop()
    }

    /// Returns whether any task was started.
    pub(crate) fn has_been(&self) -> bool {
        self.has_been
    }

    /// Returns whether a task runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }
}
