//! File capabilities of an installed program, so that measurements do not require root.
//!
//! - The file only permits them (`setcap ...=p`). If they were effective immediately, the kernel
//!   would not start the program where one of them is withheld, as in a container, even for root.
//!   So the program makes the permitted ones effective itself.
//! - Capabilities end with the program: programs that it starts (Open vSwitch, iperf3) have them
//!   only if they are ambient.
//!
//! Source: `capabilities(7)`.
//!
//! Invariant: this process gains nothing that it does not have already.

#![allow(unsafe_code)]

use crate::LabError;

/// Header of `capget` and `capset`: the version with 64 bits in two halves, and this thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// One half of the sets.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityHalf {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// Makes the permitted capabilities effective, in this program and in the programs that it starts.
///
/// Changes nothing for root, whose privileges are effective and inherited anyway. Call this while
/// there is only one thread: each thread has its own sets.
pub fn take_up() -> Result<(), LabError> {
    // SAFETY: geteuid has no arguments and touches no memory.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(());
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let mut halves = [CapabilityHalf::default(); 2];
    // SAFETY: header and halves have the layout of this version, and live through the call.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, halves.as_mut_ptr()) };
    if got != 0 {
        return Err(LabError::last("read", "capabilities"));
    }
    for half in &mut halves {
        half.effective = half.permitted;
        half.inheritable = half.permitted;
    }
    // SAFETY: as above.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, halves.as_ptr()) };
    if set != 0 {
        return Err(LabError::last("keep", "capabilities"));
    }
    for number in 0..64_u64 {
        let half = halves[(number / 32) as usize];
        if half.permitted & (1 << (number % 32)) == 0 {
            continue;
        }
        // SAFETY: this request takes numbers only.
        let raised = unsafe {
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong,
                number,
                0_u64,
                0_u64,
            )
        };
        if raised != 0 {
            return Err(LabError::last("keep", format!("capability {number}")));
        }
    }
    Ok(())
}
