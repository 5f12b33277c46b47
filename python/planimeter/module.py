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
    Facts,
    Frame,
    Message,
    PortCounters,
    Refused,
    Sent,
    Snmp,
    Timer,
    Unsent,
)
from .parameters import Parameter

NAME = "planimeter_module"
"""Name of a script's module while it runs."""

VERSIONS = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]


@dataclass
class Connection:
    """A connection to a switch. It opens before the module starts, unless `opens` is false.

    Before it is up, planimeter sends a SET_CONFIG with `miss_send_len`: the maximum number of frame bytes in a
    packet-in. Open vSwitch sends no packet-ins without it. With None, planimeter sends no SET_CONFIG.
    """

    switch: int = 0
    versions: Sequence[str] = field(default_factory=lambda: list(VERSIONS))
    opens: bool = True
    asks_features: bool = True
    miss_send_len: int | None = 65535


@dataclass
class Needs:
    """Requirements of a module: its time limit and its connections.

    `frames_wait_ms` is the maximum time that frames wait, so that Python receives several of them together.
    Messages and timers do not wait. Below 1 ms, each frame is also read from its interface as it arrives.
    `answer_s` is the time limit for Python's reaction to events; planimeter ends a module that exceeds it.
    """

    limit_s: float = 60.0
    connections: Sequence[Connection] = field(default_factory=lambda: [Connection()])
    drain_s: float = 0.05
    ends_when_lost: bool = True
    frames_wait_ms: float = 1.0
    frame_data: bool = False
    answer_s: float = 10.0

    def told(self) -> dict[str, Any]:
        """Returns them in planimeter's format."""
        return asdict(self)


