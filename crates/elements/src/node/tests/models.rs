//! Tests of emulated hardware models in virtual time: each property against its value in the model.

use std::sync::Arc;

use openflow::model::FlowModCommand;
use openflow::model::bundle::{BundleAddMessage, BundleCommand, BundleControl, BundleFlags};
use openflow::model::multipart::{FlowStatsRequest, MultipartReplyBody, MultipartRequest};
use openflow::model::multipart::{MultipartReply, MultipartRequestBody};

use super::*;
use crate::config::BridgeConfig;
use crate::hardware_model::model::file;

const MS: u64 = 1_000_000;

/// Creates a connected switch that emulates a model with these values.
fn modelled(keys: &str) -> Rig {
    let mut rig = Rig::with(Kind::OpenFlow(OpenFlowConfig::default()), |config| {
        config.model = Some(model(keys));
    });
    rig.connect(1 << 20);
    rig
}

/// Creates a model from lines of `section.key = value`, each with a source.
fn model(keys: &str) -> Arc<crate::hardware_model::model::Model> {
    let mut text = "name = \"test\"\nabout = \"test\"\n".to_string();
    for line in keys.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let (key, value) = line.split_once('=').unwrap();
        text += &format!("{} = {{ value = {}, source = \"assumed\" }}\n", key.trim(), value.trim());
    }
    Arc::new(file::read(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}")))
}

impl Rig {
    /// Advances the clock to this time, stopping whenever the switch has work.
    fn until(&mut self, at: Nanos) {
        loop {
            self.settle_quickly();
            let next = self.node.next_event(self.now).filter(|next| *next > self.now);
            match next {
                Some(next) if next < at => self.now = next,
                _ => break,
            }
        }
        self.now = at;
        self.settle_quickly();
    }

    /// Advances the clock until the request has a reply. Returns the time and the reply.
    fn answered(&mut self, xid: Xid) -> (Nanos, Message) {
        loop {
            self.settle_quickly();
            let replies = &mut self.controllers[0].replies;
            if let Some(at) = replies.iter().position(|(of, _)| *of == xid) {
                return (self.now, replies.remove(at).1);
            }
            let next = self.node.next_event(self.now).expect("a reply arrives eventually");
            self.now = next.max(self.now);
        }
    }

    /// Advances the clock until a frame leaves through a port. Returns the time.
    fn leaves(&mut self, port: usize) -> Nanos {
        for _ in 0..10_000 {
            self.settle_quickly();
            if !self.left(port).is_empty() {
                return self.now;
            }
            let next = self.node.next_event(self.now).expect("a frame leaves eventually");
            self.now = next.max(self.now);
        }
        panic!("nothing leaves");
    }

    fn passes(&mut self, flow: u16) -> bool {
        self.arrive(1, &udp(flow, 60));
        !self.left(2).is_empty()
    }
}

fn flow(number: u16) -> Message {
    Message::FlowMod(add(exact(number), 2))
}

fn flow_stats() -> Message {
    let request = FlowStatsRequest::default();
    let body = MultipartRequestBody::Flow(request);
    Message::MultipartRequest(MultipartRequest { more: false, body })
}

#[test]
fn a_rule_is_active_when_written_and_an_early_barrier_reply_precedes_it() {
    for lead in [MS, 10 * MS, 400 * MS, 4_000 * MS] {
        let mut rig = modelled(&format!(
            "hardware.insert_ns = 2000000; hardware.activation_ns = {lead};
             barrier.answers = \"written\"; agent.flow_mod_ns = 300000"
        ));
        let start = rig.now;
        rig.send(0, &flow(0));
        let barrier = rig.send(0, &Message::BarrierRequest);
        let (at, reply) = rig.answered(barrier);
        assert_eq!((at.since(start), reply), (Nanos(2_300_000), Message::BarrierReply));
        rig.until(start + Nanos(2_300_000 + lead - 1));
        assert!(!rig.passes(0));
        rig.until(start + Nanos(2_300_000 + lead));
        assert!(rig.passes(0), "it is active {lead} ns after the barrier reply");
    }
}

#[test]
fn a_correct_barrier_reply_follows_the_activation() {
    let mut rig = modelled("hardware.insert_ns = 5000000; hardware.activation_ns = 1000000");
    let barrier = (0..20).map(|number| rig.send(0, &flow(number))).count();
    assert_eq!(barrier, 20);
    let barrier = rig.send(0, &Message::BarrierRequest);
    rig.until(rig.now + Nanos(101 * MS - 1));
    assert!((rig.passes(18), rig.passes(19)) == (true, false));
    let (at, _) = rig.answered(barrier);
    assert_eq!(at, Nanos::from_secs(1) + Nanos(101 * MS));
    assert!(rig.passes(19));
}

