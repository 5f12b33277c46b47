//! Statistics and descriptions of queues, and features of groups and meters.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 7.2.2 and 7.3.5.8 to 7.3.5.14.

use dataplane::group::GROUP_NO_MAX;
use dataplane::pipeline::Pipeline;
use dataplane::queue::QueueRecord;
use openflow::model::ActionKinds;
use openflow::model::group::{GROUP_ALL, GroupCapabilities, GroupFeatures, GroupKinds};
use openflow::model::meter::{
    METER_ALL, METER_CONTROLLER, METER_SLOWPATH, MeterBandKinds, MeterFeatureFlags, MeterFeatures,
    MeterFlags,
};
use openflow::model::queue::{PacketQueue, QUEUE_ALL, QueueProperty, QueueStats};
use openflow::model::{PortNo, reserved};
use openflow::version::{ErrorCode, Version};

use super::Datapath;

/// Returns the queues that a request selects.
fn queues(port: PortNo, queue: Option<u32>, datapath: &Datapath<'_>) -> Vec<QueueRecord> {
    let every_port = [reserved::ALL, reserved::NONE].contains(&port);
    let queue = queue.filter(|queue| *queue != QUEUE_ALL);
    let mut rows = datapath.pipeline.egress().queue_records(datapath.now);
    rows.retain(|row| {
        (every_port || row.port == port) && queue.is_none_or(|queue| queue == row.spec.queue)
    });
    rows
}

/// Returns queue statistics. A named queue must exist.
pub fn queue_stats(
    port: PortNo,
    queue: u32,
    datapath: &Datapath<'_>,
) -> Result<Vec<QueueStats>, ErrorCode> {
    let rows = queues(port, Some(queue), datapath);
    if rows.is_empty() && queue != QUEUE_ALL {
        return Err(ErrorCode::QueueOpBadQueue);
    }
    let row = |row: &QueueRecord| QueueStats {
        port: row.port,
        queue: row.spec.queue,
        tx_bytes: row.bytes,
        tx_packets: row.frames,
        tx_errors: row.errors,
        age: Some(row.age),
        properties: Vec::new(),
    };
    Ok(rows.iter().map(row).collect())
}

/// Returns queue descriptions. Rates are in tenths of a per cent of the port's rate, where that is
/// known.
pub fn queue_descriptions(
    port: PortNo,
    queue: Option<u32>,
    version: Version,
    datapath: &Datapath<'_>,
) -> Vec<PacketQueue> {
    let share = |rate: Option<u64>, of: Option<u64>| {
        let (rate, of) = (u128::from(rate?), u128::from(of?));
        u16::try_from((rate * 1000).div_ceil(of.max(1))).ok()
    };
    // 1.0 and 1.1 have no maximum rate.
    let max =
        |row: QueueRecord| share(row.spec.max, row.port_rate).filter(|_| version >= Version::V1_2);
    let row = |row: QueueRecord| PacketQueue {
        port: row.port,
        id: row.spec.queue,
        properties: share(row.spec.min, row.port_rate)
            .map(QueueProperty::MinRate)
            .into_iter()
            .chain(max(row).map(QueueProperty::MaxRate))
            .collect(),
    };
    queues(port, queue, datapath).into_iter().map(row).collect()
}

/// Returns the group features.
pub fn group_features(version: Version, pipeline: &Pipeline) -> GroupFeatures {
    let actions = ActionKinds::of(version);
    GroupFeatures {
        kinds: GroupKinds::ALL,
        capabilities: GroupCapabilities::ALL,
        groups_max: [pipeline.groups().limits().groups_max as u32; 4],
        actions: [actions; 4],
    }
}

/// Returns the first and the last number of the meters that a request selects. A named meter must
/// exist.
pub fn meters(meter: u32, pipeline: &Pipeline) -> Result<(u32, u32), ErrorCode> {
    match meter {
        METER_ALL => Ok((0, u32::MAX)),
        METER_CONTROLLER | METER_SLOWPATH => Ok((meter, meter)),
        _ if pipeline.meters().contains(meter) => Ok((meter, meter)),
        _ => Err(ErrorCode::MeterModUnknownMeter),
    }
}

/// Returns the first and the last number of the groups that a request selects.
pub fn groups(group: u32) -> (u32, u32) {
    if group == GROUP_ALL { (0, GROUP_NO_MAX) } else { (group, group) }
}

/// Returns the meter features.
pub fn meter_features(version: Version, pipeline: &Pipeline) -> MeterFeatures {
    let limits = pipeline.meters().limits();
    MeterFeatures {
        meters_max: limits.meters_max as u32,
        band_kinds: MeterBandKinds::DROP | MeterBandKinds::DSCP_REMARK,
        capabilities: MeterFlags::ALL,
        bands_max: u8::try_from(limits.bands_max).unwrap_or(u8::MAX),
        colours_max: 0,
        flags: match version {
            Version::V1_5 => MeterFeatureFlags::ANY_POSITION | MeterFeatureFlags::MULTI_LIST,
            _ => MeterFeatureFlags::NONE,
        },
    }
}
