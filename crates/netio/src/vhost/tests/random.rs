//! A driver that writes random data anywhere in its memory, some ten thousand times, while the
//! device works. No view or write is outside the memory, and every ring either works or has a
//! fault.

#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use packet::frame::FRAME_BYTES_MAX;

use super::front::*;
use crate::in_place::View;
use crate::memif::transmit::PutError;
use crate::vhost::memory::{Memory, RegionDescription, SharedMemory};
use crate::vhost::receive::ReceiveEnd;
use crate::vhost::ring::{Ring, RingAddresses};
use crate::vhost::transmit::TransmitEnd;

const STEPS: usize = 30_000;

/// Maps the driver's memory as a port would: two regions with a gap in their addresses.
fn mapped(file: &OwnedFd) -> SharedMemory {
    let half = BYTES as u64 / 2;
    let region =
        |guest, offset| RegionDescription { guest, user: USER + offset, bytes: half, offset };
    let regions = [region(GUEST, 0), region(GUEST + half + 4096, half)];
    let both = regions.map(|region| (region, file.try_clone().unwrap()));
    Arc::new(Memory::map(both.into()).unwrap())
}

fn ring(memory: &SharedMemory, ring: u64) -> Ring {
    let at = USER + ring * 0x4000;
    let place = RingAddresses { descriptors: at, available: at + 0x1000, used: at + 0x2000 };
    Ring::new(Arc::clone(memory), place, ENTRIES.into(), 0, [None, None]).unwrap()
}

/// Returns a random number, with edge cases more often than a uniform distribution has them.
fn number(random: &mut Pcg64Mcg, end: u64) -> u64 {
    let near = u64::from(random.next_u32() % 80);
    match random.next_u32() % 6 {
        0 => near,
        1 => end.wrapping_sub(near),
        2 => end.wrapping_add(near),
        3 => u64::MAX - near,
        4 => u64::from(random.next_u32() % 4096),
        _ => random.next_u64(),
    }
}

/// Performs one random action, valid or invalid.
fn scribble(random: &mut Pcg64Mcg, front: &mut Front, ring: u64) {
    let entry = random.next_u32() as u16 % ENTRIES;
    let half = BYTES as u64 / 2;
    match random.next_u32() % 16 {
        0 => {
            let address = GUEST.wrapping_add(number(random, half));
            let length = number(random, 2048) as u32;
            let (flags, next) = (random.next_u32() as u16 & 7, random.next_u32() as u16 % 260);
            front.describe(ring, entry, (address, length, flags, next));
        }
        1 => {
            let place = u64::from(random.next_u32()) % 0x8000;
            front.write(place, &[random.next_u32() as u8]);
        }
        2 if random.next_u32().is_multiple_of(20) => {
            front.jump(ring, number(random, 300) as u16);
        }
        _ => {
            let flags = if ring == 0 { WRITE } else { 0 };
            let length = random.next_u32() % 2048;
            let chain = random.next_u32().is_multiple_of(3);
            let first = flags | if chain { NEXT } else { 0 };
            let other = entry ^ 1;
            // The second one may extend beyond the end of the first region.
            let end = if random.next_u32().is_multiple_of(200) { half - 900 } else { 0 };
            front.describe(ring, entry, (GUEST + 0x9000, length.max(16), first, other));
            front.describe(ring, other, (GUEST + 0xa000 + end % half, 900, flags, 0));
            front.offer(ring, entry);
        }
    }
}

#[test]
fn random_writes_never_lead_outside_the_memory() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let (mut faults, mut frames, mut sent) = (0, 0, 0);
    let mut ends: Option<(Front, ReceiveEnd, TransmitEnd)> = None;
    for step in 0..STEPS {
        let (front, receive, transmit) = ends.get_or_insert_with(|| {
            let front = Front::new(stream.try_clone().unwrap());
            let memory = mapped(&front.file);
            let (to, from) = (ring(&memory, 0), ring(&memory, 1));
            (front, ReceiveEnd::new(from, 12), TransmitEnd::new(to, 12, step.is_multiple_of(2)))
        });
        for ring in [0, 1] {
            scribble(&mut random, front, ring);
        }
        let looked = receive.look(5);
        for view in receive.views().iter() {
            assert!((1..=FRAME_BYTES_MAX).contains(&view.len()));
            assert_eq!(view.to_vec().len(), view.len(), "all bytes are mapped");
            assert!(receive.shows(view), "the view is neither in a region nor joined");
        }
        let count = receive.views().len() - receive.views().len() / 3;
        receive.release(count);
        frames += count;
        let frame = vec![7; random.next_u32() as usize % 3000];
        let (first, second) = frame.split_at(frame.len() / 3);
        let outcome = transmit.put(View::of(first), View::of(second));
        assert_eq!(transmit.flush(), Ok(()));
        sent += usize::from(outcome.is_ok());
        if looked.is_err() || matches!(outcome, Err(PutError::Broken(_))) {
            faults += 1;
            ends = None;
        }
    }
    assert!(faults > 100 && faults < STEPS / 4, "{faults} faults in {STEPS} steps");
    assert!(frames > STEPS / 4 && sent > STEPS / 4, "{frames} frames, {sent} sent");
}
