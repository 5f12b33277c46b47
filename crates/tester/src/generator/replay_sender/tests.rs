//! Tests that frames leave complete and on schedule, and that changed or skipped ones are counted.

use std::io::Cursor;

use netio::capture::{CaptureOptions, CaptureWriter, Format};
use netio::memory::{MemoryPort, pair};
use packet::capture::write::FrameNotes;
use packet::frame::Batch;

use super::*;
use crate::stream::replay::Timing;

const START: Nanos = Nanos(5_000);

/// A frame of a file: time since 1970, captured bytes, and original length.
type Row = (u64, Vec<u8>, u32);

fn frame(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number as usize * 31 + at) as u8).collect()
}

fn rows(times: &[u64]) -> Vec<Row> {
    let row = |(number, &at): (usize, &u64)| (at, frame(number as u64, 60 + number % 40), 0);
    let whole = |(at, bytes, _): Row| (at, bytes.clone(), bytes.len() as u32);
    times.iter().enumerate().map(row).map(whole).collect()
}

fn file(rows: &[Row]) -> Vec<u8> {
    let options = CaptureOptions { format: Format::PcapNanos, ..CaptureOptions::pcapng("x") };
    let mut writer = CaptureWriter::new(Vec::new(), &options).unwrap();
    for (at, bytes, original_bytes) in rows {
        writer.cut_frame(Nanos(*at), bytes, *original_bytes, FrameNotes::default()).unwrap();
    }
    writer.finish(None).unwrap()
}

fn once(timing: Timing) -> Replay {
    Replay { timing, ..Replay::once(1, 0, "a.pcap".into()) }
}

fn player(file: Vec<u8>, replay: Replay) -> ReplaySender {
    let ahead = ReadAhead::of(Cursor::new(file), replay.passes).unwrap();
    let until = Nanos::from_secs(1_000);
    ReplaySender::new(replay, ahead, 1514, [START, until], true)
}

/// Plays on a clock that jumps between due times. Returns each frame with its time after the start.
fn play(player: &mut ReplaySender) -> Vec<(u64, Vec<u8>)> {
    let (mut near, mut far) = pair(4096, "wire");
    let mut sent = Vec::new();
    while let Some(due) = player.next_due() {
        assert_eq!(player.send(&mut near, Nanos(due.0 - 1)).unwrap(), 0, "none leaves early");
        assert!(player.send(&mut near, due).unwrap() > 0);
        sent.extend(arrived(&mut far).into_iter().map(|bytes| (due.0 - START.0, bytes)));
    }
    sent
}

fn arrived(port: &mut MemoryPort) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(4096);
    port.receive(&mut batch, Nanos::ZERO).unwrap();
    batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
}

fn times(sent: &[(u64, Vec<u8>)]) -> Vec<u64> {
    sent.iter().map(|(at, _)| *at).collect()
}

#[test]
fn frames_are_replayed_with_captured_bytes_and_gaps() {
    let captured = [1_000, 1_007, 1_007, 5_000, 4_000, 9_000, 2_000_009_000];
    let rows = rows(&captured);
    let mut own = player(file(&rows), once(Timing::Original));
    let sent = play(&mut own);
    // The fifth is older than the fourth and leaves together with it.
    assert_eq!(times(&sent), [0, 7, 7, 4_000, 4_000, 8_000, 2_000_008_000]);
    assert!(sent.iter().map(|(_, bytes)| bytes).eq(rows.iter().map(|(_, bytes, _)| bytes)));
    let report = own.report();
    assert!(report.is_complete && !report.is_behind && report.failure.is_none());
    assert_eq!((report.counts.frames, report.counts.passes), (7, 1));
    let bytes: u64 = rows.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
    assert_eq!(report.counts.bytes, bytes);
    assert_eq!(report.warnings.len(), 1);
    let (lateness, gaps) = (&report.pacing.lateness, &report.pacing.gap_error);
    assert_eq!((lateness.ns_max(), gaps.ns_max(), gaps.count()), (Some(0), Some(0), 6));
    let scaled = play(&mut player(file(&rows), once(Timing::Scaled(0.5))));
    assert_eq!(times(&scaled), [0, 3, 3, 2_000, 2_000, 4_000, 1_000_004_000]);
}

