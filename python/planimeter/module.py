"""The base class of measurement modules: their events and commands.

Methods that begin with a verb queue a command. planimeter executes the commands in order after the
module has returned.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, ClassVar

from .events import (
    ConnectionFacts,
    DecodeFailed,
    Frame,
    Message,
    PortCounters,
    SendFailed,
    Sent,
    SnmpReply,
    TestSetup,
    Timer,
)
from .parameters import Parameter
from .renamed import earlier_arguments, earlier_methods, hint

NAME = "planimeter_module"
"""Name of a script's module while it runs."""

VERSIONS = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]

CHART_KEYS = {"drawn": "y", "beside": "table"}
"""Earlier keys of charts."""

EARLIER = {
    "shows": "charts",
    "prepared": "setup",
    "unsent": "send_failed",
    "refused": "decode_failed",
    "stream_over": "stream_ended",
    "counted": "port_counters",
    "snmp_answer": "snmp_reply",
    "up": "connected",
    "lost": "disconnected",
}
"""Earlier names in subclasses of `Module`."""


@earlier_arguments(opens="open_at_start", asks_features="request_features")
@dataclass
class Connection:
    """A connection to a switch. It opens before the module starts, unless `open_at_start` is false.

    Before it is up, planimeter sends a SET_CONFIG with `miss_send_len`: the maximum number of frame bytes in a
    packet-in. Open vSwitch sends no packet-ins without it. With None, planimeter sends no SET_CONFIG.
    """

    switch: int = 0
    versions: Sequence[str] = field(default_factory=lambda: list(VERSIONS))
    open_at_start: bool = True
    request_features: bool = True
    miss_send_len: int | None = 65535


@earlier_arguments(ends_when_lost="stop_on_disconnect", answer_s="callback_timeout_s")
@dataclass
class Needs:
    """Requirements of a module: its time limit and its connections.

    `frames_wait_ms` is the maximum time that frames wait, so that Python receives several of them together.
    Messages and timers do not wait. Below 1 ms, each frame is also read from its interface as it arrives.
    `callback_timeout_s` is the time limit for Python's reaction to events; planimeter ends a module that exceeds it.
    """

    limit_s: float = 60.0
    connections: Sequence[Connection] = field(default_factory=lambda: [Connection()])
    drain_s: float = 0.05
    stop_on_disconnect: bool = True
    frames_wait_ms: float = 1.0
    frame_data: bool = False
    callback_timeout_s: float = 10.0

    def to_dict(self) -> dict[str, Any]:
        """Returns them in planimeter's format."""
        return asdict(self)


