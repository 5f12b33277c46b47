//! The system call `bpf(2)`, which takes a command and a command-specific struct.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`enum bpf_cmd`, `union bpf_attr`). The kernel treats
//! fields beyond the end of a shorter struct as zero.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Command {
    MapCreate = 0,
    MapLookUp = 1,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    ProgramTest = 10,
    MapLookUpBatch = 24,
    MapUpdateBatch = 26,
    MapDeleteBatch = 27,
    LinkCreate = 28,
    LinkUpdate = 29,
}

/// An argument of the call: the part of `union bpf_attr` that a command reads.
///
/// # Safety
/// The type must have C layout without padding. Every address in it must be zero or that of memory
/// which the command may use as documented, throughout the call.
pub(super) unsafe trait Argument {}

/// Makes a call that only reads the argument; the meaning of the returned value depends on the
/// command.
pub(super) fn call<A: Argument>(command: Command, argument: &A) -> io::Result<i32> {
    // SAFETY: the pointer and the length describe `argument`, which outlives the call. Its type
    // guarantees the memory that it points to.
    unsafe { call_at::<A>(command, std::ptr::from_ref(argument)) }
}

/// Makes a call that writes a part of its reply to the argument.
pub(super) fn call_mut<A: Argument>(command: Command, argument: &mut A) -> io::Result<i32> {
    // SAFETY: as in `call`, and the argument may be written.
    unsafe { call_at::<A>(command, std::ptr::from_mut(argument)) }
}

/// # Safety
/// The argument must be readable, and writable if the command writes to it.
unsafe fn call_at<A: Argument>(command: Command, argument: *const A) -> io::Result<i32> {
    // SAFETY: guaranteed by the caller.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            argument,
            size_of::<A>() as libc::c_uint,
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}

/// Makes a call that returns a new descriptor.
pub(super) fn open<A: Argument>(command: Command, argument: &A) -> io::Result<OwnedFd> {
    let descriptor = call(command, argument)?;
    // SAFETY: these commands return a descriptor that this process alone owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
