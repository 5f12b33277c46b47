//! Peers that write invalid data into shared memory, and peers that send invalid messages.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::Nanos;

use super::peers::{path, turn_until};
use crate::in_place::View;
use crate::memif::attach::{RingEnds, attach, prepare};
use crate::memif::control_socket::{ReceiveResult, hear, say};
use crate::memif::doorbell::Doorbell;
use crate::memif::fault::Fault;
use crate::memif::handshake::{Offer, RingOffer};
use crate::memif::layout::Shape;
use crate::memif::port::MemifPort;
use crate::memif::protocol::{AddRing, Direction, Init, MODE_ETHERNET, Message, VERSION, text};
use crate::memif::region::Region;
use crate::memif::ring::{Descriptor, FLAG_NEXT, Ring, Side};
use crate::memif::socket::Socket;
use crate::memif::spec::Spec;
use crate::memif::transmit::{PutError, Refusal};
use crate::port::{Port, PortDrop};

const SHAPE: Shape = Shape { to_server: 1, to_client: 1, slots_log2: 3, buffer_bytes: 2048 };

/// Maps the memory again, as the peer has it.
fn ring_of(file: &OwnedFd, bytes: u64, side: Side, direction: Direction) -> Ring {
    let region = Region::map(file, bytes, false).unwrap();
    let reported = SHAPE.rings().find(|ring| ring.direction == direction).unwrap();
    let regions = Arc::new([region]);
    Ring::new(regions, (0, reported.offset), SHAPE.slots_log2, (side, direction)).unwrap()
}

/// Returns a server's ends, and both rings as the hostile client has them.
pub fn server() -> (RingEnds, Ring, Ring) {
    let made = prepare(&SHAPE, false).unwrap();
    let rings = [Direction::ToServer, Direction::ToClient]
        .map(|direction| ring_of(&made.file, made.bytes, Side::Client, direction));
    let offers: Vec<RingOffer<OwnedFd>> =
        SHAPE.rings().map(|ring| RingOffer { ring, doorbell: event() }).collect();
    let mut offers = offers.into_iter();
    let offer = Offer {
        regions: vec![(made.bytes, made.file)],
        to_server: offers.by_ref().take(1).collect(),
        to_client: offers.collect(),
    };
    let [to_server, to_client] = rings;
    (attach(offer, false).unwrap(), to_server, to_client)
}

/// Returns a client's ends, and both rings as the hostile server has them.
pub fn client() -> (RingEnds, Ring, Ring) {
    let mut made = prepare(&SHAPE, false).unwrap();
    let [to_server, to_client] = [Direction::ToServer, Direction::ToClient]
        .map(|direction| ring_of(&made.file, made.bytes, Side::Server, direction));
    made.ends.receive[0].open();
    (made.ends, to_server, to_client)
}

/// Writes a byte where the peer can write.
pub fn poke(at: *mut u8, byte: u8) {
    // SAFETY: callers pass an address inside a mapped region.
    unsafe { at.write_volatile(byte) }
}

fn event() -> OwnedFd {
    Doorbell::create().unwrap().duplicate()
}

fn good() -> Descriptor {
    let offset = SHAPE.buffers_at(Direction::ToServer, 0) as u32;
    Descriptor { length: 60, offset, ..Descriptor::default() }
}

#[test]
fn a_server_detects_invalid_received_descriptors() {
    let end = server().1.regions()[0].bytes() as u32;
    for (lie, fault) in [
        (Descriptor { region: 1, ..good() }, Fault::BufferPlace),
        (Descriptor { region: 0xffff, ..good() }, Fault::BufferPlace),
        (Descriptor { offset: end, ..good() }, Fault::BufferPlace),
        (Descriptor { offset: end - 59, ..good() }, Fault::BufferPlace),
        (Descriptor { offset: u32::MAX, ..good() }, Fault::BufferPlace),
        (Descriptor { length: u32::MAX, ..good() }, Fault::BufferPlace),
        (Descriptor { length: end, ..good() }, Fault::BufferPlace),
    ] {
        let (mut ends, ring, _) = server();
        ring.set_descriptor(0, good());
        ring.set_descriptor(1, lie);
        ring.set_descriptor(2, good());
        ring.publish(3);
        let receive = &mut ends.receive[0];
        assert_eq!(receive.look(256), Ok(()));
        assert_eq!(receive.views(256).len(), 1, "frames before the invalid one are good");
        receive.release(1);
        assert_eq!(receive.look(256), Err(fault), "{lie:?}");
        assert_eq!(receive.look(256), Err(fault), "and the fault remains");
    }
    let (mut ends, ring, _) = server();
    ring.set_descriptor(0, Descriptor { offset: end - 60, ..good() });
    ring.publish(1);
    assert_eq!(ends.receive[0].look(256), Ok(()), "the last bytes of the region are inside");
    assert_eq!(ends.receive[0].views(256).get(0).len(), 60);
}

