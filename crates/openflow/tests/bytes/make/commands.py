"""Arguments of ovs-ofctl that produce each structure of each version."""

import pathlib
import struct

import samples

# Match fields, each with its prerequisites, and with a mask if it has one.
MATCHES = [
    "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_type=0x88b5",
    "dl_src=02:00:00:00:00:00/ff:ff:ff:00:00:00,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
    "dl_vlan=100,dl_vlan_pcp=5", "dl_vlan=0xffff", "vlan_tci=0x1000/0x1000",
    "ip,nw_src=10.0.0.1,nw_dst=192.168.0.0/16,nw_tos=184,nw_proto=253",
    "tcp,tp_src=1234,tp_dst=80", "udp,tp_src=53,tp_dst=5353", "sctp,tp_src=7,tp_dst=9",
    "icmp,icmp_type=8,icmp_code=1",
    "arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:01,"
    "arp_tha=02:00:00:00:00:02",
]
MATCHES_FROM_1 = [
    "metadata=0x1234/0xffff", "mpls,mpls_label=77,mpls_tc=3", "ip,nw_ecn=2",
    "ip,nw_src=10.0.0.1/255.0.0.255",
]
MATCHES_FROM_2 = [
    "mpls,mpls_label=77,mpls_bos=1",
    "ip,nw_ecn=1", "tcp6,ipv6_src=fe80::1,ipv6_dst=2001:db8::/32,tp_src=1,tp_dst=2",
    "ipv6,ipv6_label=0x12345/0xff0ff,nw_tos=4,nw_ecn=3", "udp6,tp_dst=546", "sctp6,tp_src=5",
    "icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::2,nd_sll=02:00:00:00:00:03",
    "icmp6,icmp_type=136,icmp_code=0,nd_target=fe80::3,nd_tll=02:00:00:00:00:04",
    "tcp,tcp_flags=+syn-ack", "tun_id=0x55/0xff", "dl_vlan=100,dl_vlan_pcp=5,ip,nw_proto=6",
    "arp,arp_spa=10.0.0.0/8,arp_sha=02:00:00:00:00:00/ff:00:00:00:00:00",
]

