//! Bundles of messages that the switch commits together, and forwarded requests.
//!
//! Source: OpenFlow 1.4.1 sections 7.3.9.6 and 7.3.9.7 (`ofp_bundle_ctrl_msg`,
//! `ofp_bundle_add_msg`), 1.5.1 sections 7.3.9 and 7.3.5.20 (`ofp_bundle_features`); for 1.3, ONF
//! extension 230.
//!
//! A message in a bundle has the transaction ID of the bundle-add message that contains it.

use std::fmt;

use super::action::Experimenter;
use super::bits::bits;
use super::message::Message;
use super::text::list;
use crate::header::Xid;
use crate::version::NO;

bits! {
    /// How the switch executes a bundle (`ofp_bundle_flags`).
    BundleFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Atomically: all messages or none.
        ATOMIC "atomic"                              [NO, NO, NO,  0,  0,  0];
        /// In the order of the messages.
        ORDERED "ordered"                            [NO, NO, NO,  1,  1,  1];
        /// At a scheduled time.
        TIME "time"                                  [NO, NO, NO, NO, NO,  2];
    }
}

bits! {
    /// What a bundle features request contains or requests (`ofp_bundle_feature_flags`).
    BundleFeatureFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Requests the switch's clock.
        TIMESTAMP "timestamp"                        [NO, NO, NO, NO, NO,  0];
        /// Sets the scheduling limits in the request.
        TIME_SET_SCHEDULE "time_set_schedule"        [NO, NO, NO, NO, NO,  1];
    }
}

/// Command of a bundle control message (`ofp_bundle_ctrl_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BundleCommand {
    /// Opens the bundle.
    Open,
    /// Closes the bundle for further messages.
    Close,
    /// Commits the messages of the bundle.
    Commit,
    /// Discards the bundle.
    Discard,
}

/// Bundle control: opens, closes, commits or discards a bundle, or reports that this is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleControl {
    /// Bundle ID, chosen by the controller.
    pub id: u32,
    /// The requested or completed command.
    pub command: BundleCommand,
    /// Whether this is the switch's reply.
    pub is_reply: bool,
    /// How the switch executes the bundle.
    pub flags: BundleFlags,
    /// Additional properties.
    pub properties: Vec<BundleProperty>,
}

/// Adds a message to a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleAddMessage {
    /// Bundle ID, chosen by the controller.
    pub id: u32,
    /// How the switch executes the bundle.
    pub flags: BundleFlags,
    /// The message.
    pub message: Box<Message>,
    /// Additional properties.
    pub properties: Vec<BundleProperty>,
}

/// Property of a bundle (`ofp_bundle_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleProperty {
    /// Time of the commit (1.5).
    Time(WallTime),
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// A point in time or a duration (`ofp_time`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime {
    /// Whole seconds; for a point in time, seconds since 1970-01-01 in TAI (IEEE 1588).
    pub seconds: u64,
    /// Additional nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// Requests the bundle features, and may set the scheduling limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFeaturesRequest {
    /// What the request contains or requests.
    pub flags: BundleFeatureFlags,
    /// Scheduling limits to set.
    pub properties: Vec<BundleFeatureProperty>,
}

/// Bundle features of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFeatures {
    /// How the switch can execute bundles.
    pub capabilities: BundleFlags,
    /// Scheduling limits.
    pub properties: Vec<BundleFeatureProperty>,
}

/// Property of the bundle features (`ofp_bundle_features_prop_type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleFeatureProperty {
    /// Limits of bundle scheduling.
    Time {
        /// Accuracy of the execution time.
        accuracy: WallTime,
        /// Maximum time from now to a scheduled time in the future.
        future_max: WallTime,
        /// Maximum time from a scheduled time in the past to now.
        past_max: WallTime,
        /// The sender's clock.
        timestamp: WallTime,
    },
    /// An experimenter property.
    Experimenter(Experimenter),
}

/// A request of another controller that the switch executed and forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestForward {
    /// Transaction ID of the request.
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
