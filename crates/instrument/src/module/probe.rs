//! Probes: the frames of streams, known again by their signature wherever they come up, and made by
//! hand where a stream does not send them.
//!
//! A frame is known by the signature that it carries (see [`crate::signature`]), so that it is known
//! too when a switch has rewritten its headers or pushed a tag before it. Which value of what varies it
//! has follows from its number, not from its bytes.

use packet::time::Nanos;

use crate::generate::templates::Templates;
use crate::mix::mix;
use crate::signature::{NUMBER_MAX, Sent, Sequence};
use crate::stream::Stream;

/// Keeps the frames of stages and of trials apart, although both come from one key.
const STAGE: u64 = 0x7374_6167_6500_0000;

/// A stream's frame that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The stream's number.
    pub stream: u16,
    /// The frame's number, from 0; in a frame that was sent again after the stream was stopped or its
    /// rate changed, numbers go on.
    pub number: u64,
    /// When it was handed to the port.
    pub sent_at: Nanos,
    /// Which value the first group of varying fields has, from 0: which flow, which rule. 0 if nothing
    /// varies.
    pub place: u64,
    /// Whether its delay is when it was seen less `sent_at`: the tester was at its work both times.
    pub is_delay_known: bool,
    /// Whether every byte is as it ought to arrive. Of a part of a frame that is not known, and not said.
    pub is_intact: bool,
}

/// Signs the frames of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signer {
    key: u64,
    epoch: u16,
}

/// The frames of a stream, to be made one by one.
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

    /// The frames of a valid stream. They are known on arrival if the stage knows the stream, by
    /// [`Desk::prepare`](super::Desk::prepare).
    pub fn frames(self, stream: &Stream) -> Frames {
        Frames { epoch: self.epoch, templates: Templates::leaving(stream, self.key) }
    }
}

impl Frames {
    /// Frame `number`, without frame check sequence, which says that it was sent at `at`.
    pub fn frame(&self, number: u64, at: Nanos) -> Vec<u8> {
        let number = number & NUMBER_MAX;
        let template = self.templates.of(number);
        let mut indices = Vec::new();
        template.draw(number, &mut indices);
        let mut bytes = vec![0; template.bytes().len()];
        let sequence = Sequence { is_warmup: false, epoch: self.epoch, number };
        template.write(sequence, Sent::new(at), &indices, &mut bytes);
        bytes
    }
}
