//! Common parts of DPDK programs: devices, memory, cores and drivers.
//!
//! The programs are isolated from the machine:
//! - They probe no PCI device (a DPDK program would otherwise try to take the machine's own network
//!   interface).
//! - They share nothing with other instances.
//! - Huge pages are requested without files, so no huge page file system is required.
//! - Files are written to the site's directory.
//!
//! Source: DPDK's programmer's guides to the EAL parameters, the memif, virtio-user and null
//! drivers.
//!
//! Invariant: an instance can be killed at any time and leaves files only in its site's directory.

pub(super) mod telemetry;

use crate::hugepages::HugePages;
use crate::requirement::{self, Finding, Requirement};
use crate::{LabError, Site, hugepages};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Binary logarithm of the descriptors in a memif ring: DPDK's own default.
const MEMIF_RING_LOG2: u32 = 10;
/// Library directories of compilers and Debian; the drivers are below each, in
/// `dpdk/pmds-VERSION/librte_NAME.so`.
const LIBRARIES: [&str; 3] = ["/usr/lib", "/usr/local/lib", "/usr/lib64"];
/// DPDK programs that Debian installs outside the usual directories.
pub(super) const OVS_PROGRAM: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
pub(super) const OVS_PACKAGE: &str = "openvswitch-switch-dpdk";
pub(super) const TESTPMD: &str = "dpdk-testpmd";
pub(super) const TESTPMD_PACKAGE: &str = "dpdk-dev";
/// Huge pages of Open vSwitch: as many buffers as it allocates in this much (65,536).
pub(super) const OVS_MEBIBYTES: u64 = 256;
/// Huge pages of testpmd: 16,384 buffers of 2,176 bytes, and its rings.
pub(super) const TESTPMD_MEBIBYTES: u64 = 64;

/// Huge pages for the peers that provide the memory of its ports, so that they do not use the
/// program's pages.
const CLIENT_MEBIBYTES: u64 = 64;

/// Reserves the pages of a program of this size and of its ports' peers.
pub(super) fn reserve(mebibytes: u64, site: &Site) -> Result<HugePages, LabError> {
    HugePages::reserve(mebibytes + CLIENT_MEBIBYTES, &site.folder)
}

/// A device of a DPDK program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// memif server, which listens at this socket.
    MemifServer(PathBuf),
    /// memif client, which connects to this socket, provides the memory and selects the number of
    /// rings.
    MemifClient(PathBuf),
    /// vhost-user driver (virtio-user), which connects to this socket.
    VirtioUser(PathBuf),
    /// vhost-user driver (virtio-user), which listens at this socket and waits for the device.
    VirtioUserServer(PathBuf),
    /// A source of equal frames without end, and a sink.
    Source {
        /// Length of its frames in bytes, without FCS. Their bytes are zero.
        frame: usize,
    },
    /// The frames of this pcap file in a loop, and a sink.
    Replay(PathBuf),
    /// A sink.
    Sink,
}

impl Device {
    /// Formats the device for DPDK's `--vdev`; `number` distinguishes devices of the same kind.
    pub(super) fn text(&self, number: usize) -> Result<String, LabError> {
        Ok(match self {
            Device::MemifServer(socket) => memif(number, "server", socket)?,
            Device::MemifClient(socket) => memif(number, "client", socket)?,
            Device::VirtioUser(socket) => virtio_user(number, socket, "")?,
            Device::VirtioUserServer(socket) => virtio_user(number, socket, ",server=1")?,
            Device::Source { frame } => format!("net_null{number},size={frame}"),
            Device::Replay(file) => {
                let file = clean(file)?;
                format!("net_pcap{number},rx_pcap={file},infinite_rx=1")
            }
            Device::Sink => format!("net_null{number},no-rx=1"),
        })
    }

    /// Returns the required driver and its Debian package.
    fn driver(&self) -> (&'static str, &'static str) {
        match self {
            Device::MemifServer(_) | Device::MemifClient(_) => MEMIF,
            Device::VirtioUser(_) | Device::VirtioUserServer(_) => {
                ("net_virtio", "librte-net-virtio23")
            }
            Device::Source { .. } | Device::Sink => ("net_null", "librte-net-null23"),
            Device::Replay(_) => ("net_pcap", "librte-net-pcap23"),
        }
    }

    /// Removes a stale socket at the path where the program will listen.
    pub(super) fn clear(&self) -> Result<(), LabError> {
        match self {
            Device::MemifServer(socket) | Device::VirtioUserServer(socket) => remove_socket(socket),
            _ => Ok(()),
        }
    }

    pub(super) fn check_driver(&self) -> Result<(), Requirement> {
        let (name, package) = self.driver();
        driver(name, package).map(drop)
    }
}

/// Name of a driver and its package.
const MEMIF: (&str, &str) = ("net_memif", "librte-net-memif23");
const MEMPOOL: (&str, &str) = ("mempool_ring", "librte-mempool-ring23");

fn memif(number: usize, role: &str, socket: &Path) -> Result<String, LabError> {
    let socket = clean(crate::runfolder::checked_socket_path(socket)?)?;
    Ok(format!(
        "net_memif{number},role={role},id=0,socket={socket},socket-abstract=no,\
         rsize={MEMIF_RING_LOG2}"
    ))
}

fn virtio_user(number: usize, socket: &Path, more: &str) -> Result<String, LabError> {
    let path = clean(crate::runfolder::checked_socket_path(socket)?)?;
    Ok(format!("net_virtio_user{number},path={path},queue_size=1024{more}"))
}

