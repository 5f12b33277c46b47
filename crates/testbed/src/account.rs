//! All counters of lost frames in a namespace, before and after a measurement.
//!
//! A frame can be lost at an interface, in a packet socket's queue, in the IP layer or in a core's
//! backlog. Each has its own counter. An account is a reading of all of them; the difference of two
//! readings covers the time in between.
//!
//! Source: `rtnetlink(7)` (stats64), `packet_diag.h`, `/proc/net/snmp` and `/proc/net/netstat`
//! (names as in RFC 4293 and the kernel's `snmp.h`), `/proc/net/softnet_stat` (the kernel's
//! `net-procfs.c`).
//!
//! Invariant: reading changes no counter.

use crate::netlink::link::LinkCounters;
use crate::packet_diag;
use crate::{LabError, Namespace};
use std::collections::BTreeMap;
use std::fs;

/// A reading of a namespace's counters, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Interface counters by interface name.
    pub links: BTreeMap<String, LinkCounters>,
    /// Losses of packet sockets.
    pub sockets: Vec<SocketLoss>,
    /// The IPv4 counters of the namespace: InReceives, InHdrErrors, InNoRoutes, ForwDatagrams...
    pub ip: BTreeMap<String, u64>,
    /// Backlogs of the cores: of the whole machine, not of the namespace.
    pub backlog: ReceiveBacklog,
}

/// Losses of one packet socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketLoss {
    /// Identifies the socket while it is open.
    pub inode: u32,
    /// The interface that the socket is bound to, or "any".
    pub interface: String,
    /// Frames lost on a full queue, modulo 2^32.
    pub dropped: u32,
}

/// The backlog of received frames, summed over all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveBacklog {
    /// Processed frames.
    pub processed: u64,
    /// Frames dropped on a full backlog.
    pub dropped: u64,
    /// Number of interruptions of the processing because it exceeded its budget.
    pub squeezed: u64,
}

/// The IPv4 counters of lost packets.
const IP_LOSSES: [&str; 9] = [
    "InHdrErrors",
    "InNoRoutes",
    "InTruncatedPkts",
    "InAddrErrors",
    "InUnknownProtos",
    "InDiscards",
    "OutDiscards",
    "OutNoRoutes",
    "FragFails",
];

impl Account {
    /// Reads the counters.
    pub fn of(namespace: &Namespace) -> Result<Account, LabError> {
        let links = namespace.netlink()?.links()?;
        let sockets = packet_diag::packet_sockets(namespace)?;
        // From the thread's files, because a namespace belongs to a thread.
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let [snmp, netstat, softnet] = namespace
            .run(|| ["snmp", "netstat", "softnet_stat"].map(read))?
            .map(Result::unwrap_or_default);
        let mut ip = parse_snmp(&snmp, "Ip");
        ip.extend(parse_snmp(&netstat, "IpExt"));
        let name_of = |index: u32| {
            let link = links.iter().find(|link| link.index == index);
            link.map_or("any".to_owned(), |link| link.name.clone())
        };
        let loss = |socket: &packet_diag::PacketSocket| SocketLoss {
            inode: socket.inode,
            interface: name_of(socket.interface),
            dropped: socket.dropped,
        };
        Ok(Account {
            links: links.iter().map(|link| (link.name.clone(), link.counters)).collect(),
            sockets: sockets.iter().map(loss).collect(),
            ip,
            backlog: parse_softnet(&softnet),
        })
    }

    /// Returns the difference from an earlier reading.
    ///
    /// A socket opened in between counts from zero. The counter of a socket closed in between is
    /// lost.
    pub fn since(&self, earlier: &Account) -> Account {
        let links = self.links.iter().map(|(name, now)| {
            let before = earlier.links.get(name).copied().unwrap_or_default();
            (name.clone(), now.since(&before))
        });
        let sockets = self.sockets.iter().map(|now| {
            let before = earlier.sockets.iter().find(|before| before.inode == now.inode);
            let before = before.map_or(0, |before| before.dropped);
            SocketLoss { dropped: now.dropped.wrapping_sub(before), ..now.clone() }
        });
        let ip = self.ip.iter().map(|(name, now)| {
            let before = earlier.ip.get(name).copied().unwrap_or(0);
            (name.clone(), now.saturating_sub(before))
        });
        Account {
            links: links.collect(),
            sockets: sockets.collect(),
            ip: ip.collect(),
            backlog: ReceiveBacklog {
                processed: self.backlog.processed.saturating_sub(earlier.backlog.processed),
                dropped: self.backlog.dropped.saturating_sub(earlier.backlog.dropped),
                squeezed: self.backlog.squeezed.saturating_sub(earlier.backlog.squeezed),
            },
        }
    }

