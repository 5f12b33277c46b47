//! Forms of messages, actions and instructions: an example of each, for the reference and its
//! tests.
//!
//! Invariant: every kind that a controller can send has an example here, and every example is a
//! message.

use openflow::version::{ActionKind, End, InstructionKind, MessageKind, MultipartKind};

/// Returns an example of a message that a controller sends; `None` for messages that only a switch
/// sends.
pub fn message(kind: MessageKind) -> Option<&'static str> {
    Some(match kind {
        MessageKind::Hello => r#"{"type": "hello", "versions": 16}"#,
        MessageKind::Error => {
            r#"{"type": "error", "code": "bad_request/bad_type", "data": "04ff000800000001"}"#
        }
        MessageKind::EchoRequest => r#"{"type": "echo_request", "data": "00ff"}"#,
        MessageKind::EchoReply => r#"{"type": "echo_reply", "data": "00ff"}"#,
        MessageKind::Experimenter => {
            r#"{"type": "experimenter", "experimenter": 8992, "body": "0000000a"}"#
        }
        MessageKind::FeaturesRequest => r#"{"type": "features_request"}"#,
        MessageKind::GetConfigRequest => r#"{"type": "get_config_request"}"#,
        MessageKind::SetConfig => {
            r#"{"type": "set_config", "miss_send_len": 128, "fragments": "normal", "invalid_ttl_to_controller": false}"#
        }
        MessageKind::PacketOut => {
            r#"{"type": "packet_out", "in_port": "controller", "actions": [{"output": 2}], "data": "ffffffffffff0200000000010800", "buffer_id": null, "fields": {}}"#
        }
        MessageKind::FlowMod => {
            r#"{"type": "flow_mod", "command": "add", "table": 0, "match": {"eth_type": 2048, "ipv4_dst": "10.0.0.0/8"}, "priority": 32768, "cookie": 7, "cookie_mask": 0, "idle_timeout_s": 0, "hard_timeout_s": 0, "out_port": "none", "out_group": "any", "importance": 0, "flags": ["send_flow_removed"], "actions": [{"output": {"port": "controller", "max_len": 128}}]}"#
        }
        MessageKind::PortMod => {
            r#"{"type": "port_mod", "port": 1, "mac": "02:00:00:00:00:01", "config": ["port_down"], "mask": ["port_down"], "advertise": ["1g_full"]}"#
        }
        MessageKind::MultipartRequest => {
            r#"{"type": "multipart_request", "of": "flow", "table": "all", "match": {}, "more": false}"#
        }
        MessageKind::BarrierRequest => r#"{"type": "barrier_request"}"#,
        MessageKind::QueueGetConfigRequest => r#"{"type": "queue_get_config_request", "port": 1}"#,
        MessageKind::GroupMod => {
            r#"{"type": "group_mod", "command": "add", "group_type": "select", "group": 1, "buckets": [{"weight": 1, "actions": [{"output": 2}]}, {"weight": 3, "watch_port": 3, "actions": [{"output": 3}]}]}"#
        }
        MessageKind::TableMod => {
            r#"{"type": "table_mod", "table": "all", "miss": "controller", "eviction": true, "eviction_flags": ["lifetime"], "vacancy_events": true, "vacancy": {"down": 10, "up": 20}}"#
        }
        MessageKind::RoleRequest => {
            r#"{"type": "role_request", "role": "master", "generation": 1, "short_id": 0}"#
        }
        MessageKind::GetAsyncRequest => r#"{"type": "get_async_request"}"#,
        MessageKind::SetAsync => {
            r#"{"type": "set_async", "master": {"packet_in": [0, 1], "flow_removed": [0, 1, 2, 3]}, "slave": {"port_status": [0, 1, 2]}}"#
        }
        MessageKind::MeterMod => {
            r#"{"type": "meter_mod", "command": "add", "meter": 1, "flags": ["kbps", "burst", "stats"], "bands": [{"band": "drop", "rate": 1000, "burst": 100}, {"band": "dscp_remark", "rate": 500, "levels": 1}]}"#
        }
        MessageKind::BundleControl => {
            r#"{"type": "bundle_control", "bundle": 1, "command": "open", "flags": ["atomic", "ordered"]}"#
        }
        MessageKind::BundleAddMessage => {
            r#"{"type": "bundle_add", "bundle": 1, "flags": ["atomic", "ordered"], "message": {"type": "flow_mod", "actions": [{"output": 2}]}}"#
        }
        _ => {
            debug_assert!(kind.sender() == Some(End::Switch), "{kind} needs an example");
            return None;
        }
    })
}

