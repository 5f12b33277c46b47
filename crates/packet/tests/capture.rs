//! Tests with capture files corrupted in many ways. The decoder returns an error or frames, never
//! panics, and stays within the memory limits. The result does not depend on the window sizes.

#![allow(clippy::unwrap_used)]

use packet::capture::fault::{CaptureAnomaly, CaptureFaultKind, Fault};
use packet::capture::resolution::Resolution;
use packet::capture::write::{CaptureWriteError, Frame, FrameNotes, Pcap, PcapNg};
use packet::capture::{
    BLOCK_BYTES_MAX, CAPTURED_BYTES_MAX, Decoder, DecoderAction, Direction, Endianness, Event,
    Interface, Statistics,
};
use packet::time::Nanos;

/// Items of a file as text.
type Found = Vec<String>;

/// Decodes `file` with the shortest permitted windows, or with windows that are `more` bytes
/// longer.
fn decode(file: &[u8], more: usize) -> (Found, Result<(), Fault>, Decoder) {
    let mut decoder = Decoder::new();
    let (mut found, mut have) = (Vec::new(), more);
    let ended = loop {
        let at = decoder.offset() as usize;
        let rest = &file[at.min(file.len())..];
        let window = &rest[..have.min(rest.len())];
        match decoder.next(window) {
            Err(fault) => break Err(fault),
            Ok(DecoderAction::More(need)) => {
                assert!(need > window.len() && need <= BLOCK_BYTES_MAX);
                if need > rest.len() {
                    break decoder.ended(need as u64, rest.len() as u64);
                }
                have = need + more;
            }
            Ok(DecoderAction::Skip(bytes)) => {
                assert!(bytes > 0);
                if bytes > rest.len() as u64 {
                    break decoder.ended(bytes, rest.len() as u64);
                }
                decoder.passed(bytes);
                have = more;
            }
            Ok(DecoderAction::Item(bytes)) => {
                assert!(bytes > 0 && bytes <= window.len());
                match decoder.take(&window[..bytes]) {
                    Ok(event) => {
                        if let Event::Frame(frame) = &event {
                            assert!(frame.bytes.len() <= CAPTURED_BYTES_MAX);
                            frame.comments().for_each(|comment| assert!(comment.len() < bytes));
                        }
                        found.push(format!("{event:?}"));
                    }
                    Err(fault) => break Err(fault),
                }
                have = more;
            }
        }
    };
    (found, ended, decoder)
}

fn interface(resolution: u8) -> Interface {
    Interface {
        name: "port 1".into(),
        mac: Some([2, 0, 0, 0, 0, 9]),
        snap_bytes: 128,
        resolution: Resolution(resolution),
        offset_seconds: 0,
        fcs_bytes: 0,
    }
}

fn frame(number: u64) -> Frame<'static> {
    const BYTES: [u8; 100] = [0x5a; 100];
    let notes = FrameNotes {
        cut: None,
        direction: [None, Some(Direction::Inbound), Some(Direction::Outbound)][number as usize % 3],
        dropped: number.is_multiple_of(4).then_some(number),
        comment: number.is_multiple_of(5).then_some("odd one"),
    };
    Frame {
        interface: 0,
        at: Nanos(1_700_000_000_000_000_001 + number * 1_003),
        bytes: &BYTES[..60 + number as usize % 5],
        original_bytes: 60 + number as u32 % 5 * 300,
        notes,
    }
}

fn classic(order: Endianness, has_nanos: bool) -> Vec<u8> {
    let pcap = Pcap { order, has_nanos, snap_bytes: 128 };
    let mut file = Vec::new();
    pcap.begin(&mut file);
    (0..9).for_each(|number| pcap.frame(&mut file, &frame(number)).unwrap());
    file
}

