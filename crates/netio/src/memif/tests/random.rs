//! A peer that writes random data anywhere in the shared memory, some ten thousand times, while our
//! end works. No view or write is outside the memory, and every end either works or has a fault.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use packet::frame::FRAME_BYTES_MAX;

use super::hostile::{client, server};
use crate::in_place::View;
use crate::memif::receive::ReceiveEnd;
use crate::memif::ring::{Descriptor, Ring};
use crate::memif::transmit::{PutError, TransmitEnd};

const STEPS: usize = 20_000;

/// Returns a random number, with edge cases more often than a uniform distribution has them.
fn number(random: &mut Pcg64Mcg, end: u32) -> u32 {
    let near = random.next_u32() % 4;
    match random.next_u32() % 6 {
        0 => near,
        1 => end.wrapping_sub(near),
        2 => end.wrapping_add(near),
        3 => u32::MAX - near,
        4 => random.next_u32() % 4096,
        _ => random.next_u32(),
    }
}

/// Performs one random action, valid or invalid.
fn scribble(random: &mut Pcg64Mcg, ring: &Ring, index: &mut u16) {
    let end = ring.regions()[0].bytes() as u32;
    let slot = random.next_u32() as u16;
    match random.next_u32() % 8 {
        0 => {
            let descriptor = Descriptor {
                flags: random.next_u32() as u16 & 3,
                region: (random.next_u32().is_multiple_of(64)).into(),
                length: number(random, end),
                offset: number(random, end),
                metadata: 0,
            };
            ring.set_descriptor(slot, descriptor);
        }
        1 => {
            let place = random.next_u32() % end;
            let memory = ring.regions()[0].at(place as usize, 1).unwrap();
            super::hostile::poke(memory, random.next_u32() as u8);
        }
        2..6 => {
            let mut descriptor = ring.descriptor(slot);
            descriptor.length %= 3000;
            descriptor.flags &= u16::from(random.next_u32().is_multiple_of(4));
            ring.set_descriptor(slot, descriptor);
        }
        _ => {
            let step = if random.next_u32().is_multiple_of(100) { number(random, 8) } else { 1 };
            *index = index.wrapping_add(step as u16);
            ring.publish(*index);
        }
    }
}

/// Receives the waiting frames. Returns false after a fault.
fn receive(end: &mut ReceiveEnd, ring: &Ring) -> bool {
    if end.look(5).is_err() {
        return false;
    }
    // The peer's mapping differs from ours: only lengths can be compared here. Reading all bytes
    // shows that they are mapped.
    let region_bytes = ring.regions()[0].bytes();
    let views = end.views(4);
    for view in views.iter() {
        assert!(view.len() <= FRAME_BYTES_MAX.min(16 * region_bytes));
        assert_eq!(view.to_vec().len(), view.len());
        assert!(end.shows(view), "the view is neither in a region nor joined");
    }
    let count = views.len();
    end.release(count);
    true
}

/// Sends frames of some sizes. Returns false after a fault.
fn transmit(end: &mut TransmitEnd, random: &mut Pcg64Mcg) -> bool {
    let frame = vec![7; random.next_u32() as usize % 6000];
    let outcome = end.put(View::of(&frame));
    end.flush();
    !matches!(outcome, Err(PutError::Broken(_))) && end.room(9).is_ok()
}

#[test]
fn random_writes_never_lead_outside_the_region() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let makers: [(fn() -> _, bool); 2] = [(server, true), (client, false)];
    for (make, is_server) in makers {
        let (mut faults, mut frames) = (0, 0);
        let (mut ends, mut to_server, mut to_client) = make();
        let mut indices = [0, 0];
        for _ in 0..STEPS {
            scribble(&mut random, &to_server, &mut indices[0]);
            scribble(&mut random, &to_client, &mut indices[1]);
            let from = if is_server { &to_server } else { &to_client };
            frames += 1;
            if !receive(&mut ends.receive[0], from) || !transmit(&mut ends.transmit[0], &mut random)
            {
                faults += 1;
                (ends, to_server, to_client) = make();
                indices = [0, 0];
            }
        }
        assert!(faults > 100 && faults < frames / 2, "{faults} faults in {frames} steps");
    }
}
