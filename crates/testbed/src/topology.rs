//! The topology: one tester, and a site for each target.
//!
//! ```text
//!   instrument namespace                       target namespace
//!   ovs-1  ────────────────── cable ────────────────── p1
//!   ovs-2  ────────────────── cable ────────────────── p2
//! ```
//! Sites can also be connected to each other ([`Lab::network`]). Every target has ports `p1`,
//! `p2`...; the tester's interfaces are `NAME-1`, `NAME-2`... The direct site is one cable with
//! both ends at the tester.
//!
//! Invariant: a site's interfaces and namespace vanish when it is dropped, and with the run.

use crate::account::Account;
use crate::affinity::Cores;
use crate::runfolder::{self, CleanupReport};
use crate::veth::{Cable, EndSettings, Interface};
use crate::{LabError, Mac, Namespace, RunFolder};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

/// Maximum number of ports of a site.
pub const PORTS_MAX: u32 = 64;

/// Wiring of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    /// Cables between tester and target, 1 to 64.
    pub ports: u32,
    /// The MTU: the largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Assignment of cores.
    pub cores: Cores,
    /// Whether the kernel's receive work at the target's ends runs on threads on the target's
    /// cores; otherwise the tester's sending core does it.
    pub target_threaded: bool,
    /// Whether the kernel's receive work at the tester's ends runs on threads on the tester's
    /// cores; otherwise the target's core does it.
    ///
    /// On a single core, a busy-polling generator would block these threads, and frames would be
    /// lost on the return path.
    pub instrument_threaded: bool,
    /// Whether a target that supports AF_XDP uses it for its ends; otherwise packet sockets.
    pub xdp: bool,
    /// Whether our elements open their ends so that the kernel forwards known frames.
    pub fast_path: bool,
    /// Whether each of the tester's ends has its own namespace, which can contain a host
    /// ([`crate::host`]); otherwise all are in the tester's.
    pub apart: bool,
    /// Whether an OpenFlow switch also listens on TCP, at [`CONTROL_ADDRESS`] of its namespace,
    /// where traffic can be captured.
    pub control_tcp: bool,
}

/// TCP listen address of OpenFlow switches, if enabled.
pub const CONTROL_ADDRESS: std::net::SocketAddrV4 =
    std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 6653);

impl Wiring {
    /// Two ports with an MTU of 1,500 bytes.
    ///
    /// The target's kernel work is on the target's core. The tester's is on its own cores if it has
    /// more than one.
    pub fn of_machine() -> Result<Wiring, LabError> {
        let cores = Cores::of_machine()?;
        let instrument_threaded = cores.instrument.len() > 1;
        let (ports, mtu, target_threaded, xdp) = (2, 1500, true, false);
        Ok(Wiring {
            ports,
            mtu,
            cores,
            target_threaded,
            instrument_threaded,
            xdp,
            fast_path: false,
            apart: false,
            control_tcp: false,
        })
    }
}

/// A run's network: the tester's namespace, and the run's folder.
#[derive(Debug)]
pub struct Lab {
    /// Namespace of the tester's interfaces.
    pub instrument: Namespace,
    /// The run's private folder.
    pub folder: RunFolder,
    /// Leftover resources of dead runs, removed when this run began.
    pub swept: CleanupReport,
    sites: AtomicU8,
}

/// The other end of a site's port in a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortPeer {
    /// The tester.
    Instrument,
    /// A port, from 1, of another site, from 0, whose plan must name this port in turn.
    Site(usize, u32),
}

/// The environment of a target, wired to the tester.
#[derive(Debug)]
pub struct Site {
    /// Its name, the prefix of the tester's interface names.
    pub name: String,
    /// The target's namespace; for the direct site, the tester's.
    pub namespace: Namespace,
    /// The tester's ends in port order (port 1 first); none for shared memory.
    pub instrument: Vec<Interface>,
    /// The target's ends in port order; none for the direct site or for shared memory.
    pub target: Vec<Interface>,
    /// Its wiring.
    pub wiring: Wiring,
    /// Directory of the target's files.
    pub path: PathBuf,
    /// The run's folder, which records the target's processes.
    pub folder: RunFolder,
    _cables: Vec<Cable>,
}

