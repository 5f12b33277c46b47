//! How long a table of routes takes by ForCES into a running router, and how long frames wait meanwhile.
//!
//! `cargo run --release -p switch --example forces_routes [ROUTES]`: examples/progfe/router.fe.xml gets so
//! many routes (500,000) in one transaction over sockets, then one more, then all go again, while a frame is
//! forwarded between any two turns of its control. What is over is freed by another thread, as in the process.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use dataplane::forwarder::{Forwarder, Outputs};
use forces::association::{Ce, CeEvent, CeSettings, Channel, Moment};
use forces::wire::*;
use packet::frame::Batch;
use packet::time::Nanos;
use ports::channel::Url;
use ports::channel::framed::Framed;
use ports::channel::group::Dialling;
use ports::clock;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;
use switch::config::{CeConfig, ForcesConfig};
use switch::forces::Forces;
use switch::plane::Element;

/// IPv4UcastLPM, and its table.
const LPM: u32 = 10;
const TABLE: u32 = 1;
/// Rows of one message.
const ROWS: u32 = 4000;

fn length(bytes: &[u8]) -> Result<Option<usize>, String> {
    frame_octets(bytes).map_err(|fault| fault.to_string())
}

/// A row of the table: index, address, length, flags, a reserved octet, HopSelector.
fn row(index: u32, hop: u32) -> Vec<u8> {
    // Each /24 of 1.0.0.0 and up.
    let address = (0x0100_0000 + (index << 8)).to_be_bytes();
    [&index.to_be_bytes()[..], &address, &[24, 0, 0, 0], &hop.to_be_bytes()].concat()
}

fn select(kind: OperationKind, first: u32, last: u32, data: Data) -> Vec<Select> {
    let selector = Some(Selector::Range { first, last });
    let path = PathData { ids: vec![TABLE], selector, data };
    vec![Select::one(LPM, 1, Operation::on(kind, vec![path]))]
}

struct Bench {
    element: Element,
    out: Outputs,
    forces: Forces,
    ce: Ce,
    channels: [Framed; 3],
    frame: Vec<u8>,
    gone: std::sync::mpsc::Sender<Box<dyn Send>>,
    /// The longest time between two frames.
    longest: Nanos,
    last: Nanos,
}

impl Bench {
    fn step(&mut self) {
        let now = clock::now();
        let mut batch = Batch::new(1);
        batch.push_bytes(&self.frame);
        self.element.forward(1, &mut batch, now, &mut self.out);
        let left: usize = self.out.queues_mut().iter_mut().map(|(_, queue)| queue.len()).sum();
        assert_eq!(left, 1, "a frame is lost");
        self.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        self.longest = self.longest.max(Nanos(now.0 - self.last.0));
        self.last = now;
        self.forces.turn(&mut self.element, &mut self.out, now);
        for gone in self.element.take_gone() {
            self.gone.send(Box::new(gone)).unwrap();
        }
        // What the control element does is not the router's time.
        let begun = clock::now();
        for channel in Channel::ALL {
            let framed = &mut self.channels[channel as usize];
            framed.receive(&mut [0; 65_536]).unwrap();
            while let Ok(Some(message)) = framed.message() {
                self.ce.receive(channel, message, Moment::from_nanos(now.0));
            }
            while framed.owed() < 1 << 20 {
                let Some(message) = self.ce.poll_transmit_by(channel) else { break };
                framed.send(message);
            }
            framed.flush().unwrap();
        }
        self.last.0 += clock::now().0 - begun.0;
    }

    fn answer(&mut self, correlator: u64) {
        loop {
            while let Some(event) = self.ce.poll_event() {
                match event {
                    CeEvent::Answered(answer) => {
                        assert_eq!(answer.failures(), []);
                        if answer.correlator == correlator {
                            return;
                        }
                    }
                    CeEvent::Associated(..) => {}
                    other => panic!("{other:?}"),
                }
            }
            self.step();
        }
    }

