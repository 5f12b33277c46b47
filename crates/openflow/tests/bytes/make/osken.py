"""Encodes messages with os-ken, with a different value in every field.

    python3 -m venv DIR && DIR/bin/pip install os-ken && DIR/bin/python osken.py

os-ken encodes what a controller sends, for 1.2 to 1.5 (it lacks 1.1; 1.0 is in `tests/bytes/1.0`).
"""

import importlib

from os_ken.ofproto.ofproto_protocol import ProtocolDesc

import samples

ORIGIN = "os-ken 4.2.2, its encoder"
VENDOR = 0x00abcdef

# Fields with their prerequisites, and with a mask if the field accepts one.
MATCHES = [
    dict(in_port=7, in_phy_port=8, metadata=(0x1122334455667788, 0xffff0000ffff0000)),
    dict(eth_src="02:00:00:00:00:01", eth_dst=("01:00:00:00:00:00", "01:00:00:00:00:00")),
    dict(vlan_vid=0), dict(vlan_vid=(0x1000, 0x1000)), dict(vlan_vid=0x1064, vlan_pcp=5),
    dict(eth_type=0x800, ip_dscp=46, ip_ecn=2, ip_proto=6, ipv4_src="10.0.0.1",
         ipv4_dst=("192.168.0.0", "255.255.0.0"), tcp_src=1234, tcp_dst=80),
    dict(eth_type=0x800, ip_proto=17, udp_src=53, udp_dst=5353),
    dict(eth_type=0x800, ip_proto=132, sctp_src=7, sctp_dst=9),
    dict(eth_type=0x800, ip_proto=1, icmpv4_type=8, icmpv4_code=1),
    dict(eth_type=0x806, arp_op=1, arp_spa="10.0.0.1", arp_tpa=("10.0.0.0", "255.0.0.0"),
         arp_sha="02:00:00:00:00:03", arp_tha=("02:00:00:00:00:00", "ff:00:00:00:00:00")),
    dict(eth_type=0x86dd, ip_proto=6, ipv6_src="fe80::1", ipv6_dst=("2001:db8::", "ffff:ffff::"),
         ipv6_flabel=(0x12340, 0xffff0), tcp_dst=443),
    dict(eth_type=0x86dd, ip_proto=58, icmpv6_type=135, icmpv6_code=0, ipv6_nd_target="fe80::2",
         ipv6_nd_sll="02:00:00:00:00:04"),
    dict(eth_type=0x86dd, ip_proto=58, icmpv6_type=136, icmpv6_code=0, ipv6_nd_target="fe80::3",
         ipv6_nd_tll="02:00:00:00:00:05"),
    dict(eth_type=0x8847, mpls_label=77, mpls_tc=3),
]
MATCHES_FROM_3 = [
    dict(eth_type=0x8848, mpls_label=78, mpls_bos=1), dict(tunnel_id=(0x55, 0xff)),
    dict(eth_type=0x88e7, pbb_isid=(0x123400, 0xffff00)),
    dict(eth_type=0x86dd, ipv6_exthdr=(0x04, 0x1ff)),
]
MATCHES_FROM_4 = [dict(eth_type=0x88e7, pbb_isid=3, pbb_uca=1)]
MATCHES_FROM_5 = [
    dict(eth_type=0x800, ip_proto=6, tcp_flags=(2, 0x12)), dict(actset_output=3),
    dict(packet_type=(1 << 16) | 0x800),
]