#[test]
fn passes_follow_each_other_with_the_correct_gap() {
    // The mean gap is 20: the next pass starts 20 after the last frame.
    let rows = rows(&[100, 110, 140]);
    let replay = Replay { passes: Some(3), ..once(Timing::Original) };
    let mut thrice = player(file(&rows), replay);
    assert_eq!(times(&play(&mut thrice)), [0, 10, 40, 60, 70, 100, 120, 130, 160]);
    assert_eq!(thrice.report().counts.passes, 3);
    let replay = Replay { passes: Some(2), ..once(Timing::Gap(Nanos(7))) };
    assert_eq!(times(&play(&mut player(file(&rows), replay))), [0, 7, 14, 21, 28, 35]);
    // Endless: until the trial ends. A frame due at the end is not sent.
    let replay = Replay { passes: None, ..once(Timing::Gap(Nanos(7))) };
    let ahead = ReadAhead::of(Cursor::new(file(&rows)), None).unwrap();
    let mut endless = ReplaySender::new(replay, ahead, 1514, [START, Nanos(START.0 + 700)], true);
    assert_eq!(play(&mut endless).len(), 100);
    let report = endless.report();
    assert!(!report.is_complete && !report.is_behind);
    assert_eq!(report.counts.passes, 33);
}

#[test]
fn a_rate_is_exact_to_the_nanosecond_over_many_frames() {
    let rows = rows(&[1, 2, 3]);
    let replay = Replay { passes: Some(100_000), ..once(Timing::FramesPerSecond(3e6)) };
    let sent = play(&mut player(file(&rows), replay));
    assert_eq!(sent.len(), 300_000);
    assert!(sent.iter().enumerate().all(|(number, (at, _))| *at == number as u64 * 1_000 / 3));
    // Frames of 60, 61 and 62 bytes take 672, 680 and 688 ns on a gigabit.
    let replay = Replay { passes: Some(2), ..once(Timing::Link(1_000_000_000)) };
    let sent = play(&mut player(file(&rows), replay));
    assert_eq!(times(&sent), [0, 672, 1_352, 2_040, 2_712, 3_392]);
    // At 7 bit/s: 672 / 7, 680 / 7 and 688 / 7 seconds.
    let sent = play(&mut player(file(&rows), once(Timing::Link(7))));
    assert_eq!(times(&sent), [0, 96_000_000_000, 193_142_857_142]);
}

#[test]
fn unsuitable_frames_are_skipped_padded_or_filled_and_counted() {
    let rows: Vec<Row> = vec![
        (0, frame(0, 60), 60),
        (10, frame(1, 1515), 1515),
        (20, frame(2, 20), 20),
        (30, frame(3, 70), 900),
        (40, frame(4, 30), 2000),
        (50, frame(5, 1514), 1514),
    ];
    let run = |short, cut, timing| {
        let mut player = player(file(&rows), Replay { short, cut, ..once(timing) });
        let sent = play(&mut player);
        let lengths: Vec<usize> = sent.iter().map(|(_, bytes)| bytes.len()).collect();
        (times(&sent), lengths, player.report().counts, sent)
    };
    let own = Timing::Original;
    let (at, lengths, counts, sent) = run(ShortFrames::Pad, Cut::Fill, own);
    assert_eq!((at, lengths), (vec![0, 20, 30, 50], vec![60, 60, 900, 1514]));
    assert_eq!((counts.refused_long, counts.padded, counts.filled), (2, 1, 1));
    assert_eq!((counts.refused_short, counts.refused_cut, counts.frames), (0, 0, 4));
    assert_eq!(sent[1].1, [frame(2, 20), vec![0; 40]].concat());
    assert_eq!(sent[2].1, [frame(3, 70), vec![0; 830]].concat());
    let (at, lengths, counts, _) = run(ShortFrames::Refuse, Cut::Send, own);
    assert_eq!((at, lengths), (vec![0, 30, 50], vec![60, 70, 1514]));
    assert_eq!((counts.refused_long, counts.refused_short, counts.filled), (1, 2, 0));
    let (at, lengths, counts, _) = run(ShortFrames::Send, Cut::Refuse, own);
    assert_eq!((at, lengths), (vec![0, 20, 50], vec![60, 20, 1514]));
    assert_eq!((counts.refused_cut, counts.padded, counts.refused_long), (2, 0, 1));
    // At a constant gap, a skipped frame leaves no hole.
    let (at, ..) = run(ShortFrames::Refuse, Cut::Refuse, Timing::Gap(Nanos(3)));
    assert_eq!(at, [0, 3]);
}