    /// Does changes in one transaction; how long it took, and the longest time between two frames.
    fn transact(&mut self, what: &str, changes: Vec<Vec<Select>>) {
        let begun = clock::now();
        (self.longest, self.last) = (Nanos::ZERO, begun);
        for change in changes {
            self.ce.transact(change).unwrap();
        }
        let correlator = self.ce.commit().unwrap();
        self.answer(correlator);
        let took = clock::now().0 - begun.0;
        self.ce.complete().unwrap();
        for _ in 0..100 {
            self.step();
        }
        let [took, longest] = [took, self.longest.0].map(|nanos| nanos as f64 / 1e6);
        println!("{what}: {took:.1} ms, frames at most {longest:.2} ms apart");
    }
}

fn main() {
    let routes: u32 = std::env::args().nth(1).map_or(500_000, |text| text.parse().unwrap());
    let text = include_str!("../../../examples/progfe/router.fe.xml");
    let (program, problems) = Program::load(&Source::new("router", text), &no_files);
    let program = program.unwrap_or_else(|| panic!("{problems}"));
    let folder = std::env::temp_dir().join(format!("forces-routes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url: Url = format!("punix:{}", folder.join("fe").display()).parse().unwrap();
    let to: Url = format!("unix:{}", folder.join("fe").display()).parse().unwrap();
    let config = ForcesConfig {
        ces: vec![CeConfig { url, id: Some(0x4000_0001) }],
        ..ForcesConfig::default()
    };
    let mut forces = Forces::open(&config, &program, clock::now()).unwrap().unwrap();
    let mut element = Element::start(program, 7).unwrap();
    let mut out = Outputs::new(&[1, 2]);
    let mut dialling = Dialling::start(to.in_a_row().unwrap(), None, clock::now()).unwrap();
    let channels = loop {
        forces.turn(&mut element, &mut out, clock::now());
        if let Some(channels) = dialling.turn(clock::now()).unwrap() {
            break channels;
        }
    };
    let settings = CeSettings::new(Id(0x4000_0001));
    let ce = Ce::new(settings, Moment::from_nanos(clock::now().0));
    let channels = channels.map(|channel| Framed::new(channel, length));
    // From 10.1.0.9 to 10.2.0.9, by the example's own routes.
    let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 9, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0x66, 0xab, 10, 1, 0, 9, 10, 2, 0, 9]);
    frame.resize(60, 0);
    let (longest, last) = (Nanos::ZERO, clock::now());
    element.keep_gone();
    let (gone, going) = std::sync::mpsc::channel();
    std::thread::spawn(move || going.iter().for_each(drop));
    let mut bench = Bench { element, out, forces, ce, channels, frame, gone, longest, last };
    while bench.ce.fe().is_none() || !bench.forces.is_controlled() {
        bench.step();
    }
    let first = 100;
    let starts = (first..first + routes).step_by(ROWS as usize);
    let all = starts.clone().map(|start| {
        let end = (start + ROWS).min(first + routes);
        let rows = (start..end).flat_map(|index| row(index, 7)).collect();
        select(OperationKind::Set, start, end - 1, Data::Full(rows))
    });
    bench.transact(&format!("{routes} routes set"), all.collect());
    let one = |index: u32, hop| {
        vec![select(OperationKind::Set, index, index, Data::Full(row(index, hop)))]
    };
    for _ in 0..3 {
        bench.transact("one route changed", one(first + 7, 6));
        bench.transact("one route changed back", one(first + 7, 7));
    }
    let rows = bench.element.program().instances.iter().find(|it| it.class == LPM).unwrap();
    let rows = rows.components[&TABLE].rows().unwrap().len();
    println!("the table has {rows} rows");
    let all = starts.map(|start| {
        let end = (start + ROWS).min(first + routes);
        select(OperationKind::Delete, start, end - 1, Data::None)
    });
    bench.transact(&format!("{routes} routes deleted"), all.collect());
    std::fs::remove_dir_all(&folder).unwrap();
}