class Module:
    """A measurement module. The first line of its docstring is its title, the rest describes its method."""

    parameters: ClassVar[Sequence[Parameter]] = ()
    """Parameters for `--set KEY=VALUE`; `self.values` contains the values."""
    axis: ClassVar[str | None] = None
    """Key of an `Integers` parameter. The module runs once for each value, and figures have them on the x axis."""
    shows: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Figures and tables: {"title": ..., "drawn": [names], "beside": [names], "series": [names]}."""
    memory_mib: ClassVar[int] = 1024
    """Memory limit in MiB; above it, Python raises MemoryError."""

    def __init__(self, desk: Desk, setup: Mapping[str, Any]) -> None:
        self._desk = desk
        self.values: dict[str, Any] = {
            it.key: it.read(setup["parameters"].get(it.key, it.default)) for it in self.parameters
        }
        self.seed: int = setup["seed"]
        self.repeat: int = setup["repeat"]
        self.defaults: dict[str, Any] = setup["stream"]
        """Addresses that reach the target, by the keys of stream files."""
        self.prepared()

    # Events: override the methods of those that the module uses.

    def prepared(self) -> None:
        """The module was created, and `self.values` is set."""

    def needs(self) -> Needs:
        """Returns the requirements of the module, before it starts."""
        return Needs()

    def start(self, facts: Facts) -> None:
        """The module starts. All connections that open at the start are up."""

    def frame(self, frame: Frame) -> None:
        """A watched frame arrived."""

    def message(self, message: Message) -> None:
        """A message arrived."""

    def sent(self, sent: Sent) -> None:
        """Messages were sent."""

    def unsent(self, unsent: Unsent) -> None:
        """Messages were not sent."""

    def refused(self, refused: Refused) -> None:
        """An undecodable message arrived."""

    def timer(self, timer: Timer) -> None:
        """A timer expired."""

    def stream_over(self, stream: int) -> None:
        """All requested frames of a stream were sent."""

    def counted(self, ports: list[PortCounters]) -> None:
        """The result of `counters`."""

    def snmp_answer(self, answer: Snmp) -> None:
        """The result of an `snmp` request."""

    def up(self, connection: int, facts: ConnectionFacts) -> None:
        """A connection that `connect` requested is up."""

    def lost(self, connection: int, why: str) -> None:
        """A connection was lost, or could not be established."""

    def limit_reached(self, name: str) -> None:
        """A limit was reached. Data above it are counted and discarded."""

    def finish(self, ended: str | None) -> None:
        """The run ends: for this reason, or with None if the module itself called `end`. Last chance to report."""

    # Commands.

    @property
    def now(self) -> int:
        """The time of the current event, in nanoseconds."""
        return self._desk.now

    def send(self, *messages: Mapping[str, Any] | str, connection: int = 0) -> int:
        """Sends messages together. Each is a dict with its kind as "type", or only the kind.

        Returns the number that events have in `said`."""
        rows = [{"type": it} if isinstance(it, str) else it for it in messages]
        said = self._desk.number()
        self._desk.put("send", said, connection, rows)
        return said

    def raw(self, data: bytes, connection: int = 0) -> int:
        """Sends bytes, which need not be a valid message."""
        said = self._desk.number()
        self._desk.put("raw", said, connection, data.hex())
        return said

    def connect(self, connection: int) -> None:
        """Opens a connection that is not up."""
        self._desk.put("connect", connection)

    def disconnect(self, connection: int) -> None:
        """Closes a connection."""
        self._desk.put("disconnect", connection)

    def prepare(self, **stream: Any) -> None:
        """Prepares a stream with the keys of stream files, including `id`. By default, its addresses are those
        that reach the target. Port numbers of streams start at 1."""
        self._desk.put("prepare", {**self.defaults, **stream})

    def begin(
        self, stream: int, *, at: int | None = None, until: int | None = None, frames: int | None = None
    ) -> None:
        """Starts to send a prepared stream from `at` until `until`, with at most `frames` frames."""
        self._desk.put("begin", stream, at, until, frames)

    def change_rate(self, stream: int, rate_pps: float) -> None:
        """Changes the rate of a stream, effective now."""
        self._desk.put("rate", stream, rate_pps)

    def stop(self, stream: int) -> None:
        """Stops a stream."""
        self._desk.put("stop", stream)

    def watch(self, port: int, what: str | Sequence[int] = "probes") -> None:
        """Selects the frames of a port (numbered from 0) that cause events: "none", "all", "probes", a list of
        stream ids, or a capture filter with one entry per line, as for `planimeter capture --filter`."""
        self._desk.put("watch", port, what)

    def counters(self) -> None:
        """Requests the counters of the ports."""
        self._desk.put("counters")

    def snmp(self, *names: str, kind: str = "get", agent: int = 0) -> int:
        """Queries an SNMP agent (`--set snmp=...`, numbered from 0) for names such as "1.3.6.1.2.1.1.3.0".

        The kind is "get" for their values, "next" for the names after them, or "walk" for all names below
        them. Returns the number that the reply has in `asked`."""
        asked = self._desk.number()
        self._desk.put("snmp", asked, agent, kind, list(names))
        return asked

    def timer_at(self, at: int) -> int:
        """Sets a timer for this time. Returns its number."""
        timer = self._desk.number()
        self._desk.put("timer", timer, at)
        return timer

    def timer_in(self, ns: int) -> int:
        """Sets a timer that expires after `ns` nanoseconds. Returns its number."""
        return self.timer_at(self.now + int(ns))

    def cancel(self, timer: int) -> None:
        """Cancels a timer."""
        self._desk.put("cancel", timer)

    def log(self, name: str, **values: float | int | bool | str) -> None:
        """Adds an entry to the log."""
        self._desk.put("log", self.now, name, values)

    def measured(
        self, name: str, value: float, resolution: float | None = None, *, count: int = 1, note: str | None = None
    ) -> None:
        """Reports a value. Its name contains its unit (`gap_ns_max`). `resolution` is the maximum error of the
        value, and `count` is the number of observations behind it."""
        self._desk.put("measured", name, float(value), resolution, count, note)

    def series(self, name: str, over: str, points: Sequence[tuple[float, float]]) -> None:
        """Reports a series of points."""
        self._desk.put("series", name, over, [[float(x), float(y)] for x, y in points])

    def end(self) -> None:
        """Ends the module. Its measurement is complete."""
        self._desk.put("end")


class Desk:
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