fn ng(order: Endianness) -> Vec<u8> {
    let mut file = Vec::new();
    let mut ng = PcapNg::begin(&mut file, order, "test", Some("the complete packet"));
    ng.interface(&mut file, &interface(9), None).unwrap();
    (0..9).for_each(|number| ng.frame(&mut file, &frame(number)).unwrap());
    // A custom block, a simple packet and an empty block of an unknown type.
    let word =
        |word: u32| if order == Endianness::Big { word.to_be_bytes() } else { word.to_le_bytes() };
    for words in [
        &[0xbad, 20, 32473, 7, 20][..],
        &[3, 20, 4, 0xabcd_abcd, 20],
        &[0x0bad_cafe, 12, 12],
        // The obsolete packet block: interface and drops, time, lengths.
        &[2, 36, if order == Endianness::Big { 5 } else { 5 << 16 }, 0, 9, 4, 4, 0x0102_0304, 36],
    ] {
        words.iter().for_each(|&it| file.extend_from_slice(&word(it)));
    }
    let counted = Statistics {
        at: Some(Nanos(1_700_000_001_000_000_000)),
        started_at: Some(Nanos(1_700_000_000_000_000_000)),
        received: Some(12),
        dropped: Some(3),
        ..Statistics::default()
    };
    ng.statistics(&mut file, &counted).unwrap();
    file
}

fn files() -> Vec<Vec<u8>> {
    let mut files = vec![ng(Endianness::Little), ng(Endianness::Big)];
    for order in [Endianness::Little, Endianness::Big] {
        files.extend([classic(order, true), classic(order, false)]);
    }
    files
}

#[test]
fn written_files_decode_the_same_for_all_windows() {
    for file in files() {
        let (found, ended, decoder) = decode(&file, 0);
        ended.unwrap();
        let frames = found.iter().filter(|event| event.starts_with("Frame")).count();
        assert!(frames == 9 || frames == 11, "{frames}");
        // The time of the obsolete block is nine nanoseconds after 1970.
        assert_eq!(
            decoder.warnings().count(CaptureAnomaly::TimeBackwards),
            u64::from(frames == 11)
        );
        for more in [1, 3, 17, 100_000] {
            assert_eq!(decode(&file, more).0, found);
        }
    }
}

#[test]
fn all_attributes_of_a_frame_round_trip() {
    for file in [ng(Endianness::Little), ng(Endianness::Big)] {
        let mut decoder = Decoder::new();
        let (mut number, mut rest, mut counted) = (0, &file[..], None);
        while !rest.is_empty() {
            let bytes = match decoder.next(rest).unwrap() {
                DecoderAction::Item(bytes) => {
                    match decoder.take(&rest[..bytes]).unwrap() {
                        Event::Frame(read) if number < 9 => {
                            let want = frame(number);
                            assert_eq!((read.at, read.bytes), (Some(want.at), want.bytes));
                            assert_eq!(read.original_bytes, want.original_bytes);
                            assert_eq!(read.dropped, want.notes.dropped);
                            assert_eq!(read.direction, want.notes.direction);
                            let comment = read.comments().next();
                            assert_eq!(comment, want.notes.comment.map(str::as_bytes));
                            number += 1;
                        }
                        Event::Frame(read) if read.at.is_none() => {
                            assert_eq!(
                                read.bytes,
                                [0xcd, 0xab, 0xcd, 0xab].map(|byte| {
                                    if rest[0] == 0 { 0xcd ^ 0xab ^ byte } else { byte }
                                })
                            );
                        }
                        Event::Frame(read) => {
                            assert_eq!((read.at, read.dropped), (Some(Nanos(9)), Some(5)));
                        }
                        Event::Statistics(read) => counted = Some(read),
                        _ => {}
                    }
                    bytes
                }
                DecoderAction::Skip(bytes) => {
                    decoder.passed(bytes);
                    bytes as usize
                }
                DecoderAction::More(need) => panic!("{need} bytes of {}", rest.len()),
            };
            rest = &rest[bytes..];
        }
        assert_eq!(number, 9);
        assert_eq!(decoder.interfaces(), [interface(9)]);
        let counted = counted.unwrap();
        assert_eq!(
            (counted.received, counted.dropped, counted.delivered),
            (Some(12), Some(3), None)
        );
        assert_eq!(counted.started_at, Some(Nanos(1_700_000_000_000_000_000)));
    }
}

/// Random numbers of sixteen bits, reproducible by seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as usize
    }
}

