//! Validation of streams: all problems in one list, as values.
//!
//! A valid stream has frames that fit, a rate that a schedule can produce, and existing ports.

use packet::frame::{FCS_BYTES, FRAME_BYTES_MAX};
use packet::time::Nanos;

use super::burst_profile::RAMP_MAX;
use super::headers::{LABELS_MAX, TAGS_MAX};
use super::imix_genome::GenomeError;
use super::{
    Arrival, BurstProfile, Field, IndexOrder, LIST_VALUES_MAX, Label, Network, Rate, Stream,
    TAG_BYTES, VARY_GROUPS_MAX, Values, Vlan,
};
use crate::signature::SIGNATURE_BYTES;

mod words;

/// A problem of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The frame is too small for its headers and the signature.
    TooSmall {
        /// Requested size, frame check sequence included.
        frame_bytes: usize,
        /// Smallest possible size, frame check sequence included.
        smallest_bytes: usize,
    },
    /// The signature's offset is invalid.
    BadSignaturePlace {
        /// Requested offset in bytes.
        at: usize,
        /// Lowest possible offset: directly after the headers.
        first: usize,
        /// Highest possible offset, in the stream's smallest frame.
        last: usize,
    },
    /// The frame is too large for any port.
    TooLarge {
        /// Requested size, frame check sequence included.
        frame_bytes: usize,
        /// Largest possible size, frame check sequence included.
        largest_bytes: usize,
    },
    /// The rate is not a positive number, or too high for a schedule.
    BadRate(f64),
    /// The link has no capacity.
    BadLink(u64),
    /// The gap factor is out of range.
    BadGapFactor(f64),
    /// The rig has no such port.
    NoSuchPort {
        /// Index of the port.
        port: usize,
        /// Number of ports.
        ports: usize,
    },
    /// A replay is not supported here, because every frame needs a signature.
    UnsignedReplay,
    /// Two streams have this id.
    DuplicateId(u16),
    /// The TTL is too low for the path.
    BadTtl(u8),
    /// VLAN identifier or priority is out of range.
    BadVlan(Vlan),
    /// MPLS label or traffic class is out of range.
    BadLabel(Label),
    /// The IPv6 flow label exceeds 20 bits.
    BadFlowLabel(u32),
    /// The maintenance level exceeds 3 bits.
    BadLevel(u8),
    /// Routed arrival of frames that a router does not forward as IP.
    NotRouted,
    /// Replies to frames that are no loopback requests, or whose addresses vary.
    NotAnswered,
    /// Tagged arrival of tagged frames, or untagged arrival of untagged frames.
    BadTagging,
    /// The number of tags is neither one nor the count of the first group, or their types differ.
    BadTags(usize),
    /// A burst is longer than the time between bursts, or empty.
    BadBurst {
        /// Frames per burst.
        frames: u64,
        /// Gap between frames of a burst.
        gap: Nanos,
        /// Time between bursts at the stream's rate.
        cycle: Nanos,
    },
    /// The on time is zero.
    BadOnOff,
    /// The ramp's duration is zero or exceeds [`RAMP_MAX`].
    BadRamp(Nanos),
    /// The genome is invalid.
    BadGenome(GenomeError),
    /// A weight is negative or not a number, or all weights are 0.
    BadWeights,
    /// A name of a custom size is not a valid letter.
    BadLetter(String),
    /// Something unsupported here, with the supported alternative.
    NotHere(&'static str),
    /// A group of varying fields has no values or no fields.
    EmptyVary,
    /// The length of a list is not the group's count.
    ListLength {
        /// Field of the list.
        field: Field,
        /// Count of the group.
        count: u64,
        /// Length of the list.
        length: usize,
    },
    /// The number of weights is not the group's count.
    WeightsLength {
        /// Count of the group.
        count: u64,
        /// Number of weights.
        length: usize,
    },
    /// A value does not fit into its field.
    BadValue {
        /// The field.
        field: Field,
        /// The value.
        value: u64,
    },
    /// More than one group sets the field.
    VariedTwice(Field),
    /// A varying field does not exist in the stream's frames.
    NoSuchField(Field),
    /// A required key of a stream file is missing.
    MissingKey(&'static str),
    /// Two keys of a stream file exclude each other.
    Contradiction(&'static str, &'static str),
    /// A named limit is exceeded.
    LimitReached(&'static str),
}

/// Returns all problems of these streams in a rig of `ports` ports, each with its stream id.
pub fn validate(streams: &[Stream], ports: usize) -> Vec<(u16, Problem)> {
    let mut problems = Vec::new();
    for (place, stream) in streams.iter().enumerate() {
        problems.extend(stream.validate().into_iter().map(|problem| (stream.id, problem)));
        for port in [stream.from, stream.to] {
            if port >= ports {
                problems.push((stream.id, Problem::NoSuchPort { port, ports }));
            }
        }
        if streams[..place].iter().any(|other| other.id == stream.id) {
            problems.push((stream.id, Problem::DuplicateId(stream.id)));
        }
    }
    problems
}

impl Stream {
    /// Returns all problems of the stream on its own.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.validate_sizes(&mut problems);
        let before = problems.len();
        self.rate.validate(self, &mut problems);
        // An invalid rate has no schedule to check.
        if problems.len() == before {
            self.validate_shape(&mut problems);
        }
        self.validate_headers(&mut problems);
        self.validate_vary(&mut problems);
        problems
    }

    fn validate_sizes(&self, problems: &mut Vec<Problem>) {
        let grows = matches!(self.arrival, Arrival::Tagged(_));
        let tag_bytes = if grows { TAG_BYTES } else { 0 };
        let largest_bytes = FRAME_BYTES_MAX + FCS_BYTES - tag_bytes;
        let first = self.headers.layout().payload_at;
        let smallest = self.sizes().iter().copied().min().unwrap_or(self.frame_bytes);
        if let Some(at) = self.signature_at {
            let behind = self.headers.network.trailer_bytes() + FCS_BYTES;
            let last = smallest.saturating_sub(behind + SIGNATURE_BYTES) & !1;
            if at < first || at > last || at % 2 == 1 {
                problems.push(Problem::BadSignaturePlace { at, first, last });
                return;
            }
        }
        let smallest_bytes = self.frame_bytes_min();
        for &frame_bytes in self.sizes() {
            if frame_bytes < smallest_bytes {
                problems.push(Problem::TooSmall { frame_bytes, smallest_bytes });
            }
            if frame_bytes > largest_bytes {
                problems.push(Problem::TooLarge { frame_bytes, largest_bytes });
            }
        }
    }

    fn validate_shape(&self, problems: &mut Vec<Problem>) {
        match self.shape {
            BurstProfile::Constant | BurstProfile::Poisson { .. } => {}
            BurstProfile::Bursts { frames, gap } => {
                let cycle = Nanos::from_secs_f64((frames as f64 / self.rate_pps()).clamp(0.0, 1e9));
                if frames == 0 || frames.saturating_mul(gap.0) > cycle.0 {
                    problems.push(Problem::BadBurst { frames, gap, cycle });
                }
            }
            BurstProfile::OnOff { on, off } => {
                if on == Nanos::ZERO || on.saturating_add(off) == Nanos(u64::MAX) {
                    problems.push(Problem::BadOnOff);
                }
            }
            BurstProfile::Ramp { to, over } => {
                to.validate(self, problems);
                if self.rate_pps() < 0.001 || to.pps_of(self.mean_bytes()) < 0.001 {
                    problems.push(Problem::BadRate(self.rate_pps().min(to.number())));
                }
                if over == Nanos::ZERO || over > RAMP_MAX {
                    problems.push(Problem::BadRamp(over));
                }
            }
        }
    }

    fn validate_headers(&self, problems: &mut Vec<Problem>) {
        let headers = &self.headers;
        let is_routed = matches!(self.arrival, Arrival::Routed { .. });
        if headers.ttl < if is_routed { 2 } else { 1 } {
            problems.push(Problem::BadTtl(headers.ttl));
        }
        let is_bad = |vlan: &&Vlan| vlan.id > 0xfff || vlan.priority > 7;
        problems.extend(headers.vlans.iter().find(is_bad).copied().map(Problem::BadVlan));
        let is_bad = |label: &&Label| label.label > 0xf_ffff || label.class > 7;
        problems.extend(headers.labels.iter().find(is_bad).copied().map(Problem::BadLabel));
        if headers.vlans.len() > TAGS_MAX {
            problems.push(Problem::LimitReached("TAGS_MAX"));
        }
        if headers.labels.len() > LABELS_MAX {
            problems.push(Problem::LimitReached("LABELS_MAX"));
        }
        let is_arp = matches!(headers.network, Network::Arp { .. });
        let has_transport = headers.network.has_transport();
        // A varying address can have two locations in a frame. ARP in a backbone would need three.
        if is_arp && headers.backbone.is_some() {
            problems.push(Problem::Contradiction("arp", "backbone"));
        }
        if is_routed && (!has_transport || headers.backbone.is_some() || !headers.labels.is_empty())
        {
            problems.push(Problem::NotRouted);
        }
        self.validate_arrival(problems);
        match headers.network {
            Network::Ipv6 { flow_label, .. } if flow_label > 0xf_ffff => {
                problems.push(Problem::BadFlowLabel(flow_label));
            }
            Network::Loopback { level, .. } if level > 7 => problems.push(Problem::BadLevel(level)),
            _ => {}
        }
    }

    fn validate_arrival(&self, problems: &mut Vec<Problem>) {
        let tags = self.headers.vlans.len();
        match &self.arrival {
            Arrival::Unchanged | Arrival::Routed { .. } => {}
            Arrival::Answered => {
                let asks = matches!(self.headers.network, Network::Loopback { answers: false, .. });
                let is_address = |(field, _): &(Field, Values)| {
                    matches!(field, Field::MacSource | Field::MacDestination)
                };
                let varies = self.vary.iter().flat_map(|group| &group.fields).any(is_address);
                if !asks || varies || self.headers.backbone.is_some() {
                    problems.push(Problem::NotAnswered);
                }
            }
            Arrival::Untagged if tags == 1 => {}
            Arrival::Untagged => problems.push(Problem::BadTagging),
            Arrival::Tagged(_) if tags > 0 => problems.push(Problem::BadTagging),
            Arrival::Tagged(put) => {
                let is_bad = |vlan: &&Vlan| vlan.id > 0xfff || vlan.priority > 7;
                problems.extend(put.iter().find(is_bad).copied().map(Problem::BadVlan));
                let drawn = self.vary.first().map(|group| group.count);
                let is_one_each = put.len() == 1 || drawn == Some(put.len() as u64);
                let is_one_kind = put.windows(2).all(|pair| pair[0].kind == pair[1].kind);
                if !is_one_each || !is_one_kind {
                    problems.push(Problem::BadTags(put.len()));
                }
            }
        }
    }

    fn validate_vary(&self, problems: &mut Vec<Problem>) {
        if self.vary.len() > VARY_GROUPS_MAX {
            problems.push(Problem::LimitReached("VARY_GROUPS_MAX"));
        }
        let mut seen = Vec::new();
        for group in &self.vary {
            if group.count == 0 || group.fields.is_empty() {
                problems.push(Problem::EmptyVary);
            }
            if let IndexOrder::Weighted { weights, .. } = &group.order
                && weights.count() != group.count
            {
                let (count, length) = (group.count, weights.count() as usize);
                problems.push(Problem::WeightsLength { count, length });
            }
            for (field, values) in &group.fields {
                // The whole tag and its identifier cannot both vary.
                let place =
                    |field: Field| if field == Field::VlanTag { Field::VlanId } else { field };
                if seen.contains(&place(*field)) {
                    problems.push(Problem::VariedTwice(*field));
                }
                seen.push(place(*field));
                if !self.headers.has(*field) {
                    problems.push(Problem::NoSuchField(*field));
                }
                values.validate(*field, group.count, problems);
            }
        }
    }
}

impl Values {
    fn validate(&self, field: Field, count: u64, problems: &mut Vec<Problem>) {
        let mut check = |value: u64| {
            if value & !field.mask() != 0 {
                problems.push(Problem::BadValue { field, value });
            }
        };
        match self {
            Values::Range { first, .. } => check(*first),
            Values::Scattered { .. } => {}
            Values::List(list) => {
                if let Some(&value) = list.iter().find(|&&value| value & !field.mask() != 0) {
                    check(value);
                }
                if list.len() > LIST_VALUES_MAX {
                    problems.push(Problem::LimitReached("LIST_VALUES_MAX"));
                } else if list.len() as u64 != count {
                    let length = list.len();
                    problems.push(Problem::ListLength { field, count, length });
                }
            }
        }
    }
}

impl Rate {
    fn number(self) -> f64 {
        match self {
            Rate::FramesPerSecond(pps) => pps,
            Rate::LinkPercent { percent, .. } => percent,
        }
    }

    fn validate(self, stream: &Stream, problems: &mut Vec<Problem>) {
        let pps = self.pps_of(stream.mean_bytes());
        match self {
            Rate::LinkPercent { link_bits_per_second: 0, .. } => problems.push(Problem::BadLink(0)),
            rate if !(rate.number() >= 1e-6 && rate.number() < 1e12 && pps <= 1e9) => {
                problems.push(Problem::BadRate(rate.number()));
            }
            _ => {}
        }
    }
}