# Actions by the first version that has them, with the match that they require.
ACTIONS = [
    (0, 5, "ip,actions=mod_vlan_vid:200,mod_vlan_pcp:3,mod_dl_src:02:00:00:00:00:0a,"
     "mod_dl_dst:02:00:00:00:00:0b,mod_nw_src:1.2.3.4,mod_nw_dst:5.6.7.8,mod_nw_tos:184,output:3"),
    (0, 5, "tcp,actions=mod_tp_src:53,mod_tp_dst:5353,output:2"),
    (0, 5, "actions=in_port,all,flood,normal,local,controller:128"),
    (0, 0, "dl_vlan=5,actions=strip_vlan,enqueue:1:1"),
    (0, 5, "priority=77,idle_timeout=60,hard_timeout=600,cookie=0x1122334455667788,"
     "send_flow_rem,check_overlap,tcp,tp_dst=99,actions=output:2"),
    (1, 5, "dl_vlan=5,actions=pop_vlan,set_queue:1,output:2,goto_table:3"),
    (1, 5, "ip,actions=push_vlan:0x8100,mod_vlan_vid:7,push_vlan:0x88a8,output:1"),
    (1, 5, "ip,actions=push_mpls:0x8847,output:1"),
    (1, 5, "mpls,actions=pop_mpls:0x0800,output:1"),
    (1, 5, "mpls,actions=set_mpls_label:33,set_mpls_tc:2,set_mpls_ttl:9,dec_mpls_ttl,output:1"),
    (1, 5, "ip,actions=dec_ttl,mod_nw_ttl:9,mod_nw_ecn:2,group:1"),
    (1, 5, "actions=write_metadata:0x1234/0xffff,goto_table:200"),
    (1, 5, "ip,actions=write_actions(dec_ttl,group:1,output:3),goto_table:2"),
    (1, 5, "actions=output:1,clear_actions"),
    (2, 5, "ip,actions=set_field:02:00:00:00:00:0a->eth_src,set_field:10.1.1.1->ip_src,"
     "set_field:10.1.1.2->ip_dst,output:1"),
    (2, 5, "ip,dl_vlan=1,actions=set_field:4->ip_dscp,set_field:1->nw_ecn,set_field:4097->vlan_vid,"
     "set_field:3->vlan_pcp,output:1"),
    (2, 5, "tcp6,actions=set_field:fe80::9->ipv6_src,set_field:fe80::a->ipv6_dst,"
     "set_field:0x12->ipv6_label,set_field:81->tcp_src,set_field:82->tcp_dst,output:1"),
    (2, 5, "udp,actions=set_field:81->udp_src,set_field:82->udp_dst,output:1"),
    (2, 5, "sctp,actions=set_field:81->sctp_src,set_field:82->sctp_dst,output:1"),
    (2, 5, "arp,actions=set_field:2->arp_op,set_field:10.0.0.3->arp_spa,set_field:10.0.0.4->arp_tpa,"
     "set_field:02:00:00:00:00:0c->arp_sha,set_field:02:00:00:00:00:0d->arp_tha,output:1"),
    (2, 5, "icmp6,icmp_type=135,icmp_code=0,actions=set_field:fe80::7->nd_target,"
     "set_field:02:00:00:00:00:0e->nd_sll,output:1"),
    (2, 5, "mpls,actions=set_field:5->mpls_label,set_field:1->mpls_tc,output:1"),
    (2, 5, "reset_counts,priority=9,actions=output:1"),
    (3, 5, "actions=meter:1,set_field:0x99->tun_id,output:1"),
    (3, 5, "no_packet_counts,no_byte_counts,priority=8,actions=output:1"),
    (4, 5, "importance=7,priority=6,actions=output:1"),
    (5, 5, "ip,actions=set_field:10.1.0.0/16->ip_src,output:1"),
    (5, 5, "tcp,actions=move:NXM_OF_IP_SRC[0..15]->NXM_OF_IP_DST[8..23],output:1"),
    (5, 5, "tcp,tcp_flags=2,actions=output:1"),
    (5, 5, "table=5,packet_type=(1,0x800),actions=output:1"),
    (5, 5, "actset_output=3,actions=output:1"),
]

GROUPS = [
    (1, "group_id=1,type=all,bucket=output:1,bucket=mod_vlan_vid:5,output:2"),
    (1, "group_id=2,type=select,bucket=weight:10,output:1,bucket=weight:20,output:2"),
    (1, "group_id=3,type=indirect,bucket=dec_ttl,output:3"),
    (1, "group_id=4,type=fast_failover,bucket=watch_port:1,output:1,bucket=watch_group:1,output:2"),
    (5, "group_id=5,type=select,selection_method=hash,selection_method_param=9,"
        "fields(eth_src,ip_dst=255.255.0.0),bucket=bucket_id:7,weight:1,output:1"),
]

METERS = [
    "meter=1,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100",
    "meter=2,pktps,bands=type=drop,rate=500,type=dscp_remark,rate=200,prec_level=1",
    "meter=slowpath,pktps,band=type=drop,rate=300",
    "meter=controller,pktps,band=type=drop,rate=400",
]

FRAME = ("020000000002020000000001" "0800" "4500002e00010000400600000a0000010a000002"
         "04d200500000000100000000500200000000000000000000000000000000")
FRAMES = [
    ("p1", FRAME), ("p2", FRAME.replace("0a000002", "0a000007")),
    ("p1", FRAME.replace("4006", "0106")),
    ("p3", FRAME.replace("0800" "4500", "8100" "6064" "0800" "4500")),
]
NEWS_FLOWS = [
    "table=0,priority=1,in_port=3,actions=controller:20",
    "table=0,priority=2,ip,in_port=1,send_flow_rem,idle_timeout=1,actions=dec_ttl,controller",
    "table=0,priority=3,ip,nw_dst=10.0.0.7,send_flow_rem,cookie=0x77,actions=output:1,controller:64",
    "table=0,priority=4,udp,tp_dst=9,send_flow_rem,hard_timeout=1,actions=drop",
]
BUNDLE = str(pathlib.Path(__file__).parent / "bundle.txt")
PACKET = "in_port=controller packet=" + FRAME + " actions=output:1"


