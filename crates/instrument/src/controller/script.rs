//! What a controller is going to say, as bytes that are made before any clock runs.
//!
//! A script is a row of batches, each of which ends with something that the switch answers when all
//! before it is done: a barrier (OpenFlow 1.0.0, 5.3.7), a bundle's commit (1.4.1, 7.3.9), or the last
//! part of a statistics reply. Encoding costs as much as a switch's decoding; done ahead, it cannot be
//! what limits a measurement. Invariant: batches lie in the bytes in order, without gaps.

use openflow::codec::{NotExpressible, encode};
use openflow::header::Xid;
use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use openflow::model::multipart::{FlowStatsRequest, MultipartRequestBody};
use openflow::version::Version;
use results::record::Deed;

/// Most batches that may be sent ahead of answers.
pub const AHEAD_MAX: usize = 64;

/// When the switch is asked whether it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// By a barrier after so many flow-mods.
    Barrier(u32),
    /// So many flow-mods in a bundle that is committed: all at once, in their order.
    Bundle(u32),
}

/// What is going to be said.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    deed: Deed,
    version: Version,
    bytes: Vec<u8>,
    batches: Vec<Batch>,
    ahead: usize,
    per_second: Option<f64>,
    is_endless: bool,
}

/// Some messages, the last of which is answered when all of them are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    /// Where they end among the bytes.
    pub end: usize,
    /// Flow-mods up to here, those of earlier batches included.
    pub flow_mods: u64,
    /// The number of the message that is answered last.
    pub last: Xid,
}

impl Commit {
    /// How many flow-mods wait for one answer.
    pub fn flow_mods(self) -> u32 {
        match self {
            Commit::Barrier(count) | Commit::Bundle(count) => count,
        }
    }
}

impl Script {
    /// These flow-mods in batches, which come to this deed.
    pub fn flow_mods(
        deed: Deed,
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

    /// A request for the statistics of entries.
    pub fn flow_stats(version: Version, which: FlowStatsRequest) -> Result<Script, NotExpressible> {
        let mut script = Script::empty(Deed::Tell, version);
        let request = Message::ask(MultipartRequestBody::Flow(which));
        script.say(&mut 0, &request)?;
        script.batches.push(Batch { end: script.bytes.len(), flow_mods: 0, last: 1 });
        Ok(script)
    }

    fn empty(deed: Deed, version: Version) -> Script {
        let (bytes, batches) = (Vec::new(), Vec::new());
        Script { deed, version, bytes, batches, ahead: 1, per_second: None, is_endless: false }
    }

    fn say(&mut self, xid: &mut Xid, message: &Message) -> Result<(), NotExpressible> {
        *xid = xid.wrapping_add(1);
        encode(self.version, *xid, message, &mut self.bytes)
    }

    /// The same with so many batches sent before the answer to the first of them has come, at least
    /// one and at most [`AHEAD_MAX`].
    #[must_use]
    pub fn ahead(self, batches: usize) -> Script {
        Script { ahead: batches.clamp(1, AHEAD_MAX), ..self }
    }

    /// The same at this rate of flow-mods, and no faster.
    #[must_use]
    pub fn paced(self, flow_mods_per_second: f64) -> Script {
        Script { per_second: Some(flow_mods_per_second), ..self }
    }

    /// The same again and again, for as long as the trial's frames are sent.
    #[must_use]
    pub fn endless(self) -> Script {
        Script { is_endless: true, ..self }
    }

    /// What it has the switch do.
    pub fn deed(&self) -> Deed {
        self.deed
    }

    /// The version that it is said in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Flow-mods in it.
    pub fn count(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.flow_mods)
    }

    /// Whether it is said again and again.
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