/// Returns an example of an action.
pub fn action(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Output => r#"{"output": {"port": "controller", "max_len": 128}}"#,
        ActionKind::Group => r#"{"group": 1}"#,
        ActionKind::SetQueue => r#"{"set_queue": 1}"#,
        ActionKind::Enqueue => r#"{"enqueue": [2, 1]}"#,
        ActionKind::SetField => r#"{"set_field": {"ipv4_dst": "10.0.0.1"}}"#,
        ActionKind::CopyField => {
            r#"{"copy_field": {"bits": 32, "src": "ipv4_src", "src_offset": 0, "dst": "metadata", "dst_offset": 0}}"#
        }
        ActionKind::PushVlan => r#"{"push_vlan": 33024}"#,
        ActionKind::PopVlan => r#""pop_vlan""#,
        ActionKind::PushMpls => r#"{"push_mpls": 34887}"#,
        ActionKind::PopMpls => r#"{"pop_mpls": 2048}"#,
        ActionKind::PushPbb => r#"{"push_pbb": 35047}"#,
        ActionKind::PopPbb => r#""pop_pbb""#,
        ActionKind::CopyTtlOut => r#""copy_ttl_out""#,
        ActionKind::CopyTtlIn => r#""copy_ttl_in""#,
        ActionKind::SetMplsLabel => r#"{"set_mpls_label": 16}"#,
        ActionKind::SetMplsTc => r#"{"set_mpls_tc": 5}"#,
        ActionKind::SetMplsTtl => r#"{"set_mpls_ttl": 64}"#,
        ActionKind::DecMplsTtl => r#""dec_mpls_ttl""#,
        ActionKind::SetNwTtl => r#"{"set_nw_ttl": 64}"#,
        ActionKind::DecNwTtl => r#""dec_nw_ttl""#,
        ActionKind::Meter => r#"{"meter": 1}"#,
        ActionKind::SetEthSrc => r#"{"set_eth_src": "02:00:00:00:00:01"}"#,
        ActionKind::SetEthDst => r#"{"set_eth_dst": "02:00:00:00:00:02"}"#,
        ActionKind::SetIpSrc => r#"{"set_ip_src": "10.0.0.1"}"#,
        ActionKind::SetIpDst => r#"{"set_ip_dst": "10.0.0.2"}"#,
        ActionKind::SetIpDscp => r#"{"set_ip_dscp": 46}"#,
        ActionKind::SetIpEcn => r#"{"set_ip_ecn": 1}"#,
        ActionKind::SetVlanVid => r#"{"set_vlan_vid": 7}"#,
        ActionKind::SetVlanPcp => r#"{"set_vlan_pcp": 5}"#,
        ActionKind::SetTransportSrc => r#"{"set_transport_src": 80}"#,
        ActionKind::SetTransportDst => r#"{"set_transport_dst": 80}"#,
        ActionKind::Experimenter => {
            r#"{"experimenter": {"experimenter": 8992, "body": "000a000000000000"}}"#
        }
    }
}

/// Returns an example of an instruction.
pub fn instruction(kind: InstructionKind) -> &'static str {
    match kind {
        InstructionKind::GotoTable => r#"{"goto_table": 1}"#,
        InstructionKind::WriteMetadata => r#"{"write_metadata": [7, 255]}"#,
        InstructionKind::WriteActions => r#"{"write_actions": [{"output": 2}]}"#,
        InstructionKind::ApplyActions => r#"{"apply_actions": [{"output": 2}]}"#,
        InstructionKind::ClearActions => r#""clear_actions""#,
        InstructionKind::Meter => r#"{"meter": 1}"#,
        InstructionKind::StatTrigger => {
            r#"{"stat_trigger": {"flags": ["periodic"], "packets": 1000}}"#
        }
        InstructionKind::Experimenter => {
            r#"{"experimenter": {"experimenter": 8992, "body": "000a000000000000"}}"#
        }
    }
}

/// Returns an example of a multipart request.
pub fn multipart(kind: MultipartKind) -> &'static str {
    match kind {
        MultipartKind::Desc => r#"{"type": "multipart_request", "of": "desc"}"#,
        MultipartKind::Flow => {
            r#"{"type": "multipart_request", "of": "flow", "match": {"in_port": 1}}"#
        }
        MultipartKind::Aggregate => {
            r#"{"type": "multipart_request", "of": "aggregate", "cookie": 7, "cookie_mask": 255}"#
        }
        MultipartKind::Table => r#"{"type": "multipart_request", "of": "table"}"#,
        MultipartKind::Port => r#"{"type": "multipart_request", "of": "port", "port": 1}"#,
        MultipartKind::Queue => {
            r#"{"type": "multipart_request", "of": "queue", "port": 1, "queue": "all"}"#
        }
        MultipartKind::Group => r#"{"type": "multipart_request", "of": "group", "group": "all"}"#,
        MultipartKind::GroupDesc => r#"{"type": "multipart_request", "of": "group_desc"}"#,
        MultipartKind::GroupFeatures => r#"{"type": "multipart_request", "of": "group_features"}"#,
        MultipartKind::Meter => r#"{"type": "multipart_request", "of": "meter", "meter": "all"}"#,
        MultipartKind::MeterConfig => {
            r#"{"type": "multipart_request", "of": "meter_config", "meter": 1}"#
        }
        MultipartKind::MeterFeatures => r#"{"type": "multipart_request", "of": "meter_features"}"#,
        MultipartKind::TableFeatures => {
            r#"{"type": "multipart_request", "of": "table_features", "tables": [{"table": 0, "name": "first", "entries_max": 100, "properties": [{"property": "match", "ids": ["ipv4_dst/mask"]}, {"property": "actions", "when": "apply", "ids": ["output"]}]}]}"#
        }
        MultipartKind::PortDesc => r#"{"type": "multipart_request", "of": "port_desc"}"#,
        MultipartKind::TableDesc => r#"{"type": "multipart_request", "of": "table_desc"}"#,
        MultipartKind::QueueDesc => {
            r#"{"type": "multipart_request", "of": "queue_desc", "port": 1}"#
        }
        MultipartKind::FlowMonitor => {
            r#"{"type": "multipart_request", "of": "flow_monitor", "monitors": [{"monitor": 1, "command": "add", "flags": ["initial", "add", "removed"], "table": "all"}]}"#
        }
        MultipartKind::FlowStats => r#"{"type": "multipart_request", "of": "flow_stats"}"#,
        MultipartKind::ControllerStatus => {
            r#"{"type": "multipart_request", "of": "controller_status"}"#
        }
        MultipartKind::BundleFeatures => {
            r#"{"type": "multipart_request", "of": "bundle_features", "flags": ["timestamp"], "time": {"accuracy": {"s": 0, "ns": 1000}}}"#
        }
        MultipartKind::Experimenter => {
            r#"{"type": "multipart_request", "of": "experimenter", "experimenter": 8992, "body": "00000001"}"#
        }
    }
}
