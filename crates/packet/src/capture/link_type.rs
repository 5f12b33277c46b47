//! Names of common link types other than Ethernet, from the registry of
//! draft-ietf-opsawg-pcaplinktype.

/// Link type of Ethernet.
pub const ETHERNET: u16 = 1;

const NAMES: &[(u16, &str)] = &[
    (0, "BSD loopback"),
    (6, "Token Ring"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP in HDLC"),
    (51, "PPP over Ethernet session"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "Frame Relay"),
    (108, "OpenBSD loopback"),
    (113, "Linux cooked capture"),
    (117, "OpenBSD packet filter log"),
    (119, "IEEE 802.11 with Prism header"),
    (127, "IEEE 802.11 with radiotap header"),
    (187, "Bluetooth HCI"),
    (189, "Linux USB"),
    (192, "per-packet information"),
    (195, "IEEE 802.15.4"),
    (201, "Bluetooth HCI with direction"),
    (220, "Linux USB, mapped"),
    (227, "CAN"),
    (228, "raw IPv4"),
    (229, "raw IPv6"),
    (239, "netfilter log"),
    (247, "InfiniBand"),
    (249, "USBPcap"),
    (252, "Wireshark upper PDU"),
    (253, "netlink"),
    (276, "Linux cooked capture, version 2"),
];

/// Returns the name of a link type.
pub fn name(number: u16) -> &'static str {
    match number {
        ETHERNET => "Ethernet",
        147..=162 => "private use",
        _ => NAMES.iter().find(|(known, _)| *known == number).map_or("unknown here", |row| row.1),
    }
}
