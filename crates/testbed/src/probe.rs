//! Checks kernel features by using each in a temporary namespace.
//!
//! Versions are not read, because a kernel can have a feature that a container forbids.
//!
//! Invariant: the checks leave nothing behind and change nothing.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::time::Duration;

use crate::netlink::link::BridgeSettings;
use crate::pid_namespace::PidNamespace;
use crate::requirement::{Feature, Requirement};
use crate::veth::{Cable, EndSettings};
use crate::{LabError, Namespace, affinity};

/// Checks whether a feature works, by [`try_feature`].
pub fn require(feature: Feature) -> Result<String, Requirement> {
    try_feature(feature).map_err(|error| match error {
        LabError::Need(need) => need,
        other => Requirement::Kernel { feature, why: other.to_string() },
    })
}

/// Tries a feature in a namespace that is removed immediately.
pub fn try_feature(feature: Feature) -> Result<String, LabError> {
    match feature {
        Feature::Veth => try_cable(false).map(|_| "works".to_owned()),
        Feature::Bridge => {
            let settings = BridgeSettings { ageing: Duration::from_secs(300) };
            let namespace = Namespace::create()?;
            namespace.netlink()?.bridge_add("try", &settings).map(|()| "works".to_owned())
        }
        Feature::PacketSocket => Namespace::create()?.run(packet_socket)?,
        Feature::Tun => {
            let path = "/dev/net/tun";
            let opened = File::options().read(true).write(true).open(path);
            opened.map_err(|error| LabError::system("open", path, error))?;
            Ok("works".to_owned())
        }
        Feature::XdpSocket => xdp_socket(),
        Feature::ThreadedNapi => {
            let mut cable = try_cable(true)?;
            let refused = cable.ends[0].threads.take().and_then(|threads| threads.refused);
            match refused {
                Some(why) => Err(Requirement::Kernel { feature, why }.into()),
                None => Ok("works".to_owned()),
            }
        }
        Feature::Sctp => sctp_socket(),
        Feature::PidNamespace => PidNamespace::create().map(|_| "works".to_owned()),
        Feature::OpenvswitchModule => {
            let path = "/sys/module/openvswitch";
            let found = fs::metadata(path);
            found.map_err(|error| LabError::system("find", path, error))?;
            Ok("loaded".to_owned())
        }
    }
}

fn try_cable(threaded: bool) -> Result<Cable, LabError> {
    let namespace = Namespace::create()?;
    let cores = affinity::affinity(0)?;
    let end = |name: &str, last| EndSettings {
        namespace: namespace.clone(),
        name: name.to_owned(),
        mac: [2, 0, 0, 0, 0, last],
        threaded: threaded.then(|| cores.clone()),
    };
    Cable::lay(&end("try1", 1), &end("try2", 2), 1500)
}

/// Tries an AF_XDP socket and a map of such sockets, which requires more privileges than a user
/// namespace gives.
fn xdp_socket() -> Result<String, LabError> {
    /// `BPF_MAP_CREATE`, and its `BPF_MAP_TYPE_XSKMAP`.
    const MAP_CREATE: libc::c_int = 0;
    const XDP_SOCKETS: u32 = 17;
    let refused =
        |why: io::Error| Requirement::Kernel { feature: Feature::XdpSocket, why: why.to_string() };
    // SAFETY: socket takes no pointers; the descriptor is closed below.
    let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(refused(io::Error::last_os_error()).into());
    }
    // Type, bytes of a key and of a value, entries, flags.
    let table = [XDP_SOCKETS, 4, 4, 1, 0];
    // SAFETY: the pointer and the length describe the map's attributes, which the call reads. Both
    // descriptors belong to this process and are closed here.
    let map = unsafe {
        let bytes = size_of_val(&table) as libc::c_uint;
        let map = libc::syscall(libc::SYS_bpf, MAP_CREATE, table.as_ptr(), bytes);
        let error = io::Error::last_os_error();
        libc::close(socket);
        if map < 0 { Err(error) } else { Ok(libc::close(map as libc::c_int)) }
    };
    map.map_err(refused)?;
    Ok("works".to_owned())
}

/// Checks whether a type of socket is available.
fn socket(
    (family, kind, protocol): (libc::c_int, libc::c_int, libc::c_int),
    name: &str,
) -> Result<String, LabError> {
    // SAFETY: socket takes no pointers; the descriptor is closed below.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if socket < 0 {
        return Err(LabError::last("open a socket", name));
    }
    // SAFETY: the descriptor was opened above and is used nowhere else.
    unsafe { libc::close(socket) };
    Ok("works".to_owned())
}

fn packet_socket() -> Result<String, LabError> {
    socket((libc::AF_PACKET, libc::SOCK_RAW, 0), "packet")
}

fn sctp_socket() -> Result<String, LabError> {
    socket((libc::AF_INET, libc::SOCK_STREAM, 132), "sctp")
}
