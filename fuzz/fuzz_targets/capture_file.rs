//! Parses any bytes as a capture file. The result is an error or frames. It does not depend on the
//! read sizes, and stays within the limits. Frames that are written and read again are unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netio::capture::CaptureReader;
use packet::capture::resolution::Resolution;
use packet::capture::write::{Frame, FrameNotes, PcapNg};
use packet::capture::{BLOCK_BYTES_MAX, CAPTURED_BYTES_MAX, Endianness, Event, Interface};
use packet::time::Nanos;
use std::io::Read;

/// A reader that returns at most this many bytes per read.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.len().min(buffer.len()).min(self.1);
        buffer[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

type Found = (Option<Nanos>, u32, Vec<u8>, usize);

fn read(input: impl Read, most: usize) -> (Vec<Found>, Option<String>) {
    let mut reader = CaptureReader::new(input);
    let mut frames = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(Event::Frame(frame))) => {
                assert!(frame.bytes.len() <= CAPTURED_BYTES_MAX);
                assert!(frame.offset < most as u64);
                let said = frame.comments().map(<[u8]>::len).sum();
                assert!(said < BLOCK_BYTES_MAX);
                frames.push((frame.at, frame.original_bytes, frame.bytes.to_vec(), said));
            }
            Ok(Some(_)) => {}
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error.to_string())),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (&first, bytes) = match bytes.split_first() {
        Some(split) => split,
        None => return,
    };
    let whole = read(bytes, bytes.len());
    assert_eq!(whole, read(Slow(bytes, usize::from(first) + 1), bytes.len()));
    let mut file = Vec::new();
    let order = if first & 1 == 0 { Endianness::Little } else { Endianness::Big };
    let mut ng = PcapNg::begin(&mut file, order, "", None);
    let interface = Interface {
        name: String::new(),
        mac: None,
        snap_bytes: 0,
        resolution: Resolution::NANO,
        offset_seconds: 0,
        fcs_bytes: 0,
    };
    ng.interface(&mut file, &interface, None).expect("the first one");
    for (at, original_bytes, bytes, _) in &whole.0 {
        let (at, original_bytes) = (at.unwrap_or_default(), *original_bytes);
        let frame = Frame { interface: 0, at, bytes, original_bytes, notes: FrameNotes::default() };
        ng.frame(&mut file, &frame).expect("no longer than what was read");
    }
    let (again, error) = read(&file[..], file.len());
    assert_eq!(error, None);
    assert_eq!(again.len(), whole.0.len());
    for (one, other) in again.iter().zip(&whole.0) {
        assert_eq!((one.0, one.1, &one.2), (Some(other.0.unwrap_or_default()), other.1, &other.2));
    }
});