#[test]
fn frames_trigger_hardware_installation_and_use_the_last_entry_until_then() {
    let mut rig = modelled(
        "tiers.in_hardware = \"used\"; tiers.software = \"asks\"; tiers.link_pps = 1000;
         hardware.insert_ns = 2000000; barrier.answers = \"taken\"",
    );
    let last = FlowMod { priority: 0, ..add(Match::ANY, 3) };
    rig.send(0, &Message::FlowMod(last));
    rig.send(0, &flow(0));
    rig.until(rig.now + Nanos(5 * MS));
    let goes = |rig: &mut Rig| {
        rig.arrive(1, &udp(0, 60));
        [2, 3].map(|port| rig.left(port).len())
    };
    assert_eq!(goes(&mut rig), [0, 1], "no frame has requested the rule");
    // A millisecond over the link, and two to write the entry.
    rig.until(rig.now + Nanos(3 * MS - 1));
    assert_eq!(goes(&mut rig), [0, 1]);
    rig.until(rig.now + Nanos(1));
    assert_eq!(goes(&mut rig), [1, 0]);
    rig.until(rig.now + Nanos(50 * MS));
    assert_eq!([2, 3].map(|port| rig.left(port).len()), [0, 0], "no copy is sent");
}

#[test]
fn messages_take_agent_time_and_statistics_take_time_per_entry() {
    let mut rig = modelled(
        "agent.message_ns = 1000; agent.flow_mod_ns = 100000; agent.flow_stats_ns = 2000000;
         agent.flow_stats_rule_ns = 10000; agent.port_stats_ns = 7000000",
    );
    rig.until(rig.now + Nanos(MS));
    let start = rig.now;
    for number in 0..50 {
        rig.send(0, &flow(number));
    }
    let echo = rig.send(0, &Message::GetConfigRequest);
    let stats = rig.send(0, &flow_stats());
    let ports = MultipartRequestBody::Port(openflow::model::reserved::NONE);
    let ports = Message::MultipartRequest(MultipartRequest { more: false, body: ports });
    let ports = rig.send(0, &ports);
    let taken = 50 * 100_000 + 1_000;
    assert_eq!(rig.answered(echo).0.since(start), Nanos(taken));
    let listed = taken + 2_000_000 + 50 * 10_000;
    assert_eq!(rig.answered(stats).0.since(start), Nanos(listed));
    assert_eq!(rig.answered(ports).0.since(start), Nanos(listed + 7_000_000));
}

#[test]
fn counters_are_updated_when_they_are_read_from_hardware() {
    let packets = |rig: &mut Rig| {
        let stats = rig.send(0, &flow_stats());
        match rig.answered(stats).1 {
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::Flow(rows),
                ..
            }) => rows.iter().map(|row| row.packets).collect::<Vec<_>>(),
            other => panic!("{other}"),
        }
    };
    let mut rig = modelled("");
    rig.order(&flow(0));
    assert!(rig.passes(0) && rig.passes(0));
    assert_eq!(packets(&mut rig), [2]);
    rig.order(&flow(0));
    assert!(rig.passes(0));
    assert_eq!(packets(&mut rig), [1], "1.0 resets the counters");
    let mut stale = modelled("hardware.counters_ns = 1000000000");
    stale.order(&flow(0));
    assert!(stale.passes(0));
    assert_eq!(packets(&mut stale), [0]);
    stale.until(stale.now + Nanos(999 * MS));
    assert!(stale.passes(0));
    stale.until(Nanos::from_secs(2) - Nanos(1));
    assert_eq!(packets(&mut stale), [0]);
    stale.until(Nanos::from_secs(2));
    assert_eq!(packets(&mut stale), [2]);
}

#[test]
fn an_entry_with_hardware_traffic_is_not_idle() {
    let mut rig = modelled("");
    rig.order(&Message::FlowMod(FlowMod { idle_timeout_s: 2, ..add(exact(0), 2) }));
    for _ in 0..5 {
        rig.until(rig.now + Nanos(1_500 * MS));
        assert!(rig.passes(0));
    }
    rig.until(rig.now + Nanos(2_100 * MS));
    assert!(!rig.passes(0));
}

