//! Files that arrive a few bytes per read, files longer than the window, and truncated files.

use std::io::Cursor;

use packet::capture::Direction;

use super::*;

/// An input that returns at most three bytes per read.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.len().min(buffer.len()).min(3);
        buffer[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

const FORMATS: [Format; 3] = [Format::PcapMicros, Format::PcapNanos, Format::PcapNg];

fn at(number: u64) -> Nanos {
    Nanos(1_600_000_000_000_000_000 + number * 1_000)
}

fn write(format: Format, frames: u64, bytes: usize) -> Vec<u8> {
    let options = CaptureOptions { format, snap_bytes: 300_000, ..CaptureOptions::pcapng("a") };
    let mut writer = CaptureWriter::new(Vec::new(), &options).unwrap();
    let notes = FrameNotes {
        direction: Some(Direction::Inbound),
        dropped: Some(2),
        comment: Some("c"),
        cut: None,
    };
    for number in 0..frames {
        let frame = vec![number as u8; bytes];
        writer.frame(at(number), &frame, notes).unwrap();
    }
    writer.finish(Some(&Statistics { dropped: Some(9), ..Statistics::default() })).unwrap()
}

/// Returns how many frames were read, each checked against the written one, and the final error.
fn read(input: impl Read, bytes: usize) -> (u64, Option<CaptureError>) {
    let (mut reader, mut number) = (CaptureReader::new(input), 0);
    loop {
        match reader.next_event() {
            Ok(Some(Event::Frame(frame))) => {
                assert_eq!(frame.at, Some(at(number)));
                assert_eq!(frame.bytes.len(), bytes);
                assert!(frame.bytes.iter().all(|&byte| byte == number as u8));
                number += 1;
            }
            Ok(Some(Event::Statistics(counted))) => assert_eq!(counted.dropped, Some(9)),
            Ok(Some(_)) => {}
            Ok(None) => return (number, None),
            Err(error) => return (number, Some(error)),
        }
        assert!(reader.buffer.len() <= BLOCK_BYTES_MAX);
    }
}

#[test]
fn written_files_can_be_read_in_pieces_of_any_size() {
    for format in FORMATS {
        let file = write(format, 50, 61);
        assert_eq!(read(Slow(&file), 61).0, 50);
        // Longer than the window, and longer than the window's initial size.
        let file = write(format, 40, CAPTURED_BYTES_MAX);
        let (frames, error) = read(Cursor::new(file), CAPTURED_BYTES_MAX);
        assert!(frames == 40 && error.is_none(), "{format:?} {frames} {error:?}");
    }
}

#[test]
fn a_truncated_file_gives_its_complete_frames_and_the_offset_of_its_end() {
    for format in FORMATS {
        let file = write(format, 50, 61);
        for cut in [1, 50, 90, file.len() - 30] {
            let (frames, error) = read(Slow(&file[..file.len() - cut]), 61);
            assert!(frames < 51);
            let text = error.unwrap().to_string();
            assert!(
                text.starts_with("at byte ") && text.contains("truncated or still being written"),
                "{text}"
            );
        }
        let Some(CaptureError::Fault(fault)) = read(Slow(&[]), 61).1 else { panic!() };
        assert_eq!(fault.at, 0);
    }
}

#[test]
fn a_snap_length_preserves_the_original_length() {
    for format in FORMATS {
        let options = CaptureOptions { format, snap_bytes: 20, ..CaptureOptions::pcapng("a") };
        let mut writer = CaptureWriter::new(Vec::new(), &options).unwrap();
        writer.frame(at(0), &[1; 1500], FrameNotes::default()).unwrap();
        writer.cut_frame(at(0), &[1; 10], 90, FrameNotes::default()).unwrap();
        let file = writer.finish(None).unwrap();
        let mut reader = CaptureReader::new(&file[..]);
        let mut lengths = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            if let Event::Frame(frame) = event {
                lengths.push((frame.bytes.len(), frame.original_bytes, frame.is_whole()));
            }
        }
        assert_eq!(lengths, [(20, 1500, false), (10, 90, false)]);
        assert_eq!(reader.decoder().interfaces()[0].snap_bytes, 20);
    }
}

#[test]
fn a_missing_file_gives_the_error_of_the_system() {
    let error = CaptureReader::open(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(error.to_string().starts_with("No such file"), "{error}");
}