class Module:
    """A measurement module. The first line of its docstring is its title, the rest describes its method."""

    parameters: ClassVar[Sequence[Parameter]] = ()
    """Parameters for `--set KEY=VALUE`; `self.values` contains the values."""
    axis: ClassVar[str | None] = None
    """Key of an `Integers` parameter. The module runs once for each value, and figures have them on the x axis."""
    charts: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Figures and tables: {"title": ..., "y": [names], "table": [names], "series": [names]}."""
    memory_mib: ClassVar[int] = 1024
    """Memory limit in MiB; above it, Python raises MemoryError."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        earlier_methods(cls, EARLIER)

    def __init__(self, queue: CommandQueue, settings: Mapping[str, Any]) -> None:
        self._queue = queue
        self.values: dict[str, Any] = {
            it.key: it.read(settings["parameters"].get(it.key, it.default)) for it in self.parameters
        }
        self.seed: int = settings["seed"]
        self.repeat: int = settings["repeat"]
        self.defaults: dict[str, Any] = settings["stream"]
        """Addresses that reach the target, by the keys of stream files."""
        self.setup()

    # Events: override the methods of those that the module uses.

    def setup(self) -> None:
        """The module was created, and `self.values` is set."""

    def needs(self) -> Needs:
        """Returns the requirements of the module, before it starts."""
        return Needs()

    def start(self, facts: TestSetup) -> None:
        """The module starts. All connections that open at the start are up."""

    def frame(self, frame: Frame) -> None:
        """A watched frame arrived."""

    def message(self, message: Message) -> None:
        """A message arrived."""

    def sent(self, sent: Sent) -> None:
        """Messages were sent."""

    def send_failed(self, failed: SendFailed) -> None:
        """Messages were not sent."""

    def decode_failed(self, failed: DecodeFailed) -> None:
        """An undecodable message arrived."""

    def timer(self, timer: Timer) -> None:
        """A timer expired."""

    def stream_ended(self, stream: int) -> None:
        """All requested frames of a stream were sent."""

    def port_counters(self, ports: list[PortCounters]) -> None:
        """The result of `counters`."""

    def snmp_reply(self, reply: SnmpReply) -> None:
        """The result of an `snmp` request."""

    def connected(self, connection: int, facts: ConnectionFacts) -> None:
        """A connection that `connect` requested is up."""

    def disconnected(self, connection: int, reason: str) -> None:
        """A connection was lost, or could not be established."""

    def limit_reached(self, name: str) -> None:
        """A limit was reached. Data above it are counted and discarded."""

    def finish(self, ended: str | None) -> None:
        """The run ends: for this reason, or with None if the module itself called `end`. Last chance to report."""

    # Commands.

    @property
    def now(self) -> int:
        """The time of the current event, in nanoseconds."""
        return self._queue.now

    def send(self, *messages: Mapping[str, Any] | str, connection: int = 0) -> int:
        """Sends messages together. Each is a dict with its kind as "type", or only the kind.

        Returns the number that events have in `request`."""
        rows = [{"type": it} if isinstance(it, str) else it for it in messages]
        request = self._queue.number()
        self._queue.put("send", request, connection, rows)
        return request

    def send_raw(self, data: bytes, connection: int = 0) -> int:
        """Sends bytes, which need not be a valid message."""
        request = self._queue.number()
        self._queue.put("raw", request, connection, data.hex())
        return request

    def raw(self, data: bytes, connection: int = 0) -> int:
        """Earlier name of `send_raw`."""
        hint("Module.raw", "send_raw")
        return Module.send_raw(self, data, connection)

    def connect(self, connection: int) -> None:
        """Opens a connection that is not up."""
        self._queue.put("connect", connection)

    def disconnect(self, connection: int) -> None:
        """Closes a connection."""
        self._queue.put("disconnect", connection)

    def prepare(self, **stream: Any) -> None:
        """Prepares a stream with the keys of stream files, including `id`. By default, its addresses are those
        that reach the target. Port numbers of streams start at 1."""
        self._queue.put("prepare", {**self.defaults, **stream})

    def begin(
        self, stream: int, *, at: int | None = None, until: int | None = None, frames: int | None = None
    ) -> None:
        """Starts to send a prepared stream from `at` until `until`, with at most `frames` frames."""
        self._queue.put("begin", stream, at, until, frames)

    def change_rate(self, stream: int, rate_pps: float) -> None:
        """Changes the rate of a stream, effective now."""
        self._queue.put("rate", stream, rate_pps)

    def stop(self, stream: int) -> None:
        """Stops a stream."""
        self._queue.put("stop", stream)

    def watch(self, port: int, what: str | Sequence[int] = "probes") -> None:
        """Selects the frames of a port (numbered from 0) that cause events: "none", "all", "probes", a list of
        stream ids, or a capture filter with one entry per line, as for `planimeter capture --filter`."""
        self._queue.put("watch", port, what)

    def counters(self) -> None:
        """Requests the counters of the ports."""
        self._queue.put("counters")

    def snmp(self, *names: str, kind: str = "get", agent: int = 0) -> int:
        """Queries an SNMP agent (`--set snmp=...`, numbered from 0) for names such as "1.3.6.1.2.1.1.3.0".

        The kind is "get" for their values, "next" for the names after them, or "walk" for all names below
        them. Returns the number that the reply has in `request`."""
        request = self._queue.number()
        self._queue.put("snmp", request, agent, kind, list(names))
        return request

    def timer_at(self, at: int) -> int:
        """Sets a timer for this time. Returns its number."""
        timer = self._queue.number()
        self._queue.put("timer", timer, at)
        return timer

    def timer_in(self, ns: int) -> int:
        """Sets a timer that expires after `ns` nanoseconds. Returns its number."""
        return self.timer_at(self.now + int(ns))

    def cancel(self, timer: int) -> None:
        """Cancels a timer."""
        self._queue.put("cancel", timer)

    def log(self, name: str, **values: float | int | bool | str) -> None:
        """Adds an entry to the log."""
        self._queue.put("log", self.now, name, values)

    def report(
        self, name: str, value: float, resolution: float | None = None, *, count: int = 1, note: str | None = None
    ) -> None:
        """Reports a value. Its name contains its unit (`gap_ns_max`). `resolution` is the maximum error of the
        value, and `count` is the number of observations behind it."""
        self._queue.put("report", name, float(value), resolution, count, note)

    def measured(
        self, name: str, value: float, resolution: float | None = None, *, count: int = 1, note: str | None = None
    ) -> None:
        """Earlier name of `report`."""
        hint("Module.measured", "report")
        Module.report(self, name, value, resolution, count=count, note=note)

    def series(self, name: str, over: str, points: Sequence[tuple[float, float]]) -> None:
        """Reports a series of points."""
        self._queue.put("series", name, over, [[float(x), float(y)] for x, y in points])

    def end(self) -> None:
        """Ends the module. Its measurement is complete."""
        self._queue.put("end")


class CommandQueue:
    """Queue of commands until the module has returned."""

    def __init__(self) -> None:
        self.now = 0
        self.rows: list[str] = []
        self._numbers = 0

    def number(self) -> int:
        """Returns a unique number."""
        self._numbers += 1
        return self._numbers

    def put(self, *row: Any) -> None:
        """Queues a command with the line of the script that it comes from. Raises an error if JSON cannot encode it."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") != NAME:
            frame = frame.f_back
        line = None if frame is None else frame.f_lineno
        self.rows.append(json.dumps([line, *row], separators=(",", ":"), allow_nan=False))
