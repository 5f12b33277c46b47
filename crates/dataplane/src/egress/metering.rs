//! Metering of frames.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 5.7.1; RFC 2597, section 6 (code points and
//! drop precedences of the assured forwarding classes). Other code points do not change.

use packet::field::Field;
use packet::frame::Frame;
use packet::time::Nanos;

use super::Egress;
use crate::action::Action;
use crate::counter::DropReason;
use crate::meter::{MeterNo, MeterVerdict};
use crate::parse::Headers;
use crate::rewrite;

impl Egress {
    /// Applies a meter to the frame. Returns false if the meter drops it, which is counted.
    pub fn meter(&mut self, number: MeterNo, frame: &mut Frame, now: Nanos) -> bool {
        match self.meters.measure(number, frame.len(), now) {
            MeterVerdict::Pass => true,
            MeterVerdict::Remark(levels) => {
                remark(frame, levels);
                true
            }
            MeterVerdict::Drop => {
                self.drops.add(DropReason::Metered);
                false
            }
        }
    }
}

/// Raises the drop precedence of a frame by `levels`.
fn remark(frame: &mut Frame, levels: u8) {
    let dscp = Headers::of(frame.bytes()).get(Field::IpDscp, frame.bytes());
    if let Some(raised) = dscp.and_then(|dscp| raised(dscp as u8, levels)) {
        let set = Action::set(Field::IpDscp, raised.into());
        let done = rewrite::apply(&set, frame, &mut rewrite::Context::default());
        done.expect("a set-field action cannot fail");
    }
}

/// Returns the code point with a drop precedence raised by `levels`, at most to the third level.
/// Returns `None` for other code points than those of assured forwarding. These have classes 1 to 4
/// in the upper three bits and precedences 1 to 3 in the next two.
fn raised(dscp: u8, levels: u8) -> Option<u8> {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let assured = (1..=4).contains(&class) && precedence > 0 && dscp & 1 == 0;
    assured.then(|| class << 3 | precedence.saturating_add(levels).min(3) << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_precedence_rises_only_within_assured_forwarding() {
        // AF11, AF12 and AF13; AF43; class selector, expedited forwarding, best effort.
        let raised: Vec<_> = [(10, 1), (10, 2), (10, 255), (12, 1), (14, 1), (38, 1)]
            .map(|(d, l)| raised(d, l))
            .into();
        assert_eq!(raised, [12, 14, 14, 14, 14, 38].map(Some));
        for other in [0, 8, 46, 11, 48, 42, 2] {
            assert_eq!(super::raised(other, 1), None, "{other}");
        }
    }
}