# Every field that a set-field action can set in at least one version.
SET = dict(
    eth_src="02:00:00:00:00:0a", eth_dst="02:00:00:00:00:0b", vlan_vid=0x1007, vlan_pcp=3,
    ip_dscp=10, ip_ecn=1, ip_proto=7, ipv4_src="1.2.3.4", ipv4_dst="5.6.7.8", tcp_src=1, tcp_dst=2,
    udp_src=3, udp_dst=4, sctp_src=5, sctp_dst=6, icmpv4_type=11, icmpv4_code=12, arp_op=2,
    arp_spa="1.1.1.1", arp_tpa="2.2.2.2", arp_sha="02:00:00:00:00:0c", arp_tha="02:00:00:00:00:0d",
    ipv6_src="fe80::a", ipv6_dst="fe80::b", ipv6_flabel=0x54321, icmpv6_type=128, icmpv6_code=13,
    ipv6_nd_target="fe80::c", ipv6_nd_sll="02:00:00:00:00:0e", ipv6_nd_tll="02:00:00:00:00:0f",
    mpls_label=0xabcde, mpls_tc=6, eth_type=0x88b5)
SET_FROM_3 = dict(mpls_bos=1, pbb_isid=0x123456, tunnel_id=0x1234567890)


def actions(p, minor):
    fields = {**SET, **(SET_FROM_3 if minor >= 3 else {}), **(dict(pbb_uca=1) if minor >= 4 else {})}
    yield from (p.OFPActionSetField(**{field: value}) for field, value in fields.items())
    yield p.OFPActionOutput(3, 0)
    yield p.OFPActionOutput(0xfffffffd, 128)
    yield p.OFPActionGroup(9)
    yield p.OFPActionSetQueue(10)
    yield p.OFPActionSetMplsTtl(11)
    yield p.OFPActionDecMplsTtl()
    yield p.OFPActionSetNwTtl(12)
    yield p.OFPActionDecNwTtl()
    yield p.OFPActionCopyTtlOut()
    yield p.OFPActionCopyTtlIn()
    yield p.OFPActionPushVlan(0x88a8)
    yield p.OFPActionPushMpls(0x8848)
    yield p.OFPActionPopVlan()
    yield p.OFPActionPopMpls(0x86dd)
    if minor == 2:
        yield p.OFPActionExperimenter(VENDOR)
    if minor >= 3:
        yield p.OFPActionExperimenterUnknown(VENDOR, b"12345678")
        yield p.OFPActionPushPbb(0x88e7)
        yield p.OFPActionPopPbb()
    if minor >= 5:
        yield p.OFPActionCopyField(16, 2, 4, [p.OFPOxmId("ipv4_src"), p.OFPOxmId("ipv6_dst")])
        yield p.OFPActionMeter(13)


def flows(d, o, p, minor):
    wanted = MATCHES * (minor != 4) + MATCHES_FROM_3 * (minor >= 3) + MATCHES_FROM_4 * (minor >= 4)
    for fields in wanted + MATCHES_FROM_5 * (minor >= 5):
        yield p.OFPFlowMod(d, match=p.OFPMatch(**fields), out_port=o.OFPP_ANY, out_group=o.OFPG_ANY)
    common = dict(cookie=0x1122334455667788, cookie_mask=0xff, table_id=3, out_port=4, out_group=5)
    for command in range(5):
        yield p.OFPFlowMod(d, command=command, priority=6, idle_timeout=7, hard_timeout=8,
                           buffer_id=9, flags=o.OFPFF_SEND_FLOW_REM | o.OFPFF_RESET_COUNTS,
                           match=p.OFPMatch(), **common)
    if minor >= 4:
        yield p.OFPFlowMod(d, importance=77, flags=o.OFPFF_NO_PKT_COUNTS | o.OFPFF_NO_BYT_COUNTS,
                           match=p.OFPMatch(in_port=1), **common)
    every = list(actions(p, minor))
    instructions = [
        p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, every),
        p.OFPInstructionActions(o.OFPIT_CLEAR_ACTIONS, []),
        p.OFPInstructionActions(o.OFPIT_WRITE_ACTIONS, every[-5:]),
        p.OFPInstructionWriteMetadata(0x1234, 0xffff), p.OFPInstructionGotoTable(4)]
    if minor in (3, 4):
        instructions.append(p.OFPInstructionMeter(5))
    if minor >= 5:
        instructions.append(p.OFPInstructionStatTrigger(
            3, p.OFPStats(packet_count=100, byte_count=2000, duration=(3, 4), idle_time=(5, 6),
                          flow_count=7)))
    yield p.OFPFlowMod(d, instructions=instructions, match=p.OFPMatch(), out_port=o.OFPP_ANY,
                       out_group=o.OFPG_ANY)


