"""Adds rules, and compares the barrier reply with the activation of each rule, which probes detect.

The same measurement as `planimeter run rule-activation`, as a script:

    planimeter run python/examples/barrier_gap.py --on switch --effort quick
"""

from planimeter import Frame, Integers, Message, Module, Needs, Number, Sent, TestSetup, Timer

NEAR, FAR = 0, 1  # ports of the tester: it sends probes through the first, and rules forward them to the second
PROBES = 1  # the stream
LEAD_NS = 50_000_000


class BarrierGap(Module):
    """Gap between the barrier reply and the activation of the last rule.

    The module adds all rules together, followed by a barrier, while probes visit each rule in turn. A probe
    without a matching rule returns to its port.
    """

    parameters = [
        Integers("rules_count", 1, 10_000, default=[100, 1000], unit="rules", help="number of rules added together"),
        Number("probes_pps", 1, 2e7, default=100_000, unit="frames/s", help="probe rate for all rules together"),
        Number("timeout_s", 0.1, 600, default=10, unit="s", help="time limit for rule activation"),
    ]
    axis = "rules_count"
    charts = [
        {
            "title": "Rule activation delay and barrier reply time",
            "y": ["data_plane_ns", "control_plane_ns"],
            "table": ["barrier_gap_ns_max", "rules_active_ratio", "rules_premature_ratio"],
        },
        {
            "title": "Processing time in Python",
            "y": ["python_answer_ns_max"],
            "table": ["python_cpu_ns", "python_events_count", "python_bytes"],
        },
    ]

    def setup(self) -> None:
        self.count: int = self.values["rules_count"][0]
        self.phase = "preparing"
        self.barrier: int | None = None
        self.waits_for: int | None = None
        self.first_ns: int | None = None
        self.answered_ns: int | None = None
        self.new_first: dict[int, int] = {}  # for each rule, send time of the first forwarded probe
        self.old_last: dict[int, int] = {}  # for each rule, send time of the last returned probe
        self.stale: set[int] = set()
        self.way_ns: int | None = None

    def needs(self) -> Needs:
        return Needs(limit_s=2 * self.values["timeout_s"] + 4 * self.round_ns() / 1e9 + 10)

    def round_ns(self) -> int:
        """Returns the time in which probes visit every rule once."""
        return int(self.count / self.values["probes_pps"] * 1e9)

    def start(self, facts: TestSetup) -> None:
        nothing = {"type": "flow_mod", "command": "delete", "table": 255}
        back = {"type": "flow_mod", "priority": 0, "actions": [{"output": "in_port"}]}
        self.barrier = self.send(nothing, back, "barrier_request")
        varied = {"first": "10.64.0.0", "step": 1}
        vary = [{"count": self.count, "order": "sequential", "ip_destination": varied}]
        self.prepare(
            id=PROBES,
            frame_bytes=96,
            rate_pps=self.values["probes_pps"],
            vary=vary,
            ip_destination="10.64.0.0",
        )
        for port in (NEAR, FAR):
            self.watch(port, [PROBES])

    def message(self, message: Message) -> None:
        if message.kind != "barrier_reply" or message.request != self.barrier:
            return
        if self.phase == "preparing":
            self.phase = "quiet"
            self.begin(PROBES)
            self.waits_for = self.timer_in(self.round_ns() + LEAD_NS)
        else:
            self.answered_ns = message.at
            self.look()

    def sent(self, sent: Sent) -> None:
        if self.phase == "updating" and sent.request == self.barrier:
            self.first_ns = sent.first

    def timer(self, timer: Timer) -> None:
        if timer.timer != self.waits_for:
            return
        if self.phase == "quiet":
            self.phase = "updating"
            rules = [
                {
                    "type": "flow_mod",
                    "match": {"eth_type": 0x0800, "ipv4_dst": f"10.64.{place >> 8}.{place & 255}"},
                    "actions": [{"output": 2}],
                }
                for place in range(self.count)
            ]
            self.barrier = self.send(*rules, "barrier_request")
            self.waits_for = self.timer_in(int(self.values["timeout_s"] * 1e9))
        else:
            self.end()

    def frame(self, frame: Frame) -> None:
        probe = frame.probe
        if probe is None:
            return
        rule, is_new = probe.index, frame.port == FAR
        if not is_new:
            self.old_last[rule] = max(self.old_last.get(rule, 0), probe.sent_at)
            if self.answered_ns is not None and probe.sent_at > self.answered_ns:
                self.stale.add(rule)
            return
        if self.first_ns is None or probe.sent_at < self.first_ns:
            return
        way = frame.at - probe.sent_at
        self.way_ns = way if self.way_ns is None else min(self.way_ns, way)
        self.new_first[rule] = min(self.new_first.get(rule, probe.sent_at), probe.sent_at)
        self.look()

    def look(self) -> None:
        """Checks whether all rules are active; then observes for a while whether they stay active."""
        is_done = len(self.new_first) == self.count and self.answered_ns is not None
        if self.phase == "updating" and is_done:
            self.phase = "watching"
            self.waits_for = self.timer_in(self.round_ns() + LEAD_NS)

    def acted(self, rule: int) -> tuple[int, int]:
        """Returns the activation time of a rule and its maximum error.

        The rule became active between the last returned probe and the first forwarded one. A probe reaches the
        rule after half of its transit time."""
        new = self.new_first[rule]
        old = self.old_last.get(rule, new)
        since = max(old if old < new else new, self.first_ns or 0)
        until = max(new + 2 * ((self.way_ns or 0) // 2), since)
        half = (until - since) // 2
        return since + half, half

    def finish(self, ended: str | None) -> None:
        if self.first_ns is None:
            return
        self.report("rules_active_ratio", len(self.new_first) / self.count, 0, count=self.count)
        if self.answered_ns is None:
            return
        control = self.answered_ns - self.first_ns
        self.report("control_plane_ns", control, 0, count=self.count)
        self.report("rules_premature_ratio", len(self.stale) / self.count, 0, count=self.count)
        if len(self.new_first) == self.count:
            at, half = max(self.acted(rule) for rule in self.new_first)
            self.report("data_plane_ns", at - self.first_ns, half, count=self.count)
            self.report("barrier_gap_ns_max", at - self.first_ns - control, half, count=self.count)