def queries(version):
    words = ["show", "dump-desc", "dump-tables", "dump-ports", "dump-ports BR=p1", "queue-stats",
             "queue-stats BR=p1 1", "queue-get-config BR=p1", "dump-flows", "dump-flows BR=tcp",
             "dump-aggregate", "dump-aggregate BR=ip,nw_dst=10.0.0.0/8", "get-frags", "dump-ports-desc"]
    if version >= 1:
        words += ["dump-groups", "dump-group-stats", "dump-flows BR=table=3,cookie=0x77/0xff,ip",
                  "dump-flows BR=out_port=1,out_group=2"]
    if version >= 2:
        words += ["dump-group-features"]
    if version >= 3:
        words += ["dump-table-features", "dump-meters", "dump-meters BR=meter=1", "meter-stats",
                  "meter-features"]
    if version >= 4:
        words += ["dump-table-desc", "queue-get-config BR", "dump-ports-desc BR=p1"]
    if version >= 5:
        words += ["dump-groups BR=group_id=1", "dump-ports-desc BR=2"]
    for line in words:
        command, _, rest = line.partition(" ")
        rest = rest.removeprefix("BR=") if rest.startswith("BR=") else rest.removeprefix("BR")
        yield [command, "BR", *rest.split()]


def changes(version):
    for match in MATCHES + MATCHES_FROM_1 * (version >= 1) + MATCHES_FROM_2 * (version >= 2):
        yield ["add-flow", "BR", f"{match},actions=drop"]
    for first, last, flow in ACTIONS:
        if first <= version <= last:
            yield ["add-flow", "BR", flow]
    yield ["mod-flows", "BR", "tcp,actions=output:3"]
    yield ["--strict", "mod-flows", "BR", "priority=77,tcp,tp_dst=99,actions=output:1"]
    yield ["--strict", "del-flows", "BR", "priority=77,tcp,tp_dst=99"]
    yield ["del-flows", "BR", "udp,out_port=3"]
    yield ["mod-port", "BR", "p1", "no-flood"]
    yield ["mod-port", "BR", "p1", "no-receive"]
    yield ["mod-port", "BR", "p1", "receive"]
    for mode in ("drop", "normal"):
        yield ["set-frags", "BR", mode]
    yield ["packet-out", "BR", PACKET]
    yield ["packet-out", "BR", "1", "output:2", FRAME]
    yield ["probe", "BR"]
    yield ["ping", "BR", "9"]
    if version in (1, 2):
        for way in ("continue", "drop", "controller"):
            yield ["mod-table", "BR", "3", way]
    if version >= 4:
        for way in ("evict", "vacancy:20,80", "noevict", "novacancy"):
            yield ["mod-table", "BR", "4", way]
        yield ["--bundle", "add-flow", "BR", "tcp,tp_dst=4711,actions=output:1"]
    if version >= 1:
        yield ["del-flows", "BR", "table=3,cookie=0x77/0xff,out_group=3"]


def groups_and_meters(version):
    for first, group in GROUPS:
        if 1 <= first <= version:
            yield ["add-group", "BR", group]
    if version >= 1:
        yield ["mod-group", "BR", "group_id=3,type=indirect,bucket=output:2"]
        yield ["add-group", "BR", "group_id=9,type=all"]
        yield ["del-groups", "BR", "group_id=9"]
    if version >= 3:
        for meter in METERS:
            yield ["add-meter", "BR", meter]
        yield ["mod-meter", "BR", "meter=1,kbps,band=type=drop,rate=2000"]
        yield ["del-meters", "BR", "meter=2"]
    if version >= 4:
        yield ["bundle", "BR", BUNDLE]
    if version >= 5:
        yield ["insert-buckets", "BR", "group_id=1,command_bucket_id=last,bucket=bucket_id:9,output:3"]
        yield ["insert-buckets", "BR", "group_id=1,command_bucket_id=first,bucket=bucket_id:8,drop"]
        yield ["remove-buckets", "BR", "group_id=1,command_bucket_id=9"]
        yield ["remove-buckets", "BR", "group_id=1,command_bucket_id=all"]
        yield ["mod-group", "BR", "group_id=1,type=all,bucket=output:1"]


