//! The agent's single processor: which message it processes, and until when.
//!
//! It processes the messages of all connections one after the other, round robin between
//! connections. A message takes effect at the end of its time. Invariant: with zero costs a message
//! takes effect immediately.

use std::collections::VecDeque;

use packet::time::Nanos;

/// The agent's processor.
#[derive(Debug, Default)]
pub struct AgentCpu {
    /// Connections that have a message; the first one is being processed.
    queue: VecDeque<u32>,
    /// When the current message ends, once it has begun.
    until: Option<Nanos>,
    free_at: Nanos,
    rests_until: Option<Nanos>,
}

impl AgentCpu {
    /// Processes the next message of a connection, which arrived at `came_at`. Returns when it
    /// ended, or as an error when to call again.
    pub fn turn(
        &mut self,
        connection: u32,
        came_at: Nanos,
        cost: impl FnOnce() -> Nanos,
        now: Nanos,
    ) -> Result<Nanos, Nanos> {
        if !self.queue.contains(&connection) {
            self.queue.push_back(connection);
        }
        if self.queue.front() != Some(&connection) {
            return Err(self.until.unwrap_or(now).max(now));
        }
        let begins = self.free_at.max(came_at);
        let until = *self.until.get_or_insert_with(|| begins.saturating_add(cost()));
        if until > now {
            return Err(until);
        }
        self.queue.pop_front();
        (self.until, self.free_at) = (None, until);
        Ok(until)
    }

    /// Stops the processor for `span`.
    pub fn rest(&mut self, now: Nanos, span: Nanos) {
        self.free_at = self.free_at.max(now).saturating_add(span);
        self.rests_until = Some(self.free_at);
    }

    /// Whether the processor is stopped. Then it does not even reply to an echo request.
    pub fn rests(&mut self, now: Nanos) -> bool {
        self.rests_until = self.rests_until.filter(|until| *until > now);
        self.rests_until.is_some()
    }

    /// Returns until when the processor is stopped, if it is.
    pub fn rests_until(&self) -> Option<Nanos> {
        self.rests_until
    }

    /// Removes connections that have ended.
    pub fn keep(&mut self, is_there: impl Fn(u32) -> bool) {
        if self.queue.front().is_some_and(|first| !is_there(*first)) {
            self.until = None;
        }
        self.queue.retain(|connection| is_there(*connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_processed_in_sequence_and_connections_in_turn() {
        let mut agent_cpu = AgentCpu::default();
        let mut ask = |connection, came, cost, now| {
            agent_cpu.turn(connection, Nanos(came), || Nanos(cost), Nanos(now)).map(|at| at.0)
        };
        assert_eq!(ask(1, 5, 10, 7), Err(Nanos(15)));
        assert_eq!(
            ask(2, 6, 20, 7),
            Err(Nanos(15)),
            "the message of the other connection is in progress"
        );
        assert_eq!(ask(1, 5, 99, 15), Ok(15), "the cost is fixed when processing begins");
        assert_eq!(ask(1, 5, 10, 15), Err(Nanos(15)), "the other connection is next");
        assert_eq!(ask(2, 6, 20, 40), Ok(35), "a late call returns the time of completion");
        assert_eq!(ask(1, 5, 10, 40), Err(Nanos(45)));
        agent_cpu.keep(|connection| connection != 1);
        assert_eq!(agent_cpu.turn(3, Nanos(50), || Nanos(0), Nanos(50)), Ok(Nanos(50)));
        agent_cpu.rest(Nanos(60), Nanos(100));
        assert_eq!(agent_cpu.turn(3, Nanos(61), || Nanos(1), Nanos(70)), Err(Nanos(161)));
    }
}