#[test]
fn a_client_detects_changes_of_its_own_buffers() {
    let (ends, _, ring) = client();
    let ours = ring.descriptor(0);
    drop(ends);
    for (lie, fault) in [
        (Descriptor { length: 2049, ..ours }, Fault::BufferLength),
        (Descriptor { length: u32::MAX, ..ours }, Fault::BufferLength),
        (Descriptor { length: 60, offset: ours.offset + 1, ..ours }, Fault::BufferPlace),
        (Descriptor { length: 60, offset: 0, ..ours }, Fault::BufferPlace),
        (Descriptor { length: 60, region: 1, ..ours }, Fault::BufferPlace),
    ] {
        let (mut ends, _, ring) = client();
        ring.set_descriptor(0, lie);
        ring.publish(1);
        assert_eq!(ends.receive[0].look(256), Err(fault), "{lie:?}");
    }
    // The server's changes to descriptors are undone before they are offered again.
    let (mut ends, _, ring) = client();
    ring.set_descriptor(0, Descriptor { length: 60, metadata: 7, ..ours });
    ring.publish(1);
    assert_eq!(ends.receive[0].look(256), Ok(()));
    ring.set_descriptor(0, Descriptor { offset: 5, ..ours });
    ends.receive[0].release(1);
    assert_eq!((ring.descriptor(0), ring.peers_index()), (ours, 9));
}

#[test]
fn an_index_that_jumps_is_detected_on_every_ring() {
    for jump in [9, 0x7fff, 0xffff] {
        let (mut ends, ring, _) = server();
        ring.publish(jump);
        assert_eq!(ends.receive[0].look(256), Err(Fault::IndexJump), "head {jump}");
        let (mut ends, _, ring) = server();
        ring.publish(jump);
        assert_eq!(ends.transmit[0].room(256), Err(Fault::IndexJump), "head {jump}");
        let (mut ends, _, ring) = client();
        ring.publish(jump);
        assert_eq!(ends.receive[0].look(256), Err(Fault::IndexJump), "tail {jump}");
        let (mut ends, ring, _) = client();
        ring.publish(jump);
        assert_eq!(ends.transmit[0].room(256), Err(Fault::IndexJump), "tail {jump}");
    }
    // Backwards, while frames wait to be flushed.
    let (mut ends, ring, _) = client();
    let transmit = &mut ends.transmit[0];
    for _ in 0..3 {
        transmit.put(View::of(&[1; 60])).unwrap();
    }
    transmit.flush();
    ring.publish(2);
    assert_eq!(transmit.room(8), Ok(7));
    transmit.put(View::of(&[1; 60])).unwrap();
    ring.publish(1);
    assert_eq!(transmit.room(8), Err(Fault::IndexJump));
    // More slots taken than published: unflushed frames must not be taken.
    ring.publish(4);
    assert_eq!(transmit.room(8), Err(Fault::IndexJump));
}

#[test]
fn chained_frames_are_followed_up_to_a_limit() {
    let next = Descriptor { flags: FLAG_NEXT, ..good() };
    let (mut ends, ring, _) = server();
    ring.set_descriptor(0, next);
    ring.set_descriptor(1, next);
    ring.publish(2);
    assert_eq!(ends.receive[0].look(256), Err(Fault::Chain), "the chain does not end");
    let (mut ends, ring, _) = server();
    ring.set_descriptor(0, next);
    ring.set_descriptor(1, Descriptor { offset: u32::MAX, ..good() });
    ring.publish(2);
    assert_eq!(ends.receive[0].look(256), Err(Fault::BufferPlace), "an invalid second part");
    // Longer than any frame: it is skipped, the frame after it is not.
    let (mut ends, ring, _) = server();
    let half = Descriptor { length: FRAME_BYTES_MAX as u32, offset: 0, ..good() };
    ring.set_descriptor(0, Descriptor { flags: FLAG_NEXT, ..half });
    ring.set_descriptor(1, half);
    ring.set_descriptor(2, good());
    ring.set_descriptor(3, half);
    ring.publish(4);
    let receive = &mut ends.receive[0];
    assert_eq!(receive.look(256), Ok(()));
    let lengths: Vec<usize> = receive.views(256).iter().map(|view| view.len()).collect();
    assert_eq!(lengths, [60, FRAME_BYTES_MAX]);
    assert_eq!(ring.descriptor(0).flags, 0, "DPDK would not clear it");
    assert_eq!(receive.take_too_long(), 1);
    receive.release(2);
    assert_eq!(ring.peers_index(), 4, "all four slots are returned");
    // A single frame.
    ring.set_descriptor(4, Descriptor { length: half.length + 1, ..half });
    ring.publish(5);
    assert_eq!(receive.look(256), Ok(()));
    assert_eq!((receive.views(256).len(), ring.peers_index()), (0, 5));
}