impl Lab {
    /// Removes leftover resources of dead runs under `root`, and begins a new run there.
    pub fn open(root: &Path) -> Result<Lab, LabError> {
        let swept = runfolder::sweep(root)?;
        let folder = RunFolder::create(root)?;
        let instrument = Namespace::create()?;
        Ok(Lab { instrument, folder, swept, sites: AtomicU8::new(1) })
    }

    /// Creates a site for a target: its own namespace with `p1`, `p2`... Names are 1 to 12 bytes.
    pub fn site(&self, name: &str, wiring: &Wiring) -> Result<Site, LabError> {
        checked(name, wiring)?;
        let number = self.sites.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace::create()?;
        let lay = |port: u32| {
            let near = EndSettings {
                namespace: match wiring.apart {
                    true => Namespace::create()?,
                    false => self.instrument.clone(),
                },
                name: format!("{name}-{port}"),
                mac: instrument_mac(number, port),
                threaded: wiring.instrument_threaded.then(|| wiring.cores.instrument.clone()),
            };
            let far = EndSettings {
                namespace: namespace.clone(),
                name: port_name(port),
                mac: target_mac(number, port),
                threaded: wiring.target_threaded.then(|| wiring.cores.target.clone()),
            };
            Cable::lay(&near, &far, wiring.mtu)
        };
        let cables = (1..=wiring.ports).map(lay).collect::<Result<Vec<Cable>, LabError>>()?;
        cables.iter().try_for_each(Cable::wait_carrying)?;
        let ends = |side: usize| cables.iter().map(|cable| cable.ends[side].clone()).collect();
        Ok(Site {
            instrument: ends(0),
            target: ends(1),
            name: name.to_owned(),
            path: self.folder.folder(name)?,
            namespace,
            wiring: wiring.clone(),
            folder: self.folder.clone(),
            _cables: cables,
        })
    }

    /// Creates sites that are connected to each other and to the tester, each with its name and the
    /// other ends of its ports.
    ///
    /// The kernel's work for a cable between two sites is on the targets' cores at both ends. The
    /// cable belongs to the first of the sites.
    pub fn network(
        &self,
        plans: &[(String, Vec<PortPeer>)],
        wiring: &Wiring,
    ) -> Result<Vec<Site>, LabError> {
        let mut sites = Vec::new();
        let mut numbers = Vec::new();
        for (name, ports) in plans {
            let wiring = Wiring { ports: ports.len() as u32, ..wiring.clone() };
            checked(name, &wiring)?;
            numbers.push(self.sites.fetch_add(1, Ordering::Relaxed));
            sites.push(Site {
                name: name.clone(),
                namespace: Namespace::create()?,
                instrument: Vec::new(),
                target: Vec::new(),
                path: self.folder.folder(name)?,
                wiring,
                folder: self.folder.clone(),
                _cables: Vec::new(),
            });
        }
        let own = |site: usize, port: u32| EndSettings {
            namespace: sites[site].namespace.clone(),
            name: port_name(port),
            mac: target_mac(numbers[site], port),
            threaded: wiring.target_threaded.then(|| wiring.cores.target.clone()),
        };
        let mut cables: Vec<(usize, u32, PortPeer, Cable)> = Vec::new();
        for (site, (name, ports)) in plans.iter().enumerate() {
            for (port, across) in (1..).zip(ports) {
                let far = match *across {
                    PortPeer::Instrument => EndSettings {
                        namespace: self.instrument.clone(),
                        name: format!("{name}-{port}"),
                        mac: instrument_mac(numbers[site], port),
                        threaded: wiring
                            .instrument_threaded
                            .then(|| wiring.cores.instrument.clone()),
                    },
                    // The cable exists already, from the other end.
                    PortPeer::Site(other, _) if other < site => continue,
                    PortPeer::Site(other, port) => own(other, port),
                };
                cables.push((site, port, *across, Cable::lay(&own(site, port), &far, wiring.mtu)?));
            }
        }
        cables.iter().try_for_each(|(.., cable)| cable.wait_carrying())?;
        let mut ends: Vec<Vec<(u32, Interface)>> = vec![Vec::new(); sites.len()];
        for (site, port, across, cable) in cables {
            ends[site].push((port, cable.ends[0].clone()));
            match across {
                PortPeer::Instrument => sites[site].instrument.push(cable.ends[1].clone()),
                PortPeer::Site(other, port) => ends[other].push((port, cable.ends[1].clone())),
            }
            sites[site]._cables.push(cable);
        }
        for (site, mut ends) in sites.iter_mut().zip(ends) {
            ends.sort_by_key(|(port, _)| *port);
            site.target = ends.into_iter().map(|(_, end)| end).collect();
        }
        Ok(sites)
    }

