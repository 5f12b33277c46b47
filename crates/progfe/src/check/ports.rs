//! Ports and their devices.
//!
//! `EtherPHYCop` number n is port n. Each port is declared once and has its own device.

use std::collections::BTreeMap;

use crate::problem::{Code, Problems};
use crate::program::{Program, base_id};

/// Adds problems of ports.
pub fn check(program: &Program, problems: &mut Problems) {
    let mut numbers = BTreeMap::new();
    let mut devices = BTreeMap::new();
    for port in &program.ports {
        let path = format!("port {}", port.number);
        if let Some(first) = numbers.insert(port.number, &port.place) {
            let what = format!("port {} is declared already ({first})", port.number);
            problems.add(Code::PortTwice, &port.place, &path, what, "");
        }
        if port.device.is_empty() {
            continue;
        }
        if let Some(first) = devices.insert(port.device.as_str(), &port.place) {
            let what = format!("\"{}\" is bound already ({first})", port.device);
            problems.add(Code::PortTwice, &port.place, &path, what, "each port has its own device");
        }
    }
    let mut bound = std::collections::BTreeSet::new();
    for instance in program.instances.iter().filter(|one| one.class == base_id::PHY) {
        bound.insert(instance.number);
        if !numbers.contains_key(&instance.number) {
            let what = format!("no port {} is declared", instance.number);
            let hint = format!("add <port id=\"{}\"/>", instance.number);
            problems.add(Code::PortUndeclared, &instance.place, &instance.name, what, hint);
        }
    }
    for port in program.ports.iter().filter(|port| !bound.contains(&port.number)) {
        let path = format!("port {}", port.number);
        let what = format!("no EtherPHYCop has the number {}", port.number);
        problems.add(
            Code::PortUnbound,
            &port.place,
            path,
            what,
            "nothing is received or sent there",
        );
    }
}

/// Adds devices that do not exist; `exists` tests a name.
pub fn devices(program: &Program, exists: &dyn Fn(&str) -> bool, problems: &mut Problems) {
    for port in program.ports.iter().filter(|port| !port.device.is_empty() && !exists(&port.device))
    {
        let what = format!("there is no device \"{}\"", port.device);
        let path = format!("port {}", port.number);
        problems.add(Code::UnknownDevice, &port.place, path, what, "bind the port to another");
    }
}