#[test]
fn each_kind_of_match_has_its_own_capacity() {
    let mut rig = modelled(
        "capacity.rules = 10; capacity.exact_rules = 3; capacity.wildcard_rules = 5; capacity.l2_rules = 1",
    );
    (0..3).for_each(|number| rig.order(&flow(number)));
    assert_eq!(rig.refused(&flow(3)).0, ErrorCode::FlowModTableFull);
    rig.order(&flow(2));
    let modify = FlowMod { command: FlowModCommand::Modify, ..add(Match::ANY, 3) };
    rig.order(&Message::FlowMod(modify));
    rig.order(&Message::FlowMod(add(from_port(1), 3)));
    let full = rig.refused(&Message::FlowMod(add(from_port(2), 3)));
    assert_eq!(full.0, ErrorCode::FlowModTableFull);
    let other = |port: u16| {
        let matching = Match::ANY.with(Field::EthType, 0x0800u16).with(Field::IpProto, 17u8);
        Message::FlowMod(add(matching.with(Field::UdpDst, port), 3))
    };
    (0..4).for_each(|port| rig.order(&other(port)));
    assert_eq!(rig.refused(&other(4)).0, ErrorCode::FlowModTableFull);
}

#[test]
fn a_bundle_has_the_same_capacity_as_single_messages() {
    let mut rig = Rig::with(Kind::OpenFlow(OpenFlowConfig::default()), |config| {
        config.model = Some(model("capacity.rules = 5"));
    });
    rig.connect_as(Version::V1_4, 1 << 20);
    let control = |command| {
        let (flags, properties) = (BundleFlags::ATOMIC, Vec::new());
        Message::BundleControl(BundleControl { id: 1, command, is_reply: false, flags, properties })
    };
    for (entries, fits) in [(6_u16, false), (5, true)] {
        rig.ask(0, &control(BundleCommand::Open));
        for number in 0..entries {
            let (message, properties) = (Box::new(flow(number)), Vec::new());
            let flags = BundleFlags::ATOMIC;
            rig.order(&Message::BundleAddMessage(BundleAddMessage {
                id: 1,
                flags,
                message,
                properties,
            }));
        }
        let replies = rig.ask(0, &control(BundleCommand::Commit));
        let is_done = matches!(replies[..], [Message::BundleControl(_)]);
        assert_eq!(is_done, fits, "{replies:?}");
        assert_eq!((rig.passes(0), rig.passes(4)), (fits, fits));
    }
}

#[test]
fn frames_take_the_time_of_their_path_and_its_queue_is_limited() {
    let mut rig = modelled(
        "path_hardware.latency_ns = 2500; path_hardware.capacity_pps = 1000000; path_hardware.queue_frames = 3",
    );
    rig.order(&flow(0));
    let start = rig.now;
    rig.arrive(1, &udp(0, 60));
    assert!(rig.left(2).is_empty());
    assert_eq!(rig.leaves(2).since(start), Nanos(1_000 + 2_500));
    let mut batch = Batch::new(10);
    (0..10).for_each(|_| assert!(batch.push_bytes(&udp(0, 60))));
    rig.wires[0].as_mut().unwrap().transmit(&mut batch, rig.now).unwrap();
    let mut count = 0;
    for _ in 0..40 {
        rig.until(rig.now + Nanos(500));
        count += rig.left(2).len();
    }
    assert_eq!(count, 4, "one is served and three wait");
    let counters = rig.node.forward.forwarder.behaviour().unwrap().counters();
    assert!(counters.contains(&("drops.path_full", 6)), "{counters:?}");
}

#[test]
fn searched_entries_and_rewrites_cost_the_time_of_their_path() {
    let mut rig = modelled(
        "tiers.in_hardware = \"exact\"; path_hardware.latency_ns = 1000; path_hardware.rule_ps = 2000000;
         path_hardware.rewrite_ns = 300; path_software.latency_ns = 5000; path_software.rule_ps = 100000;
         path_software.rewrite_ns = 70000",
    );
    (0..9).for_each(|number| rig.order(&flow(number)));
    let changed = |matching: Match, port: u32| {
        let to = [Action::set(Field::EthDst, 0x0200_0000_0009_u64), Action::output(port)];
        Message::FlowMod(FlowMod::add(matching, 7, to.to_vec()))
    };
    rig.order(&changed(exact(9), 2));
    rig.order(&changed(from_port(1), 3));
    let mut took = |number: u16, port: usize| {
        let start = rig.now;
        rig.arrive(1, &udp(number, 60));
        rig.leaves(port).since(start).0
    };
    assert_eq!(took(0, 2), 1_000 + 10 * 2_000, "ten entries are in hardware");
    assert_eq!(took(9, 2), 1_000 + 10 * 2_000 + 300);
    assert_eq!(took(10, 3), 5_000 + 11 * 100 + 70_000);
}

#[test]
fn wildcard_entries_are_processed_in_software_behind_a_link() {
    let mut rig = modelled(
        "tiers.in_hardware = \"exact\"; path_software.latency_ns = 500000; path_hardware.latency_ns = 1000",
    );
    rig.order(&flow(0));
    rig.order(&Message::FlowMod(add(from_port(1), 3)));
    let start = rig.now;
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.leaves(2).since(start), Nanos(1_000));
    let start = rig.now;
    rig.arrive(1, &udp(1, 60));
    assert_eq!(rig.leaves(3).since(start), Nanos(500_000));
}

