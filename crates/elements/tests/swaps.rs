//! Test that a thousand program swaps in a running element, and as many changes of a table, leak
//! nothing: no memory, descriptors, threads or copies of tables. No frame is lost.

#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test that cannot go on has failed, and one that counts memory"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use elements::config::{Config, Kind, PortConfig, ProGfeConfig};
use elements::datapath::DataPlane;
use elements::node::Node;
use netio::port::Port;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;
use serde_json::json;

/// The system allocator with a count of the memory in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request is passed to the system allocator unchanged; only a count is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Whether the compile thread is used, and the number of programs. After each program three changes
/// of a row swap three more.
const SWAPS: [(bool, usize); 2] = [(false, 250), (true, 20)];
/// Maximum variation of the memory in use, in bytes: buffers that grow to their maximum.
const BYTES_MORE_MAX: usize = 64 << 10;

const ROUTER: &str = include_str!("../../../examples/progfe/router.fe.xml");

struct Bench {
    node: Node,
    far: [Box<dyn Port>; 2],
    client: UnixStream,
    now: Nanos,
    sent: usize,
    back: usize,
    programs: Vec<Weak<Program>>,
}

impl Bench {
    /// Runs one turn of forwarding and one of control.
    fn turn(&mut self) {
        self.now = clock::now();
        let mut batch = Batch::new(1);
        batch.push_bytes(&frame());
        self.sent += self.far[0].transmit(&mut batch, self.now).unwrap();
        self.node.turn(self.now);
        self.node.serve(self.now);
        let mut back = Batch::new(64);
        self.back += self.far[1].receive(&mut back, self.now).unwrap();
    }

    fn ask(&mut self, request: serde_json::Value) -> String {
        self.client.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut reply = Vec::new();
        let mut part = [0; 4096];
        while reply.last() != Some(&b'\n') {
            self.turn();
            match self.client.read(&mut part) {
                Ok(count) => reply.extend_from_slice(&part[..count]),
                // The compile thread may have no other core.
                Err(_) => clock::sleep_until(clock::now().saturating_add(Nanos::from_micros(20))),
            }
        }
        String::from_utf8(reply).unwrap()
    }

    fn element(&mut self) -> &mut elements::datapath::Element {
        let DataPlane::ProGfe(element) = &mut self.node.forward.forwarder else {
            panic!("it is one")
        };
        element
    }

    /// Swaps to another program, and changes one of its routes.
    fn swap(&mut self, number: usize) {
        let text = ROUTER.replace("name=\"router\"", &format!("name=\"router{}\"", number % 7));
        let reply = self.ask(json!({ "load": { "name": "r.fe.xml", "text": text } }));
        assert!(reply.starts_with("{\"ok\""), "{reply}");
        let program = Arc::downgrade(self.element().program());
        self.programs.push(program);
        for hop in [7, 6, 8] {
            let path = "IPv4PrefixTable[0].HopSelector";
            let set = json!({ "instance": "lpm", "path": path, "value": hop.to_string() });
            let reply = self.ask(json!({ "set_components": [set] }));
            assert!(reply.starts_with("{\"ok\""), "{reply}");
        }
    }
}

/// Returns a frame from 10.1.0.9 to 10.2.0.9, which the example's routes forward.
fn frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 9, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0x66, 0xab, 10, 1, 0, 9, 10, 2, 0, 9]);
    frame.resize(60, 0);
    frame
}

fn entries_of(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_thousand_swaps_leak_nothing_and_lose_no_frame() {
    SWAPS.into_iter().for_each(|(is_apart, swaps)| check(is_apart, swaps));
}

fn check(is_apart: bool, swaps: usize) {
    let folder = std::env::temp_dir().join(format!("planimeter-swaps-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (program, problems) = Program::load(&Source::new("router", ROUTER), &no_files);
    let program = program.unwrap_or_else(|| panic!("{problems}"));
    let mut config = Config::new(Kind::ProGfe(ProGfeConfig::new(Arc::new(program))));
    config.control = Some(folder.join("c"));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (one, other) = netio::memory::pair(256, "port");
        near.push((number, Box::new(one) as Box<dyn Port>));
        far.push(Box::new(other) as Box<dyn Port>);
        config.ports.push(PortConfig { number, spec: format!("tap:none{number}") });
    }
    let mut node = Node::open(&config, near, 7, Nanos::ZERO).unwrap();
    if is_apart {
        node.start_compiler();
    }
    let client = UnixStream::connect(folder.join("c")).unwrap();
    client.set_nonblocking(true).unwrap();
    let far = far.try_into().unwrap_or_else(|_| panic!("there are two"));
    let (now, programs) = (Nanos::ZERO, Vec::with_capacity(2 * swaps));
    let mut bench = Bench { node, far, client, now, sent: 0, back: 0, programs };
    (0..20).for_each(|number| bench.swap(number));
    let counted = |bench: &mut Bench| {
        // Memory that the compile thread frees is free when the next program is ready.
        bench.ask(json!({ "load": { "name": "r.fe.xml", "text": ROUTER } }));
        bench.ask(json!({ "get": "about" }));
        // Removes the weak references of dropped programs.
        bench.programs.retain(|program| program.strong_count() > 0);
        [IN_USE.load(Ordering::Relaxed), entries_of("/proc/self/fd"), entries_of("/proc/self/task")]
    };
    let before = counted(&mut bench);
    (0..swaps).for_each(|number| bench.swap(number));
    let after = counted(&mut bench);
    assert!(after[0] <= before[0] + BYTES_MORE_MAX, "{} bytes before, {} now", before[0], after[0]);
    assert_eq!(after[1..], before[1..], "descriptors and threads");
    let stored = bench.programs.len();
    assert!(stored <= 2, "{stored} programs are stored in addition to the active one");
    bench.turn();
    let account = bench.element().account();
    assert!(bench.sent > swaps && account.dropped == 0, "{account:?}");
    assert_eq!(bench.back, bench.sent, "no frame is lost");
    drop(bench);
    std::fs::remove_dir_all(&folder).unwrap();
}
