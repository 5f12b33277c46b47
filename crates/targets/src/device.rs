//! User devices, with their names on the command line, which live as long as the process.
//!
//! `openflow:URL,ports=N@IF+N@IF` is a switch that the tester's controller programs,
//! `device:ports=N@IF+N@IF` a bridge and `device:router,ports=N@IF+N@IF` a router; their
//! configuration stays unchanged. `N@IF` means that the device's port N is cabled to this host's
//! interface IF.
//!
//! Invariant: equal texts give equal [`Device`]s, so that a target's kind stays a small value that
//! is copied.

mod connect;
mod port_mapping;
mod cables;
mod attach;
mod neighbours;
mod switch;
pub mod bench;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use channel::Url;
use channel::tls::Files;
use packet::header::ethernet::Mac;
use record::Implementation;
use testbed::netlink::link::checked_name;

use workload::PORTS_MAX;

/// Prefix of an OpenFlow switch's name.
pub const PREFIX_OPENFLOW: &str = "openflow:";

/// Prefix of any other device's name.
pub const PREFIX_PLAIN: &str = "device:";

/// Limit of names in one process.
const DEVICES_MAX: usize = 256;

/// The highest number of a port (OpenFlow 1.3.1, 7.2.1, `OFPP_MAX`).
const PORT_NUMBER_MAX: u32 = 0xffff_ff00;

/// A user device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    place: u16,
    is_openflow: bool,
    is_router: bool,
}

/// The parts of a device's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The address of its control channel, if it is an OpenFlow switch.
    pub url: Option<Url>,
    /// TLS files of that channel.
    pub files: Files,
    /// Its ports: each number, and the interface of this host that it is cabled to.
    pub ports: Vec<(u32, String)>,
    /// Its SNMP agent, in the syntax of `--set snmp`.
    pub snmp: Option<String>,
    /// The MAC addresses of a router's ports, as far as they are given; `None` if it is not a
    /// router.
    pub router: Option<Vec<Mac>>,
    /// Whether it is hardware or software, if the user declares it.
    pub implementation: Option<Implementation>,
}

/// Error in a device's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceError {
    /// The address of the control channel is invalid: why.
    BadAddress(String),
    /// `ports=` is missing.
    NoPorts,
    /// One of the ports is not `N@IF`.
    BadPort(String),
    /// The number of ports is out of range.
    Ports(usize),
    /// A port appears twice.
    PortTwice(u32),
    /// An interface appears twice.
    InterfaceTwice(String),
    /// Only some of a router's ports have a MAC address: the number of ports.
    Macs(usize),
    /// Unknown option.
    BadOption(String),
    /// An option appears twice.
    OptionTwice(String),
    /// The limit of names is reached.
    TooMany,
}

struct NamedDevice {
    text: &'static str,
    about: &'static str,
    said: DeviceSpec,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static NamedDevice>> = Mutex::new(Vec::new());

impl Device {
    /// Returns the device that a text names, if it has one of the prefixes.
    pub fn parse(text: &str) -> Option<Result<Device, DeviceError>> {
        let (rest, is_openflow) = match text.strip_prefix(PREFIX_OPENFLOW) {
            Some(rest) => (rest, true),
            None => (text.strip_prefix(PREFIX_PLAIN)?, false),
        };
        Some(read(rest, is_openflow).and_then(|said| keep(text, said)))
    }

    fn kept(self) -> &'static NamedDevice {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(usize::from(self.place)).expect("devices are created by registration")
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.kept().text
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        self.kept().about
    }

    /// Returns whether OpenFlow programs it.
    pub fn is_openflow(self) -> bool {
        self.is_openflow
    }

    /// Returns whether it is a router.
    pub fn is_router(self) -> bool {
        self.is_router
    }

    /// Returns the parts of its name.
    pub fn said(self) -> &'static DeviceSpec {
        &self.kept().said
    }
}

fn keep(text: &str, said: DeviceSpec) -> Result<Device, DeviceError> {
    let (is_openflow, is_router) = (said.url.is_some(), said.router.is_some());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = kept.iter().position(|it| it.text == text) {
        return Ok(Device { place: place as u16, is_openflow, is_router });
    }
    if kept.len() >= DEVICES_MAX {
        return Err(DeviceError::TooMany);
    }
    let place = kept.len() as u16;
    let about = match &said.url {
        Some(url) => format!("external OpenFlow switch at {url}"),
        None if is_router => "external router".to_owned(),
        None => "external bridge".to_owned(),
    };
    let text: &'static str = text.to_owned().leak();
    kept.push(Box::leak(Box::new(NamedDevice { text, about: about.leak(), said })));
    Ok(Device { place, is_openflow, is_router })
}

