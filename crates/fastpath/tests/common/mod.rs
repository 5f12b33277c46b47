//! Runs the programs of a fast path on single frames, without interfaces (`BPF_PROG_TEST_RUN`).

#![allow(dead_code)]
#![allow(clippy::unwrap_used)]

use dataplane::forwarder::{Forwarder, Outputs};
use ebpf::{Assembly, Program, Register};
use fastpath::FastPath;
use packet::frame::{Batch, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

pub mod element;

/// Result of a frame that escapes (`XDP_PASS`).
const ESCAPED: u32 = 2;

/// Result of a redirected frame (`XDP_REDIRECT`).
const REDIRECTED: u32 = 4;

/// The loopback interface, to which no frame goes in a test run.
pub const LOOPBACK: u32 = 1;

/// Longest frame without a tag.
pub const FRAME_BYTES_MAX: usize = 1514;

/// A fast path and the loaded programs of its ports.
pub struct Kernel {
    pub path: FastPath,
    programs: Vec<(PortNo, Program)>,
}

/// What a program did with a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was left to user space, unchanged.
    Escaped,
    /// It was redirected to this port, with these bytes.
    Sent(PortNo, Vec<u8>),
}

impl Kernel {
    /// Loads the programs of these ports, or prints why the test is skipped.
    pub fn load(
        path: std::io::Result<FastPath>,
        ports: &[PortNo],
        is_partial: bool,
    ) -> Option<Kernel> {
        let path = match path {
            Ok(path) => path,
            Err(error) => {
                assert!(!may_not_skip(), "need: root, to create maps: {error}");
                println!("skipped; need: root, to create maps: {error}");
                return None;
            }
        };
        let load = |port: &PortNo| {
            path.set_frame_bytes_max(*port, FRAME_BYTES_MAX);
            path.connect(*port, LOOPBACK).unwrap();
            (*port, load(&path, *port, is_partial))
        };
        let programs = ports.iter().map(load).collect();
        Some(Kernel { path, programs })
    }

    /// Runs the program of a port on a frame of at least 14 bytes.
    pub fn run(&self, port: PortNo, frame: &[u8]) -> Outcome {
        let before = self.path.traffic().unwrap();
        let run = self.program(port).run_once(frame, 1).unwrap();
        let after = self.path.traffic().unwrap();
        let mut changed = after.iter().filter(|pair| !before.contains(pair));
        match (run.result, changed.next()) {
            (ESCAPED, None) => {
                assert_eq!(run.frame, frame, "an escaping frame is unchanged");
                Outcome::Escaped
            }
            (REDIRECTED, Some(pair)) => {
                let earlier = before.iter().find(|it| (it.from, it.to) == (pair.from, pair.to));
                let (frames, bytes) = earlier.map_or((0, 0), |it| (it.frames, it.bytes));
                let counted = (pair.frames - frames, pair.bytes - bytes);
                assert_eq!(counted, (1, frame.len() as u64));
                assert_eq!((pair.from, changed.next()), (port, None));
                Outcome::Sent(pair.to, run.frame)
            }
            (result, counted) => panic!("result {result}, counted {counted:?}"),
        }
    }

    pub fn program(&self, port: PortNo) -> &Program {
        &self.programs.iter().find(|(number, _)| *number == port).unwrap().1
    }
}

/// Loads the program of a port; frames that escape get the result `XDP_PASS`.
fn load(path: &FastPath, port: PortNo, is_partial: bool) -> Program {
    let mut program = Assembly::new();
    let escape = program.label("escape");
    program.copy(Register::R6, Register::R1);
    path.program(port, is_partial)(&mut program, escape);
    program.place(escape);
    program.set(Register::R0, ESCAPED as i32);
    program.exit();
    let text = program.finish().unwrap();
    Program::load(&text, c"Apache-2.0").unwrap_or_else(|error| panic!("port {port}: {error}"))
}

/// Forwards a frame in user space. Returns the frames of all output queues.
pub fn forward(
    plane: &mut impl Forwarder,
    port: PortNo,
    frame: &[u8],
    now: Nanos,
    out: &mut Outputs,
) -> Vec<(PortNo, Vec<u8>)> {
    let mut batch = Batch::new(1);
    batch.push_bytes(frame);
    plane.forward(port, &mut batch, now, out);
    taken(out)
}

/// Takes the frames of all output queues.
pub fn taken(out: &mut Outputs) -> Vec<(PortNo, Vec<u8>)> {
    let queues = out.queues_mut().iter_mut();
    queues
        .flat_map(|(port, queue)| {
            let frames: Vec<_> =
                queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())).collect();
            queue.clear();
            frames
        })
        .collect()
}

#[allow(clippy::disallowed_methods)]
fn may_not_skip() -> bool {
    std::env::var_os("CI").is_some()
}

/// Returns the number of random cases: `FAST_PATH_CASES`, or a few.
#[allow(clippy::disallowed_methods)]
pub fn cases() -> u64 {
    let given = std::env::var("FAST_PATH_CASES").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(30)
}

/// A reproducible pseudo-random sequence.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

pub fn mac(last: u8) -> Mac {
    [2, 0, 0, 0, 0, last]
}
