//! Sends any frames to an element with a maintenance end point, with time between them. Its agent
//! does not panic, its state is bounded, and its output is valid OAM.
//!
//! Each frame has a byte for the elapsed time, a byte for the input port and whether the end point
//! is the destination, a length, and the contents after the EtherType.

#![no_main]

use std::sync::OnceLock;

use dataplane::forwarder::{Forwarder, Outputs};
use libfuzzer_sys::fuzz_target;
use packet::frame::Batch;
use packet::time::Nanos;
use progfe::dispatcher::Dispatcher;
use progfe::agent::oam::pdu::Pdu;
use progfe::interpret::Interpreter;
use progfe::element::Element;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

fn program() -> Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    let read = || {
        let text = include_str!("../../examples/progfe/oam.fe.xml");
        let (program, problems) = Program::load(&Source::new("oam", text), &no_files);
        program.unwrap_or_else(|| panic!("{problems}"))
    };
    PROGRAM.get_or_init(read).clone()
}

fuzz_target!(|bytes: &[u8]| {
    let mut element: Element<Interpreter> = Element::start(program(), 7).expect("it is an example");
    let (mut agents, mut out) = (Dispatcher::new(7), Outputs::new(&[1, 2]));
    agents.set_hardware(vec![(1, [2, 0, 0, 0, 1, 1]), (2, [2, 0, 0, 0, 1, 2])]);
    let mut now = Nanos::from_secs(10);
    let mut rest = bytes;
    while let [passes, how, octets, behind @ ..] = rest {
        let (body, others) = behind.split_at(usize::from(*octets).min(behind.len()));
        rest = others;
        now = now.saturating_add(Nanos::from_millis(u64::from(*passes) * 20));
        let to = match how & 2 {
            0 => [2, 0, 0, 0, 1, 1],
            _ => [1, 0x80, 0xc2, 0, 0, 0x30 | how >> 4],
        };
        let frame = [&to[..], &[2, 0, 0, 0, 9, how & 0x0c], &[0x89, 0x02], body].concat();
        let mut batch = Batch::new(1);
        assert!(batch.push_bytes(&frame));
        element.forward(1 + u32::from(how & 1), &mut batch, now, &mut out);
        agents.serve(&mut element, now, &mut out);
        for (_, queue) in out.queues_mut() {
            let said = queue.frames().iter().filter(|it| it.bytes() != frame);
            said.for_each(|it| assert!(Pdu::read(it.bytes()).is_some(), "{:02x?}", it.bytes()));
            queue.clear();
        }
        while agents.next_report().is_some() {}
    }
    assert!(format!("{:?}", agents.facts(now)).len() < 10_000);
});
