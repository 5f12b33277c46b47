//! Statistics and descriptions of queues, and features of groups and meters.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 7.2.2 and 7.3.5.8 to 7.3.5.14.

use dataplane::group::GROUP_NO_MAX;
use dataplane::pipeline::Pipeline;
use dataplane::queue::QueueRecord;
use openflow::model::group::{GROUP_ALL, GroupCapabilities, GroupFeatures, GroupKinds};
use openflow::model::meter::{
    METER_ALL, METER_CONTROLLER, METER_SLOWPATH, MeterBandKinds, MeterFeatureFlags, MeterFeatures,
    MeterFlags,
};
use openflow::model::queue::{PacketQueue, QUEUE_ALL, QueueProperty, QueueStats};
use openflow::model::{ActionKinds, PortNo};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

/// Queues that a request selects.
#[derive(Debug, Clone, Copy)]
pub struct QueueRange {
    /// Indexes of the first and the last port, in the order of port numbers.
    places: (usize, usize),
    /// The number of the queue, or `None` for all.
    queue: Option<u32>,
}

impl QueueRange {
    /// Returns the selected queues: of a known port, or of all.
    pub fn new(port: PortNo, queue: u32, ports: &[PortNo]) -> QueueRange {
        let every = (0, ports.len().saturating_sub(1));
        let places = ports.iter().position(|it| *it == port).map_or(every, |place| (place, place));
        QueueRange { places, queue: (queue != QUEUE_ALL).then_some(queue) }
    }

    /// Returns the position of the first queue that the range can have.
    pub fn start(&self) -> u64 {
        (self.places.0 as u64) << 32
    }

    /// Returns the first queue from a position on, and its position.
    pub fn next(
        &self,
        from: u64,
        (pipeline, ports): (&Pipeline, &[PortNo]),
        now: Nanos,
    ) -> Option<(u64, QueueRecord)> {
        let (first, from) = ((from >> 32) as usize, from as u32);
        let (egress, wanted) = (pipeline.egress(), self.queue);
        ports.iter().enumerate().take(self.places.1 + 1).skip(first).find_map(|(place, &port)| {
            let from = if place == first { from } else { 0 };
            let from = wanted.map_or(from, |wanted| from.max(wanted));
            let record = egress.shaped().next(port, from, now)?;
            let queue = record.spec.queue;
            let is_wanted = wanted.is_none_or(|wanted| wanted == queue);
            is_wanted.then_some(((place as u64) << 32 | u64::from(queue), record))
        })
    }
}

/// Converts a queue's counters.
pub fn queue_stats(record: &QueueRecord) -> QueueStats {
    QueueStats {
        port: record.port,
        queue: record.spec.queue,
        tx_bytes: record.bytes,
        tx_packets: record.frames,
        tx_errors: record.errors,
        age: Some(record.age),
        properties: Vec::new(),
    }
}

/// Converts a queue to its description. Rates are in tenths of a per cent of the port's rate, where
/// that is known.
pub fn queue_description(version: Version, record: &QueueRecord) -> PacketQueue {
    let share = |rate: Option<u64>| {
        let (rate, of) = (u128::from(rate?), u128::from(record.port_rate?));
        u16::try_from((rate * 1000).div_ceil(of.max(1))).ok()
    };
    // 1.0 and 1.1 have no maximum rate.
    let max = share(record.spec.max).filter(|_| version >= Version::V1_2);
    let min = share(record.spec.min).map(QueueProperty::MinRate);
    PacketQueue {
        port: record.port,
        id: record.spec.queue,
        properties: min.into_iter().chain(max.map(QueueProperty::MaxRate)).collect(),
    }
}

/// Returns the descriptions of all queues of a port, or of all ports.
pub fn queue_descriptions(
    port: PortNo,
    version: Version,
    source: (&Pipeline, &[PortNo]),
    now: Nanos,
) -> Vec<PacketQueue> {
    let range = QueueRange::new(port, QUEUE_ALL, source.1);
    let mut from = range.start();
    let records = std::iter::from_fn(|| {
        let (position, record) = range.next(from, source, now)?;
        from = position + 1;
        Some(queue_description(version, &record))
    });
    records.collect()
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
