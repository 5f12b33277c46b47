//! Port filter that puts frames for the Ethernet agent into a mailbox, and receives all others.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use netio::link::Link;
use netio::port::{Port, PortCounters, PortError, PortFacts};
use packet::frame::Batch;
use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::{ETHER_TYPE, Mailbox};

/// A port without the frames for the Ethernet agent.
pub struct Sorted {
    inner: Box<dyn Port>,
    own: Mac,
    mailbox: Arc<Mutex<Mailbox>>,
}

impl Sorted {
    /// Diverts frames with the agent's EtherType that are sent to this address or to broadcast.
    pub fn new(inner: Box<dyn Port>, own: Mac, mailbox: Arc<Mutex<Mailbox>>) -> Sorted {
        Sorted { inner, own, mailbox }
    }

    fn is_for_agent(&self, bytes: &[u8]) -> bool {
        bytes.get(ethernet::TYPE) == Some(&ETHER_TYPE.to_be_bytes())
            && [&self.own[..], &ethernet::BROADCAST].contains(&&bytes[..6])
    }
}

impl Port for Sorted {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let before = batch.len();
        let mut received = self.inner.receive(batch, now)?;
        let mut kept = before;
        for at in before..batch.len() {
            if self.is_for_agent(batch.frames()[at].bytes()) {
                // A poisoned mailbox has no other user.
                let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
                mailbox.put(batch.frames()[at].bytes());
                received -= 1;
            } else {
                batch.frames_mut().swap(kept, at);
                kept += 1;
            }
        }
        batch.truncate(kept);
        Ok(received)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.transmit(batch, now)
    }

    fn set_low_latency(&mut self, promptly: bool) {
        self.inner.set_low_latency(promptly);
    }

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }

    fn has_link(&self) -> bool {
        self.inner.has_link()
    }

    fn link(&self) -> Link {
        self.inner.link()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.inner.descriptor()
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }
}