#[test]
fn damaged_files_decode_the_same_for_all_windows() {
    let mut dice = Dice(5);
    let files = files();
    let (mut refused, mut read) = (0, 0);
    for _ in 0..6_000 {
        let mut file = files[dice.roll() % files.len()].clone();
        for _ in 0..1 + dice.roll() % 4 {
            let at = dice.roll() % file.len();
            match dice.roll() % 5 {
                0 => file[at] = dice.roll() as u8,
                1 => file[at] = [0, 0xff, 0x7f, 0x80][dice.roll() % 4],
                2 => file.truncate(at.max(1)),
                3 => {
                    let end = (at + 4).min(file.len());
                    file[at..end].fill([0, 0xff][dice.roll() % 2]);
                }
                _ => {
                    let part = file[at..(at + 64).min(file.len())].to_vec();
                    file.splice(at..at, part);
                }
            }
        }
        let (found, ended, _) = decode(&file, 0);
        let (again, ended_again, _) = decode(&file, 1 + dice.roll() % 200);
        assert_eq!((&found, ended), (&again, ended_again));
        if let Err(fault) = ended {
            assert!(fault.at <= file.len() as u64, "{fault:?} of {}", file.len());
            refused += 1;
        } else {
            read += 1;
        }
    }
    assert!(refused > 1_500 && read > 300, "{refused} refused, {read} read");
}