def buckets(o, p, minor):
    if minor < 5:
        yield p.OFPBucket(1, 2, 3, [p.OFPActionOutput(4), p.OFPActionPopVlan()])
        yield p.OFPBucket(5, o.OFPP_ANY, o.OFPG_ANY, [])
    else:
        yield p.OFPBucket(1, [p.OFPActionOutput(4), p.OFPActionPopVlan()], [
            p.OFPGroupBucketPropWeight(type_=o.OFPGBPT_WEIGHT, weight=5),
            p.OFPGroupBucketPropWatch(type_=o.OFPGBPT_WATCH_PORT, watch=6),
            p.OFPGroupBucketPropWatch(type_=o.OFPGBPT_WATCH_GROUP, watch=7),
            p.OFPGroupBucketPropExperimenter(o.OFPGBPT_EXPERIMENTER, 16, VENDOR, 8, b"4321")])


def groups_and_meters(d, o, p, minor):
    for kind in range(4):
        yield p.OFPGroupMod(d, kind and 1, kind, 100 + kind, buckets=list(buckets(o, p, minor)))
    yield p.OFPGroupMod(d, o.OFPGC_DELETE, 0, o.OFPG_ALL, buckets=[])
    if minor >= 5:
        vendor = p.OFPGroupPropExperimenter(o.OFPGPT_EXPERIMENTER, 16, VENDOR, 8, b"4321")
        for command, bucket in ((o.OFPGC_INSERT_BUCKET, o.OFPG_BUCKET_LAST),
                                (o.OFPGC_REMOVE_BUCKET, 7)):
            rows = list(buckets(o, p, minor)) if command == o.OFPGC_INSERT_BUCKET else []
            yield p.OFPGroupMod(d, command, 0, 5, bucket, rows, [vendor])
    if minor >= 3:
        bands = [p.OFPMeterBandDrop(1, 2), p.OFPMeterBandDscpRemark(3, 4, 5),
                 p.OFPMeterBandExperimenter(6, 7, VENDOR)]
        for command in range(3):
            yield p.OFPMeterMod(d, command, o.OFPMF_PKTPS | o.OFPMF_BURST, 8 + command, bands)


def ports_and_tables(d, o, p, minor):
    where = dict(port_no=1, hw_addr="02:00:00:00:00:01", config=0x24, mask=0x65)
    if minor < 4:
        yield p.OFPPortMod(d, advertise=0x207f, **where)
        yield p.OFPTableMod(d, 3, 3 if minor == 3 else 1)
        yield p.OFPQueueGetConfigRequest(d, 4)
        return
    properties = [
        p.OFPPortModPropEthernet(o.OFPPMPT_ETHERNET, 8, 0x207f),
        p.OFPPortModPropOptical(o.OFPPMPT_OPTICAL, 24, 1, 2, 3, 4, 5),
        p.OFPPortModPropExperimenter(o.OFPPMPT_EXPERIMENTER, 16, VENDOR, 6, b"4321")]
    yield p.OFPPortMod(d, properties=properties, **where)
    vendor = p.OFPTableModPropExperimenter(o.OFPTMPT_EXPERIMENTER, 16, VENDOR, 6, b"4321")
    yield p.OFPTableMod(d, 3, 0xc, [p.OFPTableModPropEviction(o.OFPTMPT_EVICTION, 8, 5),
                                    p.OFPTableModPropVacancy(o.OFPTMPT_VACANCY, 8, 20, 80, 50),
                                    vendor])


