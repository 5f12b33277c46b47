//! Probe frames: identification by signature, and construction of single frames.
//!
//! A frame's signature identifies it (see [`crate::signature`]), also when a switch has rewritten
//! its headers or pushed a tag. The values of varying fields follow from the frame's number, not
//! from its bytes.

use packet::time::Nanos;

use crate::generator::templates::Templates;
use crate::mix::mix;
use crate::signature::{NUMBER_MAX, SendTime, Sequence};
use crate::stream::Stream;

/// Separates the frames of modules and of trials, which derive from one key.
const STAGE: u64 = 0x7374_6167_6500_0000;

/// An identified frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Stream id.
    pub stream: u16,
    /// Sequence number, from 0. It continues when a stream restarts or its rate changes.
    pub number: u64,
    /// When the frame was handed to the port.
    pub sent_at: Nanos,
    /// Index of the first varying group's value, for example of the flow or rule. 0 if nothing
    /// varies.
    pub place: u64,
    /// Whether the delay is the receive time less `sent_at`: the tester was stalled at neither
    /// time.
    pub is_delay_known: bool,
    /// Whether every byte is as expected. False if only a part of the frame is available.
    pub is_intact: bool,
}

/// Signs the frames of one module's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signer {
    key: u64,
    epoch: u16,
}

/// Builds single frames of a stream.
#[derive(Debug, Clone)]
pub struct Frames {
    epoch: u16,
    templates: Templates,
}

impl Signer {
    /// The signer of stage number `epoch` in a run with this key.
    pub(crate) fn new(key: u64, epoch: u16) -> Self {
        Signer { key: mix(key ^ STAGE), epoch }
    }

    pub(crate) fn key(self) -> u64 {
        self.key
    }

    pub(crate) fn epoch(self) -> u16 {
        self.epoch
    }

    /// Returns the frame builder of a valid stream. The event loop recognizes the frames if the
    /// module prepared the stream by [`ModuleContext::prepare`](super::ModuleContext::prepare).
    pub fn frames(self, stream: &Stream) -> Frames {
        Frames { epoch: self.epoch, templates: Templates::leaving(stream, self.key) }
    }
}

impl Frames {
    /// Builds frame `number`, without frame check sequence, with the send time `at`.
    pub fn frame(&self, number: u64, at: Nanos) -> Vec<u8> {
        let number = number & NUMBER_MAX;
        let template = self.templates.of(number);
        let mut indices = Vec::new();
        template.draw(number, &mut indices);
        let mut bytes = vec![0; template.bytes().len()];
        let sequence = Sequence { is_warmup: false, epoch: self.epoch, number };
        template.write(sequence, SendTime::new(at), &indices, &mut bytes);
        bytes
    }
}
