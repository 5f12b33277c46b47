"""A learning switch controller on os-ken for OpenFlow 1.3, with two tables.

    python learning_1_3.py PORT

Table 0 sends frames with an unknown source address to the controller and continues with table 1,
which forwards by destination. A group floods. The controller prints the addresses that it learns.
"""

import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import mac
from os_ken.ofproto import ofproto_v1_3 as of


class Learning(app_manager.OSKenApp):
    OFP_VERSIONS = [of.OFP_VERSION]
    SOURCES, DESTINATIONS, FLOOD = 0, 1, 7

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    def add(self, datapath, table, priority, actions, goto=None, **fields):
        parser = datapath.ofproto_parser
        instructions = [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions)]
        if goto is not None:
            instructions.append(parser.OFPInstructionGotoTable(goto))
        datapath.send_msg(parser.OFPFlowMod(
            datapath, table_id=table, priority=priority, instructions=instructions,
            match=parser.OFPMatch(**fields)))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        datapath = event.msg.datapath
        parser = datapath.ofproto_parser
        print(f"switch {event.msg.datapath_id:#x}", flush=True)
        buckets = [parser.OFPBucket(actions=[parser.OFPActionOutput(of.OFPP_FLOOD)])]
        datapath.send_msg(parser.OFPGroupMod(
            datapath, of.OFPGC_ADD, of.OFPGT_ALL, self.FLOOD, buckets))
        to_controller = [parser.OFPActionOutput(of.OFPP_CONTROLLER, of.OFPCML_NO_BUFFER)]
        self.add(datapath, self.SOURCES, 0, to_controller, goto=self.DESTINATIONS)
        self.add(datapath, self.DESTINATIONS, 0, [parser.OFPActionGroup(self.FLOOD)])
        datapath.send_msg(parser.OFPBarrierRequest(datapath))
        datapath.send_msg(parser.OFPPortDescStatsRequest(datapath, 0))

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def described(self, event):
        ports = sorted(port.port_no for port in event.msg.body if port.port_no < of.OFPP_MAX)
        print(f"ports {ports}", flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet(self, event):
        message = event.msg
        datapath, parser = message.datapath, message.datapath.ofproto_parser
        source, port = mac.haddr_to_str(message.data[6:12]), message.match["in_port"]
        if self.ports.get(source) == port:
            return
        self.ports[source] = port
        self.add(datapath, self.DESTINATIONS, 10, [parser.OFPActionOutput(port)], eth_dst=source)
        self.add(datapath, self.SOURCES, 10, [], goto=self.DESTINATIONS, in_port=port,
                 eth_src=source)
        print(f"learned {source} at {port}", flush=True)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def refused(self, event):
        print(f"error {event.msg.type} {event.msg.code}", flush=True)


if __name__ == "__main__":
    cfg.CONF(args=["--ofp-listen-host=127.0.0.1", f"--ofp-tcp-listen-port={sys.argv[1]}"],
             project="learning")
    app_manager.AppManager.run_apps(["__main__", "os_ken.controller.ofp_handler"])