#[test]
fn joined_frames_without_space_are_received_later() {
    let (mut ends, ring, _) = server();
    let half = Descriptor { length: FRAME_BYTES_MAX as u32 / 2, offset: 0, ..good() };
    let receive = &mut ends.receive[0];
    let (mut head, mut arrived) = (0u16, 0);
    for _ in 0..20 {
        while head.wrapping_sub(ring.peers_index()) < 8 {
            ring.set_descriptor(head, Descriptor { flags: FLAG_NEXT, ..half });
            ring.set_descriptor(head.wrapping_add(1), half);
            head = head.wrapping_add(2);
            ring.publish(head);
        }
        receive.look(256).unwrap();
        let views = receive.views(256);
        assert!(views.iter().all(|view| view.len() == FRAME_BYTES_MAX));
        let count = views.len();
        receive.release(count);
        arrived += count;
    }
    assert_eq!(arrived, 80);
}

#[test]
fn a_server_detects_invalid_empty_buffers() {
    let room = Descriptor { length: 2048, ..good() };
    for (lie, stop) in [
        (Descriptor { region: 1, ..room }, PutError::Broken(Fault::BufferPlace)),
        (Descriptor { offset: u32::MAX, ..room }, PutError::Broken(Fault::BufferPlace)),
        (Descriptor { length: u32::MAX, ..room }, PutError::Broken(Fault::BufferPlace)),
        (Descriptor { length: 0, ..room }, PutError::Broken(Fault::BufferLength)),
    ] {
        let (mut ends, _, ring) = server();
        (0..8).for_each(|slot| ring.set_descriptor(slot, lie));
        ring.publish(8);
        assert_eq!(ends.transmit[0].put(View::of(&[1; 60])), Err(stop), "{lie:?}");
    }
    // Small buffers: as many as needed, if there are enough.
    let (mut ends, _, ring) = server();
    (0..8).for_each(|slot| ring.set_descriptor(slot, Descriptor { length: 20, ..room }));
    ring.publish(8);
    let transmit = &mut ends.transmit[0];
    assert_eq!(transmit.put(View::of(&[1; 161])), Err(PutError::Refused(Refusal::TooLong)));
    assert_eq!(transmit.put(View::of(&[1; 50])), Ok(()));
    assert_eq!(transmit.put(View::of(&[1; 101])), Err(PutError::Refused(Refusal::Full)));
    assert_eq!(transmit.put(View::of(&[1; 100])), Ok(()));
    assert_eq!(transmit.put(View::of(&[1; 1])), Err(PutError::Refused(Refusal::Full)));
    assert_eq!(ring.peers_index(), 0, "nothing is visible before the flush");
    transmit.flush();
    assert_eq!(ring.peers_index(), 8);
    let reported: Vec<_> = (0..8).map(|slot| ring.descriptor(slot)).collect();
    let reported: Vec<_> =
        reported.iter().map(|reported| (reported.flags, reported.length)).collect();
    let rest = [(1, 20), (1, 20), (1, 20), (1, 20), (0, 20)];
    assert_eq!(reported, [&[(1, 20), (1, 20), (0, 10)][..], &rest].concat());
}

#[test]
fn invalid_rings_are_rejected() {
    let offer = |change: fn(&mut AddRing)| {
        let made = prepare(&SHAPE, false).unwrap();
        let mut rings = SHAPE.rings();
        let mut ring = rings.next().unwrap();
        change(&mut ring);
        let to_server = vec![RingOffer { ring, doorbell: event() }];
        attach(
            Offer { regions: vec![(made.bytes, made.file)], to_server, to_client: vec![] },
            false,
        )
        .err()
    };
    assert_eq!(offer(|_| ()), None);
    assert_eq!(offer(|ring| ring.region = 1), Some(Fault::RingPlace));
    assert_eq!(offer(|ring| ring.offset = u32::MAX), Some(Fault::RingPlace));
    assert_eq!(offer(|ring| ring.offset = 8), Some(Fault::RingPlace));
    assert_eq!(offer(|ring| ring.slots_log2 = 14), Some(Fault::RingPlace));
    assert_eq!(offer(|ring| ring.slots_log2 = 15), Some(Fault::RingSize));
    assert_eq!(offer(|ring| ring.offset = 4096), Some(Fault::RingCookie));
    let made = prepare(&SHAPE, false).unwrap();
    let doorbell = std::fs::File::open("/dev/null").unwrap().into();
    let to_server = vec![RingOffer { ring: SHAPE.rings().next().unwrap(), doorbell }];
    let regions = vec![(made.bytes, made.file)];
    let refused = attach(Offer { regions, to_server, to_client: vec![] }, false).err();
    assert_eq!(refused, Some(Fault::Doorbell));
}

