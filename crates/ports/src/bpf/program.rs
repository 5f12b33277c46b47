//! A program in the kernel, and its place at an interface.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`BPF_PROG_LOAD`, `BPF_PROG_TEST_RUN`,
//! `BPF_LINK_CREATE` and `BPF_LINK_UPDATE`, the latter two for interfaces since Linux 5.9) and `include/uapi/linux/if_link.h` (`XDP_FLAGS_*`).
//! Invariant: an attached program goes from its interface when its [`Attached`] is dropped or the
//! process ends, however that comes about.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{self, Argument, Command};
use super::instruction::Instruction;

/// The kind of program that sees frames first.
const XDP: u32 = 6;

/// The kind of program that classifies what the kernel has made its own description of.
const CLASSIFIER: u32 = 3;

/// Where a program of that kind is attached.
const AT_XDP: u32 = 37;

/// A program that the kernel has checked and taken.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

/// Where in the kernel a program meets frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// After the kernel has made its own description of each frame: on every interface.
    Generic = 1 << 1,
    /// In the driver, where it can.
    Native = 1 << 2,
}

/// A program at an interface. It is taken off when this is dropped.
#[derive(Debug)]
pub struct Attached {
    link: OwnedFd,
}

impl Attached {
    /// Puts another program in its place; no frame meets neither.
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
    /// Hands a program to the kernel. `license` says under what terms its text is: some helpers
    /// are for programs under the GPL only.
    pub fn load(instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        Program::load_kind(XDP, instructions, license)
    }

    /// The same with a program that classifies frames.
    pub fn load_classifier(instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        Program::load_kind(CLASSIFIER, instructions, license)
    }

    /// By which it is named to the kernel.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    fn load_kind(kind: u32, instructions: &[Instruction], license: &CStr) -> io::Result<Self> {
        let argument = Load {
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
        Ok(Program { descriptor: call::open(Command::ProgramLoad, &argument)? })
    }

    /// Has so many frames made by the kernel, alike and of these bytes (14 to some 3,500), meet the program:
    /// what it sends them on to is sent. Since Linux 5.18.
    pub fn meet_live_frames(&self, bytes: &[u8], frames: u32) -> io::Result<()> {
        /// `BPF_F_TEST_XDP_LIVE_FRAMES`.
        const LIVE_FRAMES: u32 = 1 << 1;
        /// Frames at once that the kernel allows.
        const BATCH_MAX: u32 = 256;
        let argument = Test {
            program: self.descriptor.as_raw_fd() as u32,
            bytes_in: bytes.len() as u32,
            data_in: bytes.as_ptr() as u64,
            repeat: frames,
            flags: LIVE_FRAMES,
            batch: frames.min(BATCH_MAX),
            ..Test::default()
        };
        call::call(Command::ProgramTest, &argument).map(drop)
    }

    /// Has frames that come in by an interface, by its number in the calling thread's namespace,
    /// meet the program.
    pub fn attach(&self, interface: i32, mode: Mode) -> io::Result<Attached> {
        let argument = Link {
            program: self.descriptor.as_raw_fd() as u32,
            interface: interface as u32,
            place: AT_XDP,
            flags: mode as u32,
        };
        Ok(Attached { link: call::open(Command::LinkCreate, &argument)? })
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

// SAFETY: integers without padding; the addresses are those of so many instructions and of a
// string that ends in zero, both borrowed throughout the call, and of no log.
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

// SAFETY: integers without padding of the compiler's; the one address that is not zero is that of so
// many bytes, which are borrowed throughout the call and only read. With live frames the kernel writes
// no answer.
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
