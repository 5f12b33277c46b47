//! What programs of DPDK share: the ends they have, their memory, their cores, their drivers.
//!
//! They are kept from everything of the machine: no PCI device is looked for (a program of DPDK
//! would else try to take the machine's own network interface), nothing is shared with other
//! instances, huge pages are asked for by number so that no file system of them is needed, and what
//! they have to write goes to the site's folder.
//!
//! Source: DPDK's programmer's guides to the EAL parameters, the memif, virtio-user and null
//! drivers.
//! Invariant: an instance can be killed at any moment and leaves files in its site's folder only.

pub(super) mod telemetry;

use crate::hugepages::HugePages;
use crate::need::{self, Finding, Need};
use crate::{LabError, Site, hugepages};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The numbers of descriptors in a ring of memif, as a power of two: DPDK's own default.
const MEMIF_RING_LOG2: u32 = 10;
/// Where compilers and Debian put libraries; below each, `dpdk/pmds-VERSION/librte_NAME.so`.
const LIBRARIES: [&str; 3] = ["/usr/lib", "/usr/local/lib", "/usr/lib64"];
/// Programs of DPDK that Debian keeps away from the usual places.
pub(super) const OVS_PROGRAM: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
pub(super) const OVS_PACKAGE: &str = "openvswitch-switch-dpdk";
pub(super) const TESTPMD: &str = "dpdk-testpmd";
pub(super) const TESTPMD_PACKAGE: &str = "dpdk-dev";
/// The huge pages of Open vSwitch: its buffers, as many as it takes in this much (65,536).
pub(super) const OVS_MEBIBYTES: u64 = 256;
/// The huge pages of testpmd: 16,384 buffers of 2,176 bytes, and its rings.
pub(super) const TESTPMD_MEBIBYTES: u64 = 64;

/// Huge pages beside the program's own: for whoever gives the memory of its ports, so that these
/// do not take what the program is about to.
const CLIENT_MEBIBYTES: u64 = 64;

/// Reserves what a program of this size and the other ends of its ports need.
pub(super) fn reserve(mebibytes: u64, site: &Site) -> Result<HugePages, LabError> {
    HugePages::reserve(mebibytes + CLIENT_MEBIBYTES, &site.folder)
}

/// What is at an end of a program of DPDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// memif, the end that listens at this socket.
    MemifServer(PathBuf),
    /// memif, the end that connects to this socket, gives the memory and says how many rings.
    MemifClient(PathBuf),
    /// The driver's end of vhost-user, which connects to this socket.
    VirtioUser(PathBuf),
    /// The driver's end of vhost-user, which listens at this socket and waits for the device.
    VirtioUserServer(PathBuf),
    /// An endless source of equal frames, and a place where frames vanish.
    Source {
        /// The length of its frames in bytes, without FCS. Their bytes are zero.
        frame: usize,
    },
    /// The frames of this file in pcap format over and over, and a place where frames vanish.
    Replay(PathBuf),
    /// A place where frames vanish.
    Sink,
}

impl Device {
    /// As DPDK's `--vdev` has it; `number` tells equal devices of one program apart.
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

    /// The driver it needs, and Debian's package of it.
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

    /// The socket that the program will make, in place of one that a dead program may have left.
    pub(super) fn clear(&self) -> Result<(), LabError> {
        match self {
            Device::MemifServer(socket) | Device::VirtioUserServer(socket) => remove_socket(socket),
            _ => Ok(()),
        }
    }

    pub(super) fn check_driver(&self) -> Result<(), Need> {
        let (name, package) = self.driver();
        driver(name, package).map(drop)
    }
}

/// A driver's name and the package that has it.
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

/// A path within a list of settings may not look like a part of it.
pub(super) fn clean(path: &Path) -> Result<&str, LabError> {
    let refused = || LabError::Argument {
        what: "a path for DPDK (with commas, equal signs, quotes, spaces or not in Unicode)",
        value: path.display().to_string(),
    };
    let bad = |c: char| c.is_whitespace() || ",=\"'\\[]".contains(c);
    path.to_str().filter(|text| !text.contains(bad)).ok_or_else(refused)
}

/// Removes a socket that a program killed before its time left behind.
pub(super) fn remove_socket(socket: &Path) -> Result<(), LabError> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(LabError::system("remove", socket.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// The parameters that keep a program to itself, whatever it is. Telemetry is another matter.
pub(super) fn aloof() -> [&'static str; 2] {
    ["--in-memory", "--no-pci"]
}

/// What a program of DPDK must know of its site: where to put what it writes.
pub(super) fn environment(site: &Site) -> (OsString, OsString) {
    ("RUNTIME_DIRECTORY".into(), site.path.clone().into())
}

/// A core for a program's main thread, which has little to do: not the target's, and the last of
/// the instrument's, whose first ones the generator and the monitor take.
pub(super) fn main_core(site: &Site) -> usize {
    let cores = &site.wiring.cores;
    cores.instrument.last().or(cores.target.first()).copied().unwrap_or(0)
}

/// Where a driver's library is.
pub(super) fn driver(name: &'static str, package: &'static str) -> Result<PathBuf, Need> {
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
    found.ok_or(Need::File { name, package })
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

/// Where Open vSwitch with DPDK is.
pub(super) fn ovs_program() -> Result<PathBuf, Need> {
    let path = PathBuf::from(OVS_PROGRAM);
    let missing = Need::Tool { name: "ovs-vswitchd-dpdk", package: OVS_PACKAGE };
    if path.is_file() { Ok(path) } else { Err(missing) }
}

/// What the peers of DPDK need on this machine.
pub(crate) fn survey() -> Vec<Finding> {
    let both = "the peers ovs-dpdk and testpmd";
    let shown = |path: PathBuf| path.display().to_string();
    let finding = |name, purpose, result| Finding { name, purpose, optional: true, result };
    vec![
        finding("ovs-vswitchd-dpdk", "the peer ovs-dpdk", ovs_program().map(shown)),
        finding(TESTPMD, "the peer testpmd", need::tool(TESTPMD, TESTPMD_PACKAGE).map(shown)),
        finding("DPDK driver net_memif", both, driver(MEMIF.0, MEMIF.1).map(shown)),
        finding("DPDK driver mempool_ring", both, driver(MEMPOOL.0, MEMPOOL.1).map(shown)),
        finding("huge pages", both, hugepages::possible(OVS_MEBIBYTES + TESTPMD_MEBIBYTES)),
    ]
}

/// Fails with the first thing that a program of DPDK with these devices lacks here.
pub fn needs(devices: &[Device], mebibytes: u64) -> Result<(), Need> {
    driver(MEMPOOL.0, MEMPOOL.1)?;
    devices.iter().try_for_each(Device::check_driver)?;
    hugepages::possible(mebibytes + CLIENT_MEBIBYTES).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_as_dpdk_reads_them() {
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
    fn a_path_that_would_be_read_as_settings_is_refused() {
        for path in ["/a,b", "/a=b", "/a b", "/a\"b", "/[a"] {
            let error = Device::MemifServer(path.into()).text(0).unwrap_err();
            assert!(matches!(error, LabError::Argument { .. }), "{path}");
        }
        let long = PathBuf::from(format!("/{}", "x".repeat(107)));
        assert!(Device::MemifClient(long).text(0).is_err());
    }

    #[test]
    fn a_driver_that_is_not_there_is_a_need_with_its_package() {
        let need = driver("net_nobody_wrote", "librte-net-nobody-wrote23").unwrap_err();
        assert!(need.to_string().contains("apt-get install librte-net-nobody-wrote23"));
    }
}
