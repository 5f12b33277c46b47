//! Tasks that run one after another with repeats, for a target with a single setup.
//!
//! Repeats are the outer loop, so that drift of the machine affects all tasks alike. The method defines the tasks
//! and the number of their trials.

use tester::procedure::Step;

use workload::Setup;

/// Progress of a method through its tasks.
#[derive(Debug, Clone)]
pub struct TaskSequence {
    setup: Setup,
    tasks: usize,
    repeats: u32,
    /// Completed tasks, including repeats.
    done: usize,
    is_installed: bool,
}

impl TaskSequence {
    /// Creates `tasks` tasks with `repeats` repeats, for a target with this setup.
    pub fn new(setup: Setup, tasks: usize, repeats: u32) -> Self {
        TaskSequence { setup, tasks, repeats, done: 0, is_installed: false }
    }

    /// Replaces the setup.
    #[must_use]
    pub fn before(self, setup: Setup) -> Self {
        TaskSequence { setup, ..self }
    }

    /// Returns the setup of the target.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the setup step on the first call.
    pub fn begin(&mut self) -> Option<Step<Setup>> {
        let is_installed = std::mem::replace(&mut self.is_installed, true);
        (!is_installed).then_some(Step::Install(self.setup))
    }

    /// Returns the current task; `None` when all are complete.
    pub fn task(&self) -> Option<usize> {
        (self.done < self.count()).then(|| self.done % self.tasks)
    }

    /// Returns the repeat of the current task, from 1.
    pub fn repeat(&self) -> u32 {
        (self.done / self.tasks.max(1)) as u32 + 1
    }

    /// Completes the current task.
    pub fn next(&mut self) {
        self.done += 1;
    }

    /// Returns the number of tasks, including repeats.
    pub fn count(&self) -> usize {
        self.tasks * self.repeats as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_set_up_once_and_tasks_run_repeat_by_repeat() {
        let mut row = TaskSequence::new(Setup::single(1), 2, 2);
        assert!(matches!(row.begin(), Some(Step::Install(_))) && row.begin().is_none());
        let mut seen = Vec::new();
        while let Some(task) = row.task() {
            seen.push((task, row.repeat()));
            row.next();
        }
        assert_eq!(seen, [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(TaskSequence::new(Setup::single(1), 0, 3).task(), None);
    }
}
