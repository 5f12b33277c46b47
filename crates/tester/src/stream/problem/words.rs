//! Texts of the problems of a stream: the given value and the allowed ones.

use super::Problem;
use crate::signature::SIGNATURE_BYTES;
use crate::stream::burst_profile::RAMP_MAX;

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::TooSmall { frame_bytes, smallest_bytes } => write!(
                f,
                "{frame_bytes}-byte frames are too small for headers and signature: at least \
                 {smallest_bytes} bytes with FCS"
            ),
            Problem::BadSignaturePlace { at, first, last } if first > last => write!(
                f,
                "signature_at = {at}: headers end at {first}, but a signature of \
                 {SIGNATURE_BYTES} bytes must start at {last} (hint: use larger frames)"
            ),
            Problem::BadSignaturePlace { at, first, last } => write!(
                f,
                "signature_at = {at}: not an even offset from {first} (end of headers) to {last}"
            ),
            Problem::TooLarge { frame_bytes, largest_bytes } => {
                write!(f, "{frame_bytes}-byte frames are too large: at most {largest_bytes} bytes")
            }
            Problem::BadRate(rate) => {
                write!(f, "invalid rate {rate} (hint: use 0.000001 to a billion frames per second)")
            }
            Problem::BadLink(capacity) => {
                write!(f, "invalid link rate {capacity} bit/s (hint: use a positive rate)")
            }
            Problem::UnsignedReplay => f.write_str(
                "replays are unsupported here: their frames have no signature (hint: remove the \
                 replay)",
            ),
            Problem::BadGapFactor(factor) => {
                write!(f, "invalid gap factor {factor} (hint: use 0.000001 to 1000000)")
            }
            Problem::NoSuchPort { port, ports } => {
                write!(f, "no port {} (there are {ports})", port.wrapping_add(1))
            }
            Problem::DuplicateId(id) => write!(f, "stream ID {id} is used twice"),
            Problem::BadTtl(ttl) => write!(f, "TTL {ttl} is too low for the path"),
            Problem::BadVlan(vlan) => {
                write!(f, "VLAN {} priority {}: at most 4095 and 7", vlan.id, vlan.priority)
            }
            Problem::BadLabel(label) => {
                write!(f, "label {} class {}: at most 1048575 and 7", label.label, label.class)
            }
            Problem::BadFlowLabel(label) => write!(f, "flow_label {label}: at most 1048575"),
            Problem::BadLevel(level) => write!(f, "loopback_level {level}: at most 7"),
            Problem::NotAnswered => f.write_str(
                "arrival: only loopback messages (loopback_level) with constant addresses return \
                 with a reply",
            ),
            Problem::NotRouted => {
                f.write_str("arrival: a router forwards only IP, without ARP, OAM or MPLS labels")
            }
            Problem::BadTagging => f.write_str(
                "arrival: only untagged frames can arrive tagged, and only frames with one tag \
                 can arrive untagged",
            ),
            Problem::BadTags(count) => write!(
                f,
                "arrival: {count} tags (hint: use one, or one for each index of the first varying \
                 group, all of one kind)"
            ),
            Problem::BadBurst { frames, gap, cycle } => write!(
                f,
                "bursts of {frames} frames {} ns apart do not fit: at this rate a burst starts \
                 every {} ns",
                gap.0, cycle.0
            ),
            Problem::BadOnOff => f.write_str("on_off: on_ns must be at least 1"),
            Problem::BadRamp(over) => {
                write!(f, "ramp: {} ns is not between 1 and {} ns", over.0, RAMP_MAX.0)
            }
            Problem::BadGenome(error) => write!(f, "genome: {error}"),
            Problem::BadWeights => f.write_str(
                "weights: invalid list (hint: use at most LIST_VALUES_MAX numbers from 0 up, not \
                 all 0)",
            ),
            Problem::BadLetter(letter) => {
                write!(
                    f,
                    "genome_sizes: {letter:?} is neither a single capital letter nor z, the MTU"
                )
            }
            Problem::NotHere(what) => f.write_str(what),
            Problem::WeightsLength { count, length } => {
                write!(f, "weights: {length} numbers for a count of {count}")
            }
            Problem::EmptyVary => write!(f, "a group of varying fields has no field"),
            Problem::ListLength { field, count, length } => {
                write!(f, "{field}: a list of {length} values for a count of {count}")
            }
            Problem::BadValue { field, value } => {
                write!(f, "{field}: {value:#x} does not fit into the field")
            }
            Problem::VariedTwice(field) => write!(f, "{field} varies in more than one group"),
            Problem::NoSuchField(field) => {
                write!(f, "{field} varies, but the frames do not have it")
            }
            Problem::MissingKey(key) => write!(f, "missing key {key}"),
            Problem::Contradiction(one, other) => write!(f, "{one} and {other} exclude each other"),
            Problem::LimitReached(limit) => write!(f, "more than {limit} allows"),
        }
    }
}
