//! Cable check: uses frames that a switch sends on request, and frames that pass through a device.
//!
//! A switch sends a frame like those of LLDP (IEEE 802.1AB) out of each of its ports. Each frame
//! must arrive at the interface that is declared for the port. Then a frame is sent into the first
//! port and must arrive at the second, which shows that the device forwards. Each frame carries its
//! purpose, so that no other frame can be mistaken for it. Source of the EtherTypes: IEEE 802
//! (0x88b5, local experiments).
//!
//! Invariant: frames are retried for as long as the device may take; messages of the device are no
//! proof.

use netio::port::{Port, PortError};
use openflow::model::message::Message;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, FlowMod, Match, reserved};
use openflow::model::{Field, PRIORITY_DEFAULT};
use openflow::version::Version;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use tester::controller::Controller;

use super::switch;
use crate::TargetError;

/// Wait for one frame.
const WINDOW: Nanos = Nanos::from_millis(200);

/// Bytes of such a frame, without frame check sequence.
const FRAME_BYTES: usize = 60;

/// Destination of LLDP frames; no bridge forwards it.
const LLDP_MAC: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

/// EtherType of LLDP.
const LLDP: [u8; 2] = [0x88, 0xcc];

/// EtherType of local experiments.
const LOCAL: [u8; 2] = [0x88, 0xb5];

/// A MAC address that no station has.
const STRANGER: [u8; 6] = [0x02, 0x53, 0x50, 0x4c, 0x41, 0x4e];

/// The tester's ports, with their device port numbers and interface names.
pub struct Cables<'a> {
    /// The tester's ports.
    pub ports: &'a mut [Box<dyn Port>],
    /// Port numbers in the device, in the same order, for messages.
    pub numbers: &'a [u32],
    /// Interface names, in the same order.
    pub names: &'a [&'a str],
    /// Time limit for the device.
    pub patience: Nanos,
}

