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

    /// Runs the program on this many frames, which the kernel creates with these bytes (14 to some
    /// 3,500).
    ///
    /// Frames that the program redirects are sent. Since Linux 5.18.
    pub fn run_on_live_frames(&self, bytes: &[u8], frames: u32) -> io::Result<()> {
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
            batch: frames.min(BATCH_MAX),
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

// SAFETY: integers without implicit padding. The one address that is not zero is that of this many
// bytes, which are borrowed throughout the call and only read. With live frames the kernel writes
// no reply.
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
