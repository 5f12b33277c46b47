//! Check of a setup on a program in this process, before a measurement.
//!
//! A program's classes state its role, but not whether frames of port 1 leave by port 2 as the
//! setup expects. So one frame of each kind passes through it first. A frame that the analyzer
//! would reject ends the run with a one-line error, instead of a report of losses.

use dataplane::forwarder::{Forwarder, Outputs};
use packet::frame::{Batch, PortNo};
use packet::time::Nanos;
use progfe::element::Element;
use progfe::role::routing::{Neighbour, Route};
use progfe::role::{Role, Routing};
use tester::generator::templates::Templates;
use tester::signature::{SendTime, Sequence};
use tester::stream::{Rate, Stream};

use super::ProGfeTarget;
use crate::name::TargetKind;
use crate::{TargetError, veth};
use workload::Technology;
use workload::parameter::Traffic;
use workload::{Addresses, Setup};

/// Frame size, frame check sequence included.
const FRAME_BYTES: u16 = 128;

/// Limit of frames: one for each tagging rule, and a few for other kinds of entries.
const FRAMES_MAX: u64 = 16;

impl ProGfeTarget {
    /// Checks a setup on the program.
    pub fn rehearse(self, setup: &Setup, addresses: &Addresses) -> Result<(), TargetError> {
        let refused = |why: String| {
            TargetError::CannotHold(format!(
                "the program does not forward as the experiment requires: {why}"
            ))
        };
        let technology = TargetKind::ProGfe(self).technology();
        // A bridge learns, and floods unknown addresses.
        if self.role() == Role::Bridge {
            return Ok(());
        }
        let entries = if self.role() == Role::Tagger { setup.entries } else { 1 };
        let few = Setup { entries, traffic: Traffic::Sequential, ..*setup };
        let mut element: Element = Element::start(Clone::clone(&self.program()), setup.seed)
            .map_err(|problems| refused(problems.to_string().trim_end().to_owned()))?;
        let ports: Vec<PortNo> = self.program().ports.iter().map(|port| port.number).collect();
        let mut out = Outputs::new(&ports);
        if self.role() == Role::Router {
            tell(&mut element, &few, addresses, &mut out).map_err(refused)?;
        }
        let rate = Rate::FramesPerSecond(1.0);
        let mut streams = vec![few.stream(technology, addresses, FRAME_BYTES, rate)];
        if self.role() == Role::Tagger {
            streams.push(few.stream_back(technology, addresses, FRAME_BYTES, rate));
        }
        for stream in streams {
            // The rig numbers its ports from 0.
            let [from, to] = [stream.from, stream.to].map(|port| port as PortNo + 1);
            let (sent, wanted) = frames(&stream);
            for (number, (bytes, wanted)) in sent.iter().zip(&wanted).enumerate() {
                let mut batch = Batch::new(1);
                batch.push_bytes(bytes);
                element.forward(from, &mut batch, Nanos::ZERO, &mut out);
                let left: Vec<(PortNo, Vec<u8>)> =
                    out.queues_mut().iter_mut().flat_map(taken).collect();
                if left != [(to, wanted.clone())] {
                    let what = match (technology, from) {
                        (Technology::Tagging, 1) => {
                            format!("the frame of rule {} of {entries} (--set entries)", number + 1)
                        }
                        (Technology::Tagging, _) => {
                            "a tagged frame in the other direction".to_owned()
                        }
                        _ => "a routed frame".to_owned(),
                    };
                    let became = became(bytes, (to, wanted), &left);
                    return Err(refused(format!("{what} {became}")));
                }
            }
        }
        Ok(())
    }
}