    /// Returns the non-zero losses by location: ("p1 transmit_dropped", 5)...
    pub fn losses(&self) -> BTreeMap<String, u64> {
        let mut losses = BTreeMap::new();
        let mut lose = |place: String, count: u64| {
            if count > 0 {
                *losses.entry(place).or_insert(0) += count;
            }
        };
        for (name, link) in &self.links {
            lose(format!("{name} receive_errors"), link.receive_errors);
            lose(format!("{name} transmit_errors"), link.transmit_errors);
            lose(format!("{name} receive_dropped"), link.receive_dropped);
            lose(format!("{name} transmit_dropped"), link.transmit_dropped);
            lose(format!("{name} receive_missed"), link.receive_missed);
        }
        for socket in &self.sockets {
            lose(format!("{} socket_dropped", socket.interface), u64::from(socket.dropped));
        }
        for name in IP_LOSSES {
            lose(format!("ip {name}"), self.ip.get(name).copied().unwrap_or(0));
        }
        lose("machine backlog_dropped".to_owned(), self.backlog.dropped);
        losses
    }
}

/// Parses one protocol's counters of `/proc/net/snmp` or `/proc/net/netstat`: a line of names, then
/// a line of values.
///
/// Values that are not counters are included (such as the default TTL, or -1 for "no limit").
pub fn parse_snmp(text: &str, protocol: &str) -> BTreeMap<String, u64> {
    let head = format!("{protocol}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&head));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Parses `/proc/net/softnet_stat`: a line per core, columns in hexadecimal.
pub fn parse_softnet(text: &str) -> ReceiveBacklog {
    let mut all = ReceiveBacklog::default();
    for line in text.lines() {
        let mut columns = line
            .split_ascii_whitespace()
            .map(|column| u64::from_str_radix(column, 16).unwrap_or(0));
        let mut next = || columns.next().unwrap_or(0);
        all.processed = all.processed.saturating_add(next());
        all.dropped = all.dropped.saturating_add(next());
        all.squeezed = all.squeezed.saturating_add(next());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snmp_files_have_two_lines_per_protocol() {
        let text = "Ip: Forwarding InHdrErrors Odd\nIp: 1 7 -1\nIcmp: InMsgs\nIcmp: 3\n";
        let ip = parse_snmp(text, "Ip");
        assert_eq!(ip, [("Forwarding".into(), 1), ("InHdrErrors".into(), 7)].into());
        assert_eq!(parse_snmp(text, "Icmp").get("InMsgs"), Some(&3));
        assert!(parse_snmp("Ip: OnlyNames", "Ip").is_empty());
        assert!(parse_snmp("", "Ip").is_empty());
    }

    #[test]
    fn softnet_files_are_hexadecimal_and_per_core() {
        let text = "0000000a 00000001 00000002 0\n00000010 00000002 00000000 0\n\nzz\n";
        assert_eq!(parse_softnet(text), ReceiveBacklog { processed: 26, dropped: 3, squeezed: 2 });
    }

    #[test]
    fn losses_are_counter_differences_for_each_interface_and_counter() {
        let socket = |inode, dropped| SocketLoss { inode, interface: "p1".to_owned(), dropped };
        let link = |dropped| LinkCounters { transmit_dropped: dropped, ..Default::default() };
        let before = Account {
            links: [("p1".to_owned(), link(5))].into(),
            sockets: vec![socket(1, u32::MAX), socket(2, 7)],
            ..Account::default()
        };
        let after = Account {
            links: [("p1".to_owned(), link(9)), ("p2".to_owned(), link(0))].into(),
            sockets: vec![socket(1, 2), socket(3, 4)],
            ip: [("OutNoRoutes".to_owned(), 6), ("InReceives".to_owned(), 8)].into(),
            ..Account::default()
        };
        let losses = after.since(&before).losses();
        let expected =
            [("p1 transmit_dropped", 4), ("p1 socket_dropped", 7), ("ip OutNoRoutes", 6)];
        let expected = expected.map(|(place, count)| (place.to_owned(), count));
        assert_eq!(losses, expected.into());
    }
}