    /// Creates the site without a target: one cable with both ends at the tester. It measures the
    /// tester itself.
    ///
    /// Frames sent into port 1 arrive at port 2.
    pub fn direct(&self, name: &str, wiring: &Wiring) -> Result<Site, LabError> {
        checked(name, wiring)?;
        let number = self.sites.fetch_add(1, Ordering::Relaxed);
        let end = |port: u32| EndSettings {
            namespace: self.instrument.clone(),
            name: format!("{name}-{port}"),
            mac: instrument_mac(number, port),
            threaded: wiring.instrument_threaded.then(|| wiring.cores.instrument.clone()),
        };
        let cable = Cable::lay(&end(1), &end(2), wiring.mtu)?;
        cable.wait_carrying()?;
        Ok(Site {
            instrument: cable.ends.to_vec(),
            target: Vec::new(),
            name: name.to_owned(),
            path: self.folder.folder(name)?,
            namespace: self.instrument.clone(),
            wiring: Wiring { ports: 2, ..wiring.clone() },
            folder: self.folder.clone(),
            _cables: vec![cable],
        })
    }

    /// Creates a site for shared memory, without cables.
    ///
    /// It has a namespace for interfaces that the target creates, and for each port a socket
    /// ([`Site::socket`]) through which the memory is passed.
    pub fn memory(&self, name: &str, wiring: &Wiring) -> Result<Site, LabError> {
        checked(name, wiring)?;
        Ok(Site {
            instrument: Vec::new(),
            target: Vec::new(),
            name: name.to_owned(),
            path: self.folder.folder(name)?,
            namespace: Namespace::create()?,
            wiring: wiring.clone(),
            folder: self.folder.clone(),
            _cables: Vec::new(),
        })
    }
}

impl Site {
    /// Returns the Unix socket of a port, through which shared memory is passed.
    pub fn socket(&self, port: u32) -> PathBuf {
        self.path.join(port_name(port))
    }

    /// Returns the kernel's counters on the target's side.
    pub fn account(&self) -> Result<Account, LabError> {
        Account::of(&self.namespace)
    }

    /// Returns the kernel threads that receive for the target.
    pub fn target_threads(&self) -> Vec<u32> {
        let threads = self.target.iter().filter_map(|end| end.threads.as_ref());
        threads.flat_map(|found| found.threads.iter().copied()).collect()
    }

    /// Returns the target's interface for a port, from 1.
    pub fn port(&self, port: u32) -> Result<&Interface, LabError> {
        let found = port.checked_sub(1).and_then(|index| self.target.get(index as usize));
        found.ok_or_else(|| LabError::Argument { what: "port", value: port.to_string() })
    }
}

/// Returns the name of a target's interface for a port.
pub fn port_name(port: u32) -> String {
    format!("p{port}")
}

fn checked(name: &str, wiring: &Wiring) -> Result<(), LabError> {
    let clean = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 12 || !name.chars().all(clean) {
        return Err(LabError::Argument { what: "site name", value: name.to_owned() });
    }
    if !(1..=PORTS_MAX).contains(&wiring.ports) {
        let value = wiring.ports.to_string();
        return Err(LabError::Argument { what: "number of ports", value });
    }
    Ok(())
}

/// Locally administered addresses that show their side: 02:49 ("I") for the tester's ends, 02:54
/// ("T") for the target's.
fn instrument_mac(site: u8, port: u32) -> Mac {
    [0x02, 0x49, 0, 0, site, port as u8]
}

fn target_mac(site: u8, port: u32) -> Mac {
    [0x02, 0x54, 0, 0, site, port as u8]
}
