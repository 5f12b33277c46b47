//! What is wrong with a stream: all of it at once, as values.
//!
//! A stream that passes makes frames that fit, at a rate that a schedule can keep, from and to
//! ports that exist.

use packet::frame::{FCS_BYTES, FRAME_BYTES_MAX};

use super::{Arrival, Field, LIST_VALUES_MAX, Rate, Stream, VARY_GROUPS_MAX, Values, Vlan};

/// What is wrong with a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The frame cannot hold its headers and the signature.
    TooSmall {
        /// The size asked for, frame check sequence included.
        frame_bytes: usize,
        /// The smallest that would do, frame check sequence included.
        smallest_bytes: usize,
    },
    /// The frame is larger than any port takes.
    TooLarge {
        /// The size asked for, frame check sequence included.
        frame_bytes: usize,
        /// The largest allowed, frame check sequence included.
        largest_bytes: usize,
    },
    /// The rate is not a positive number that a schedule can keep.
    BadRate(f64),
    /// The link has no capacity.
    BadLink(u64),
    /// Gaps cannot be longer by this factor.
    BadGapFactor(f64),
    /// The stream names a port that the rig has not.
    NoSuchPort {
        /// The port's index.
        port: usize,
        /// How many ports there are.
        ports: usize,
    },
    /// A replay where every frame must be known again.
    UnsignedReplay,
    /// Two streams have this number.
    DuplicateId(u16),
    /// A TTL that does not survive the way.
    BadTtl(u8),
    /// VLAN identifier or priority out of range.
    BadVlan(Vlan),
    /// A group of varying fields that varies nothing: no values, or no fields.
    EmptyVary,
    /// A list whose length is not the group's count.
    ListLength {
        /// The field it belongs to.
        field: Field,
        /// The group's count.
        count: u64,
        /// The list's length.
        length: usize,
    },
    /// A value does not fit into its field.
    BadValue {
        /// The field.
        field: Field,
        /// The value.
        value: u64,
    },
    /// The field is set by more than one group.
    VariedTwice(Field),
    /// The VLAN identifier varies in a stream without a tag.
    NoVlan,
    /// A key that a stream file needs is missing.
    MissingKey(&'static str),
    /// Two keys of a stream file exclude each other.
    Contradiction(&'static str, &'static str),
    /// More than a named limit allows.
    LimitReached(&'static str),
}

/// Everything that is wrong with these streams in a rig of `ports` ports, each with the number of
/// the stream it concerns.
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
    /// Everything that is wrong with the stream by itself.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let smallest_bytes = self.frame_bytes_min();
        let largest_bytes = FRAME_BYTES_MAX + FCS_BYTES;
        if self.frame_bytes < smallest_bytes {
            problems.push(Problem::TooSmall { frame_bytes: self.frame_bytes, smallest_bytes });
        }
        if self.frame_bytes > largest_bytes {
            problems.push(Problem::TooLarge { frame_bytes: self.frame_bytes, largest_bytes });
        }
        match self.rate {
            Rate::LinkPercent { link_bits_per_second: 0, .. } => problems.push(Problem::BadLink(0)),
            rate if !rate.is_usable(self.frame_bytes) => {
                problems.push(Problem::BadRate(rate.number()))
            }
            _ => {}
        }
        let least_ttl = if matches!(self.arrival, Arrival::Routed { .. }) { 2 } else { 1 };
        if self.headers.ttl < least_ttl {
            problems.push(Problem::BadTtl(self.headers.ttl));
        }
        if let Some(vlan) = self.headers.vlan
            && (vlan.id > 0xfff || vlan.priority > 7)
        {
            problems.push(Problem::BadVlan(vlan));
        }
        self.validate_vary(&mut problems);
        problems
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
            for (field, values) in &group.fields {
                if seen.contains(field) {
                    problems.push(Problem::VariedTwice(*field));
                }
                seen.push(*field);
                if *field == Field::VlanId && self.headers.vlan.is_none() {
                    problems.push(Problem::NoVlan);
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

    fn is_usable(self, frame_bytes: usize) -> bool {
        self.number() >= 1e-6 && self.number() < 1e12 && self.pps(frame_bytes) <= 1e9
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::TooSmall { frame_bytes, smallest_bytes } => write!(
                f,
                "{frame_bytes}-byte frames cannot carry headers and signature: \
                 the smallest possible size is {smallest_bytes} bytes (FCS included)"
            ),
            Problem::TooLarge { frame_bytes, largest_bytes } => {
                write!(f, "{frame_bytes}-byte frames are too large: at most {largest_bytes} bytes")
            }
            Problem::BadRate(rate) => write!(f, "{rate} is not a rate that can be sent"),
            Problem::BadLink(capacity) => write!(f, "a link of {capacity} bit/s carries nothing"),
            Problem::UnsignedReplay => f.write_str(
                "a replay cannot be measured here, as its frames carry no signature: leave it out",
            ),
            Problem::BadGapFactor(factor) => {
                write!(f, "gaps cannot be {factor} times as long: from 0.000001 to 1000000 times")
            }
            Problem::NoSuchPort { port, ports } => {
                write!(f, "there is no port {} (there are {ports})", port.wrapping_add(1))
            }
            Problem::DuplicateId(id) => write!(f, "another stream has the number {id} too"),
            Problem::BadTtl(ttl) => write!(f, "a TTL of {ttl} does not survive the way"),
            Problem::BadVlan(vlan) => {
                write!(f, "VLAN {} priority {}: at most 4095 and 7", vlan.id, vlan.priority)
            }
            Problem::EmptyVary => write!(f, "a group of varying fields varies nothing"),
            Problem::ListLength { field, count, length } => {
                write!(f, "{field}: a list of {length} values where the count is {count}")
            }
            Problem::BadValue { field, value } => {
                write!(f, "{field}: {value:#x} does not fit into the field")
            }
            Problem::VariedTwice(field) => write!(f, "{field} varies in more than one place"),
            Problem::NoVlan => write!(f, "vlan_id varies, but the stream has no VLAN tag"),
            Problem::MissingKey(key) => write!(f, "the key {key} is missing"),
            Problem::Contradiction(one, other) => write!(f, "{one} and {other} exclude each other"),
            Problem::LimitReached(limit) => write!(f, "more than {limit} allows"),
        }
    }
}