fn read(rest: &str, is_openflow: bool) -> Result<DeviceSpec, DeviceError> {
    let mut words = rest.split(',');
    let url = match is_openflow {
        true => {
            let word = words.next().unwrap_or_default();
            let url = word.parse::<Url>();
            Some(url.map_err(|error| DeviceError::BadAddress(error.to_string()))?)
        }
        false => None,
    };
    let mut said = DeviceSpec {
        url,
        files: Files::default(),
        ports: Vec::new(),
        snmp: None,
        router: None,
        implementation: None,
    };
    let mut given: Vec<&str> = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if given.contains(&key) {
            return Err(DeviceError::OptionTwice(key.into()));
        }
        given.push(key);
        let file = || (!value.is_empty()).then(|| PathBuf::from(value));
        let bad = || DeviceError::BadOption(word.into());
        match key {
            "ports" => said.ports = ports(value)?,
            "router" if !is_openflow => said.router = Some(macs(value).ok_or_else(bad)?),
            "snmp" if !value.is_empty() => said.snmp = Some(value.into()),
            "kind" => said.implementation = Some(Implementation::of(value).ok_or_else(bad)?),
            "private-key" if is_openflow => said.files.private_key = Some(file().ok_or_else(bad)?),
            "certificate" if is_openflow => said.files.certificate = Some(file().ok_or_else(bad)?),
            "ca-cert" if is_openflow => said.files.ca_cert = Some(file().ok_or_else(bad)?),
            _ => return Err(bad()),
        }
    }
    if !given.contains(&"ports") {
        return Err(DeviceError::NoPorts);
    }
    let is_short = |macs: &Vec<Mac>| !macs.is_empty() && macs.len() != said.ports.len();
    if said.router.as_ref().is_some_and(is_short) {
        return Err(DeviceError::Macs(said.ports.len()));
    }
    Ok(said)
}

/// Parses MAC addresses that are joined by `+`; `None` if one is invalid.
fn macs(text: &str) -> Option<Vec<Mac>> {
    let one = |word: &str| {
        let bytes: Option<Vec<u8>> =
            word.split(':').map(|it| u8::from_str_radix(it, 16).ok()).collect();
        let mac: Mac = bytes?.try_into().ok()?;
        // A router's port has no group address.
        (mac[0] & 1 == 0 && mac != [0; 6]).then_some(mac)
    };
    match text {
        "" => Some(Vec::new()),
        text => text.split('+').map(one).collect(),
    }
}

fn ports(text: &str) -> Result<Vec<(u32, String)>, DeviceError> {
    let mut ports: Vec<(u32, String)> = Vec::new();
    for word in text.split('+') {
        let bad = || DeviceError::BadPort(word.into());
        let (number, interface) = word.split_once('@').ok_or_else(bad)?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|it| digits && (1..=PORT_NUMBER_MAX).contains(it));
        let number = number.ok_or_else(bad)?;
        let interface = checked_name(interface).map_err(|_| bad())?;
        if ports.iter().any(|(known, _)| *known == number) {
            return Err(DeviceError::PortTwice(number));
        }
        if ports.iter().any(|(_, known)| known == interface) {
            return Err(DeviceError::InterfaceTwice(interface.into()));
        }
        ports.push((number, interface.to_owned()));
    }
    match ports.len() {
        2..=PORTS_MAX => Ok(ports),
        count => Err(DeviceError::Ports(count)),
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::BadAddress(why) => write!(
                f,
                "{why} (hint: use openflow:tcp:IP:PORT,ports=1@eth1+2@eth2, or \
                 openflow:ptcp:6653:IP,ports=... for a switch that connects to this host)"
            ),
            DeviceError::NoPorts => f.write_str(
                "the ports of the device are missing (hint: add ports=1@eth1+2@eth2, each with the \
                 interface it is cabled to)",
            ),
            DeviceError::BadPort(text) => write!(
                f,
                "ports={text}: invalid port (hint: use PORT@INTERFACE separated by +, such as \
                 ports=1@eth1+2@eth2)"
            ),
            DeviceError::Ports(count) => write!(
                f,
                "ports=: {count} given (hint: use 2 to {PORTS_MAX}, such as ports=1@eth1+2@eth2)"
            ),
            DeviceError::PortTwice(number) => {
                write!(f, "ports=: port {number} is given twice, but has one cable")
            }
            DeviceError::InterfaceTwice(name) => {
                write!(f, "ports=: interface {name} is given twice, but has one cable")
            }
            DeviceError::Macs(count) => write!(
                f,
                "router=: invalid addresses (hint: use a MAC address for each of the {count} ports \
                 separated by +, or router alone to resolve them)"
            ),
            DeviceError::BadOption(text) => write!(
                f,
                "unknown option {text:?} of a device (hint: use ports=N@IF+N@IF, snmp=IP, \
                 kind=hardware or kind=software; for device: router or router=MAC+MAC; for \
                 openflow: private-key=FILE, certificate=FILE and ca-cert=FILE)"
            ),
            DeviceError::OptionTwice(key) => {
                write!(f, "the option {key} of a device is given twice")
            }
            DeviceError::TooMany => {
                write!(f, "too many devices: a run supports at most {DEVICES_MAX}")
            }
        }
    }
}

