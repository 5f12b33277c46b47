"""A learning switch controller on os-ken for OpenFlow 1.0.

    python learning_1_0.py PORT

It prints "learned MAC at PORT" for each new address, and "flow to MAC by PORT" for each entry.
"""

import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import mac
from os_ken.ofproto import ofproto_v1_0


class Learning(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event):
        message = event.msg
        print(f"switch {message.datapath_id:#x} with ports {sorted(message.ports)}", flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet(self, event):
        message = event.msg
        datapath, parser = message.datapath, message.datapath.ofproto_parser
        destination, source = message.data[:6], message.data[6:12]
        if self.ports.get(source) != message.in_port:
            self.ports[source] = message.in_port
            print(f"learned {mac.haddr_to_str(source)} at {message.in_port}", flush=True)
        port = self.ports.get(destination, ofproto_v1_0.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if destination in self.ports:
            match = parser.OFPMatch(in_port=message.in_port, dl_src=source, dl_dst=destination)
            datapath.send_msg(parser.OFPFlowMod(
                datapath, match=match, cookie=0, command=ofproto_v1_0.OFPFC_ADD, idle_timeout=60,
                hard_timeout=600, priority=100, flags=ofproto_v1_0.OFPFF_SEND_FLOW_REM,
                actions=actions))
            print(f"flow to {mac.haddr_to_str(destination)} by {port}", flush=True)
        data = message.data if message.buffer_id == ofproto_v1_0.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(
            datapath, buffer_id=message.buffer_id, in_port=message.in_port, actions=actions,
            data=data))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def refused(self, event):
        print(f"error {event.msg.type} {event.msg.code}", flush=True)


if __name__ == "__main__":
    cfg.CONF(args=["--ofp-listen-host=127.0.0.1", f"--ofp-tcp-listen-port={sys.argv[1]}"],
             project="learning")
    app_manager.AppManager.run_apps(["__main__", "os_ken.controller.ofp_handler"])
