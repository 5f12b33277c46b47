//! Tests of programs over links that lose, repeat and reorder frames, and of invalid frames.

use serde_json::json;

use super::sender::{Outcome, Sender};
use super::*;

const OWN: Mac = [2, 0, 0, 0, 0, 1];
const THEIRS: Mac = [2, 0, 0, 0, 0, 9];

/// A link that loses, duplicates and reorders frames, depending on its seed.
struct Link(u64);

impl Link {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }

    /// Returns the frames that the link delivers.
    fn pass(&mut self, frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        for frame in frames {
            match self.draw(10) {
                0 | 1 => {}
                2 => out.extend([frame.clone(), frame]),
                3 => {
                    let place = self.draw(out.len() as u64 + 1) as usize;
                    out.insert(place, frame);
                }
                _ => out.push(frame),
            }
        }
        out
    }
}

/// Sends a program. Returns the outcome and the programs that were loaded.
fn send(program: &str, seed: u64, agent: &mut Ethernet) -> (Outcome, Vec<String>) {
    let (mut link, mut now, mut loaded) = (Link(seed), Nanos::from_secs(1), Vec::new());
    let mut sender = Sender::new(THEIRS, OWN, seed as u32, program.as_bytes(), now).unwrap();
    loop {
        let frames: Vec<Vec<u8>> = std::iter::from_fn(|| sender.next_frame(now)).collect();
        let mut answers = Vec::new();
        for frame in link.pass(frames) {
            let mut carry = |request| match request {
                Request::Load(document) => {
                    loaded.push(document.text.clone());
                    match document.text.contains("wrong") {
                        true => Err("problem\n".repeat(1000)),
                        false => Ok(json!({ "generation": 2 })),
                    }
                }
                other => panic!("{other:?}"),
            };
            answers.extend(agent.frame_came(&frame, now, &mut carry));
        }
        link.pass(answers).iter().for_each(|answer| sender.frame_came(answer, now));
        if let Some(outcome) = sender.outcome() {
            return (outcome, loaded);
        }
        now = now.max(sender.due());
    }
}

#[test]
fn a_program_arrives_complete_and_once_over_any_link() {
    for seed in 1..60 {
        let mut agent = Ethernet::new(OWN);
        let program: String = (0..seed * 800).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        let (outcome, loaded) = send(&program, seed, &mut agent);
        assert_eq!(outcome, Outcome::Accepted("{\"generation\":2}".into()), "seed {seed}");
        assert!(loaded == [program], "seed {seed}: {} programs", loaded.len());
        let (outcome, loaded) = send(&format!("wrong {seed}"), seed + 1000, &mut agent);
        assert_eq!(outcome, Outcome::Refused("problem\n".repeat(1000)), "seed {seed}");
        assert_eq!((loaded.len(), agent.counters.accepted, agent.counters.refused), (1, 1, 1));
    }
}

#[test]
fn a_missing_agent_is_a_timeout_and_several_agents_are_an_error() {
    let now = Nanos::from_secs(1);
    let mut sender = Sender::new(THEIRS, OWN, 1, b"<fe/>", now).unwrap();
    let mut sent = 0;
    while sender.outcome().is_none() {
        sent += usize::from(sender.next_frame(sender.due()).is_some());
    }
    assert_eq!((sender.outcome(), sent), (Some(Outcome::Silent), 26));
    assert!(Sender::new(THEIRS, OWN, 1, &vec![0; BYTES_MAX * 6], now).is_none());
    let mut agent = Ethernet::new(OWN);
    let mut begin = |last: u8, now: Nanos| {
        let first = [0, 0, 0, 2, 0, 1, b'x'];
        let frame = frame(OWN, [2, 0, 0, 0, 1, last], 7, CHUNK, &first);
        let answer =
            agent.frame_came(&frame, now, &mut |_| panic!("the program is incomplete")).unwrap();
        Status::read(&answer[14 + HEAD_BYTES..]).unwrap().state
    };
    for last in 0..SESSIONS_MAX as u8 {
        assert_eq!(begin(last, now), State::Receiving);
    }
    assert_eq!(begin(9, now), State::Busy);
    assert_eq!(begin(9, now.saturating_add(SILENCE_MAX)), State::Receiving);
    assert_eq!(agent.counters.busy, 1);
}