/// A hand-written client that completes the handshake and keeps the memory.
fn false_client(spec: &Spec, server: &mut MemifPort) -> (Socket, Ring) {
    let socket = Socket::connect(&spec.address).unwrap();
    let made = prepare(&SHAPE, false).unwrap();
    let init = Init {
        version: VERSION,
        id: spec.id,
        mode: MODE_ETHERNET,
        secret: spec.secret,
        name: text("liar"),
    };
    say(&socket, &Message::Init(init), None).unwrap();
    let region = Message::AddRegion { index: 0, bytes: made.bytes };
    say(&socket, &region, Some(made.file.as_raw_fd())).unwrap();
    for ring in SHAPE.rings() {
        say(&socket, &Message::AddRing(ring), Some(event().as_raw_fd())).unwrap();
    }
    say(&socket, &Message::Connect { name: text("liar") }, None).unwrap();
    turn_until(&mut [server], |ports| ports[0].has_link());
    let ring = ring_of(&made.file, made.bytes, Side::Client, Direction::ToServer);
    (socket, ring)
}

/// Returns the last received message.
fn last_words(socket: &Socket) -> Option<Message> {
    let mut last = None;
    while let Ok(ReceiveResult::Message(message, _)) = hear(socket) {
        last = Some(message);
    }
    last
}

#[test]
fn a_hostile_peer_is_counted_and_disconnected_and_the_next_one_served() {
    let spec = Spec { huge_pages: false, ..Spec::new(path("liar")) };
    let mut port = MemifPort::open(&spec).unwrap();
    let mut batch = Batch::new(8);
    for round in 1..=3 {
        let (socket, ring) = false_client(&spec, &mut port);
        ring.set_descriptor(0, good());
        ring.set_descriptor(1, Descriptor { offset: u32::MAX, ..good() });
        ring.publish(2);
        batch.clear();
        assert_eq!(port.receive(&mut batch, Nanos::ZERO).unwrap(), 1, "the good frame");
        assert_eq!(port.receive(&mut batch, Nanos::ZERO).unwrap(), 0);
        turn_until(&mut [&mut port], |ports| !ports[0].has_link());
        assert_eq!(port.faults().of(Fault::BufferPlace), round);
        assert_eq!(last_words(&socket), Some(Message::farewell(Fault::BufferPlace)));
        let counters = port.counters();
        assert_eq!((counters.peer_faults, counters.lost(PortDrop::PeerBroken)), (round, round));
    }
    // A peer that leaves during a burst: its frames arrive or not, and nothing breaks.
    let (socket, ring) = false_client(&spec, &mut port);
    ring.set_descriptor(0, good());
    ring.publish(1);
    drop((socket, ring));
    batch.clear();
    assert!(port.receive(&mut batch, Nanos::ZERO).unwrap() <= 1);
    turn_until(&mut [&mut port], |ports| !ports[0].has_link());
    assert_eq!(port.faults().total(), 3, "a disconnect is not a fault");
}

#[test]
fn invalid_messages_disconnect_only_their_sender() {
    let spec = Spec { huge_pages: false, ..Spec::new(path("other-client")) };
    let mut port = MemifPort::open(&spec).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let silent: Vec<Socket> = (0..4).map(|_| Socket::connect(&spec.address).unwrap()).collect();
    let (socket, _ring) = false_client(&spec, &mut port);
    // A peer that sends further messages.
    say(&socket, &Message::Ack, None).unwrap();
    turn_until(&mut [&mut port], |ports| ports[0].faults().of(Fault::Unexpected) == 1);
    assert!(!port.has_link());
    let odd = Socket::connect(&spec.address).unwrap();
    odd.send(&[0xff; 128], None).unwrap();
    turn_until(&mut [&mut port], |ports| ports[0].faults().of(Fault::Message) == 1);
    assert_eq!(last_words(&odd), Some(Message::farewell(Fault::Message)));
    let odd = Socket::connect(&spec.address).unwrap();
    say(&odd, &Message::Ack, Some(file.as_raw_fd())).unwrap();
    turn_until(&mut [&mut port], |ports| ports[0].faults().of(Fault::Descriptor) == 1);
    // Silent peers run into their timeout.
    turn_until(&mut [&mut port], |ports| ports[0].faults().of(Fault::Slow) == 4);
    assert_eq!(silent.iter().filter_map(last_words).count(), 4);
}