def queries(d, o, p, minor):
    which = dict(table_id=3, out_port=4, out_group=5, cookie=0x66, cookie_mask=0xff, flags=0,
                 match=p.OFPMatch(in_port=7))
    flow_kinds = ["OFPFlowStatsRequest", "OFPAggregateStatsRequest", "OFPFlowDescStatsRequest"]
    for name in flow_kinds[:3 if minor >= 5 else 2]:
        yield getattr(p, name)(d, **which)
    names = ["Desc", "Table", "GroupFeatures"] + (["GroupDesc"] if minor < 5 else [])
    names += ["MeterFeatures"] * (minor >= 3) + ["PortDesc"] * (minor in (3, 4))
    names += ["TableDesc"] * (minor >= 4) + ["ControllerStatus", "BundleFeatures"] * (minor >= 5)
    for name in names:
        yield getattr(p, f"OFP{name}StatsRequest")(d, flags=0)
    yield p.OFPPortStatsRequest(d, flags=0, port_no=6)
    yield p.OFPQueueStatsRequest(d, flags=0, port_no=7, queue_id=8)
    yield p.OFPGroupStatsRequest(d, flags=0, group_id=9)
    if minor >= 3:
        yield p.OFPExperimenterStatsRequest(d, 0, VENDOR, 20, b"abcdefgh")
        yield p.OFPMeterStatsRequest(d, 0, 10)
        name = "OFPMeterDescStatsRequest" if minor >= 5 else "OFPMeterConfigStatsRequest"
        yield getattr(p, name)(d, 0, 11)
        yield p.OFPTableFeaturesStatsRequest(d, 0, [table_features(o, p, minor)])
    if minor >= 4:
        yield p.OFPQueueDescStatsRequest(d, 0, 12, 13)
        yield p.OFPFlowMonitorRequest(d, 0, 14, 15, 16, o.OFPFMF_INITIAL | o.OFPFMF_ADD, 17,
                                      o.OFPFMC_MODIFY, p.OFPMatch(eth_type=0x800))
    if minor >= 5:
        yield p.OFPPortDescStatsRequest(d, 0, 18)
        yield p.OFPGroupDescStatsRequest(d, 0, 19)
        time = p.OFPBundleFeaturesPropTime(o.OFPTMPBF_TIME_CAPABILITY, 72, *(
            p.OFPTime(at, at + 1) for at in (1, 3, 5, 7)))
        yield p.OFPBundleFeaturesStatsRequest(d, 0, 3, [time])


def table_features(o, p, minor):
    field = [p.OFPOxmId("eth_dst", hasmask=True), p.OFPOxmId("in_port")]
    properties = []
    for miss in (0, 1):
        properties += [
            p.OFPTableFeaturePropInstructions(o.OFPTFPT_INSTRUCTIONS + miss,
                                              instruction_ids=[p.OFPInstructionId(1)]),
            p.OFPTableFeaturePropNextTables(o.OFPTFPT_NEXT_TABLES + miss, table_ids=[4, 5, 6]),
            p.OFPTableFeaturePropActions(o.OFPTFPT_WRITE_ACTIONS + miss,
                                         action_ids=[p.OFPActionId(0), p.OFPActionId(22)]),
            p.OFPTableFeaturePropActions(o.OFPTFPT_APPLY_ACTIONS + miss,
                                         action_ids=[p.OFPActionId(25)]),
            p.OFPTableFeaturePropOxm(o.OFPTFPT_WRITE_SETFIELD + miss, oxm_ids=field[1:]),
            p.OFPTableFeaturePropOxm(o.OFPTFPT_APPLY_SETFIELD + miss, oxm_ids=field[:1])]
    properties += [p.OFPTableFeaturePropOxm(o.OFPTFPT_MATCH, oxm_ids=field),
                   p.OFPTableFeaturePropOxm(o.OFPTFPT_WILDCARDS, oxm_ids=field),
                   p.OFPTableFeaturePropExperimenter(0xfffe, 16, VENDOR, 1, b"4321")]
    if minor >= 4:
        properties.append(p.OFPTableFeaturePropNextTables(o.OFPTFPT_TABLE_SYNC_FROM, table_ids=[7]))
    common = dict(table_id=3, name=b"three", metadata_match=0xff00, metadata_write=0xff,
                  max_entries=1000, properties=properties)
    if minor < 5:
        return p.OFPTableFeaturesStats(config=3, **common)
    return p.OFPTableFeaturesStats(command=2, features=1, capabilities=0xc, **common)