#[test]
fn an_endless_program_is_rejected() {
    let mut agent = Ethernet::new(OWN);
    let now = Nanos::from_secs(1);
    let chunk = vec![b'x'; CHUNK_BYTES_MAX];
    let mut last = None;
    for index in 0..(BYTES_MAX / CHUNK_BYTES_MAX + 2) as u16 {
        let numbers = [index, u16::MAX, CHUNK_BYTES_MAX as u16].map(u16::to_be_bytes).concat();
        let frame = frame(OWN, THEIRS, 7, CHUNK, &[&numbers[..], &chunk].concat());
        last = agent.frame_came(&frame, now, &mut |_| panic!("the program is incomplete"));
    }
    let status = Status::read(&last.unwrap()[14 + HEAD_BYTES..]).unwrap();
    assert_eq!(status.state, State::Refused);
    assert!(agent.sessions[0].chunks.is_empty(), "it is discarded immediately");
}

#[test]
fn arbitrary_frames_never_panic() {
    let (mut agent, mut link, now) = (Ethernet::new(OWN), Link(3), Nanos::from_secs(1));
    let good = frame(OWN, THEIRS, 7, CHUNK, &[0, 1, 0, 3, 0, 4, 1, 2, 3, 4]);
    let ask = frame(OWN, THEIRS, 7, ASK, &[0, 0]);
    for round in 0..50_000 {
        let mut bytes = if round % 2 == 0 { good.clone() } else { ask.clone() };
        for _ in 0..=link.draw(3) {
            let at = link.draw(bytes.len() as u64) as usize;
            bytes[at] = link.draw(256) as u8;
        }
        bytes.truncate(link.draw(bytes.len() as u64 + 1) as usize);
        agent.frame_came(&bytes, now, &mut |_| Err("no program".into()));
        assert!(agent.sessions.len() <= SESSIONS_MAX);
    }
    let counters = agent.counters;
    assert!(counters.malformed > 0 && counters.chunks > 0 && counters.busy > 0, "{counters:?}");
}

#[test]
fn random_frames_keep_the_agent_within_its_limits() {
    let mut agent = Ethernet::new(OWN);
    let mut now = Nanos::from_secs(1);
    for seed in 0..40_000u64 {
        let roll = |at: u64, below: u64| mixed(seed * 31 + at) % below;
        now = now.saturating_add(Nanos::from_millis(roll(0, 40)));
        let (kind, count, index) = (roll(1, 5) as u8, roll(2, 5) as u16, roll(3, 6) as u16);
        let length = roll(4, 2000) as usize;
        let mut frame =
            [&OWN[..], &[2, 0, 0, 0, 9, roll(5, 7) as u8], &[0x88, 0xb6, 1, kind]].concat();
        frame.extend((roll(6, 3) as u32).to_be_bytes());
        frame.extend([index, count, length as u16].map(u16::to_be_bytes).concat());
        frame.extend(vec![b'x'; length.min(1400)]);
        frame.truncate(frame.len() - roll(7, 8).saturating_sub(5) as usize * 7);
        let mut carry = |_| Err("problem\n".repeat(roll(8, 1000) as usize));
        let answer = agent.frame_came(&frame, now, &mut carry);
        assert!(answer.is_none_or(|answer| (60..=1514).contains(&answer.len())));
        assert!(agent.sessions.len() <= SESSIONS_MAX);
    }
    let Counters { chunks, malformed, busy, refused, .. } = agent.counters;
    assert!(
        [chunks, malformed, busy, refused].iter().all(|count| *count > 0),
        "{:?}",
        agent.counters
    );
}

/// Returns a pseudorandom number that depends only on the argument.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}