/// Returns a path as text, if it contains no delimiters of DPDK's device arguments.
pub(super) fn clean(path: &Path) -> Result<&str, LabError> {
    let refused = || LabError::Argument {
        what: "path for DPDK (hint: avoid commas, equal signs, quotes, spaces and non-Unicode \
             bytes)",
        value: path.display().to_string(),
    };
    let bad = |c: char| c.is_whitespace() || ",=\"'\\[]".contains(c);
    path.to_str().filter(|text| !text.contains(bad)).ok_or_else(refused)
}

/// Removes a socket that a killed program left behind.
pub(super) fn remove_socket(socket: &Path) -> Result<(), LabError> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(LabError::system("remove", socket.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// Returns the EAL parameters that isolate any program, except for telemetry.
pub(super) fn aloof() -> [&'static str; 2] {
    ["--in-memory", "--no-pci"]
}

/// Returns the environment of a DPDK program: the directory for its files.
pub(super) fn environment(site: &Site) -> (OsString, OsString) {
    ("RUNTIME_DIRECTORY".into(), site.path.clone().into())
}

/// Returns the core for a program's main thread, which does little work: not the target's core.
///
/// It is the last core of the tester, because the generator and the analyzer use the first ones.
pub(super) fn main_core(site: &Site) -> usize {
    let cores = &site.wiring.cores;
    cores.instrument.last().or(cores.target.first()).copied().unwrap_or(0)
}

/// Returns the path of a driver's library.
pub(super) fn driver(name: &'static str, package: &'static str) -> Result<PathBuf, Requirement> {
    let roots = LIBRARIES.iter().map(PathBuf::from);
    let folders = roots.flat_map(|root| {
        let below = folders(&root).into_iter().filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu"))
        });
        below.chain([root]).collect::<Vec<_>>()
    });
    let library = format!("librte_{name}.so");
    let found = folders.flat_map(|folder| folders_of_drivers(&folder)).find_map(|folder| {
        let files = fs::read_dir(folder).ok()?.flatten();
        let mut files =
            files.filter(|file| file.file_name().to_string_lossy().starts_with(&library));
        Some(files.next()?.path())
    });
    found.ok_or(Requirement::File { name, package })
}

fn folders_of_drivers(folder: &Path) -> Vec<PathBuf> {
    let mut found = folders(&folder.join("dpdk"));
    found.retain(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pmds-"))
    });
    found
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Returns the path of Open vSwitch with DPDK.
pub(super) fn ovs_program() -> Result<PathBuf, Requirement> {
    let path = PathBuf::from(OVS_PROGRAM);
    let missing = Requirement::Tool { name: "ovs-vswitchd-dpdk", package: OVS_PACKAGE };
    if path.is_file() { Ok(path) } else { Err(missing) }
}

/// Checks the requirements of the DPDK peers.
pub(crate) fn survey() -> Vec<Finding> {
    let both = "the targets ovs-dpdk and testpmd";
    let shown = |path: PathBuf| path.display().to_string();
    let finding = |name, purpose, result| Finding { name, purpose, optional: true, result };
    vec![
        finding("ovs-vswitchd-dpdk", "the target ovs-dpdk", ovs_program().map(shown)),
        finding(
            TESTPMD,
            "the target testpmd",
            requirement::tool(TESTPMD, TESTPMD_PACKAGE).map(shown),
        ),
        finding("DPDK driver net_memif", both, driver(MEMIF.0, MEMIF.1).map(shown)),
        finding("DPDK driver mempool_ring", both, driver(MEMPOOL.0, MEMPOOL.1).map(shown)),
        finding("huge pages", both, hugepages::possible(OVS_MEBIBYTES + TESTPMD_MEBIBYTES)),
    ]
}

/// Fails with the first missing requirement of a DPDK program with these devices.
pub fn needs(devices: &[Device], mebibytes: u64) -> Result<(), Requirement> {
    driver(MEMPOOL.0, MEMPOOL.1)?;
    devices.iter().try_for_each(Device::check_driver)?;
    hugepages::possible(mebibytes + CLIENT_MEBIBYTES).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_syntax_of_dpdk() {
        let check = |device: Device, wanted: &str| assert_eq!(device.text(3).unwrap(), wanted);
        check(
            Device::MemifServer("/r/p1".into()),
            "net_memif3,role=server,id=0,socket=/r/p1,socket-abstract=no,rsize=10",
        );
        check(
            Device::MemifClient("/r/p1".into()),
            "net_memif3,role=client,id=0,socket=/r/p1,socket-abstract=no,rsize=10",
        );
        check(Device::VirtioUser("/r/p1".into()), "net_virtio_user3,path=/r/p1,queue_size=1024");
        check(
            Device::VirtioUserServer("/r/p1".into()),
            "net_virtio_user3,path=/r/p1,queue_size=1024,server=1",
        );
        check(Device::Source { frame: 60 }, "net_null3,size=60");
        check(Device::Replay("/r/a.pcap".into()), "net_pcap3,rx_pcap=/r/a.pcap,infinite_rx=1");
        check(Device::Sink, "net_null3,no-rx=1");
    }

    #[test]
    fn a_path_with_separators_is_rejected() {
        for path in ["/a,b", "/a=b", "/a b", "/a\"b", "/[a"] {
            let error = Device::MemifServer(path.into()).text(0).unwrap_err();
            assert!(matches!(error, LabError::Argument { .. }), "{path}");
        }
        let long = PathBuf::from(format!("/{}", "x".repeat(107)));
        assert!(Device::MemifClient(long).text(0).is_err());
    }

    #[test]
    fn an_error_for_a_missing_driver_names_its_package() {
        let need = driver("net_nobody_wrote", "librte-net-nobody-wrote23").unwrap_err();
        assert!(need.to_string().contains("apt-get install librte-net-nobody-wrote23"));
    }
}
