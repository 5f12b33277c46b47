//! Reads the kernel's properties of a network interface: index, address, MTU and state.
//!
//! Interfaces are addressed by name with the ioctls of netdevice(7). The namespace is that of the
//! socket, thus of the thread that opened it; the port's current thread may be in another one.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use os::sys;

use crate::link::{self, Link};
use crate::port::PortError;

/// Properties of an interface when it was queried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Index of the interface in its namespace.
    pub index: i32,
    /// Hardware address.
    pub mac: [u8; 6],
    /// MTU: largest payload of a frame in bytes, without Ethernet header and tags.
    pub mtu: usize,
    /// Whether the interface is up.
    pub up: bool,
}

/// Queries the interface of this name in the namespace of the calling thread.
pub fn look_up(name: &str) -> Result<Interface, PortError> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
        .map_err(|error| system("read the settings of", name, error))?;
    look_up_by(socket.as_raw_fd(), name)
}

/// Queries the interface of this name in the namespace of this socket.
pub fn look_up_by(socket: libc::c_int, name: &str) -> Result<Interface, PortError> {
    let ask = |request| ask(socket, request, name);
    // SAFETY: each request fills the union member that is read after it.
    unsafe {
        let address = ask(libc::SIOCGIFHWADDR)?.ifru_hwaddr.sa_data;
        Ok(Interface {
            index: ask(libc::SIOCGIFINDEX)?.ifru_ifindex,
            mac: std::array::from_fn(|place| address[place] as u8),
            mtu: ask(libc::SIOCGIFMTU)?.ifru_mtu.max(0) as usize,
            up: i32::from(ask(libc::SIOCGIFFLAGS)?.ifru_flags) & libc::IFF_UP != 0,
        })
    }
}

/// Returns false only if the interface is up and has no carrier, else true.
///
/// Works with any socket. The kernel notices a cable within a second.
pub fn has_link(socket: libc::c_int, name: &str) -> bool {
    let Ok(answer) = ask(socket, libc::SIOCGIFFLAGS, name) else { return true };
    // SAFETY: the request filled this union member.
    let flags = i32::from(unsafe { answer.ifru_flags });
    flags & libc::IFF_UP == 0 || flags & libc::IFF_RUNNING != 0
}

/// Returns whether the interface of this name is up.
pub fn is_up(name: &str) -> Result<bool, PortError> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
        .map_err(|error| system("read the settings of", name, error))?;
    let answer = ask(socket.as_raw_fd(), libc::SIOCGIFFLAGS, name)?;
    // SAFETY: the request filled this union member.
    let flags = i32::from(unsafe { answer.ifru_flags });
    Ok(flags & libc::IFF_UP != 0)
}

/// Checks that the interface of this name is up and still has this index. Works with any socket of
/// its namespace.
pub fn check(socket: libc::c_int, name: &str, index: i32) -> Result<(), PortError> {
    let numbered = ask(socket, libc::SIOCGIFINDEX, name)?;
    let flagged = ask(socket, libc::SIOCGIFFLAGS, name)?;
    // SAFETY: each request filled its union member.
    let (number, flags) = unsafe { (numbered.ifru_ifindex, i32::from(flagged.ifru_flags)) };
    match (number == index, flags & libc::IFF_UP != 0) {
        (true, true) => Ok(()),
        (true, false) => Err(PortError::InterfaceDown(name.to_owned())),
        (false, _) => Err(PortError::NoSuchInterface(name.to_owned())),
    }
}

/// Returns the link properties of the interface of this name; empty if it reports none.
///
/// Works with any socket of its namespace.
pub fn link(socket: libc::c_int, name: &str) -> Link {
    let ask = |mask_words: i8| ethtool(socket, name, link::question(mask_words));
    let known = ask(0).and_then(|first| ask(link::mask_words(&first)?));
    known.map_or_else(Link::default, |answer| link::read(&answer))
}

/// Returns the number of receive queues of the interface of this name; one if it does not report
/// it.
///
/// Source: Linux `struct ethtool_channels`, with the command as word 0: `rx_count` is word 5 and
/// `combined_count` word 8.
pub fn receive_queues(socket: libc::c_int, name: &str) -> u32 {
    let mut question = [0_u32; 9];
    question[0] = GET_CHANNELS;
    let answer = ethtool(socket, name, question);
    answer.map_or(1, |channels| channels[5].saturating_add(channels[8]).max(1))
}

/// Returns the driver of the interface of this name; empty if it does not report it. Source: Linux
/// `struct ethtool_drvinfo`.
pub fn driver(socket: libc::c_int, name: &str) -> String {
    let mut question = [0_u32; DRIVER_WORDS];
    question[0] = GET_DRIVER;
    let Some(answer) = ethtool(socket, name, question) else { return String::new() };
    let text = answer[1..9].iter().flat_map(|word| word.to_ne_bytes());
    text.take_while(|byte| *byte != 0).map(char::from).collect()
}

