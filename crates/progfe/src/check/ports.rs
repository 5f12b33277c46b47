//! Ports and their devices.
//!
//! `EtherPHYCop` number n is port n. Each port is declared once and has its own device.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Problems};
use crate::program::{Program, base_id};

/// Adds problems of ports.
pub fn check(program: &Program, problems: &mut Problems) {
    let mut numbers = BTreeMap::new();
    let mut devices = BTreeMap::new();
    for port in &program.ports {
        let path = format!("port {}", port.number);
        if let Some(first) = numbers.insert(port.number, &port.place) {
            let what = format!("port {} is already declared ({first})", port.number);
            problems.add(Code::PortTwice, &port.place, &path, what, "");
        }
        if port.device.is_empty() {
            continue;
        }
        if let Some(first) = devices.insert(port.device.as_str(), &port.place) {
            let what = format!("\"{}\" is already bound ({first})", port.device);
            problems.add(
                Code::PortTwice,
                &port.place,
                &path,
                what,
                "use another device for each port",
            );
        }
    }
    let mut bound = std::collections::BTreeSet::new();
    for instance in program.instances.iter().filter(|one| one.class == base_id::PHY) {
        bound.insert(instance.number);
        if !numbers.contains_key(&instance.number) {
            let what = format!("port {} is not declared", instance.number);
            let hint = format!("add <port id=\"{}\"/>", instance.number);
            problems.add(Code::PortUndeclared, &instance.place, &instance.name, what, hint);
        }
    }
    for port in program.ports.iter().filter(|port| !bound.contains(&port.number)) {
        let path = format!("port {}", port.number);
        let what = format!("no EtherPHYCop with number {}", port.number);
        problems.add(Code::PortUnbound, &port.place, path, what, "add one, or remove the port");
    }
}

/// Adds devices that do not exist; `exists` tests a name.
pub fn devices(program: &Program, exists: &dyn Fn(&str) -> bool, problems: &mut Problems) {
    for port in program.ports.iter().filter(|port| !port.device.is_empty() && !exists(&port.device))
    {
        let what = format!("there is no device \"{}\"", port.device);
        let path = format!("port {}", port.number);
        problems.add(
            Code::UnknownDevice,
            &port.place,
            path,
            what,
            "bind the port to another device",
        );
    }
}