def control(d, o, p, minor):
    yield p.OFPEchoRequest(d, data=b"are you there")
    reply = p.OFPEchoReply(d)
    reply.data = b"I am"
    yield reply
    yield p.OFPErrorMsg(d, type_=1, code=6, data=b"\4\5\0\10\0\0\0\1")
    yield p.OFPErrorMsg(d, type_=0xffff, exp_type=2, experimenter=VENDOR, data=b"why")
    yield p.OFPExperimenter(d, VENDOR, 3, b"anything")
    yield p.OFPFeaturesRequest(d)
    yield p.OFPGetConfigRequest(d)
    yield p.OFPSetConfig(d, 1, 256)
    yield p.OFPBarrierRequest(d)
    if minor >= 3:
        yield p.OFPHello(d, [p.OFPHelloElemVersionBitmap([1, 4, 5, 6, 33])])
        yield p.OFPGetAsyncRequest(d)
    if minor == 3:
        yield p.OFPSetAsync(d, [1, 2], [3, 4], [5, 6])
    if minor >= 4:
        reasons = [p.OFPAsyncConfigPropReasons(kind, 8, kind + 1) for kind in range(12)]
        vendor = p.OFPAsyncConfigPropExperimenter(0xfffe, 16, VENDOR, 1, b"4321")
        yield p.OFPSetAsync(d, reasons + [vendor])
    for role in range(4):
        where = (7,) if minor >= 5 else ()
        yield p.OFPRoleRequest(d, role, *where, 0x1122334455667788)


def packets_and_bundles(d, o, p, minor):
    steps = [p.OFPActionSetField(eth_src="02:00:00:00:00:01"), p.OFPActionOutput(2)]
    frame = bytes.fromhex("020000000002 020000000001 88b5") + bytes(46)
    for buffer, data in ((o.OFP_NO_BUFFER, frame), (5, None)):
        if minor < 5:
            yield p.OFPPacketOut(d, buffer, o.OFPP_CONTROLLER, steps, data)
        else:
            yield p.OFPPacketOut(d, buffer, p.OFPMatch(in_port=o.OFPP_CONTROLLER), steps, data)
    if minor < 4:
        return
    vendor = p.OFPBundlePropExperimenter(o.OFPBPT_EXPERIMENTER, 16, VENDOR, 1, b"4321")
    properties = [vendor]
    if minor >= 5:
        properties.append(p.OFPBundlePropTime(o.OFPBPT_TIME, 24, p.OFPTime(1000, 2000)))
    for kind in range(0, 8, 2):
        yield p.OFPBundleCtrlMsg(d, 9, kind, 3, properties)
    inner = p.OFPBarrierRequest(d)
    yield p.OFPBundleAddMsg(d, 9, 3, p.OFPFlowMod(d, match=p.OFPMatch(), instructions=[]), [])
    yield p.OFPBundleAddMsg(d, 9, 3, inner, [vendor])


def messages(minor):
    o = importlib.import_module(f"os_ken.ofproto.ofproto_v1_{minor}")
    p = importlib.import_module(f"os_ken.ofproto.ofproto_v1_{minor}_parser")
    d = ProtocolDesc(version=minor + 1)
    makers = [control, flows, groups_and_meters, ports_and_tables, queries, packets_and_bundles]
    for number, message in enumerate(m for maker in makers for m in maker(d, o, p, minor)):
        message.set_xid(0x1000 + number)
        if hasattr(message, "message"):
            message.message.set_xid(0x1000 + number)
        message.serialize()
        yield ORIGIN, bytes(message.buf)


def main():
    for minor in (2, 3, 4, 5):
        counts = samples.save_all(ORIGIN, messages(minor))
        print(f"1.{minor}", sum(counts.values()), "messages")


if __name__ == "__main__":
    main()