def nicira():
    """Version 1.0 with the extensions that ovs-ofctl uses by default."""
    for form in ("NXM", "NXM+table_id", "OpenFlow10+table_id"):
        table = "table=3," if form.endswith("table_id") else ""
        for flow in ("ip,nw_src=10.0.0.0/8,actions=output:1", "tcp6,ipv6_src=fe80::1,actions=drop",
                     "tun_id=7/0xff,actions=output:2", "arp,arp_op=2,actions=controller"):
            yield ["-F", form, "add-flow", "BR", table + flow]
        yield ["-F", form, "dump-flows", "BR", "table=3"]
        yield ["-F", form, "dump-aggregate", "BR"]
        yield ["-F", form, "mod-flows", "BR", "arp,actions=output:3"]
        yield ["-F", form, "del-flows", "BR", "ip,nw_src=10.0.0.0/8"]
    for form in ("standard", "nxt_packet_in", "nxt_packet_in2"):
        yield ["-P", form, "-t", "1", "monitor", "BR", "100"]


def of_version(version):
    if version == 0:
        yield from nicira()
    yield from groups_and_meters(version)
    yield from changes(version)
    yield from queries(version)


def message(version, kind, body):
    number = (samples.OF11 if version else samples.OF10).index(kind)
    return struct.pack("!BBHI", version + 1, number, 8 + len(body), 0x5151) + body


def role(version, role, generation):
    return message(version, "role_request", struct.pack("!IIQ", role, 0, generation))


def raw_messages(version):
    """Messages that ovs-ofctl does not send, and all invalid messages that get a reply."""
    if version >= 2:
        yield role(version, 0, 0)
        yield role(version, 1, 0)
    if version >= 3:
        yield message(version, "get_async_request", b"")
    if version == 3:
        yield message(version, "set_async", struct.pack("!6I", 7, 7, 7, 7, 15, 15))
    if version >= 4:
        masks = [(0, 0x3f), (1, 0x3f), (2, 7), (3, 7), (4, 0x3f), (5, 0x3f), (6, 7), (7, 7),
                 (8, 24), (9, 24), (10, 3), (11, 3)]
        yield message(version, "set_async", b"".join(struct.pack("!HHI", kind, 8, mask)
                                                     for kind, mask in masks))
        yield message(version, "get_async_request", b"")
        for kind in (0, 2, 4):
            yield message(version, "bundle_control", struct.pack("!IHH", 5, kind, 3))


def bodies_refused(version):
    """Kinds and invalid bodies, each with a different error."""
    yield "flow_mod", bytes(8)
    yield "set_config", bytes(3)
    yield "port_mod", bytes(5)
    yield "packet_out", bytes(6)
    if not version:
        return
    yield "multipart_request", struct.pack("!HHIII", 99, 0, 0, 9, 9)
    yield "multipart_request", struct.pack("!HHI", 1, 0, 0)
    yield "group_mod", struct.pack("!HBBI", 9, 0, 0, 1)
    yield "group_mod", struct.pack("!HBBI", 0, 9, 0, 1)
    yield "group_mod", struct.pack("!HBBI", 0, 0, 0, 1) + bytes(8)
    for command in (0, 9):
        head = struct.pack("!QQBBHHHIIIH2x", 1, 0, 3, command, 0, 0, 9, 0xffffffff, 0xffffffff,
                           0xffffffff, 0)
        for rest in BODIES_OF_FLOWS if version in (3, 5) and not command else [bytes(8)]:
            yield "flow_mod", head + bytes.fromhex(rest) if isinstance(rest, str) else head + rest
    if version >= 2:
        yield "role_request", struct.pack("!IIQ", 9, 0, 0)
    if version >= 3:
        yield "meter_mod", struct.pack("!HHI", 9, 1, 1)
        yield "meter_mod", struct.pack("!HHI", 0, 1, 7) + struct.pack("!HHIII", 9, 16, 1, 1, 0)
        yield "meter_mod", struct.pack("!HHI", 0, 1, 7) + struct.pack("!HHIII", 1, 12, 1, 1, 0)
    if version >= 4:
        yield "bundle_control", struct.pack("!IHH", 5, 99, 0)
        yield "bundle_control", struct.pack("!IHH", 77, 4, 0)
        yield "role_status", bytes(16)


