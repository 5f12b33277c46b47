//! Measures the basis of `docs/decisions/0002-tpacket-v2-forwards-tpacket-v3-measures.md` on a veth
//! pair: which receive ring delivers frames earliest and at the lowest cost, and which way of
//! sending costs least.
//!
//! Run as root: `cargo run --release -p ports --example afpacket_rings`. It runs in its own network
//! namespace. Costs are the tenth percentile over many short rounds of 64 frames, because other
//! work on the machine can only increase them.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use netio::afpacket::{AfPacketPort, Delivery, Options};
use netio::port::Port;
use os::clock::{self, WaitSet};
use packet::frame::Batch;
use packet::time::Nanos;

fn main() {
    // SAFETY: the process has one thread, which runs in the new namespace from here on.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "needs root");
    for arguments in
        ["link add left type veth peer name right", "link set left up", "link set right up"]
    {
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
    }
    for delivery in [Delivery::Prompt, Delivery::Batched] {
        let (median, high) = delivery_ns(delivery);
        println!(
            "{delivery:?}: {median} ns from sending to receiving a single frame, p99 {high} ns"
        );
    }
    for (delivery, mebibytes) in [
        (Delivery::Prompt, 1),
        (Delivery::Prompt, 2),
        (Delivery::Prompt, 4),
        (Delivery::Batched, 4),
    ] {
        let (sending, receiving) = batch_ns(Some((delivery, mebibytes << 20)));
        println!(
            "{delivery:?}, {mebibytes} MiB: {sending} ns per frame to send into the ring, \
             {receiving} ns to receive"
        );
    }
    println!("no receiver, sendmmsg by 64: {} ns per frame", batch_ns(None).0);
    println!("no receiver, TX ring by 64: {} ns per frame", transmit_ring_ns());
}

const FRAMES: usize = 64;
const ROUNDS: usize = 2_000;

fn batch() -> Batch {
    let mut batch = Batch::new(FRAMES);
    while batch.push_bytes(&[0x02; 60]) {}
    batch
}

fn quantile(values: &mut [u64], part: f64) -> u64 {
    values.sort_unstable();
    values[((values.len() - 1) as f64 * part) as usize]
}

/// Time until a single frame reaches a waiting receiver: median and 99th percentile.
fn delivery_ns(delivery: Delivery) -> (u64, u64) {
    let options = Options { delivery, ..Options::default() };
    let mut left = AfPacketPort::open("left", &options).unwrap();
    let mut right = AfPacketPort::open("right", &options).unwrap();
    let (mut out, mut arrived) = (Batch::new(1), Batch::new(64));
    out.push_bytes(&[0x02; 60]);
    let mut spans = Vec::new();
    for turn in 0..500 {
        // Never in step with the ring's timeout of a millisecond.
        clock::sleep_until(clock::now() + Nanos::from_micros(1_000 + turn * 37 % 1_000));
        let before = clock::now();
        left.transmit(&mut out, before).unwrap();
        arrived.clear();
        while right.receive(&mut arrived, clock::now()).unwrap() == 0 {
            let mut wait = WaitSet::new();
            wait.add(right.descriptor().unwrap(), false);
            wait.until(None).unwrap();
        }
        spans.push((clock::now() - before).0);
    }
    (quantile(&mut spans, 0.5), quantile(&mut spans, 0.99))
}

/// Nanoseconds per frame to send (including the kernel's receive part) and to receive.
fn batch_ns(ring: Option<(Delivery, usize)>) -> (u64, u64) {
    let mut left = AfPacketPort::open("left", &Options::default()).unwrap();
    let mut right = ring.map(|(delivery, ring_bytes)| {
        let options = Options { delivery, ring_bytes, ..Options::default() };
        AfPacketPort::open("right", &options).unwrap()
    });
    let (mut out, mut arrived) = (batch(), Batch::new(FRAMES));
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = clock::now();
        assert_eq!(left.transmit(&mut out, before).unwrap(), FRAMES);
        sending.push((clock::now() - before).0 / FRAMES as u64);
        let Some(right) = &mut right else { continue };
        arrived.clear();
        let before = clock::now();
        let count = right.receive(&mut arrived, before).unwrap() as u64;
        if count == FRAMES as u64 {
            receiving.push((clock::now() - before).0 / count);
        }
    }
    if receiving.is_empty() {
        receiving.push(0);
    }
    (quantile(&mut sending, 0.1), quantile(&mut receiving, 0.1))
}

/// Nanoseconds per frame through a transmit ring (TPACKET_V2), including the copy into it.
fn transmit_ring_ns() -> u64 {
    const SLOT: usize = 2048;
    const SLOTS: usize = 256;
    const DATA: usize = 32;
    let option = |socket, name, value: *const libc::c_void, bytes| {
        // SAFETY: callers pass a pointer to a live value of that many bytes.
        let set = unsafe { libc::setsockopt(socket, libc::SOL_PACKET, name, value, bytes as u32) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    };
    // SAFETY: pointers are to local values, to the mapping, and to slots inside it. A slot is
    // written only when its status gives it to this process.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        option(socket, libc::PACKET_VERSION, std::ptr::from_ref(&version).cast(), 4);
        let bypass: libc::c_int = 1;
        option(socket, libc::PACKET_QDISC_BYPASS, std::ptr::from_ref(&bypass).cast(), 4);
        let request = libc::tpacket_req {
            tp_block_size: (SLOT * SLOTS) as u32,
            tp_block_nr: 1,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        let bytes = size_of_val(&request);
        option(socket, libc::PACKET_TX_RING, std::ptr::from_ref(&request).cast(), bytes);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let null = std::ptr::null_mut();
        let ring = libc::mmap(null, SLOT * SLOTS, access, libc::MAP_SHARED, socket, 0);
        assert_ne!(ring, libc::MAP_FAILED);
        let mut to: libc::sockaddr_ll = std::mem::zeroed();
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = libc::if_nametoindex(c"left".as_ptr()) as i32;
        let length = size_of_val(&to) as u32;
        assert_eq!(libc::bind(socket, std::ptr::from_ref(&to).cast(), length), 0);
        let frames = batch();
        let (mut next, mut spans) = (0, Vec::new());
        for _ in 0..ROUNDS {
            let before = clock::now();
            for frame in frames.frames() {
                let slot = ring.cast::<u8>().add(next * SLOT);
                let header = slot.cast::<libc::tpacket2_hdr>();
                while std::ptr::read_volatile(&raw const (*header).tp_status) != 0 {
                    std::hint::spin_loop();
                }
                let bytes = frame.bytes();
                slot.add(DATA).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                (*header).tp_len = bytes.len() as u32;
                let status = &raw mut (*header).tp_status;
                std::ptr::write_volatile(status, libc::TP_STATUS_SEND_REQUEST);
                next = (next + 1) % SLOTS;
            }
            let sent = libc::send(socket, std::ptr::null(), 0, libc::MSG_DONTWAIT);
            assert!(sent > 0, "{}", std::io::Error::last_os_error());
            spans.push((clock::now() - before).0 / FRAMES as u64);
        }
        libc::close(socket);
        quantile(&mut spans, 0.1)
    }
}
