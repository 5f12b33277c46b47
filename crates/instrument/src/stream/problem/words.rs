//! Texts of the problems of a stream: the given value and the allowed ones.

use super::Problem;
use crate::signature::SIGNATURE_BYTES;
use crate::stream::shape::RAMP_MAX;

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::TooSmall { frame_bytes, smallest_bytes } => write!(
                f,
                "{frame_bytes}-byte frames cannot carry headers and signature: \
                 the smallest possible size is {smallest_bytes} bytes (FCS included)"
            ),
            Problem::BadSignaturePlace { at, first, last } if first > last => write!(
                f,
                "signature_at = {at}: the headers end at {first}, and a signature of \
                 {SIGNATURE_BYTES} bytes would have to begin at {last}: take larger frames"
            ),
            Problem::BadSignaturePlace { at, first, last } => write!(
                f,
                "signature_at = {at}: the signature of {SIGNATURE_BYTES} bytes has to begin at an \
                 even place from {first}, behind the headers, to {last}"
            ),
            Problem::TooLarge { frame_bytes, largest_bytes } => {
                write!(f, "{frame_bytes}-byte frames are too large: at most {largest_bytes} bytes")
            }
            Problem::BadRate(rate) => write!(
                f,
                "{rate} is not a rate that can be sent: from 0.000001 to a billion frames a second"
            ),
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
            Problem::BadLabel(label) => {
                write!(f, "label {} class {}: at most 1048575 and 7", label.label, label.class)
            }
            Problem::BadFlowLabel(label) => write!(f, "flow_label {label}: at most 1048575"),
            Problem::BadLevel(level) => write!(f, "loopback_level {level}: at most 7"),
            Problem::NotAnswered => f.write_str(
                "arrival: what comes back answered are loopback messages (loopback_level) whose addresses do not vary",
            ),
            Problem::NotRouted => f.write_str(
                "arrival: what a router sends on is IP, neither ARP nor OAM and not behind MPLS labels",
            ),
            Problem::BadTagging => f.write_str(
                "arrival: frames that leave without a tag may arrive tagged, and such with one tag untagged",
            ),
            Problem::BadTags(count) => write!(
                f,
                "arrival: {count} tags: give one, or one for each index of the first group that varies, all \
                 of one kind"
            ),
            Problem::BadBurst { frames, gap, cycle } => write!(
                f,
                "bursts of {frames} frames {} ns apart do not fit: by the rate one begins every \
                 {} ns",
                gap.0, cycle.0
            ),
            Problem::BadOnOff => f.write_str("on_off: on_ns has to be at least 1"),
            Problem::BadRamp(over) => {
                write!(f, "a ramp cannot take {} ns: from 1 to {} ns", over.0, RAMP_MAX.0)
            }
            Problem::BadGenome(error) => write!(f, "genome: {error}"),
            Problem::BadWeights => f.write_str(
                "weights: numbers from 0 up that are not all 0, at most LIST_VALUES_MAX of them",
            ),
            Problem::BadLetter(letter) => {
                write!(f, "genome_sizes: {letter:?} is neither one capital letter nor z, the MTU")
            }
            Problem::NotHere(what) => f.write_str(what),
            Problem::WeightsLength { count, length } => {
                write!(f, "weights: {length} of them where the count is {count}")
            }
            Problem::EmptyVary => write!(f, "a group of varying fields varies nothing"),
            Problem::ListLength { field, count, length } => {
                write!(f, "{field}: a list of {length} values where the count is {count}")
            }
            Problem::BadValue { field, value } => {
                write!(f, "{field}: {value:#x} does not fit into the field")
            }
            Problem::VariedTwice(field) => write!(f, "{field} varies in more than one place"),
            Problem::NoSuchField(field) => {
                write!(f, "{field} varies, but the stream's frames have no such field")
            }
            Problem::MissingKey(key) => write!(f, "the key {key} is missing"),
            Problem::Contradiction(one, other) => write!(f, "{one} and {other} exclude each other"),
            Problem::LimitReached(limit) => write!(f, "more than {limit} allows"),
        }
    }
}