#[test]
fn frames_that_a_port_rejects_are_sent_later_exactly_once() {
    let (mut near, mut far) = pair(8, "narrow");
    let rows = rows(&(0..1_000).collect::<Vec<u64>>());
    let mut player = player(file(&rows), once(Timing::Original));
    let mut sent = Vec::new();
    let late = Nanos(START.0 + 5_000);
    while player.next_due().is_some() {
        assert!(player.send(&mut near, late).unwrap() <= 8);
        assert_eq!(player.send(&mut near, late).unwrap(), 0);
        sent.extend(arrived(&mut far));
    }
    assert!(sent.iter().eq(rows.iter().map(|(_, bytes, _)| bytes)));
    let pacing = player.report().pacing;
    assert_eq!((pacing.lateness_max, pacing.lateness.count()), (Nanos(5_000), 1_000));
    // All frames left at the same time instead of a nanosecond apart.
    assert_eq!((pacing.gap_error.ns_max(), pacing.gap_error.count()), (Some(1), 999));
}

#[test]
fn without_pacing_frames_are_sent_until_the_trial_ends() {
    let (mut near, mut far) = pair(1024, "wire");
    let replay = Replay { passes: None, ..once(Timing::Unpaced) };
    // Frames of one pass are read together and leave together.
    let ahead = ReadAhead::of(Cursor::new(file(&rows(&[0; 3 * BATCH_FRAMES]))), None).unwrap();
    let mut player = ReplaySender::new(replay, ahead, 1514, [START, Nanos(START.0 + 10)], true);
    for _ in 0..5 {
        assert_eq!(player.send(&mut near, START).unwrap(), BATCH_FRAMES);
    }
    assert_eq!(player.send(&mut near, Nanos(START.0 + 10)).unwrap(), 0);
    assert_eq!(arrived(&mut far).len(), 5 * BATCH_FRAMES);
    let report = player.report();
    assert_eq!(report.counts.frames, 5 * BATCH_FRAMES as u64);
    assert!(!report.is_behind && report.pacing.lateness.count() == 0);
}

#[test]
fn frames_still_due_when_the_trial_ends_are_reported() {
    let (mut near, _far) = pair(8, "narrow");
    let mut player = player(file(&rows(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])), once(Timing::Original));
    assert_eq!(player.send(&mut near, Nanos(START.0 + 100)).unwrap(), 8);
    player.close();
    let report = player.report();
    assert!(report.is_behind && !report.is_complete);
    assert_eq!((report.counts.frames, player.next_due()), (8, None));
}

#[test]
fn invalid_files_end_the_replay_with_a_reason() {
    let failure = |bytes: Vec<u8>, replay: Replay| {
        let mut player = player(bytes, replay);
        let sent = play(&mut player).len();
        let report = player.report();
        assert!(!report.is_complete || matches!(report.failure, Some(Failure::NothingFits)));
        (sent, report.failure.unwrap().to_string())
    };
    let whole = file(&rows(&[0, 10, 20]));
    let cut = whole[..whole.len() - 5].to_vec();
    let (sent, message) = failure(cut, once(Timing::Original));
    assert!(sent == 2 && message.contains("the file ends after"), "{sent} {message}");
    let twice = |timing| Replay { passes: Some(2), ..once(timing) };
    let (sent, message) = failure(file(&rows(&[5, 5])), twice(Timing::Original));
    assert!(sent == 2 && message.contains("all frames have the same timestamp"), "{message}");
    let short = file(&[(0, frame(0, 20), 20)]);
    let replay = Replay { short: ShortFrames::Refuse, passes: None, ..once(Timing::Gap(Nanos(1))) };
    let (sent, message) = failure(short.clone(), replay);
    assert!(sent == 0 && message.starts_with("no frame can be sent"), "{message}");
    let replay = Replay { short: ShortFrames::Refuse, ..once(Timing::Gap(Nanos(1))) };
    assert_eq!(failure(short, replay).0, 0);
    let (sent, message) = failure(b"no capture".to_vec(), once(Timing::Original));
    assert!(sent == 0 && message.contains("is not the start of a capture file"), "{message}");
}
