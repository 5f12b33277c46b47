//! The Ethernet agent at a port of a running element.

use std::sync::{Arc, Mutex, PoisonError};

use dataplane::forwarder::Outputs;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;
use serde_json::Value;

use super::port::Sorted;
use super::{Counters, Ethernet, Mailbox};
use crate::control::Request;
use crate::forward::{NumberedPort, mac_of};

/// The agent, its port and the frames received for it.
pub struct AgentPort {
    agent: Ethernet,
    port: PortNo,
    mailbox: Arc<Mutex<Mailbox>>,
}

impl AgentPort {
    /// Attaches an agent to a port and diverts its frames from now on. Returns `None` if the port
    /// does not exist.
    pub fn open(number: PortNo, ports: &mut Vec<NumberedPort>) -> Option<AgentPort> {
        let at = ports.iter().position(|(known, _)| *known == number)?;
        let (_, port) = ports.remove(at);
        let (own, mailbox) = (mac_of(number, port.as_ref()), Arc::default());
        let sorted = Sorted::new(port, own, Arc::clone(&mailbox));
        ports.insert(at, (number, Box::new(sorted)));
        Some(AgentPort { agent: Ethernet::new(own), port: number, mailbox })
    }

    /// Processes received frames and returns the replies.
    pub fn turn(
        &mut self,
        now: Nanos,
        carry: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Vec<Vec<u8>> {
        let frames = {
            let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut mailbox.frames)
        };
        let answer = |frame: Vec<u8>| self.agent.frame_came(&frame, now, carry);
        frames.into_iter().filter_map(answer).collect()
    }

    /// Puts replies into the port's queue. The sender repeats its request if the queue has no room.
    pub fn answer(&self, answers: Vec<Vec<u8>>, out: &mut Outputs) {
        for answer in answers {
            out.send(self.port, &mut Frame::from_bytes(&answer));
        }
    }

    /// Returns the agent's counters and the number of frames that exceeded its queue.
    pub fn counters(&self) -> (Counters, u64) {
        let mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        (self.agent.counters, mailbox.lost)
    }
}
