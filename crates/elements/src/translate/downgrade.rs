//! Omission of values that a version cannot express.
//!
//! A controller can read flow entries that controllers of other versions have installed. What its
//! version cannot express is omitted: a field, an action, an instruction, a flag. The codec
//! decides. Whole rows are tried first, so that complete rows have no extra cost. Invariant: the
//! result can be encoded in the version, or is empty.

use openflow::codec::{self, nicira};
use openflow::model::group::{Bucket, GroupDescription};
use openflow::model::nicira::{NiciraMessage, NiciraReply};
use openflow::model::{
    Action, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats, Instruction, Match, Message,
    MultipartReply, MultipartReplyBody, PacketIn, PortConfig, PortDescription, PortFeatures,
    PortState,
};
use openflow::version::Version;

/// Whether the version can express the message.
pub fn can_say(version: Version, message: &Message) -> bool {
    codec::encode(version, 0, message, &mut Vec::new()).is_ok()
}

fn can_say_rows(version: Version, body: MultipartReplyBody) -> bool {
    can_say(version, &Message::MultipartReply(MultipartReply { more: false, body }))
}

/// Reduces a flow entry to what the version can express.
pub fn flow_stats(version: Version, row: FlowStats) -> FlowStats {
    cut_stats(row, |row| can_say_rows(version, MultipartReplyBody::Flow(vec![row.clone()])))
}

/// Reduces a flow entry to what Nicira's extension of 1.0 can express.
pub fn nicira_flow_stats(row: FlowStats) -> FlowStats {
    cut_stats(row, |row| nicira::put_reply(&NiciraReply::Flow(vec![row.clone()])).is_ok())
}

fn cut_stats(row: FlowStats, fits: impl Fn(&FlowStats) -> bool) -> FlowStats {
    if fits(&row) {
        return row;
    }
    let mut told = FlowStats {
        matching: Match::ANY,
        flags: FlowModFlags::NONE,
        instructions: Vec::new(),
        ..row.clone()
    };
    told.matching = fields(&row.matching, |matching| {
        fits(&FlowStats { matching: matching.clone(), ..told.clone() })
    });
    told.instructions = instructions(&row.instructions, |instructions| {
        fits(&FlowStats { instructions: instructions.to_vec(), ..told.clone() })
    });
    if fits(&FlowStats { flags: row.flags, ..told.clone() }) {
        told.flags = row.flags;
    }
    told
}

/// Reduces a flow-removed message to what the version can express.
pub fn flow_removed(version: Version, news: FlowRemoved) -> FlowRemoved {
    cut_removed(news, |news| can_say(version, &Message::FlowRemoved(news.clone())))
}

/// Reduces a flow-removed message to what Nicira's extension of 1.0 can express.
pub fn nicira_flow_removed(news: FlowRemoved) -> FlowRemoved {
    cut_removed(news, |news| nicira::put_message(&NiciraMessage::FlowRemoved(news.clone())).is_ok())
}

fn cut_removed(news: FlowRemoved, fits: impl Fn(&FlowRemoved) -> bool) -> FlowRemoved {
    if fits(&news) {
        return news;
    }
    let mut told = FlowRemoved { matching: Match::ANY, ..news.clone() };
    if !fits(&told) {
        told.reason = FlowRemovedReason::Delete;
    }
    told.matching = fields(&news.matching, |matching| {
        fits(&FlowRemoved { matching: matching.clone(), ..told.clone() })
    });
    told
}

/// Reduces the pipeline fields of a packet-in to what Nicira's extension of 1.0 can express.
pub fn nicira_packet_in(news: PacketIn) -> PacketIn {
    let fields = fields(&news.fields, |fields| {
        let told = PacketIn { fields: fields.clone(), data: Vec::new(), ..news.clone() };
        nicira::put_message(&NiciraMessage::PacketIn(told)).is_ok()
    });
    PacketIn { fields, ..news }
}

