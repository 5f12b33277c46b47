"""Planimeter's OpenFlow switch for Mininet.

    sudo mn --custom examples/mininet/planimeter_mininet.py --switch planimeter --test iperf

Options go behind the name: `--switch planimeter,port=xdp`.

Mininet: https://github.com/mininet/mininet
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from mininet.log import output
from mininet.moduledeps import pathCheck
from mininet.node import Switch
from mininet.util import waitListening

# Seconds until a program that does not start or stop is given up.
PATIENCE_S = 30


class PlanimeterSwitch(Switch):
    """An OpenFlow switch: `planimeter switch` with the controllers of the network.

    Without a controller it forwards as a learning bridge.
    """

    def __init__(self, name, port="afpacket", program="planimeter", protocols="", **params):
        """Describes a switch.

        port: how frames are taken from interfaces, afpacket or xdp
        program: the planimeter command
        protocols: OpenFlow versions to offer, such as 1.0,1.3; all if empty
        """
        super().__init__(name, **params)
        self.port_kind = port
        self.program = program
        self.protocols = protocols
        self.folder = None
        self.process = None

    @classmethod
    def setup(cls):
        """Checks that the command is there."""
        pathCheck(os.environ.get("PLANIMETER", "planimeter"), moduleName="planimeter")

    def arguments(self, controllers):
        """Returns the arguments of the command."""
        arguments = ["switch", "--datapath-id", self.dpid]
        for number, interface in sorted(self.intfs.items()):
            if number > 0:
                arguments += ["--port", f"{number}={self.port_kind}:{interface.name}"]
        for controller in controllers:
            arguments += ["--controller", f"tcp:{controller.IP()}:{controller.port}"]
        if self.listenPort:
            arguments += ["--listen", f"ptcp:{self.listenPort}"]
        if not controllers:
            arguments += ["--fail-mode", "standalone"]
        if self.protocols:
            arguments += ["--openflow", self.protocols]
        return arguments + self.opts.split()

    def start(self, controllers):
        """Starts the switch and returns when it is ready."""
        self.folder = tempfile.mkdtemp(prefix=f"planimeter-{self.name}-")
        program = os.environ.get("PLANIMETER", self.program)
        command = [program, *self.arguments(controllers)]
        with open(self.log_file(), "wb") as errors:
            # The namespace of the switch's shell: the root's, unless inNamespace is set.
            self.process = self.popen(command, stdout=errors, stderr=errors)
        deadline = time.monotonic() + PATIENCE_S
        while "ready" not in self.log():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: {self.log().strip()}")
            time.sleep(0.01)

    def connected(self):
        """Returns whether a controller is connected, or the switch forwards as a bridge."""
        return ": connected" in self.log() or "are bridged" in self.log()

    def log_file(self):
        """Returns the path of the log."""
        return os.path.join(self.folder, "log")

    def log(self):
        """Returns what the switch wrote to its log."""
        with open(self.log_file(), encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self, deleteIntfs=True):
        """Stops the switch, and deletes its interfaces if asked."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
        super().stop(deleteIntfs)


def iperf(network, seconds=5, port=5001):
    """Measures TCP between the first and the last host, as Mininet's own test of this name does.

    Mininet's own test requires a report of the connection that checks whether the server listens.
    iperf 2.1 (Debian 12) reports no connection without data, so that test never ends, whatever the
    switch.
    """
    client, server = network.hosts[0], network.hosts[-1]
    output("*** Iperf: testing TCP bandwidth between", client, "and", server, "\n")
    server.sendCmd(f"iperf -s -p {port}")
    if not waitListening(client, server.IP(), port, timeout=PATIENCE_S):
        raise RuntimeError(f"{server} cannot be reached from {client} on port {port}")
    sent = client.cmd(f"iperf -p {port} -t {seconds} -c {server.IP()}")
    received = ""
    deadline = time.monotonic() + PATIENCE_S
    while "/sec" not in received and time.monotonic() < deadline:
        received += server.monitor(timeoutms=1000)
    server.sendInt()
    received += server.waitOutput()
    rates = [network._parseIperf(report) for report in (received, sent)]
    output(f"*** Results: {rates}\n")


switches = {"planimeter": PlanimeterSwitch}
tests = {"iperf": iperf}