impl std::error::Error for DeviceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Device, DeviceError> {
        Device::parse(text).unwrap()
    }

    #[test]
    fn a_name_specifies_the_channel_and_the_ports_of_a_device() {
        let text = "openflow:tcp:192.0.2.7:6653,ports=1@eth1+2@eth2";
        let device = parse(text).unwrap();
        assert_eq!((device.name(), device.is_openflow()), (text, true));
        assert_eq!(parse(text), Ok(device));
        let parsed = device.said();
        assert_eq!(parsed.url, Some("tcp:192.0.2.7:6653".parse().unwrap()));
        assert_eq!(parsed.ports, [(1, "eth1".to_owned()), (2, "eth2".to_owned())]);
        let calls = parse("openflow:ptcp:6653:[::1],ports=17@a+3@b+4@c,snmp=192.0.2.7").unwrap();
        assert_eq!(calls.said().ports[0], (17, "a".to_owned()));
        assert_eq!(calls.said().snmp.as_deref(), Some("192.0.2.7"));
        let secret = "openflow:ssl:192.0.2.7,ca-cert=ca.pem,ports=1@a+2@b";
        assert_eq!(parse(secret).unwrap().said().files.ca_cert, Some("ca.pem".into()));
        let plain = parse("device:ports=1@eth1+2@eth2").unwrap();
        assert_eq!((plain.is_openflow(), plain.said().url.is_none()), (false, true));
        assert_eq!(Device::parse("switch"), None);
        let declared = parse("device:kind=hardware,ports=1@eth1+2@eth2").unwrap();
        assert_eq!(declared.said().implementation, Some(Implementation::Hardware));
        assert_eq!(plain.said().implementation, None);
        let router = parse("device:router,ports=1@eth1+2@eth2").unwrap();
        assert_eq!((router.is_router(), plain.is_router()), (true, false));
        assert_eq!(router.said().router, Some(Vec::new()));
        let known = "device:router=02:00:00:00:00:0a+02:00:00:00:00:0b,ports=1@eth1+2@eth2";
        assert_eq!(parse(known).unwrap().said().router.as_ref().unwrap()[1], [2, 0, 0, 0, 0, 11]);
    }

    #[test]
    fn invalid_names_are_reported_with_a_hint() {
        for (text, words) in [
            ("openflow:", "use openflow:tcp:IP:PORT"),
            ("openflow:tcp:switch:6653,ports=1@a+2@b", "names are not resolved"),
            ("openflow:ptcp:6653", "add ports=1@eth1+2@eth2"),
            ("device:", "of a device"),
            ("device:ports=", "use PORT@INTERFACE"),
            ("device:ports=1@a", "1 given"),
            ("device:ports=1@a+1@b", "port 1 is given twice"),
            ("device:ports=1@a+2@a", "interface a is given twice"),
            ("device:ports=0@a+2@b", "ports=0@a"),
            ("device:ports=4294967295@a+2@b", "ports=4294967295@a"),
            ("device:ports=+1@a+2@b", "use PORT@INTERFACE"),
            ("device:ports=1@a+2@an-interface-too-long", "use PORT@INTERFACE"),
            ("device:ports=1@a+2@b,ports=1@a+2@b", "ports of a device is given twice"),
            ("device:ports=1@a+2@b,ca-cert=x", "of a device"),
            ("device:ports=1@a+2@b,snmp=", "of a device"),
            ("device:ports=1@a+2@b,kind=asic", "kind=hardware or kind=software"),
            ("device:router=02:0:0:0:0:1,ports=1@a+2@b", "each of the 2 ports"),
            ("device:router=01:0:0:0:0:1+2:0:0:0:0:1,ports=1@a+2@b", "router=01"),
            ("openflow:tcp:192.0.2.7,router,ports=1@a+2@b", "of a device"),
            ("device:ports=1@a+2@b+3@c+4@d+5@e+6@f+7@g+8@h+9@i", "9 given"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