/// Returns the bytes of a message with one group description, if the version can express it and it
/// fits.
pub fn group_bytes(version: Version, row: GroupDescription) -> Option<usize> {
    let body = MultipartReplyBody::GroupDesc(vec![row]);
    let message = Message::MultipartReply(MultipartReply { more: false, body });
    let mut bytes = Vec::new();
    codec::encode(version, 0, &message, &mut bytes).ok().map(|()| bytes.len())
}

/// Reduces a bucket to what the version can express. `group` is its group without buckets. Also
/// returns the bytes of a message with this bucket alone. Returns `None` if the version cannot
/// express the bucket.
pub fn bucket(
    version: Version,
    group: &GroupDescription,
    bucket: Bucket,
) -> Option<(Bucket, usize)> {
    let bytes = |bucket: &Bucket| {
        group_bytes(version, GroupDescription { buckets: vec![bucket.clone()], ..group.clone() })
    };
    if let Some(bytes) = bytes(&bucket) {
        return Some((bucket, bytes));
    }
    let fits = |actions: &[Action]| {
        bytes(&Bucket { actions: actions.to_vec(), ..bucket.clone() }).is_some()
    };
    let told = Bucket { actions: prefix_free(&bucket.actions, fits), ..bucket };
    bytes(&told).map(|bytes| (told, bytes))
}

/// Returns the match fields that the version has, if it also has their prerequisites.
pub fn fields(from: &Match, fits: impl Fn(&Match) -> bool) -> Match {
    from.fields().iter().fold(Match::ANY, |told, field| {
        let mut more = told.clone();
        more.set(*field);
        if fits(&more) { more } else { told }
    })
}

/// Returns the instructions that the version has, with the actions that it has.
fn instructions(from: &[Instruction], fits: impl Fn(&[Instruction]) -> bool) -> Vec<Instruction> {
    let mut told: Vec<Instruction> = Vec::new();
    for instruction in from {
        let with = |last: Instruction| [told.clone(), vec![last]].concat();
        let list = |of: fn(Vec<Action>) -> Instruction, actions: &[Action]| {
            of(prefix_free(actions, |actions| fits(&with(of(actions.to_vec())))))
        };
        let last = match instruction {
            Instruction::ApplyActions(actions) => list(Instruction::ApplyActions, actions),
            Instruction::WriteActions(actions) => list(Instruction::WriteActions, actions),
            other => other.clone(),
        };
        let more = with(last);
        if fits(&more) {
            told = more;
        }
    }
    told
}

/// Returns the actions without those that do not fit after the actions before them.
fn prefix_free(from: &[Action], fits: impl Fn(&[Action]) -> bool) -> Vec<Action> {
    if fits(from) {
        return from.to_vec();
    }
    let mut told: Vec<Action> = Vec::new();
    for action in from {
        told.push(action.clone());
        if !fits(&told) {
            told.pop();
        }
    }
    told
}

/// Reduces a port description to what the version can express; each version has bits that others
/// lack.
pub fn port(version: Version, mut port: PortDescription) -> PortDescription {
    if version == Version::V1_0 {
        port.state = port.state.without(PortState::BLOCKED | PortState::LIVE);
        let new = PortFeatures::SPEED_40G_FULL
            | PortFeatures::SPEED_100G_FULL
            | PortFeatures::SPEED_1T_FULL
            | PortFeatures::SPEED_OTHER;
        for features in
            [&mut port.current, &mut port.advertised, &mut port.supported, &mut port.peer]
        {
            *features = features.without(new);
        }
    } else {
        let old = PortConfig::NO_STP | PortConfig::NO_RECEIVE_STP | PortConfig::NO_FLOOD;
        port.config = port.config.without(old);
        port.state = port.state.without(PortState::STP_LOW | PortState::STP_HIGH);
    }
    if version < Version::V1_4 {
        port.properties.clear();
    }
    port
}
