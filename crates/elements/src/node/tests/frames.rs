//! Tests of packet-ins and packet-outs.

use openflow::model::{PacketIn, PacketInReason, PacketOut, SwitchConfig, reserved};

use super::*;

fn packet_ins(rig: &mut Rig, who: usize) -> Vec<PacketIn> {
    let news = rig.news(who).into_iter().map(|message| match message {
        Message::PacketIn(packet) => packet,
        other => panic!("unexpected {other}"),
    });
    news.collect()
}

fn out(buffer_id: Option<u32>, in_port: u32, port: u32, data: &[u8]) -> Message {
    let (actions, data) = (vec![Action::output(port)], data.to_vec());
    Message::PacketOut(PacketOut { buffer_id, in_port, actions, data, ..PacketOut::default() })
}

#[test]
fn a_table_miss_buffers_the_frame_and_sends_its_first_bytes() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.arrive(3, &udp(0, 1000));
    let packet = packet_ins(&mut rig, 0).remove(0);
    assert_eq!((packet.in_port, packet.frame_bytes), (3, 1000));
    assert_eq!(packet.reason, PacketInReason::NoMatch);
    assert_eq!(packet.data, udp(0, 1000)[..128]);
    let id = packet.buffer_id.expect("the frame is buffered");
    rig.order(&out(Some(id), reserved::NONE, 2, &[]));
    assert_eq!(rig.left(2), [udp(0, 1000)]);
    let again = out(Some(id), reserved::NONE, 2, &[]);
    assert_eq!(rig.refused(&again).0, ErrorCode::RequestBufferEmpty);
    let unknown = out(Some(id + 1), reserved::NONE, 2, &[]);
    assert_eq!(rig.refused(&unknown).0, ErrorCode::RequestBufferUnknown);
    assert!(rig.left(2).is_empty());
}

#[test]
fn each_controller_receives_its_configured_length() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.connect(1 << 20);
    let config = SwitchConfig { miss_send_bytes: 20, ..SwitchConfig::default() };
    rig.order(&Message::SetConfig(config));
    assert_eq!(rig.ask(0, &Message::GetConfigRequest), [Message::GetConfigReply(config)]);
    rig.arrive(1, &udp(0, 500));
    let (first, second) = (packet_ins(&mut rig, 0).remove(0), packet_ins(&mut rig, 1).remove(0));
    assert_eq!((first.data.len(), second.data.len()), (20, 128));
    assert_eq!(first.buffer_id, second.buffer_id);
}

#[test]
fn an_output_to_the_controller_has_its_own_length() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let actions = vec![Action::Output { port: reserved::CONTROLLER, bytes_max: 33 }];
    rig.order(&Message::FlowMod(FlowMod::add(exact(0), PRIORITY_DEFAULT, actions)));
    rig.arrive(1, &udp(0, 500));
    let packet = packet_ins(&mut rig, 0).remove(0);
    assert_eq!((packet.reason, packet.data.len()), (PacketInReason::Action, 33));
}

#[test]
fn without_a_free_buffer_the_complete_frame_is_sent() {
    let settings = OpenFlowConfig { buffers: 1, ..OpenFlowConfig::default() };
    let mut rig = Rig::connected(settings);
    rig.arrive(1, &udp(0, 500));
    rig.arrive(1, &udp(1, 500));
    let packets = packet_ins(&mut rig, 0);
    assert!(packets[0].buffer_id.is_some());
    assert_eq!((packets[1].buffer_id, packets[1].data.len()), (None, 500));
    rig.pass(Nanos::from_secs(1));
    rig.arrive(1, &udp(2, 500));
    let later = packet_ins(&mut rig, 0).remove(0);
    assert!(later.buffer_id.is_some() && later.buffer_id != packets[0].buffer_id);
    let stale = out(packets[0].buffer_id, reserved::NONE, 2, &[]);
    assert_eq!(rig.refused(&stale).0, ErrorCode::RequestBufferUnknown);
}

#[test]
fn a_flow_mod_applies_to_its_buffered_frame() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.arrive(1, &udp(0, 60));
    let buffer_id = packet_ins(&mut rig, 0).remove(0).buffer_id;
    rig.order(&Message::FlowMod(FlowMod { buffer_id, ..add(exact(0), 2) }));
    assert_eq!(rig.left(2), [udp(0, 60)]);
    let late = Message::FlowMod(FlowMod { buffer_id, ..add(exact(1), 3) });
    assert_eq!(rig.refused(&late).0, ErrorCode::RequestBufferEmpty);
    rig.arrive(1, &udp(1, 60));
    assert_eq!(rig.left(3).len(), 0, "a flow-mod takes effect completely or not at all");
}

#[test]
fn packet_out_supports_every_kind_of_port() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(exact(0), 3)));
    let frame = udp(0, 60);
    let none = reserved::NONE;
    for (in_port, port, left) in [
        (none, 1, [1, 0, 0]),
        (none, reserved::FLOOD, [1, 1, 1]),
        (1, reserved::FLOOD, [0, 1, 1]),
        (2, reserved::ALL, [1, 0, 1]),
        (2, reserved::IN_PORT, [0, 1, 0]),
        (2, 2, [0, 0, 0]),
        (1, reserved::TABLE, [0, 0, 1]),
    ] {
        rig.order(&out(None, in_port, port, &frame));
        let counts = [1, 2, 3].map(|port| rig.left(port).len());
        assert_eq!(counts, left, "in {in_port:#x} out {port:#x}");
    }
    rig.order(&out(None, none, reserved::CONTROLLER, &frame));
    let reported = packet_ins(&mut rig, 0).remove(0);
    assert_eq!((reported.in_port, reported.reason), (none, PacketInReason::Action));
    let nowhere = out(None, none, 9, &frame);
    assert_eq!(rig.refused(&nowhere).0, ErrorCode::ActionBadOutPort);
    let huge = out(None, none, 1, &[0; packet::frame::FRAME_BYTES_MAX + 1]);
    assert_eq!(rig.refused(&huge).0, ErrorCode::RequestBadLength);
}