# Match and instructions, beginning with the match's type. Each has one error.
BODIES_OF_FLOWS = [
    "0009 0004 00000000",                                          # unknown match type
    "0001 0003 00000000",                                          # too short
    "0001 00ff 00000000",                                          # past the end
    "0001 000a 8000 0a02 0800 000000000000",                       # right, without instructions
    "0001 000c 8000 1404 0a000001 00000000",                       # TCP port's field of 4 bytes
    "0001 000c 8000 1604 0a000001 00000000",                       # ip_src... of a wrong length
    "0001 000c 8000 1804 0a000001 00000000",                       # udp... wrong length
    "0001 0010 8000 0a02 0800 8000 0a02 0800",                     # twice the same field
    "0001 000a 8000 1a02 0050 000000000000",                       # prerequisites are missing
    "0001 0006 8000 fe00 0000",                                    # unknown field
    "0001 0009 8000 1401 06 00000000000000",                       # ip_proto without eth_type
    "0001 0012 8000 0a02 0800 8000 1708 0a000001 00000000 000000000000",
    "0001 0014 8000 0a02 0800 8000 1708 ffffffff ff000000 00000000",  # bits outside of the mask
    "0001 0004 00000000 0009 0008 00000000",                       # unknown instruction
    "0001 0004 00000000 0004 0004",                                # too short an instruction
    "0001 0004 00000000 0004 0010 00000000 0077 0008 00000000",    # unknown action
    "0001 0004 00000000 0004 0010 00000000 0000 0008 00000001",    # short output
    "0001 0004 00000000 0004 0018 00000000 0000 0010 00000000 0000 000000000000",  # port 0
    "0001 0004 00000000 0004 0018 00000000 0019 0010 8000 0a02 0800 000000000000",  # set eth_type
    "0001 0004 00000000 0004 0018 00000000 0019 0010 8000 1604 0a000001 00000000",
    "0001 0004 00000000 0001 0008 03 000000",                      # goto the same table
    "0001 0004 00000000 0004 0010 00000000 0016 0008 00000063",    # no such group
    "0001 0004 00000000 0001 0008 09 000000 0001 0008 0a 000000",  # twice the same instruction
    "0001 0004 00000000 0004 0010 00000000 0011 0008 1234 0000",   # the pushed type is no tag
]


def mistakes(version):
    """Messages that a switch rejects, each with a different transaction id."""
    for number, (kind, body) in enumerate(bodies_refused(version)):
        octets = message(version, kind, body)
        yield octets[:4] + struct.pack("!I", 0x6600 + number) + octets[8:]


def refused(version, caught):
    """The invalid messages that had an error in reply, each with its error."""
    errors = {octets[4:8]: octets for _, octets in caught if samples.kind(octets) == "error"}
    return [(octets, errors[octets[4:8]]) for octets in mistakes(version) if octets[4:8] in errors]


def thin(caught):
    """Removes repetitions: barriers, echoes, and replies of the same form."""
    limits, kept = {}, []
    for origin, octets in caught:
        name = samples.kind(octets)
        if name.endswith("port_desc") and octets[0] < 4:  # not in those versions' texts
            continue
        if octets[0] == 1 and name == "flow_mod" and octets[56]:  # it holds a table number
            continue
        shape = (name, octets[1] != 1 and len(octets), octets[:200] if "mod" in name else b"")
        limit = {"hello": 1, "echo_request": 1, "echo_reply": 1, "barrier_request": 1,
                 "features_reply": 1, "barrier_reply": 1}.get(name, 2)
        limit = 4 if name in ("experimenter", "error") else limit
        if name.endswith("table_features") or name == "multipart_reply.flow":
            shape, limit = name, 1 if name.endswith("features") else 3
        limits[shape] = limits.get(shape, 0) + 1
        if limits[shape] <= limit:
            kept.append((origin, octets))
    return kept