#[test]
fn the_matched_layer_can_decide_between_hardware_and_software() {
    for (word, in_hardware) in [("layer2", [true, false]), ("layer3", [false, true])] {
        let mut rig = modelled(&format!(
            "tiers.in_hardware = \"{word}\"; path_software.latency_ns = 500000; path_hardware.latency_ns = 1000"
        ));
        let by_mac = Match::ANY.with(Field::EthType, 0x0800u16);
        let by_ip = by_mac.clone().with(Field::IpProto, 17u8);
        for (matching, is_fast) in [by_mac, by_ip].into_iter().zip(in_hardware) {
            rig.order(&Message::FlowMod(FlowMod::delete(0, Match::ANY)));
            rig.order(&Message::FlowMod(add(matching, 3)));
            let start = rig.now;
            rig.arrive(1, &udp(1, 60));
            let wanted = if is_fast { 1_000 } else { 500_000 };
            assert_eq!(rig.leaves(3).since(start), Nanos(wanted), "{word}");
        }
    }
}

#[test]
fn entries_beyond_the_hardware_capacity_stay_in_software() {
    let mut rig = modelled(
        "tiers.in_hardware = \"first\"; tiers.hardware_rules = 2; path_software.latency_ns = 300000",
    );
    (0..4).for_each(|number| rig.order(&flow(number)));
    for (number, wanted) in [(0, 0), (1, 0), (2, 300_000), (3, 300_000)] {
        let start = rig.now;
        rig.arrive(1, &udp(number, 60));
        assert_eq!(rig.leaves(2).since(start), Nanos(wanted), "{number}");
    }
}

#[test]
fn the_first_frame_installs_an_entry_in_hardware_at_the_link_rate() {
    let mut rig = modelled(
        "tiers.in_hardware = \"used\"; tiers.link_pps = 1000; tiers.link_queue_frames = 2;
         hardware.insert_ns = 4000000; path_software.latency_ns = 100000",
    );
    (0..5).for_each(|number| rig.order(&flow(number)));
    rig.until(rig.now + Nanos(100 * MS));
    let written = |rig: &Rig| rig.node.forward.forwarder.behaviour().unwrap().counters()[4];
    assert_eq!(written(&rig), ("entries_written", 0), "no entry is installed without a frame");
    let start = rig.now;
    (0..5).for_each(|number| rig.arrive(1, &udp(number, 60)));
    assert_eq!(rig.leaves(2).since(start), Nanos(MS + 100_000));
    rig.until(start + Nanos(5 * MS - 1));
    rig.left(2);
    assert!(!rig.passes(0), "the entry is being written");
    rig.until(start + Nanos(5 * MS));
    assert!(rig.passes(0), "the entry is written");
    rig.until(start + Nanos(100 * MS));
    // One was on the link and two waited; the frame above matched entry 0 again.
    assert_eq!(written(&rig), ("entries_written", 3));
}

#[test]
fn a_nearly_full_switch_pauses_or_drops_its_connections() {
    let full = "capacity.rules = 10; full.at_percent = 90; full.lasts_ns = 3000000000";
    let mut rig = modelled(full);
    (0..9).for_each(|number| rig.order(&flow(number)));
    let start = rig.now;
    let echo = rig.send(0, &Message::EchoRequest(vec![1]));
    assert_eq!(rig.answered(echo).0.since(start), Nanos(3_000 * MS));
    let mut rig = modelled(&format!("{full}; full.on = \"stats\"; full.does = \"disconnect\""));
    (0..8).for_each(|number| rig.order(&flow(number)));
    assert_eq!(rig.ask(0, &flow_stats()).len(), 1);
    rig.order(&flow(8));
    assert!(rig.ask(0, &flow_stats()).len() <= 1 && rig.controllers[0].down);
}

#[test]
fn packet_ins_have_the_rate_of_the_model() {
    let mut rig = modelled("agent.packet_ins_per_s = 100");
    for _ in 0..2_000 {
        rig.arrive(1, &udp(0, 60));
        rig.until(rig.now + Nanos(MS));
    }
    let reported = rig.news(0).len();
    assert!((200..=210).contains(&reported), "{reported}");
}

#[test]
fn the_same_hardware_model_applies_to_a_bridge() {
    let mut rig = Rig::with(Kind::Bridge(BridgeConfig::default()), |config| {
        config.model = Some(model("path_legacy.latency_ns = 7000; path_hardware.latency_ns = 9"));
    });
    let start = rig.now;
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.leaves(2).since(start), Nanos(7_000), "flooded");
    assert_eq!(rig.left(3).len(), 1);
}