#[test]
fn frames_of_a_packet_out_leave_before_the_barrier_reply() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.send(0, &out(None, reserved::NONE, 2, &udp(0, 60)));
    rig.send(0, &Message::BarrierRequest);
    let mut frames = 0;
    while rig.controllers[0].replies.is_empty() {
        rig.node.serve(rig.now);
        frames += rig.left(2).len();
        let now = rig.now;
        rig.controllers[0].step(now);
    }
    assert_eq!(frames, 1);
}

/// Returns a packet-out of 1.5 through the tables, with these pipeline fields in addition to the
/// port.
fn through_tables(in_port: u32, fields: Match, before: &[Action]) -> Message {
    let actions = [before, &[Action::output(reserved::TABLE)]].concat();
    let data = udp(0, 60);
    Message::PacketOut(PacketOut { in_port, fields, actions, data, ..PacketOut::default() })
}

#[test]
fn tables_match_the_pipeline_fields_of_a_packet_out() {
    let mut rig = Rig::speaking(Version::V1_5, OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(Match::ANY.with_masked(Field::Metadata, 0x70u8, 0xf0u8), 2)));
    rig.order(&Message::FlowMod(add(Match::ANY.with(Field::TunnelId, 5u8), 3)));
    rig.order(&Message::FlowMod(add(Match::ANY.with(Field::TunnelId, 6u8), reserved::CONTROLLER)));
    let tunnel = |id: u8| Match::ANY.with(Field::TunnelId, id);
    let set_tunnel = |id: u8| Action::SetField(model::FieldMatch::exact(Field::TunnelId, id));
    for (fields, before, left) in [
        (Match::ANY, None, [0, 0]),
        (Match::ANY.with(Field::Metadata, 0x7au8), None, [1, 0]),
        (Match::ANY.with(Field::Metadata, 0x1_007au32), None, [1, 0]),
        (Match::ANY.with(Field::Metadata, 0x8au8), None, [0, 0]),
        (tunnel(5), None, [0, 1]),
        (tunnel(5), Some(set_tunnel(4)), [0, 0]),
        (tunnel(4), Some(set_tunnel(5)), [0, 1]),
        (Match::ANY.with(Field::PacketType, 0u8).with(Field::InPhyPort, 1u8), None, [0, 0]),
        (tunnel(5).with(Field::ActsetOutput, reserved::UNSET), None, [0, 1]),
    ] {
        rig.order(&through_tables(1, fields.clone(), before.as_slice()));
        assert_eq!([2, 3].map(|port| rig.left(port).len()), left, "{fields} {before:?}");
    }
    rig.order(&through_tables(1, tunnel(6).with(Field::Metadata, 9u8), &[]));
    let reported = packet_ins(&mut rig, 0).remove(0);
    assert_eq!(
        reported.fields,
        tunnel(6).with(Field::Metadata, 9u8),
        "the packet-in has its fields"
    );
    rig.arrive(1, &udp(0, 60));
    assert_eq!([2, 3].map(|port| rig.left(port).len()), [0, 0], "other frames have none of them");
}

#[test]
fn a_buffered_frame_gets_the_pipeline_fields_of_the_packet_out() {
    let mut rig = Rig::speaking(Version::V1_5, OpenFlowConfig::default());
    let to_controller = Action::Output { port: reserved::CONTROLLER, bytes_max: 60 };
    rig.order(&Message::FlowMod(FlowMod::add(from_port(1), 1, vec![to_controller])));
    rig.order(&Message::FlowMod(add(Match::ANY.with(Field::Metadata, 7u8), 2)));
    rig.arrive(1, &udp(0, 500));
    let buffer_id = packet_ins(&mut rig, 0).remove(0).buffer_id;
    let again = PacketOut {
        buffer_id,
        in_port: 3,
        fields: Match::ANY.with(Field::Metadata, 7u8),
        actions: vec![Action::output(reserved::TABLE)],
        ..PacketOut::default()
    };
    rig.order(&Message::PacketOut(again));
    assert_eq!(rig.left(2), [udp(0, 500)]);
}

#[test]
fn a_packet_out_with_other_fields_is_rejected() {
    let mut rig = Rig::speaking(Version::V1_5, OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(Match::ANY, 2)));
    for (in_port, fields, code) in [
        (1, Match::ANY.with(Field::EthType, 0x0800u16), ErrorCode::RequestPipelineFieldsOnly),
        (1, Match::ANY.with(Field::VlanVid, 0u8), ErrorCode::RequestPipelineFieldsOnly),
        (1, Match::ANY.with(Field::InPhyPort, 2u8), ErrorCode::RequestBadPort),
        (1, Match::ANY.with(Field::PacketType, 0x1_0800u32), ErrorCode::MatchBadValue),
        (reserved::NONE, Match::ANY.with(Field::Metadata, 1u8), ErrorCode::RequestBadPort),
        (reserved::TABLE, Match::ANY, ErrorCode::RequestBadPort),
        (0x1_0000, Match::ANY, ErrorCode::RequestBadPort),
    ] {
        let order = through_tables(in_port, fields, &[]);
        assert_eq!(rig.refused(&order).0, code, "{order}");
    }
    assert!(rig.left(2).is_empty());
}
