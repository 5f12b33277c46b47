//! An eBPF program in the kernel, and its attachment to an interface.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_PROG_LOAD`, `BPF_PROG_TEST_RUN`,
//! `BPF_LINK_CREATE` and `BPF_LINK_UPDATE`, the latter two for interfaces since Linux 5.9) and
//! `include/uapi/linux/if_link.h` (`XDP_FLAGS_*`).
//!
//! Invariant: an attached program is detached when its [`Attachment`] is dropped or the process ends
//! for any reason.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{self, Argument, Command};
use super::instruction::Instruction;

/// Bytes of the verifier's log, whose last lines an error has.
const LOG_BYTES: usize = 1 << 20;

/// Maximum number of bytes of a frame that a test run returns.
const TEST_BYTES_MAX: usize = 4096;

/// Program type `BPF_PROG_TYPE_XDP`, which runs first on a frame.
const XDP: u32 = 6;

/// Program type `BPF_PROG_TYPE_SCHED_CLS`, which classifies socket buffers.
const CLASSIFIER: u32 = 3;

/// Attach type of XDP programs.
const AT_XDP: u32 = 37;

/// A program that the kernel has verified and loaded.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

/// Result of a test run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestRun {
    /// The program's result.
    pub result: u32,
    /// The frame after the last run.
    pub frame: Vec<u8>,
    /// Mean time of a run in nanoseconds.
    pub duration_ns: u32,
}

/// Where in the kernel an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpMode {
    /// After the kernel has allocated a socket buffer for each frame; works on every interface.
    Generic = 1 << 1,
    /// In the driver, if it supports this.
    Native = 1 << 2,
}

/// A program attached to an interface. Dropping this detaches it.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
}

impl Attachment {
    /// Replaces the program atomically: every frame meets the old or the new one.
    pub fn replace(&self, program: &Program) -> io::Result<()> {
        let argument = Update {
            link: self.link.as_raw_fd() as u32,
            program: program.descriptor.as_raw_fd() as u32,
            flags: 0,
            old_program: 0,
        };
        call::call(Command::LinkUpdate, &argument).map(drop)
    }
}

impl Program {
    /// Loads a program. `license` is that of its text: some helpers require the GPL.
    pub fn load(instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        Program::load_kind(XDP, instructions, license)
    }

    /// Loads a program that classifies frames.
    pub fn load_classifier(instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        Program::load_kind(CLASSIFIER, instructions, license)
    }

    /// Returns the program's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Loads a program. The error has the last lines of the verifier's log.
    fn load_kind(kind: u32, instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        let mut argument = Load {
            kind,
            instructions: instructions.len() as u32,
            text: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
        };
        let error = match call::open(Command::ProgramLoad, &argument) {
            Ok(descriptor) => return Ok(Program { descriptor }),
            Err(error) => error,
        };
        let mut log = vec![0_u8; LOG_BYTES];
        argument.log_level = 1;
        argument.log_bytes = LOG_BYTES as u32;
        argument.log = log.as_mut_ptr() as u64;
        if let Ok(descriptor) = call::open(Command::ProgramLoad, &argument) {
            return Ok(Program { descriptor });
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]);
        // The last line is a statistic, and the reason precedes it.
        let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with("processed ")).collect();
        match lines[lines.len().saturating_sub(3)..].join("; ") {
            reason if reason.is_empty() => Err(error),
            reason => Err(io::Error::new(error.kind(), format!("{error} ({reason})"))),
        }
    }

    /// Runs the program `repeat` times on a frame, and returns the last result and frame.
    ///
    /// Every run begins with the bytes that the previous one left. The frame goes nowhere. Maps
    /// change as for received frames.
    pub fn run_once(&self, frame: &[u8], repeat: u32) -> io::Result<TestRun> {
        let mut out = vec![0; TEST_BYTES_MAX];
        let mut argument = Test {
            program: self.descriptor.as_raw_fd() as u32,
            bytes_in: frame.len() as u32,
            bytes_out: out.len() as u32,
            data_in: frame.as_ptr() as u64,
            data_out: out.as_mut_ptr() as u64,
            repeat,
            ..Test::default()
        };
        call::call_mut(Command::ProgramTest, &mut argument)?;
        out.truncate(argument.bytes_out as usize);
        let Test { answer, duration_ns, .. } = argument;
        Ok(TestRun { result: answer, frame: out, duration_ns })
    }

    /// Runs the program on this many frames, which the kernel creates with these bytes (14 to some
    /// 3,500).
    ///
    /// Frames that the program redirects are sent when `batch` frames have been run, or earlier
    /// where the target has a full queue of them. A frame's page is used again when the frame was
    /// dropped or consumed: it then has the bytes of its last user. Since Linux 5.18.
    pub fn run_on_live_frames(&self, bytes: &[u8], frames: u32, batch: u32) -> io::Result<()> {
        /// `BPF_F_TEST_XDP_LIVE_FRAMES`.
        const LIVE_FRAMES: u32 = 1 << 1;
        /// Largest batch that the kernel allows.
        const BATCH_MAX: u32 = 256;
        let argument = Test {
            program: self.descriptor.as_raw_fd() as u32,
            bytes_in: bytes.len() as u32,
            data_in: bytes.as_ptr() as u64,
            repeat: frames,
            flags: LIVE_FRAMES,
            batch: batch.clamp(1, BATCH_MAX).min(frames),
            ..Test::default()
        };
        call::call(Command::ProgramTest, &argument).map(drop)
    }

    /// Attaches the program to an interface, by its index in the calling thread's namespace.
    pub fn attach(&self, interface: i32, mode: XdpMode) -> io::Result<Attachment> {
        let argument = Link {
            program: self.descriptor.as_raw_fd() as u32,
            interface: interface as u32,
            place: AT_XDP,
            flags: mode as u32,
        };
        Ok(Attachment { link: call::open(Command::LinkCreate, &argument)? })
    }
}

#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    text: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

// SAFETY: integers without padding. The addresses are those of this many instructions and of a
// string that ends in zero, both borrowed throughout the call. The log address is zero.
unsafe impl Argument for Load {}

#[repr(C)]
#[derive(Default)]
struct Test {
    program: u32,
    answer: u32,
    bytes_in: u32,
    bytes_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
    context_bytes_in: u32,
    context_bytes_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    core: u32,
    batch: u32,
    padding: u32,
}

// SAFETY: integers without implicit padding. The addresses that are not zero are those of this many
// bytes, which are borrowed throughout the call: those of `data_in` are only read, and those of
// `data_out` are writable.
unsafe impl Argument for Test {}

#[repr(C)]
struct Update {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

// SAFETY: four integers of 4 bytes, none of them an address.
unsafe impl Argument for Update {}

#[repr(C)]
struct Link {
    program: u32,
    interface: u32,
    place: u32,
    flags: u32,
}

// SAFETY: four integers of 4 bytes, none of them an address.
unsafe impl Argument for Link {}
