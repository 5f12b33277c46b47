//! Which actions each version has.
//!
//! Source: `ofp_action_type` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1.

use std::fmt;

use super::{NO, VERSIONS, Version};

table! {
    /// A kind of action (`ofp_action_type`). From 1.2 on the header changes are one action,
    /// `set_field`, with the field inside: they have no code of their own there.
    ActionKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Sends the frame out of a port.
        Output "output"                                   [0,      0,      0,      0,      0,      0];
        /// Sets the VLAN id, adding a tag if there is none (in 1.0).
        SetVlanVid "set_vlan_vid"                         [1,      1,      NO,     NO,     NO,     NO];
        /// Sets the VLAN priority, adding a tag if there is none (in 1.0).
        SetVlanPcp "set_vlan_pcp"                         [2,      2,      NO,     NO,     NO,     NO];
        /// Removes the outermost VLAN tag, if there is one.
        StripVlan "strip_vlan"                            [3,      18,     18,     18,     18,     18];
        /// Sets the source address.
        SetEthSrc "set_eth_src"                           [4,      3,      NO,     NO,     NO,     NO];
        /// Sets the destination address.
        SetEthDst "set_eth_dst"                           [5,      4,      NO,     NO,     NO,     NO];
        /// Sets the IPv4 source address.
        SetIpSrc "set_ip_src"                             [6,      5,      NO,     NO,     NO,     NO];
        /// Sets the IPv4 destination address.
        SetIpDst "set_ip_dst"                             [7,      6,      NO,     NO,     NO,     NO];
        /// Sets the six DSCP bits.
        SetIpDscp "set_ip_dscp"                           [8,      7,      NO,     NO,     NO,     NO];
        /// Sets the TCP or UDP source port, or the ICMP type.
        SetTransportSrc "set_transport_src"               [9,      9,      NO,     NO,     NO,     NO];
        /// Sets the TCP or UDP destination port, or the ICMP code.
        SetTransportDst "set_transport_dst"               [10,     10,     NO,     NO,     NO,     NO];
        /// Sends the frame through a queue of a port.
        Enqueue "enqueue"                                 [11,     NO,     NO,     NO,     NO,     NO];
        /// An action that somebody else defines; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}