impl Cables<'_> {
    /// Requests a frame from each port of a switch, and checks where it arrives.
    pub fn check_each(&mut self, controller: &mut Controller) -> Result<(), TargetError> {
        for at in 0..self.numbers.len() {
            let number = self.numbers[at];
            let frame = lldp(number, clock::now());
            let message = Message::PacketOut(PacketOut {
                buffer_id: None,
                in_port: match controller.version() {
                    Version::V1_0 => reserved::NONE,
                    _ => reserved::CONTROLLER,
                },
                fields: Match::ANY,
                actions: vec![Action::output(called(at))],
                data: frame.clone(),
            });
            let seen = self.watch(&frame, |_| {
                let sent = controller.tell(&message, clock::now()).map(drop);
                sent.map_err(|error| {
                    TargetError::failed("cannot send a frame by packet-out", error)
                })
            })?;
            match seen {
                Some(other) if other == at => {}
                Some(other) => {
                    return Err(wrong(format!(
                        "port {number} of the device is cabled to {}, not to {} (hint: change the \
                         cable, or use {number}@{} in ports=)",
                        self.names[other], self.names[at], self.names[other]
                    )));
                }
                None => {
                    return Err(wrong(format!(
                        "a packet-out to port {number} of the device arrived neither at {} nor at \
                         another interface within {:.0} s (hint: check the cable and the port, or \
                         use --set cabling_check=off if the device does not support packet-out)",
                        self.names[at],
                        self.patience.as_secs_f64()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Sends a frame into the first port, with a flow entry to the second, and checks that it
    /// arrives there.
    pub fn check_rule(&mut self, controller: &mut Controller) -> Result<(), TargetError> {
        let failed = |error| TargetError::failed("cannot install a flow entry by OpenFlow", error);
        let matching = Match::ANY.with(Field::InPort, called(0));
        let rule = FlowMod::add(matching, PRIORITY_DEFAULT, vec![Action::output(called(1))]);
        let hook = &mut tester::controller::RealTime::default();
        let installed = controller.install([rule], hook).map_err(failed)?;
        crate::flow_setup::checked(&installed)?;
        let checked = self.check_through(
            "check whether the device activates flow entries before its barrier reply",
        );
        switch::clear(controller).map_err(failed)?;
        checked
    }

    /// Sends a frame into the first port and checks that it arrives at the second.
    pub fn check_through(&mut self, hint: &str) -> Result<(), TargetError> {
        let frame = local(self.numbers[0], clock::now());
        let seen = self.watch(&frame, |ports| {
            let mut batch = Batch::new(1);
            batch.push_bytes(&frame);
            let sent = ports[0].transmit(&mut batch, clock::now()).map(drop);
            sent.map_err(port_failed)
        })?;
        let [first, second] =
            [0, 1].map(|at| format!("port {} ({})", self.numbers[at], self.names[at]));
        match seen {
            Some(1) => Ok(()),
            Some(other) => Err(wrong(format!(
                "a frame sent to {first} arrived at {}, not at {second} (hint: check the cables)",
                self.names[other]
            ))),
            None => Err(wrong(format!(
                "a frame sent to {first} did not arrive at {second} within {:.0} s (hint: check \
                 the cables; {hint})",
                self.patience.as_secs_f64()
            ))),
        }
    }

    /// Sends a frame repeatedly until it arrives somewhere; returns where.
    fn watch(
        &mut self,
        frame: &[u8],
        mut send: impl FnMut(&mut [Box<dyn Port>]) -> Result<(), TargetError>,
    ) -> Result<Option<usize>, TargetError> {
        let deadline = clock::now().saturating_add(self.patience);
        let mut batch = Batch::new(64);
        loop {
            send(self.ports)?;
            let until = clock::now().saturating_add(WINDOW);
            while clock::now() < until {
                for (at, port) in self.ports.iter_mut().enumerate() {
                    batch.clear();
                    port.receive(&mut batch, clock::now()).map_err(port_failed)?;
                    if batch.frames().iter().any(|it| it.bytes().starts_with(frame)) {
                        return Ok(Some(at));
                    }
                }
                clock::sleep_until(clock::now().saturating_add(Nanos::from_micros(200)));
            }
            if clock::now() >= deadline {
                return Ok(None);
            }
        }
    }
}

/// Returns the port number that messages use for this cable, independent of the device's numbering.
fn called(at: usize) -> u32 {
    at as u32 + 1
}

fn wrong(what: String) -> TargetError {
    TargetError::CannotHold(what)
}

fn port_failed(error: PortError) -> TargetError {
    TargetError::failed("cannot check the cables", error)
}

/// Returns a frame like LLDP's: chassis ID, port ID, TTL, and end.
fn lldp(number: u32, now: Nanos) -> Vec<u8> {
    let value = |kind: u8, subtype: Option<u8>, bytes: &[u8]| {
        let length = bytes.len() + subtype.iter().len();
        let mut whole = vec![kind << 1, length as u8];
        whole.extend(subtype);
        whole.extend_from_slice(bytes);
        whole
    };
    let mut frame = [&LLDP_MAC[..], &STRANGER, &LLDP].concat();
    // Subtype 7: locally assigned.
    frame.extend(value(1, Some(7), b"planimeter"));
    let port = [&number.to_be_bytes()[..], &now.0.to_be_bytes()].concat();
    frame.extend(value(2, Some(7), &port));
    frame.extend(value(3, None, &[0, 1]));
    frame.extend(value(0, None, &[]));
    frame.resize(FRAME_BYTES, 0);
    frame
}

/// Returns a frame between two MAC addresses that no station has.
fn local(number: u32, now: Nanos) -> Vec<u8> {
    let mut from = STRANGER;
    from[1] = b'T';
    let mut frame = [&STRANGER[..], &from, &LOCAL, b"planimeter"].concat();
    frame.extend(number.to_be_bytes());
    frame.extend(now.0.to_be_bytes());
    frame.resize(FRAME_BYTES, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_frames_are_unique_by_port_and_time() {
        let (one, other) = (lldp(1, Nanos(7)), lldp(2, Nanos(7)));
        assert_eq!((one.len(), &one[12..14]), (FRAME_BYTES, &LLDP[..]));
        assert!(
            one != other && one != lldp(1, Nanos(8)) && local(1, Nanos(7)) != local(1, Nanos(8))
        );
    }
}
