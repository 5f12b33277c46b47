"""Records the messages between Open vSwitch and ovs-ofctl, in every version that they support.

    python3 ovs.py

A private ovsdb-server and ovs-vswitchd with a bridge over dummy ports (no network is touched) and
a relay on Unix sockets in between, which records every message. `commands.py` has the commands.
"""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import commands
import samples

VERSIONS = {0: "1.0", 1: "1.1", 2: "1.2", 3: "1.3", 4: "1.4", 5: "1.5"}
ORIGIN = "Open vSwitch 3.1.0, through a relay, "


class Switch:
    """Database, switch and bridge `br0` with ports p1, p2, p3, in a separate folder."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, OVS_RUNDIR=folder, OVS_DBDIR=folder, OVS_LOGDIR=folder)
        database, self.database_socket = f"{folder}/conf.db", f"unix:{folder}/db.sock"
        schema = "/usr/share/openvswitch/vswitch.ovsschema"
        self.run("ovsdb-tool", "create", database, schema)
        self.start("ovsdb-server", database, f"--remote=p{self.database_socket}")
        self.start("ovs-vswitchd", self.database_socket, "--enable-dummy", "--disable-system")
        self.vsctl("--no-wait", "init")
        versions = ",".join(f"OpenFlow1{minor}" for minor in VERSIONS)
        ports = [f"-- add-port br0 p{at} -- set interface p{at} type=dummy ofport_request={at}"
                 for at in (1, 2, 3)]
        queue = ("-- set port p1 qos=@qos -- --id=@qos create qos type=linux-htb queues=1=@queue "
                 "-- --id=@queue create queue other-config:min-rate=1000000")
        self.vsctl(*"add-br br0 -- set bridge br0 datapath_type=dummy fail-mode=secure "
                   f"other-config:datapath-id=00000000c0ffee01 protocols={versions}".split(),
                   *" ".join(ports).split(), *queue.split())
        self.management = f"{folder}/br0.mgmt"

    def run(self, *command):
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                                timeout=20)
        return result.returncode, result.stdout + result.stderr

    def start(self, program, *arguments):
        code, text = self.run(program, *arguments, "--detach", "--no-chdir", "--log-file",
                              f"--pidfile={self.folder}/{program}.pid")
        assert code == 0, text

    def vsctl(self, *words):
        code, text = self.run("ovs-vsctl", f"--db={self.database_socket}", *words)
        assert code == 0, text

    def appctl(self, *words):
        pid = pathlib.Path(self.folder, "ovs-vswitchd.pid").read_text().strip()
        return self.run("ovs-appctl", "-t", f"{self.folder}/ovs-vswitchd.{pid}.ctl", *words)

    def frame(self, port, octets):
        code, text = self.appctl("netdev-dummy/receive", port, octets)
        assert code == 0, text

    def stop(self):
        for program in ("ovs-vswitchd", "ovsdb-server"):
            path = pathlib.Path(self.folder, f"{program}.pid")
            if path.exists():
                os.kill(int(path.read_text()), signal.SIGTERM)


class Relay:
    """Relays a control channel and records its messages, each with its sender."""

    def __init__(self, path, target):
        self.messages, self.path, self.target = [], path, target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            for ends in ((near, far, "ovs-ofctl"), (far, near, "ovs-vswitchd")):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, sink, sender):
        rest = b""
        while True:
            try:
                octets = source.recv(65536)
                sink.sendall(octets)
            except OSError:
                octets = b""
            if not octets:
                try:
                    sink.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                return
            messages, rest = samples.split(rest + octets)
            self.messages += [(sender, message) for message in messages]


def cut(message):
    """Cuts a very long reply (tables, table features) to its first rows."""
    rows = {"table": 2, "table_features": 1, "table_desc": 2}
    name = samples.kind(message)
    if not name.startswith("multipart_reply.") or name.split(".")[1] not in rows:
        return message, ""
    name, at = name.split(".")[1], 12 if message[0] == 1 else 16
    for _ in range(rows[name]):
        if at >= len(message):
            break
        fixed = {1: 64, 2: 88, 3: 128}.get(message[0], 24)
        at += fixed if name == "table" else struct.unpack_from("!H", message, at)[0]
    if at >= len(message):
        return message, ""
    head = message[:2] + struct.pack("!H", at) + message[4:10] + bytes(2) + message[12:at]
    return head, f", cut after {rows[name]} of its rows"


def ofctl(switch, relay, version, command):
    """Runs one command of ovs-ofctl and returns the messages that it caused."""
    before = len(relay.messages)
    words = [word.replace("BR", f"unix:{relay.path}") for word in command]
    code, text = switch.run("ovs-ofctl", "-t", "5", "-O", f"OpenFlow1{version}", *words)
    if code != 0:
        print(f"  1.{version} {' '.join(command)}: {text.strip().splitlines()[-1][:150]}")
    return relay.messages[before:]


class Controller:
    """A persistent connection that sends the given messages."""

    def __init__(self, relay, version):
        self.socket, self.version = socket.socket(socket.AF_UNIX), version
        self.socket.connect(relay.path)
        self.send(struct.pack("!BBHI", version + 1, 0, 8, 1))
        self.send(commands.message(version, "set_config", struct.pack("!HH", 0, 0xffff)))
        threading.Thread(target=self.answer, daemon=True).start()

    def send(self, message):
        self.socket.sendall(message)

    def answer(self):
        rest, octets = b"", b"-"
        while octets:
            octets = self.socket.recv(65536)
            messages, rest = samples.split(rest + octets)
            for message in messages:
                if samples.kind(message) == "echo_request":
                    self.send(message[:1] + b"\3" + message[2:])


def watch(switch, relay, version):
    """The flow monitor while entries are added, changed and removed."""
    process = subprocess.Popen(
        ["ovs-ofctl", "-O", f"OpenFlow1{version}", "monitor", f"unix:{relay.path}",
         "watch:" if version else "watch:initial,add,delete,modify,own,actions"],
        env=switch.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    for flow in ("tcp,tcp_dst=81,actions=output:1", "tcp,tcp_dst=81,actions=output:2"):
        ofctl(switch, relay, version, ["add-flow", "BR", flow])
    ofctl(switch, relay, version, ["del-flows", "BR"])
    time.sleep(0.3)
    process.terminate()
    process.wait()


def crowd(switch, relay, version, add):
    """A small table that is filled and emptied; one of two controllers becomes master."""
    switch.vsctl("--id=@t", "create", "flow_table", "flow_limit=4", "--", "set", "bridge", "br0",
                 "flow_tables:7=@t")
    ofctl(switch, relay, version, ["mod-table", "BR", "7", "vacancy:30,60"])
    for port in (1, 2, 3, 4, 5):
        add(f"table=7,tcp,tcp_dst={port},actions=drop")
    ofctl(switch, relay, version, ["del-flows", "BR", "table=7"])
    switch.vsctl("clear", "bridge", "br0", "flow_tables")
    second = Controller(relay, version)
    second.send(commands.role(version, 2, 99))
    ofctl(switch, relay, version, ["add-group", "BR", "group_id=77,type=all,bucket=output:1"])
    ofctl(switch, relay, version, ["add-meter", "BR", "meter=77,pktps,band=type=drop,rate=5"])
    ofctl(switch, relay, version, ["del-groups", "BR"])
    time.sleep(0.2)


def news(switch, relay, version):
    """Asynchronous messages of the switch: frames, removed entries, changes of ports and tables."""
    before = len(relay.messages)
    add = lambda flow: ofctl(switch, relay, version, ["add-flow", "BR", flow])
    ofctl(switch, relay, version, ["del-flows", "BR"])
    controller = Controller(relay, version)
    for message in [*commands.mistakes(version), *commands.raw_messages(version)]:
        controller.send(message)
    time.sleep(0.3)
    for flow in commands.NEWS_FLOWS:
        add(flow)
    for port, octets in commands.FRAMES:
        switch.frame(port, octets)
    time.sleep(2.6)
    ofctl(switch, relay, version, ["del-flows", "BR", "ip,nw_dst=10.0.0.7"])
    ofctl(switch, relay, version, ["mod-port", "BR", "p2", "down"])
    ofctl(switch, relay, version, ["mod-port", "BR", "p2", "up"])
    switch.vsctl("add-port", "br0", "p9", "--", "set", "interface", "p9", "type=dummy",
                 "ofport_request=9")
    switch.vsctl("del-port", "br0", "p9")
    if version >= 4:
        crowd(switch, relay, version, add)
    if version >= 4 or version == 0:
        watch(switch, relay, version)
    return relay.messages[before:]


def listen_in(switch, version):
    """All messages of a version, in the order of the commands."""
    path = f"{switch.folder}/relay.{version}"
    relay, caught = Relay(path, switch.management), []
    for command in commands.of_version(version):
        caught += ofctl(switch, relay, version, command)
    caught += news(switch, relay, version)
    for cleaning in (["del-flows", "BR"], ["del-groups", "BR"], ["del-meters", "BR"]):
        if version or cleaning[0] == "del-flows":
            ofctl(switch, relay, version, cleaning)
    return caught


def main():
    seen = set()
    with tempfile.TemporaryDirectory(prefix="ovs.") as folder:
        switch = Switch(folder)
        try:
            for version in VERSIONS:
                caught = [pair for pair in listen_in(switch, version) if pair[1][0] == version + 1]
                refused = commands.refused(version, caught)
                rows = [(f"{ORIGIN}ovs-vswitchd's answer", *pair) for pair in refused]
                samples.save(VERSIONS[version], "refused", ORIGIN, rows)
                wrong = {message for message, _ in refused}
                caught = [(f"{ORIGIN}{sender}{note}", short) for sender, message in caught
                          if message not in wrong for short, note in [cut(message)]]
                keep = commands.thin(caught)
                counts = samples.save_all(ORIGIN, keep, seen)
                print(VERSIONS[version], sum(counts.values()), "of", len(caught), "messages")
        finally:
            switch.stop()


if __name__ == "__main__":
    main()
