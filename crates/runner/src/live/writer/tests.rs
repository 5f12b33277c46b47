//! Tests that followers read all written events, even if the file is replaced or truncated.

use std::fs::OpenOptions;

use super::*;
use crate::live::event::Rates;
use crate::live::example::{events, picture as made_up};
use crate::live::follow::{Follower, LINE_BYTES_MAX, ReadResult};

/// A gauge without readings.
static EMPTY: Gauge = Gauge::new();

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("planimeter-live-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn append(&self, bytes: &[u8]) {
        let file = OpenOptions::new().create(true).append(true).open(self.0.join(LIVE_FILE));
        file.unwrap().write_all(bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Follows until the condition holds.
fn until(follower: &mut Follower, is: impl Fn(&RunState) -> bool) {
    while !is(follower.picture()) {
        if follower.look() == ReadResult::Nothing {
            std::thread::yield_now();
        }
    }
}

#[test]
fn events_are_followed_to_the_end_and_the_file_is_removed() {
    let folder = Folder::new("end");
    let teller = LiveWriter::of(&folder.0, Vec::new(), &EMPTY, FILE_BYTES_MAX);
    events().into_iter().for_each(|told| teller.tell(told.event));
    let mut follower = Follower::open(&folder.0).unwrap();
    until(&mut follower, |picture| picture.trial.as_ref().is_some_and(|trial| trial.id == 3));
    assert_eq!(follower.picture().searches, made_up().searches);
    teller.tell(Event::Over { partial: false, failure: None });
    drop(teller);
    assert!(!folder.0.join(LIVE_FILE).exists());
    until(&mut follower, |picture| picture.over.is_some());
    assert_eq!(follower.look(), ReadResult::Gone);
    assert_eq!((follower.picture().lost, follower.unreadable()), (0, 0));
}

#[test]
fn a_crashed_run_leaves_its_file() {
    let folder = Folder::new("crash");
    let teller = LiveWriter::of(&folder.0, Vec::new(), &EMPTY, FILE_BYTES_MAX);
    events().into_iter().for_each(|told| teller.tell(told.event));
    drop(teller);
    let mut follower = Follower::open(&folder.0).unwrap();
    assert_eq!(follower.look(), ReadResult::News);
    assert_eq!((follower.picture().done, follower.picture().over.clone()), (2, None));
    assert_eq!(follower.look(), ReadResult::Nothing);
}

#[test]
fn a_repeatedly_rewritten_file_is_followed_without_a_gap() {
    let folder = Folder::new("again");
    let teller = LiveWriter::of(&folder.0, Vec::new(), &EMPTY, 4_000);
    let mut follower = Follower::open(&folder.0).unwrap();
    teller.tell(events().remove(0).event);
    let trials = 300;
    for id in 1..=trials {
        let ended = crate::live::event::TrialEnded { id, line: "x".repeat(40), warnings: vec![] };
        teller.tell(Event::Ended(ended));
        until(&mut follower, |picture| picture.done == id);
    }
    let longest = follower.picture().log.len() * 200 + 8_000;
    let bytes = fs::metadata(folder.0.join(LIVE_FILE)).unwrap().len();
    assert!((1..longest as u64).contains(&bytes), "{bytes} bytes");
    assert_eq!(follower.unreadable(), 0);
    let mut late = Follower::open(&folder.0).unwrap();
    until(&mut late, |picture| picture.done == trials);
    assert_eq!(late.picture().begun, follower.picture().begun, "the state event contains it");
}

#[test]
fn an_unwritable_file_does_not_block_the_run() {
    let folder = Folder::new("refused");
    let nowhere = folder.0.join("not/there");
    let teller = LiveWriter::of(&nowhere, Vec::new(), &EMPTY, FILE_BYTES_MAX);
    let rates = Rates { ports: vec![[1, 2]], latencies: Vec::new() };
    (0..5 * QUEUE_MAX).for_each(|_| teller.tell(Event::Rates(rates.clone())));
    drop(teller);
    assert!(Follower::open(&nowhere).is_none());
}

#[test]
fn events_beyond_the_queue_are_lost_and_counted() {
    let (queue, events) = sync_channel(2);
    let lost = Arc::new(AtomicU64::new(0));
    let teller = LiveWriter { queue: Some(queue), lost: Arc::clone(&lost), thread: None };
    (0..5).for_each(|_| teller.tell(Event::Beat));
    assert_eq!((lost.load(Ordering::Relaxed), events.try_iter().count()), (3, 2));
    assert_eq!(told(&lost, Event::Beat).lost, 3);
}

#[test]
fn invalid_lines_are_skipped_and_counted() {
    let folder = Folder::new("nonsense");
    folder.append(b"{\"event\":\"of the future\",\"at_ms\":1}\n\xff\xfe\n");
    folder.append(&vec![b'x'; 3 * LINE_BYTES_MAX]);
    folder.append(b"\n");
    let line = r#"{"at_ms":5,"event":"said","line":"here"}"#;
    folder.append(&line.as_bytes()[..20]);
    let mut follower = Follower::open(&folder.0).unwrap();
    follower.look();
    assert!(follower.picture().log.is_empty());
    folder.append(&line.as_bytes()[20..]);
    folder.append(b"\n");
    assert_eq!(follower.look(), ReadResult::News);
    assert_eq!((follower.picture().log[0].text.as_str(), follower.unreadable()), ("here", 3));
    let elsewhere = Folder::new("other-folder");
    let link = elsewhere.0.join(LIVE_FILE);
    std::os::unix::fs::symlink(folder.0.join(LIVE_FILE), link).unwrap();
    assert!(Follower::open(&elsewhere.0).is_none(), "a link is not followed");
}

/// Returns the CPU time of this thread, in nanoseconds.
#[allow(clippy::disallowed_methods)]
fn processor_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Measures the writer's share of a core alone: its work for as many polls, of sixteen ports and
/// all latency steps, with a trial of a search that begins and ends at every eighth poll.
///
/// Run: `cargo test -p planimeter --lib writing_alone -- --ignored --nocapture`. Decision 35 states
/// the result.
#[test]
#[ignore = "a measurement: it wants a thread that is not disturbed"]
fn writing_alone_takes_a_small_part_of_a_core() {
    const LOOKS: u64 = 4_000;
    let folder = Folder::new("alone");
    let pages = EventFile::new(&folder.0, FILE_BYTES_MAX);
    let mut writer = Writer { pages, picture: RunState::default(), lost: Arc::default() };
    let all: Vec<Event> = events().into_iter().map(|told| told.event).collect();
    let is_trial = |it: &&Event| matches!(it, Event::Trial(_) | Event::Ended(_));
    let trials: Vec<&Event> = all.iter().filter(is_trial).collect();
    let write = |writer: &mut Writer, events: &[Event]| {
        let mut lines = Vec::new();
        events.iter().for_each(|event| writer.add(&mut lines, event.clone()));
        let (lost, shown) = (Arc::clone(&writer.lost), writer.picture.clone());
        writer.pages.write(&lines, || line(&told(&lost, picture(&shown))));
    };
    write(&mut writer, &all);
    let before = processor_ns();
    for look in 0..LOOKS {
        let ports = vec![[look * 1_000, look * 999]; tester::gauge::PORTS_MAX];
        let latencies = (0..tester::gauge::STEPS).map(|step| (step, look)).collect();
        write(&mut writer, &[Event::Rates(Rates { ports, latencies })]);
        if look % 8 == 0 {
            let next = look as usize / 8 * 2;
            write(&mut writer, &[0, 1].map(|more| trials[(next + more) % trials.len()].clone()));
        }
    }
    let each = (processor_ns() - before) / LOOKS;
    let share = each as f64 / POLL_INTERVAL.0 as f64;
    println!("{} us a look, {:.3} % of a core", each / 1_000, share * 100.0);
    assert!(share < 0.01, "{share}");
}
