//! Capabilities that an installed program holds by its file, so that nobody needs to be root to measure.
//!
//! The file permits them and no more (`setcap ...=p`): were they in force at once, the kernel would refuse to start
//! the program wherever one of them is withheld, as in a container, even for root. So the program puts in force what it
//! was given. And they would end with it: what it starts (Open vSwitch, iperf3) has them only if they are ambient.
//!
//! Source: `capabilities(7)`.
//! Invariant: nothing is gained that this process does not hold already.

#![allow(unsafe_code)]

use crate::LabError;

/// The header of `capget` and `capset`: their version with 64 bits in two halves, and this thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// One half of the sets.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// Puts in force what is permitted, here and in the programs that this one starts. For root nothing is changed,
/// whose rights are in force and passed on anyway. Call it while there is only one thread: the sets are each
/// thread's own.
pub fn take_up() -> Result<(), LabError> {
    // SAFETY: geteuid takes and touches nothing.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(());
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: header and halves have the layout that this version asks for, and live through the call.
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
