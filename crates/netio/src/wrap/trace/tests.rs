//! The file is read back by a reader independent of its writer: block by block, and by an external
//! crate.

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;
use crate::memory::pair;

/// An output that accepts a number of bytes and then fails.
struct Limited(Vec<u8>, usize);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > self.1 {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exchange(options: TraceOptions, frames: usize) -> (Vec<u8>, TraceSummary) {
    let (left, mut right) = pair(256, "link");
    let mut bytes = Vec::new();
    let mut left = Trace::new(left, &mut bytes, options).unwrap();
    let mut batch = Batch::new(256);
    for length in 0..frames {
        batch.push_bytes(&vec![7; 60 + length]);
    }
    assert_eq!(left.transmit(&mut batch, Nanos(1_000_000_007)).unwrap(), frames);
    batch.clear();
    batch.push_bytes(&[9; 61]);
    right.transmit(&mut batch, Nanos::ZERO).unwrap();
    batch.clear();
    assert_eq!(left.receive(&mut batch, Nanos(2_000_000_001)).unwrap(), 1);
    let (_, summary) = left.finish();
    (bytes, summary.unwrap())
}

#[test]
fn a_trace_has_bytes_directions_and_nanoseconds() {
    let options = TraceOptions { epoch: Nanos(5), ..TraceOptions::simulated() };
    let (bytes, summary) = exchange(options, 2);
    assert_eq!(summary, TraceSummary { frames: 3, frames_missing: 0, bytes: bytes.len() as u64 });
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::ETHERNET);
                let name = InterfaceDescriptionOption::IfName("link.0".into());
                assert!(interface.options.contains(&name));
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
            }
            Block::EnhancedPacket(block) => blocks.push((
                block.timestamp.as_nanos(),
                block.data.to_vec(),
                block.options.clone().into_iter().map(|option| format!("{option:?}")).collect(),
            )),
            other => panic!("{other:?}"),
        }
    }
    let flags = |direction: u32| vec![format!("Flags({direction})")];
    assert_eq!(
        blocks,
        [
            (1_000_000_012, vec![7; 60], flags(2)),
            (1_000_000_012, vec![7; 61], flags(2)),
            (2_000_000_006, vec![9; 61], flags(1)),
        ]
    );
}

/// Walks the blocks by their lengths alone, as the format defines: type, length, body, length.
#[test]
fn blocks_are_complete_and_padded() {
    let (bytes, _) = exchange(TraceOptions::simulated(), 40);
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut kinds) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert!(length.is_multiple_of(4) && word(at + length - 4) as usize == length);
        kinds.push(word(at));
        at += length;
    }
    assert_eq!(at, bytes.len());
    assert_eq!((kinds[0], kinds[1], kinds.len()), (0x0a0d_0d0a, 1, 43));
    assert!(kinds[2..].iter().all(|&kind| kind == 6));
}

#[test]
fn the_size_limit_ends_the_trace_but_not_the_traffic() {
    let options = TraceOptions { bytes_max: 1_000, ..TraceOptions::simulated() };
    let (bytes, summary) = exchange(options, 100);
    assert_eq!(summary.frames + summary.frames_missing, 101);
    assert!(summary.frames_missing > 80 && bytes.len() < 1_300);
}

#[test]
fn a_full_disk_ends_the_trace_but_not_the_traffic() {
    let (left, mut right) = pair(4096, "link");
    let output = Limited(Vec::new(), 20_000);
    let mut left = Trace::new(left, output, TraceOptions::simulated()).unwrap();
    let mut batch = Batch::new(100);
    let mut arrived = Batch::new(4096);
    for _ in 0..10 {
        batch.clear();
        (0..100).for_each(|_| assert!(batch.push_bytes(&[0; 1000])));
        assert_eq!(left.transmit(&mut batch, Nanos::ZERO).unwrap(), 100);
    }
    assert_eq!(right.receive(&mut arrived, Nanos::ZERO).unwrap(), 1000);
    let (_, summary) = left.finish();
    assert_eq!(summary.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
}
