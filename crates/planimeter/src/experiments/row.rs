//! Tasks one after the other, all of them several times, before a target that is set up once.
//!
//! Repeats are the outer loop: a machine that drifts does so across them. What a task is, and how many trials it
//! takes, is the method's own.

use instrument::experiment::Step;

use crate::workload::Setup;

/// How far a method has come with its tasks.
#[derive(Debug, Clone)]
pub struct Row {
    setup: Setup,
    tasks: usize,
    repeats: u32,
    /// Tasks that are done, repeats included.
    done: usize,
    is_installed: bool,
}

impl Row {
    /// So many tasks, `repeats` times, before a target that holds this.
    pub fn new(setup: Setup, tasks: usize, repeats: u32) -> Self {
        Row { setup, tasks, repeats, done: 0, is_installed: false }
    }

    /// The same before a target that holds something else.
    #[must_use]
    pub fn before(self, setup: Setup) -> Self {
        Row { setup, ..self }
    }

    /// What the target holds.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Sets the target up, the first time that this is asked.
    pub fn begin(&mut self) -> Option<Step<Setup>> {
        let is_installed = std::mem::replace(&mut self.is_installed, true);
        (!is_installed).then_some(Step::Install(self.setup))
    }

    /// Which task it is that is under way; none when all are done.
    pub fn task(&self) -> Option<usize> {
        (self.done < self.count()).then(|| self.done % self.tasks)
    }

    /// Which repeat that belongs to, from 1.
    pub fn repeat(&self) -> u32 {
        (self.done / self.tasks.max(1)) as u32 + 1
    }

    /// The task under way is done.
    pub fn next(&mut self) {
        self.done += 1;
    }

    /// Tasks in all, repeats counted.
    pub fn count(&self) -> usize {
        self.tasks * self.repeats as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_set_up_once_and_tasks_come_round_by_round() {
        let mut row = Row::new(Setup::single(1), 2, 2);
        assert!(matches!(row.begin(), Some(Step::Install(_))) && row.begin().is_none());
        let mut seen = Vec::new();
        while let Some(task) = row.task() {
            seen.push((task, row.repeat()));
            row.next();
        }
        assert_eq!(seen, [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(Row::new(Setup::single(1), 0, 3).task(), None);
    }
}