#[test]
fn truncated_files_give_all_complete_frames_and_an_error_offset() {
    for file in files() {
        let (whole, ..) = decode(&file, 0);
        for length in 0..file.len() {
            let (found, ended, _) = decode(&file[..length], 0);
            assert!(whole.starts_with(&found));
            match ended {
                Ok(()) => assert!(length >= 24),
                Err(Fault { why: CaptureFaultKind::Empty, .. }) => assert_eq!(length, 0),
                Err(Fault { at, why: CaptureFaultKind::Truncated { need, have } }) => {
                    assert!(have < need && at + have == length as u64, "{at} + {have} of {length}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn invalid_files_give_one_error_with_offset_and_hint() {
    let cut = |file: &[u8], at: usize, bytes: &[u8]| {
        let mut file = file.to_vec();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        decode(&file, 0).1.unwrap_err().to_string()
    };
    let (old, new) = (classic(Endianness::Little, true), ng(Endianness::Little));
    // Offset of the first enhanced packet block, after section and interface.
    let section = u32::from_le_bytes(new[4..8].try_into().unwrap()) as usize;
    let first = section + u32::from_le_bytes(new[section + 4..][..4].try_into().unwrap()) as usize;
    for (file, at, bytes, place, words) in [
        (
            &old,
            0,
            &[0, 0, 0, 0][..],
            0,
            "00 00 00 00 is not the start of a capture file (hint: convert",
        ),
        (&old, 0, &[0x1f, 0x8b, 8, 0], 0, "compressed with gzip (hint: decompress"),
        (&old, 4, &[9], 4, "unsupported format version 9.4"),
        (&old, 20, &[113], 20, "link type 113 (Linux cooked capture), only Ethernet (1)"),
        (&old, 20, &[0xee, 0xee], 20, "link type 61166 (unknown here)"),
        (&old, 32, &[0xff; 4], 32, "captured bytes is 4294967295, not 0 to 262144"),
        (&old, 32, &[1, 0, 4, 0], 32, "captured bytes is 262145, not"),
        (&new, 8, &[0; 4], 8, "00 00 00 00 is not a byte-order magic"),
        (&new, 12, &[7], 12, "unsupported format version 7.0"),
        (&new, 4, &[0; 4], 4, "a block is 0, not 28 to 1048576"),
        (&new, section + 8, &[105], section + 8, "link type 105 (IEEE 802.11)"),
        (&new, first + 4, &[0; 4], first + 4, "a block is 0, not 32 to"),
        (&new, first + 4, &[0xff; 4], first + 4, "a block is 4294967295, not"),
        (&new, first + 4, &[0x3e], first + 4, "not a multiple of 4"),
        (&new, first + 8, &[2], first + 8, "interface 2 has no description (1 have one)"),
        (&new, first + 20, &[0xff; 4], first + 20, "captured bytes is 4294967295"),
        (&new, first + 20, &[0xff, 0], first + 20, "captured bytes is 255, not 0 to"),
    ] {
        let message = cut(file, at, bytes);
        assert!(message.starts_with(&format!("at byte {place}: ")), "{message}");
        assert!(message.contains(words), "{message:?} lacks {words:?}");
        assert!(!message.contains('\n'));
    }
    assert_eq!(decode(&[], 0).1, Err(Fault { at: 0, why: CaptureFaultKind::Empty }));
}

#[test]
fn long_blocks_of_unknown_types_are_skipped_without_buffering() {
    let mut file = Vec::new();
    let mut ng = PcapNg::begin(&mut file, Endianness::Little, "test", None);
    ng.interface(&mut file, &interface(9), None).unwrap();
    let bytes = 3 * BLOCK_BYTES_MAX as u32;
    file.extend_from_slice(&[0xad, 0x0b, 0, 0]);
    file.extend_from_slice(&bytes.to_le_bytes());
    file.resize(file.len() + bytes as usize - 12, 7);
    file.extend_from_slice(&bytes.to_le_bytes());
    ng.frame(&mut file, &frame(1)).unwrap();
    let (found, ended, _) = decode(&file, 0);
    ended.unwrap();
    assert!(found.last().unwrap().starts_with("Frame"));
    // A different length at its end is rejected there.
    let end = file.len() - u32::from_le_bytes(*file.last_chunk().unwrap()) as usize;
    file[end - 4] ^= 4;
    let fault = decode(&file, 0).1.unwrap_err();
    assert_eq!(fault.at, end as u64 - 4);
    assert!(matches!(fault.why, CaptureFaultKind::Ends { .. }));
}

#[test]
fn anomalies_are_counted_with_their_first_offset() {
    let pcap = Pcap { order: Endianness::Big, has_nanos: false, snap_bytes: 50 };
    let mut file = Vec::new();
    pcap.begin(&mut file);
    let second_at = 24 + 16 + 60;
    for seconds in [5, 4, 6, 5] {
        let at = Nanos::from_secs(seconds);
        pcap.frame(&mut file, &Frame { at, original_bytes: 59, ..frame(0) }).unwrap();
    }
    file[second_at + 4] = 0xff;
    let (_, ended, decoder) = decode(&file, 0);
    ended.unwrap();
    let warnings: Vec<String> = decoder.warnings().list().map(|it| it.to_string()).collect();
    // With a fraction of 71 minutes the second frame is the latest, and the third is older.
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[0].starts_with("2 frames, the first at byte 176, older than"), "{warnings:?}");
    assert!(warnings[1].starts_with("1 frames, the first at byte 100, dated with"), "{warnings:?}");
    assert!(warnings[2].starts_with("4 frames, the first at byte 24, longer than the file's"));
    assert_eq!(decoder.warnings().count(CaptureAnomaly::LongerThanOriginal), 4);
}

#[test]
fn unrepresentable_frames_are_not_written() {
    let pcap = Pcap { order: Endianness::Little, has_nanos: true, snap_bytes: 0 };
    let mut out = Vec::new();
    let late = Frame { at: Nanos::MAX, ..frame(0) };
    assert_eq!(pcap.frame(&mut out, &late), Err(CaptureWriteError::Time(Nanos::MAX)));
    let bytes = vec![0; CAPTURED_BYTES_MAX + 1];
    let long = Frame { bytes: &bytes, ..frame(0) };
    assert_eq!(
        pcap.frame(&mut out, &long),
        Err(CaptureWriteError::TooLong(CAPTURED_BYTES_MAX + 1))
    );
    assert!(out.is_empty());
    let mut ng = PcapNg::begin(&mut out, Endianness::Little, "test", None);
    let start = out.len();
    assert_eq!(ng.frame(&mut out, &frame(0)), Err(CaptureWriteError::NoSuchInterface(0)));
    ng.interface(&mut out, &Interface { offset_seconds: 5, ..interface(6) }, None).unwrap();
    let early = Frame { at: Nanos(4), ..frame(0) };
    let length = out.len();
    assert_eq!(ng.frame(&mut out, &early), Err(CaptureWriteError::Time(Nanos(4))));
    assert!(start < length && out.len() == length);
}