/// Returns the driver's own statistics of the interface of this name, with their names; empty if it
/// has none. Source: Linux `struct ethtool_gstrings` and `struct ethtool_stats`.
pub fn statistics(socket: libc::c_int, name: &str) -> Vec<(String, u64)> {
    /// Set of names of statistics (`ETH_SS_STATS`).
    const NAMES_OF_STATISTICS: u32 = 1;
    /// Words of a name, which ends in zero if it is shorter.
    const NAME_WORDS: usize = 8;
    /// Room for statistics that are added between two requests: the kernel writes all there are.
    const MORE: usize = 256;
    let mut driver = [0_u32; DRIVER_WORDS];
    driver[0] = GET_DRIVER;
    let Some(driver) = ethtool(socket, name, driver) else { return Vec::new() };
    let count = driver[STATISTICS_AT];
    let mut names = vec![0_u32; 3 + NAME_WORDS * (count as usize + MORE)];
    names[..3].copy_from_slice(&[GET_STRINGS, NAMES_OF_STATISTICS, count]);
    let mut values = vec![0_u32; 2 + 2 * (count as usize + MORE)];
    values[..2].copy_from_slice(&[GET_STATISTICS, count]);
    if !(ask_ethtool(socket, name, &mut names) && ask_ethtool(socket, name, &mut values)) {
        return Vec::new();
    }
    let text = |words: &[u32]| -> String {
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
        bytes.take_while(|byte| *byte != 0).map(char::from).collect()
    };
    let number = |words: &[u32]| {
        let [a, b] = [words[0], words[1]].map(u32::to_ne_bytes);
        u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
    };
    let names = names[3..].chunks_exact(NAME_WORDS).map(text);
    names.zip(values[2..].chunks_exact(2).map(number)).take(count as usize).collect()
}

/// Ethtool commands, the length of a driver reply in words, and the place of the number of
/// statistics in it.
const GET_DRIVER: u32 = 0x3;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const STATISTICS_AT: usize = 45;
const GET_CHANNELS: u32 = 0x3c;
const DRIVER_WORDS: usize = 49;

/// Sends an ethtool request, which begins with the command and has room for the command's whole
/// reply.
fn ethtool<const N: usize>(
    socket: libc::c_int,
    name: &str,
    mut question: [u32; N],
) -> Option<[u32; N]> {
    ask_ethtool(socket, name, &mut question).then_some(question)
}

/// Like [`ethtool`], for requests of any length. Returns whether there is a reply.
fn ask_ethtool(socket: libc::c_int, name: &str, question: &mut [u32]) -> bool {
    let Ok(mut request) = request_for(name) else { return false };
    request.ifr_ifru.ifru_data = question.as_mut_ptr().cast();
    // SAFETY: the pointer is to an ifreq whose name ends in zero. The ifreq points to a request
    // with room for the longest reply to its command. The ioctl reads and writes only these.
    sys::check(unsafe { libc::ioctl(socket, libc::SIOCETHTOOL as libc::Ioctl, &mut request) })
        .is_ok()
}

/// Like [`link()`], in the namespace of the calling thread.
pub fn link_of(name: &str) -> Result<Link, PortError> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
        .map_err(|error| system("read the settings of", name, error))?;
    Ok(link(socket.as_raw_fd(), name))
}

fn ask(
    socket: libc::c_int,
    request: libc::Ioctl,
    name: &str,
) -> Result<libc::__c_anonymous_ifr_ifru, PortError> {
    let mut answer = request_for(name)?;
    // SAFETY: the pointer is to an ifreq whose name ends in zero; these requests write only inside
    // it.
    sys::check(unsafe { libc::ioctl(socket, request, &mut answer) })
        .map_err(|error| system("read the settings of", name, error))?;
    Ok(answer.ifr_ifru)
}

/// Builds an interface request with its name filled in and the rest zero.
pub fn request_for(name: &str) -> Result<libc::ifreq, PortError> {
    // SAFETY: all-zero bytes are a valid value of this C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let fits = !name.is_empty() && name.len() < libc::IFNAMSIZ && !name.contains(['\0', '/']);
    if !fits {
        return Err(PortError::BadSpec(
            name.to_owned(),
            "invalid interface name (hint: use 1 to 15 characters without slash)",
        ));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

/// Converts the error of a system call on an interface into a `PortError`.
pub fn system(doing: &'static str, name: &str, error: io::Error) -> PortError {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => PortError::NoSuchInterface(name.to_owned()),
        Some(libc::ENETDOWN) => PortError::InterfaceDown(name.to_owned()),
        Some(libc::EPERM | libc::EACCES) => {
            let ends = [" on", " of", " to", " for"];
            let act = ends.iter().find_map(|end| doing.strip_suffix(end));
            PortError::NotPermitted(act.unwrap_or(doing))
        }
        _ => PortError::System { doing, what: name.to_owned(), error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_and_missing_ones_are_not() {
        let loopback = look_up("lo").unwrap();
        assert_eq!((loopback.index, loopback.mac), (1, [0; 6]));
        assert!(loopback.mtu >= 1500);
        assert_eq!(link_of("lo").unwrap(), Link::default(), "loopback has no speed");
        let error = look_up("nosuchif0").unwrap_err();
        assert!(matches!(error, PortError::NoSuchInterface(name) if name == "nosuchif0"));
    }

    #[test]
    fn invalid_interface_names_are_rejected() {
        for name in ["", "sixteen-letters-", "a/b", "a\0b"] {
            assert!(matches!(look_up(name), Err(PortError::BadSpec(..))), "{name:?}");
        }
    }
}
