//! Every frame is delivered in order for each pass, for files of any length.

use std::io::{Cursor, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use packet::capture::write::FrameNotes;

use super::*;
use crate::capture::{CaptureOptions, CaptureWriter};

/// Frames of [`file`] that fit into a chunk, plus or minus one.
const CHUNK_FRAMES: usize = CHUNK_BYTES / 92;

fn file(frames: u64) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), &CaptureOptions::pcapng("x")).unwrap();
    for number in 0..frames {
        let bytes = [&number.to_be_bytes()[..], &[7; 52]].concat();
        writer.frame(Nanos(number * 10), &bytes, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap()
}

/// Returns the numbers of the delivered frames, those of the first frames, and the final error.
fn numbers(mut ahead: ReadAhead) -> (Vec<u64>, Vec<u64>, Option<CaptureError>) {
    let (mut numbers, mut firsts) = (Vec::new(), Vec::new());
    loop {
        match ahead.wait_next() {
            ReadItem::Chunk(chunk) => {
                assert!(chunk.bytes.len() < 2 * CHUNK_BYTES);
                for index in 0..chunk.len() {
                    let place = chunk.place(index);
                    let bytes = chunk.bytes(place);
                    assert_eq!((bytes.len(), place.original_bytes), (60, 60));
                    let number = u64::from_be_bytes(*bytes.first_chunk().unwrap());
                    assert_eq!(place.at, Some(Nanos(number * 10)));
                    if place.is_first {
                        firsts.push(numbers.len() as u64);
                    }
                    numbers.push(number);
                }
                ahead.give_back(chunk);
            }
            ReadItem::Odd(warnings) => assert_eq!(warnings.list().count(), 0),
            ReadItem::Failed(error) => return (numbers, firsts, Some(error)),
            ReadItem::Ended => return (numbers, firsts, None),
        }
    }
}

#[test]
fn a_file_of_any_length_is_repeated_as_requested() {
    for frames in [1, 7, CHUNK_FRAMES as u64, 3 * CHUNK_FRAMES as u64 + 5] {
        for passes in [1, 2, 5] {
            let ahead = ReadAhead::of(Cursor::new(file(frames)), Some(passes)).unwrap();
            let (numbers, firsts, error) = numbers(ahead);
            assert!(error.is_none());
            assert!(numbers.iter().copied().eq((0..passes).flat_map(|_| 0..frames)));
            assert!(firsts.iter().copied().eq((0..passes).map(|pass| pass * frames)));
        }
    }
}

#[test]
fn frames_before_a_fault_are_delivered_first() {
    let mut bytes = file(CHUNK_FRAMES as u64 + 100);
    bytes.truncate(bytes.len() - 10);
    let (numbers, _, error) = numbers(ReadAhead::of(Cursor::new(bytes), Some(3)).unwrap());
    assert_eq!(numbers.len(), CHUNK_FRAMES + 99);
    let text = error.unwrap().to_string();
    assert!(text.contains("the file ends after"), "{text}");
    let (numbers, _, error) = self::numbers(ReadAhead::of(Cursor::new(file(0)), None).unwrap());
    assert!(numbers.is_empty() && matches!(error, Some(CaptureError::NoFrames)));
}

/// An input that counts how many of its bytes were read.
struct Counted(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.read(buffer)?;
        self.1.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn reading_ahead_is_limited_and_a_short_file_is_read_once() {
    let read = Arc::new(AtomicU64::new(0));
    let long = file((CHUNKS * CHUNK_FRAMES * 3) as u64);
    let size = long.len() as u64;
    let mut ahead = ReadAhead::of(Counted(Cursor::new(long), read.clone()), None).unwrap();
    // The channel holds a full number of chunks; one more is being filled, and one waits.
    let ReadItem::Chunk(first) = ahead.wait_next() else { panic!() };
    let most = (first.len() * (CHUNKS + 3) * 92 + (2 << 18)) as u64;
    for _ in 0..CHUNKS / 2 {
        assert!(matches!(ahead.wait_next(), ReadItem::Chunk(_)));
    }
    drop(first);
    assert!(read.load(Ordering::Relaxed) <= most + most / 2, "of {size}");
    assert!(most + most / 2 < size);
    let read = Arc::new(AtomicU64::new(0));
    let short = file(10);
    let size = short.len() as u64;
    let ahead = ReadAhead::of(Counted(Cursor::new(short), read.clone()), Some(100_000)).unwrap();
    let (numbers, ..) = numbers(ahead);
    assert_eq!((numbers.len(), read.load(Ordering::Relaxed)), (1_000_000, size));
}

#[test]
fn a_file_is_ready_to_read_even_with_one_frame() {
    for frames in [1, 10_000] {
        let ahead = ReadAhead::of(Cursor::new(file(frames)), Some(2)).unwrap().begun().unwrap();
        let (numbers, firsts, ended) = numbers(ahead);
        assert_eq!((numbers.len() as u64, firsts), (2 * frames, vec![0, frames]));
        assert!(ended.is_none(), "{ended:?}");
    }
    let nothing = ReadAhead::of(Cursor::new(file(0)), None).unwrap();
    assert!(matches!(nothing.begun(), Err(CaptureError::NoFrames)));
}