/// Configures a program that routes as a router is configured.
fn tell(
    element: &mut Element,
    setup: &Setup,
    addresses: &Addresses,
    out: &mut Outputs,
) -> Result<(), String> {
    let plan = veth::plan(Technology::Routing, addresses, setup);
    let routing = Routing::of(element.program())?;
    let declared = element.program().ports.iter().map(|port| port.number);
    let macs: Vec<_> = declared.zip(addresses.target).collect();
    let mut change = |element: &mut Element, changes: &[_]| {
        element.change(changes, Nanos::ZERO, out).map_err(|error| error.to_string())
    };
    change(element, &routing.interfaces(&macs)?)?;
    let neighbours = plan.neighbors.iter().map(|it| Neighbour {
        port: it.port,
        address: it.address,
        mac: it.mac,
        mtu: 0,
    });
    let neighbours: Vec<Neighbour> = neighbours.collect();
    let changes = routing.neighbours(element.program(), &neighbours)?;
    change(element, &changes)?;
    let routes = plan.routes.iter().map(|it| Route {
        network: it.prefix,
        length: it.length,
        via: it.via,
        port: Some(it.port),
    });
    let routes: Vec<Route> = routes.collect();
    let changes = routing.routes(element.program(), &routes)?;
    change(element, &changes)
}

/// Returns the first frames of a stream, as they are sent and as they must arrive.
fn frames(stream: &Stream) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let made = |templates: &Templates, number: u64| {
        let (mut indices, template) = (Vec::new(), templates.of(number));
        let mut frame = template.bytes().to_vec();
        template.draw(number, &mut indices);
        let sequence = Sequence { is_warmup: false, epoch: 0, number };
        template.write(sequence, SendTime::new(Nanos::ZERO), &indices, &mut frame);
        frame
    };
    let [leaving, arriving] = Templates::both(stream, veth::RIG_KEY);
    let numbers = 0..stream.flow_count().min(FRAMES_MAX);
    numbers.map(|number| (made(&leaving, number), made(&arriving, number))).unzip()
}

fn taken((port, queue): &mut (PortNo, Batch)) -> Vec<(PortNo, Vec<u8>)> {
    let frames = queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())).collect();
    queue.clear();
    frames
}

/// Describes what happened to a frame that should leave by this port.
fn became(bytes: &[u8], wanted: (PortNo, &[u8]), left: &[(PortNo, Vec<u8>)]) -> String {
    match left {
        [] => "is dropped".to_owned(),
        [(port, have)] if *have == bytes => format!("leaves port {port} unchanged"),
        [(port, have)] if *port == wanted.0 => {
            let both = wanted.1.iter().zip(have);
            let at = both.take_while(|(want, have)| want == have).count();
            let [want, have] = [wanted.1, have].map(|all| hex(&all[at.min(all.len())..]));
            format!("leaves port {port} with {have} instead of {want} at byte {at}")
        }
        [(port, _)] => format!("leaves port {port}"),
        several => format!("leaves {} times", several.len()),
    }
}

/// Formats the first bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ADDRESSES;
    use workload::parameter::Table;

    fn rehearsed(program: &str, table: Table, entries: u32) -> Result<(), String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/progfe");
        let target = ProGfeTarget::parse(&format!("progfe:{folder}/{program}")).unwrap();
        let setup = Setup { table, entries, ..Setup::single(1) };
        target.rehearse(&setup, &ADDRESSES).map_err(|error| error.to_string())
    }

    #[test]
    fn a_suitable_program_passes_and_another_is_rejected_with_the_difference() {
        assert_eq!(rehearsed("router.fe.xml", Table::Lpm, 1000), Ok(()));
        assert_eq!(rehearsed("vlan.fe.xml", Table::Tags, 3), Ok(()));
        assert_eq!(rehearsed("vlan16.fe.xml", Table::Tags, 16), Ok(()));
        let message = rehearsed("vlan.fe.xml", Table::Tags, 4).unwrap_err();
        assert!(
            message.contains("the frame of rule 3 of 4 (--set entries) leaves port 2 with"),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
        // A tagger tags with every table: all setups have the rule for every frame.
        assert_eq!(rehearsed("vlan.fe.xml", Table::Exact, 1), Ok(()));
    }
}
