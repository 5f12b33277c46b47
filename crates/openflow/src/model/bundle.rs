//! Bundles: messages that are done together.
//!
//! Source: OpenFlow 1.4.1 sections 7.3.9.6 and 7.3.9.7 (`ofp_bundle_ctrl_msg`,
//! `ofp_bundle_add_msg`), 1.5.1 sections 7.3.9 and 7.3.5.20 (`ofp_bundle_features`); for 1.3, ONF
//! extension 230. A message in a bundle has the transaction id of the message that brings it.

use std::fmt;

use super::action::Experimenter;
use super::bits::bits;
use super::message::Message;
use super::text::list;
use crate::header::Xid;
use crate::version::NO;

bits! {
    /// How a bundle is done (`ofp_bundle_flags`).
    BundleFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// All of it or nothing.
        ATOMIC "atomic"                              [NO, NO, NO,  0,  0,  0];
        /// In the order of its messages.
        ORDERED "ordered"                            [NO, NO, NO,  1,  1,  1];
        /// At a set time.
        TIME "time"                                  [NO, NO, NO, NO, NO,  2];
    }
}

bits! {
    /// What is asked about bundles (`ofp_bundle_feature_flags`).
    BundleFeatureFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// The switch's clock.
        TIMESTAMP "timestamp"                        [NO, NO, NO, NO, NO,  0];
        /// The limits that come along are to be kept.
        TIME_SET_SCHEDULE "time_set_schedule"        [NO, NO, NO, NO, NO,  1];
    }
}

/// What is to be done with a bundle (`ofp_bundle_ctrl_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BundleCommand {
    /// Opens it.
    Open,
    /// Lets no more messages in.
    Close,
    /// Does its messages.
    Commit,
    /// Forgets it.
    Discard,
}

/// Opens, closes, commits or discards a bundle, or says that this is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleControl {
    /// The controller's number for the bundle.
    pub id: u32,
    /// What is to be done, or is done.
    pub command: BundleCommand,
    /// Whether it is done: the switch's answer.
    pub is_reply: bool,
    /// How the bundle is done.
    pub flags: BundleFlags,
    /// What else there is to say.
    pub properties: Vec<BundleProperty>,
}

/// Puts a message into a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleAddMessage {
    /// The controller's number for the bundle.
    pub id: u32,
    /// How the bundle is done.
    pub flags: BundleFlags,
    /// The message.
    pub message: Box<Message>,
    /// What else there is to say.
    pub properties: Vec<BundleProperty>,
}

/// What else there is to say of a bundle (`ofp_bundle_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleProperty {
    /// When it is to be committed (1.5).
    Time(WallTime),
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// A time of the day, or a span between two (`ofp_time`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime {
    /// Whole seconds; of a time of the day, since 1970-01-01 in TAI as IEEE 1588 counts them.
    pub seconds: u64,
    /// Nanoseconds beyond those, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// Asks how well bundles can be scheduled, or says how well they are to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFeaturesRequest {
    /// What is asked.
    pub flags: BundleFeatureFlags,
    /// Limits that are to be kept.
    pub properties: Vec<BundleFeatureProperty>,
}

/// How well bundles can be scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFeatures {
    /// How bundles can be done.
    pub capabilities: BundleFlags,
    /// The limits.
    pub properties: Vec<BundleFeatureProperty>,
}

/// A limit (`ofp_bundle_features_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleFeatureProperty {
    /// Limits of scheduling.
    Time {
        /// How close to its time a bundle is done.
        accuracy: WallTime,
        /// How far ahead a time may be.
        future_max: WallTime,
        /// How long ago a time may be.
        past_max: WallTime,
        /// The sender's clock.
        timestamp: WallTime,
    },
    /// What somebody else says.
    Experimenter(Experimenter),
}

/// What another controller asked for, and the switch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestForward {
    /// The request's transaction id.
    pub xid: Xid,
    /// The request: a group-mod or a meter-mod.
    pub request: Box<Message>,
}

impl fmt::Display for BundleControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.command {
            BundleCommand::Open => "open",
            BundleCommand::Close => "close",
            BundleCommand::Commit => "commit",
            BundleCommand::Discard => "discard",
        })?;
        let end = if self.is_reply { "reply" } else { "request" };
        write!(f, "_{end} id={:#x} flags={} properties=", self.id, self.flags)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for BundleAddMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id={:#x} flags={} properties=", self.id, self.flags)?;
        list(f, &self.properties)?;
        write!(f, " message=({})", self.message)
    }
}

impl fmt::Display for BundleProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleProperty::Time(time) => write!(f, "time:{time}"),
            BundleProperty::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.seconds, self.nanoseconds)
    }
}

impl fmt::Display for BundleFeaturesRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flags={} properties=", self.flags)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for BundleFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capabilities={} properties=", self.capabilities)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for BundleFeatureProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleFeatureProperty::Time { accuracy, future_max, past_max, timestamp } => {
                write!(f, "accuracy:{accuracy} future_max:{future_max}")?;
                write!(f, " past_max:{past_max} timestamp:{timestamp}")
            }
            BundleFeatureProperty::Experimenter(body) => write!(f, "experimenter:{body}"),
        }
    }
}

impl fmt::Display for RequestForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xid={:#x} request=({})", self.xid, self.request)
    }
}
