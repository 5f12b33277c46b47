//! Marking of replayed frames with a signature, so that the monitor identifies them.
//!
//! The signature replaces payload, and two of its bytes compensate for the change, so that no
//! Internet checksum changes. Headers and the boundary between a packet and its padding remain
//! unchanged. A frame is not marked if the location is not completely in the payload or in the
//! padding.

use packet::parse::{Packet, Transport, set_transport_checksum};

use crate::signature::{NEUTRAL_BYTES, SendTime, Sequence, Signature};
use crate::stream::replay::FrameMark;

/// Marks the frames of one replay in one trial.
#[derive(Debug, Clone, Copy)]
pub struct ReplaySignature {
    mark: FrameMark,
    stream: u16,
    key: u64,
    epoch: u16,
}

impl ReplaySignature {
    /// Creates a marker for replay `stream` in trial `epoch` with the run's `key`.
    pub fn new(mark: FrameMark, stream: u16, key: u64, epoch: u16) -> Self {
        ReplaySignature { mark, stream, key, epoch }
    }

    /// Marks a frame if it has room. Returns whether it has.
    pub fn write(&self, number: u64, sent: SendTime, frame: &mut [u8]) -> bool {
        let packet = Packet::of(frame);
        let (payload, is_sctp) =
            (packet.layers.payload(), packet.layers.transport == Transport::Sctp);
        let Some(at) = frame.len().checked_sub(self.mark.before_end + NEUTRAL_BYTES) else {
            return false;
        };
        let is_payload = at >= payload.start && at + NEUTRAL_BYTES <= payload.end;
        if !is_payload && at < payload.end {
            return false;
        }
        let sequence = Sequence { is_warmup: false, epoch: self.epoch, number };
        let signature = Signature { stream: self.stream, sequence, sent };
        signature.write_neutral(self.key, &mut frame[at..]);
        if is_sctp {
            // Two bytes cannot compensate for a change of a CRC.
            set_transport_checksum(frame);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use packet::build::Builder;
    use packet::header::{arp, ipv4, ipv6, tcp};
    use packet::time::Nanos;

    use super::*;

    fn seal(before_end: usize) -> ReplaySignature {
        ReplaySignature::new(FrameMark { to: 1, before_end }, 5, 77, 3)
    }

    fn ethernet() -> Builder {
        Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
    }

    fn v4() -> ipv4::Header {
        ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
    }

    #[test]
    fn marking_keeps_checksums_correct_and_headers_unchanged() {
        let v6 = ipv6::Header::new("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let text: Vec<u8> = (0..77).map(|at| at * 3).collect();
        for frame in [
            ethernet().ipv4(v4()).udp(1, 2),
            ethernet().vlan(5).ipv4(v4()).tcp(tcp::Header::new(1, 2, tcp::ACK)),
            ethernet().ipv6(v6).udp(1, 2),
            ethernet().ipv4(v4()).sctp(1, 2, 3),
            ethernet().ether_type(0x88b5),
        ] {
            let whole = frame.payload(&text).bytes();
            for before_end in 0..=57 {
                let mut marked = whole.clone();
                assert!(seal(before_end).write(9, SendTime::new(Nanos(4)), &mut marked));
                assert_eq!(Packet::of(&marked).verify_checksums(), Ok(()), "{before_end}");
                let at = marked.len() - before_end - NEUTRAL_BYTES;
                let found = Signature::read(77, &marked[at..]).unwrap();
                assert_eq!((found.stream, found.sequence.number), (5, 9));
                assert_eq!(marked[at + NEUTRAL_BYTES..], whole[at + NEUTRAL_BYTES..]);
            }
            let mut marked = whole.clone();
            assert!(!seal(58).write(9, SendTime::new(Nanos(4)), &mut marked), "in the header");
            assert!(!seal(usize::MAX / 2).write(9, SendTime::new(Nanos(4)), &mut marked));
            assert_eq!(marked, whole);
        }
    }

    #[test]
    fn frames_without_space_are_not_marked() {
        let request = arp::Header {
            operation: arp::REQUEST,
            sender_mac: [2, 0, 0, 0, 0, 1],
            sender_ip: [10, 0, 0, 1].into(),
            target_mac: [0; 6],
            target_ip: [10, 0, 0, 2].into(),
        };
        let short = ethernet().ipv4(v4()).udp(1, 2).payload(&[1; 17]).bytes();
        let acknowledged = ethernet().ipv4(v4()).tcp(tcp::Header::new(1, 2, tcp::ACK)).bytes();
        for frame in [ethernet().arp(request).bytes(), short, acknowledged, vec![1; 10], vec![]] {
            let mut marked = frame.clone();
            assert!(!seal(0).write(0, SendTime::new(Nanos(4)), &mut marked));
            assert_eq!(marked, frame);
        }
        // Bytes after the packet are covered by no checksum.
        let mut trailed = ethernet().ipv4(v4()).udp(1, 2).payload(&[1; 30]).bytes();
        trailed.extend_from_slice(&[0; 25]);
        assert!(seal(0).write(0, SendTime::new(Nanos(4)), &mut trailed));
        assert!(
            !seal(10).write(0, SendTime::new(Nanos(4)), &mut trailed),
            "across the end of the packet"
        );
        assert_eq!(Packet::of(&trailed).verify_checksums(), Ok(()));
    }
}
