//! Action types of each version.
//!
//! Source: `ofp_action_type` of the OpenFlow Switch Specifications 1.0.0 to 1.5.1.

use std::fmt;

use packet::field::Field;

use super::{NO, VERSIONS, Version};

table! {
    /// An action type (`ofp_action_type`).
    ///
    /// 1.0 and 1.1 have an action for each field; from 1.2 on `set_field` replaces them.
    ActionKind: u16 {
        //                                                 1.0     1.1     1.2     1.3     1.4     1.5
        /// Sends the frame out of a port.
        Output "output"                                   [0,      0,      0,      0,      0,      0];
        /// Sets the VLAN ID; 1.0 adds a tag if there is none.
        SetVlanVid "set_vlan_vid"                         [1,      1,      NO,     NO,     NO,     NO];
        /// Sets the VLAN priority; 1.0 adds a tag if there is none.
        SetVlanPcp "set_vlan_pcp"                         [2,      2,      NO,     NO,     NO,     NO];
        /// Removes the outermost VLAN tag, if there is one.
        PopVlan "pop_vlan"                                [3,      18,     18,     18,     18,     18];
        /// Sets the Ethernet source address.
        SetEthSrc "set_eth_src"                           [4,      3,      NO,     NO,     NO,     NO];
        /// Sets the Ethernet destination address.
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
        /// Sets the two ECN bits.
        SetIpEcn "set_ip_ecn"                             [NO,     8,      NO,     NO,     NO,     NO];
        /// Copies the TTL outwards.
        CopyTtlOut "copy_ttl_out"                         [NO,     11,     11,     11,     11,     11];
        /// Copies the TTL inwards.
        CopyTtlIn "copy_ttl_in"                           [NO,     12,     12,     12,     12,     12];
        /// Sets the label of the outermost MPLS label stack entry.
        SetMplsLabel "set_mpls_label"                     [NO,     13,     NO,     NO,     NO,     NO];
        /// Sets the traffic class of the outermost MPLS label stack entry.
        SetMplsTc "set_mpls_tc"                           [NO,     14,     NO,     NO,     NO,     NO];
        /// Sets the TTL of the outermost MPLS label stack entry.
        SetMplsTtl "set_mpls_ttl"                         [NO,     15,     15,     15,     15,     15];
        /// Decrements the TTL of the outermost MPLS label stack entry.
        DecMplsTtl "dec_mpls_ttl"                         [NO,     16,     16,     16,     16,     16];
        /// Adds a VLAN tag.
        PushVlan "push_vlan"                              [NO,     17,     17,     17,     17,     17];
        /// Adds an MPLS label stack entry.
        PushMpls "push_mpls"                              [NO,     19,     19,     19,     19,     19];
        /// Removes the outermost MPLS label stack entry.
        PopMpls "pop_mpls"                                [NO,     20,     20,     20,     20,     20];
        /// Selects the queue of later outputs.
        SetQueue "set_queue"                              [NO,     21,     21,     21,     21,     21];
        /// Processes the frame in a group.
        Group "group"                                     [NO,     22,     22,     22,     22,     22];
        /// Sets the IP TTL.
        SetNwTtl "set_nw_ttl"                             [NO,     23,     23,     23,     23,     23];
        /// Decrements the IP TTL.
        DecNwTtl "dec_nw_ttl"                             [NO,     24,     24,     24,     24,     24];
        /// Sets a field.
        SetField "set_field"                              [NO,     NO,     25,     25,     25,     25];
        /// Adds a PBB tag.
        PushPbb "push_pbb"                                [NO,     NO,     NO,     26,     26,     26];
        /// Removes the outermost PBB tag.
        PopPbb "pop_pbb"                                  [NO,     NO,     NO,     27,     27,     27];
        /// Copies bits from one field to another.
        CopyField "copy_field"                            [NO,     NO,     NO,     NO,     NO,     28];
        /// Applies a meter to the frame; an instruction before 1.5.
        Meter "meter"                                     [NO,     NO,     NO,     NO,     NO,     29];
        /// An experimenter action; "vendor" in 1.0.
        Experimenter "experimenter"                       [0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff];
    }
}

impl ActionKind {
    /// Returns the action that sets this field in 1.0 and 1.1, if there is one.
    pub(crate) fn of_field(version: Version, field: Field) -> Option<ActionKind> {
        let kind = match field {
            // 1.0 adds a missing tag; 1.1 modifies an existing one only.
            Field::VlanVid if version != Version::V1_0 => ActionKind::SetVlanVid,
            Field::VlanPcp if version != Version::V1_0 => ActionKind::SetVlanPcp,
            Field::EthSrc => ActionKind::SetEthSrc,
            Field::EthDst => ActionKind::SetEthDst,
            Field::Ipv4Src => ActionKind::SetIpSrc,
            Field::Ipv4Dst => ActionKind::SetIpDst,
            Field::IpDscp => ActionKind::SetIpDscp,
            Field::IpEcn => ActionKind::SetIpEcn,
            Field::MplsLabel => ActionKind::SetMplsLabel,
            Field::MplsTc => ActionKind::SetMplsTc,
            _ => return None,
        };
        kind.code(version).map(|_| kind)
    }
}
