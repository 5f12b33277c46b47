//! Styles of access lists as shares in percent, and rules drawn from them.

use super::{ALL_PORTS, Rule};
use crate::mixed;
use crate::parameter::Style;
use crate::prefixes::mask;

/// Alternatives, each with its share in percent.
type Shares<T> = &'static [(u32, T)];

/// Kind of a port range.
#[derive(Debug, Clone, Copy)]
enum Ports {
    /// All.
    Any,
    /// A well-known one.
    One,
    /// 1024 and up.
    High,
    /// Below 1024.
    Low,
    /// A random range.
    Range,
}

use Ports::{Any, High, Low, One, Range};

/// Parameters of a style.
struct Shape {
    /// Prefix lengths of source and destination: minimum and maximum of each.
    lengths: Shares<([u8; 2], [u8; 2])>,
    protocols: Shares<Option<u8>>,
    /// Of source and destination.
    ports: Shares<(Ports, Ports)>,
    /// Percentage of nodes in the address tree with two children, by eighth of the depth.
    branching: [u64; 4],
    /// Percentage of walks that take the more frequent child of such a node.
    skew: u64,
}

const TCP: Option<u8> = Some(6);
const UDP: Option<u8> = Some(17);
const ICMP: Option<u8> = Some(1);

const ACL: Shape = Shape {
    lengths: &[
        (38, ([22, 32], [32, 32])),
        (22, ([16, 24], [32, 32])),
        (16, ([23, 32], [22, 31])),
        (12, ([16, 24], [16, 24])),
        (6, ([32, 32], [32, 32])),
        (4, ([0, 0], [27, 32])),
        (2, ([24, 32], [0, 8])),
    ],
    protocols: &[(78, TCP), (12, UDP), (3, ICMP), (7, None)],
    ports: &[
        (44, (Any, One)),
        (32, (Any, Any)),
        (16, (Any, Range)),
        (6, (Any, High)),
        (2, (Any, Low)),
    ],
    branching: [30, 40, 50, 45],
    skew: 72,
};

const FW: Shape = Shape {
    lengths: &[
        (24, ([0, 0], [32, 32])),
        (20, ([32, 32], [0, 0])),
        (14, ([32, 32], [32, 32])),
        (12, ([16, 24], [32, 32])),
        (10, ([32, 32], [16, 24])),
        (8, ([0, 0], [16, 28])),
        (6, ([16, 28], [0, 0])),
        (6, ([20, 28], [20, 28])),
    ],
    protocols: &[(56, TCP), (26, UDP), (8, ICMP), (10, None)],
    ports: &[
        (44, (Any, One)),
        (14, (Any, Any)),
        (12, (High, One)),
        (10, (Any, Range)),
        (8, (High, High)),
        (6, (One, Any)),
        (3, (One, One)),
        (2, (Any, High)),
        (1, (Low, Any)),
    ],
    branching: [50, 55, 60, 60],
    skew: 62,
};

const IPC: Shape = Shape {
    lengths: &[
        (26, ([32, 32], [32, 32])),
        (20, ([20, 31], [20, 31])),
        (14, ([0, 0], [26, 32])),
        (12, ([26, 32], [0, 0])),
        (12, ([16, 24], [28, 32])),
        (10, ([28, 32], [16, 24])),
        (4, ([8, 16], [8, 16])),
        (2, ([0, 8], [0, 8])),
    ],
    protocols: &[(52, TCP), (26, UDP), (10, ICMP), (12, None)],
    ports: &[
        (40, (Any, One)),
        (26, (Any, Any)),
        (10, (One, Any)),
        (8, (One, One)),
        (8, (Any, Range)),
        (4, (High, One)),
        (3, (Any, High)),
        (1, (Low, Low)),
    ],
    branching: [45, 55, 60, 50],
    skew: 65,
};

/// Ports that lists often contain.
const NAMED: [u16; 20] = [
    80, 443, 53, 25, 22, 21, 23, 110, 143, 161, 123, 389, 445, 135, 139, 1433, 1521, 3306, 3389,
    8080,
];

/// Draws one rule of a style; repeated draws may give the same rule.
pub(super) fn draw(style: Style, seed: u64, draw: u64) -> Rule {
    let shape = match style {
        Style::Acl => &ACL,
        Style::Fw => &FW,
        Style::Ipc => &IPC,
    };
    let bits = |salt: u64| mixed(mixed(seed ^ draw) ^ salt);
    let (source, destination) = *pick(shape.lengths, bits(1));
    let protocol = *pick(shape.protocols, bits(2));
    let ports = match protocol {
        TCP | UDP => *pick(shape.ports, bits(3)),
        _ => (Any, Any),
    };
    let prefix = |lengths: [u8; 2], tree: u64| {
        let [least, most] = lengths.map(u64::from);
        let length = (least + bits(tree) % (most - least + 1)) as u8;
        (walk(shape, mixed(seed ^ tree), bits(tree + 1)) & mask(length), length)
    };
    Rule {
        source: prefix(source, 10),
        destination: prefix(destination, 20),
        protocol,
        source_ports: range(ports.0, bits(4)),
        destination_ports: range(ports.1, bits(5)),
    }
}

fn pick<T>(shares: Shares<T>, bits: u64) -> &'static T {
    let all: u32 = shares.iter().map(|(share, _)| share).sum();
    let mut left = (bits % u64::from(all)) as u32;
    for (share, what) in shares {
        match left.checked_sub(*share) {
            Some(rest) => left = rest,
            None => return what,
        }
    }
    unreachable!("the remainder is less than the sum of all shares")
}

/// Returns an address: 32 steps down the tree, in which each node is the same for all walks.
fn walk(shape: &Shape, tree: u64, draw: u64) -> u32 {
    // The first bits give an address that a host can have.
    let mut address = 0u32;
    for depth in 0..32u32 {
        let node = mixed(tree ^ u64::from(address) << 6 ^ u64::from(depth));
        let heavier = (node >> 32) as u32 & 1;
        let branches = node % 100 < shape.branching[depth as usize / 8];
        let to_lighter = branches && mixed(draw ^ u64::from(depth)) % 100 >= shape.skew;
        address = address << 1 | heavier ^ u32::from(to_lighter);
    }
    address
}

fn range(ports: Ports, bits: u64) -> (u16, u16) {
    match ports {
        Any => ALL_PORTS,
        High => (1024, u16::MAX),
        Low => (0, 1023),
        One => {
            // Half of them are of the few that most lists contain.
            let named = NAMED[(bits >> 8) as usize % NAMED.len()];
            let port = if bits & 1 == 0 { named } else { 1 + (bits >> 8) as u16 % 20_000 };
            (port, port)
        }
        Range => {
            // Half of them are short and begin anywhere, half are blocks of some hundreds.
            let (place, length) = (1024 + (bits >> 8) % 40_000, bits >> 40);
            let (first, length) = match bits & 1 {
                0 => (place, 2 + length % 30),
                _ => (place / 100 * 100, 100 * (1 + length % 9)),
            };
            (first as u16, (first + length - 1) as u16)
        }
    }
}
