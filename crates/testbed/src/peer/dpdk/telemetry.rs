//! Reads the counters of a running DPDK program through its telemetry socket.
//!
//! The socket carries packets: first a greeting with the longest reply length. Then each request is
//! a line (`/ethdev/stats,0`) and each reply an object (`{"/ethdev/stats": {...}}`).
//!
//! Source: DPDK's guide "Telemetry", version 2 of the socket.
//!
//! Invariant: a reply is read up to a size limit and a timeout, for any behavior of the program.

#![allow(unsafe_code)]

use crate::LabError;
use crate::runfolder::checked_socket_path;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ANSWER_BYTES: usize = 1 << 17;
const PATIENCE: Duration = Duration::from_secs(5);
/// A port's counters: names in DPDK and names in planimeter.
const COUNTERS: [(&str, &str); 6] = [
    ("ipackets", "received"),
    ("opackets", "sent"),
    ("imissed", "receive_missed"),
    ("ierrors", "receive_errors"),
    ("oerrors", "transmit_errors"),
    ("rx_nombuf", "receive_no_buffer"),
];

/// Returns the socket's path for this runtime directory and file prefix.
pub(in crate::peer) fn socket(runtime: &Path, prefix: &str) -> PathBuf {
    runtime.join("dpdk").join(prefix).join("dpdk_telemetry.v2")
}

/// Returns the counters of a program's first `ports` ports, as `port.N.NAME` with ports from 1.
pub(in crate::peer) fn counters(
    socket: &Path,
    ports: usize,
) -> Result<BTreeMap<String, u64>, LabError> {
    let refused =
        |error| LabError::system("request telemetry", socket.display().to_string(), error);
    let connection = Connection::open(checked_socket_path(socket)?).map_err(refused)?;
    let mut counters = BTreeMap::new();
    for port in 0..ports {
        let request = format!("/ethdev/stats,{port}");
        let answer = connection.ask(&request).map_err(refused)?;
        let found = parse_port(&answer, port + 1);
        if found.is_empty() {
            let (from, answer) =
                ("DPDK's telemetry".to_owned(), answer.chars().take(300).collect());
            return Err(LabError::Answer { from, request, answer });
        }
        counters.extend(found);
    }
    Ok(counters)
}

/// Returns whether a program's first `ports` ports are all started; false if it does not listen
/// yet.
pub(in crate::peer) fn started(socket: &Path, ports: usize) -> bool {
    let Ok(connection) = Connection::open(socket) else {
        return false;
    };
    let is_started = |port| {
        let answer = connection.ask(&format!("/ethdev/info,{port}"));
        answer.is_ok_and(|answer| parse_started(&answer))
    };
    (0..ports).all(is_started)
}

/// Parses the reply to `/ethdev/info`.
fn parse_started(answer: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    answer["/ethdev/info"]["dev_started"] == 1
}

/// Parses the reply to `/ethdev/stats`; empty if there is no such port.
fn parse_port(answer: &str, port: usize) -> BTreeMap<String, u64> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let stats = &answer["/ethdev/stats"];
    let counter = |(theirs, ours): &(&str, &str)| {
        Some((format!("port.{port}.{ours}"), stats.get(*theirs)?.as_u64()?))
    };
    COUNTERS.iter().filter_map(counter).collect()
}

struct Connection {
    socket: OwnedFd,
}

impl Connection {
    /// Connects and reads the greeting.
    fn open(path: &Path) -> io::Result<Connection> {
        // SAFETY: socket takes no pointers.
        let socket =
            unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened above and is used nowhere else.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: sockaddr_un is integers, for which all zeroes is valid.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() >= address.sun_path.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in address.sun_path.iter_mut().zip(bytes) {
            *to = *from as libc::c_char;
        }
        let time = libc::timeval { tv_sec: PATIENCE.as_secs() as libc::time_t, tv_usec: 0 };
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let length = size_of::<libc::timeval>() as libc::socklen_t;
            let value = (&raw const time).cast();
            // SAFETY: `time` is a timeval of the length given.
            let set = unsafe {
                libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
            };
            checked(set as isize)?;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: `address` is a valid sockaddr_un of the length given, and its path ends in a
        // zero.
        let connected =
            unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
        checked(connected as isize)?;
        let connection = Connection { socket };
        connection.receive()?;
        Ok(connection)
    }

    fn ask(&self, request: &str) -> io::Result<String> {
        // SAFETY: the pointer and length are those of `request`.
        let sent = unsafe {
            let flags = libc::MSG_NOSIGNAL;
            libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), flags)
        };
        checked(sent)?;
        self.receive()
    }

    /// Receives one packet, truncated at the limit.
    fn receive(&self) -> io::Result<String> {
        let mut buffer = vec![0_u8; ANSWER_BYTES];
        // SAFETY: the pointer and length are those of `buffer`, which the call only writes to.
        let length = unsafe {
            libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
        };
        buffer.truncate(checked(length)?);
        Ok(String::from_utf8_lossy(&buffer).into_owned())
    }
}

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_counters_have_our_names() {
        // From testpmd 22.11, with its per-queue counters shortened.
        let answer = r#"{"/ethdev/stats":{"ipackets":2631040,"opackets":7,"ibytes":157862400,
            "obytes":420,"imissed":1,"ierrors":2,"oerrors":3,"rx_nombuf":4,"q_ipackets":[2631040,0],
            "q_opackets":[7,0]}}"#;
        let expected = [
            ("port.2.received", 2_631_040),
            ("port.2.sent", 7),
            ("port.2.receive_missed", 1),
            ("port.2.receive_errors", 2),
            ("port.2.transmit_errors", 3),
            ("port.2.receive_no_buffer", 4),
        ];
        assert_eq!(parse_port(answer, 2), expected.map(|(name, n)| (name.to_owned(), n)).into());
    }

    #[test]
    fn a_port_is_started_if_it_reports_so() {
        let reply = r#"{"/ethdev/info":{"name":"net_memif0","state":1,"nb_rx_queues":1,
            "dev_started":1,"lro":0,"dev_configured":1}}"#;
        assert!(parse_started(reply));
        let not_yet = reply.replace("dev_started\":1", "dev_started\":0");
        for reply in [not_yet.as_str(), r#"{"/ethdev/info":null}"#, ""] {
            assert!(!parse_started(reply), "{reply}");
        }
    }

    #[test]
    fn a_missing_port_has_no_counters() {
        for reply in [r#"{"/ethdev/stats":null}"#, "{}", "", "[", r#"{"/ethdev/stats":[1]}"#] {
            assert_eq!(parse_port(reply, 1), BTreeMap::new(), "{reply}");
        }
    }
}
