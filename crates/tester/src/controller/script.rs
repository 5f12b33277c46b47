//! Scripts: a controller's messages, encoded before a measurement starts.
//!
//! A script is a sequence of batches. The last message of each batch has a reply that confirms the
//! whole batch:
//!
//! - a barrier (OpenFlow 1.0.0, section 5.3.7),
//! - the commit of a bundle (1.4.1, section 7.3.9), or
//! - a request for statistics, with the last part of the reply.
//!
//! Encoding costs as much as a switch's decoding. Done in advance, it cannot limit a measurement.
//!
//! Invariant: batches are contiguous and in order in the bytes.

use openflow::codec::{NotExpressible, encode};
use openflow::header::Xid;
use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::model::multipart::{FlowStatsRequest, MultipartRequestBody};
use openflow::version::Version;
use record::ControllerCommand;

/// Maximum number of outstanding batches.
pub const AHEAD_MAX: usize = 64;

/// How the switch confirms flow-mods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// By a barrier after this many flow-mods.
    Barrier(u32),
    /// By a bundle of this many flow-mods, which is committed atomically and in order.
    Bundle(u32),
}

/// Encoded messages with the pace at which to send them.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    deed: ControllerCommand,
    version: Version,
    bytes: Vec<u8>,
    batches: Vec<Batch>,
    ahead: usize,
    per_second: Option<f64>,
    is_endless: bool,
}

/// A sequence of messages. The reply to the last one confirms all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    /// End offset in the script's bytes.
    pub end: usize,
    /// Number of flow-mods up to here, earlier batches included.
    pub flow_mods: u64,
    /// Transaction id of the last message.
    pub last: Xid,
}

impl Commit {
    /// Returns the number of flow-mods per confirmation.
    pub fn flow_mods(self) -> u32 {
        match self {
            Commit::Barrier(count) | Commit::Bundle(count) => count,
        }
    }
}

impl Script {
    /// A script that sends these flow-mods in batches, recorded as this kind of work.
    pub fn flow_mods(
        deed: ControllerCommand,
        version: Version,
        commit: Commit,
        flow_mods: impl IntoIterator<Item = FlowMod>,
    ) -> Result<Script, NotExpressible> {
        let mut script = Script::empty(deed, version);
        let mut flow_mods = flow_mods.into_iter().peekable();
        let (mut count, mut xid) = (0, 0);
        while flow_mods.peek().is_some() {
            let batch = flow_mods.by_ref().take(commit.flow_mods().max(1) as usize);
            match commit {
                Commit::Barrier(_) => {
                    for flow_mod in batch {
                        script.say(&mut xid, &Message::FlowMod(flow_mod))?;
                        count += 1;
                    }
                    script.say(&mut xid, &Message::BarrierRequest)?;
                }
                Commit::Bundle(_) => {
                    let id = script.batches.len() as u32 + 1;
                    script.say(&mut xid, &control(id, BundleCommand::Open))?;
                    for flow_mod in batch {
                        script.say(&mut xid, &add(id, flow_mod))?;
                        count += 1;
                    }
                    script.say(&mut xid, &control(id, BundleCommand::Commit))?;
                }
            }
            let end = script.bytes.len();
            script.batches.push(Batch { end, flow_mods: count, last: xid });
        }
        Ok(script)
    }

    /// A script that requests the statistics of flow entries.
    pub fn flow_stats(version: Version, which: FlowStatsRequest) -> Result<Script, NotExpressible> {
        let mut script = Script::empty(ControllerCommand::FlowStats, version);
        let request = Message::ask(MultipartRequestBody::Flow(which));
        script.say(&mut 0, &request)?;
        script.batches.push(Batch { end: script.bytes.len(), flow_mods: 0, last: 1 });
        Ok(script)
    }

    fn empty(deed: ControllerCommand, version: Version) -> Script {
        let (bytes, batches) = (Vec::new(), Vec::new());
        Script { deed, version, bytes, batches, ahead: 1, per_second: None, is_endless: false }
    }

    fn say(&mut self, xid: &mut Xid, message: &Message) -> Result<(), NotExpressible> {
        *xid = xid.wrapping_add(1);
        encode(self.version, *xid, message, &mut self.bytes)
    }

    /// Sets the number of outstanding batches, from one to [`AHEAD_MAX`].
    #[must_use]
    pub fn ahead(self, batches: usize) -> Script {
        Script { ahead: batches.clamp(1, AHEAD_MAX), ..self }
    }

    /// Limits the rate of flow-mods.
    #[must_use]
    pub fn paced(self, flow_mods_per_second: f64) -> Script {
        Script { per_second: Some(flow_mods_per_second), ..self }
    }

    /// Repeats the script while the trial's frames are sent.
    #[must_use]
    pub fn endless(self) -> Script {
        Script { is_endless: true, ..self }
    }

    /// Returns the kind of work.
    pub fn deed(&self) -> ControllerCommand {
        self.deed
    }

    /// Returns the OpenFlow version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the number of flow-mods.
    pub fn count(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.flow_mods)
    }

    /// Returns whether the script repeats.
    pub fn is_endless(&self) -> bool {
        self.is_endless
    }

    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn batches_ahead(&self) -> usize {
        self.ahead
    }

    pub(super) fn per_second(&self) -> Option<f64> {
        self.per_second
    }
}

fn flags() -> BundleFlags {
    BundleFlags::ATOMIC | BundleFlags::ORDERED
}

fn control(id: u32, command: BundleCommand) -> Message {
    let properties = Vec::new();
    let flags = flags();
    Message::BundleControl(BundleControl { id, command, is_reply: false, flags, properties })
}

fn add(id: u32, flow_mod: FlowMod) -> Message {
    let message = Box::new(Message::FlowMod(flow_mod));
    let properties = Vec::new();
    Message::BundleAddMessage(BundleAddMessage { id, flags: flags(), message, properties })
}
