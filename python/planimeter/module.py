"""The base class of modules: what they are told, and what they can do.

Methods that begin with a verb put something onto the desk; planimeter does it, in order, when the module
has returned.
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
"""What a script is called while it runs."""

VERSIONS = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]


@dataclass
class Connection:
    """A connection to a switch, which opens before the module starts unless `opens` is false.

    Before it is up, planimeter sends a SET_CONFIG with `miss_send_len`: the bytes of a frame that a packet-in carries.
    Open vSwitch sends no packet-ins without it. None sends no SET_CONFIG.
    """

    switch: int = 0
    versions: Sequence[str] = field(default_factory=lambda: list(VERSIONS))
    opens: bool = True
    asks_features: bool = True
    miss_send_len: int | None = 65535


@dataclass
class Needs:
    """What a module needs: the longest it may take, and its connections.

    `frames_wait_ms` is how long frames may wait for others before Python is told of them together; messages
    and timers are told at once; below 1 ms each frame is also fetched from its interface as it comes. `answer_s` is how long Python may think before the module is ended.
    """

    limit_s: float = 60.0
    connections: Sequence[Connection] = field(default_factory=lambda: [Connection()])
    drain_s: float = 0.05
    ends_when_lost: bool = True
    frames_wait_ms: float = 1.0
    frame_data: bool = False
    answer_s: float = 10.0

    def told(self) -> dict[str, Any]:
        """As planimeter is told of them."""
        return asdict(self)


class Module:
    """A measurement module. The first line of its doc is its title, the rest its method."""

    parameters: ClassVar[Sequence[Parameter]] = ()
    """What can be set by `--set KEY=VALUE`; the values are in `self.values`."""
    axis: ClassVar[str | None] = None
    """The key of an `Integers` parameter: the module runs once for each of its values, drawn over them."""
    shows: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Figures and tables: {"title": ..., "drawn": [names], "beside": [names], "series": [names]}."""
    memory_mib: ClassVar[int] = 1024
    """Memory that it may take; beyond that Python raises MemoryError."""

    def __init__(self, desk: Desk, setup: Mapping[str, Any]) -> None:
        self._desk = desk
        self.values: dict[str, Any] = {
            it.key: it.read(setup["parameters"].get(it.key, it.default)) for it in self.parameters
        }
        self.seed: int = setup["seed"]
        self.repeat: int = setup["repeat"]
        self.defaults: dict[str, Any] = setup["stream"]
        """Addresses that reach the target, as a stream file has them."""
        self.prepared()

    # What it is told: override what is wanted.

    def prepared(self) -> None:
        """It was made, and `self.values` are there."""

    def needs(self) -> Needs:
        """What it needs before it starts."""
        return Needs()

    def start(self, facts: Facts) -> None:
        """It begins, and every connection that opens is up."""

    def frame(self, frame: Frame) -> None:
        """A watched frame arrived."""

    def message(self, message: Message) -> None:
        """A message came."""

    def sent(self, sent: Sent) -> None:
        """What was said has left."""

    def unsent(self, unsent: Unsent) -> None:
        """What was to be said was not."""

    def refused(self, refused: Refused) -> None:
        """A message came that nobody can understand."""

    def timer(self, timer: Timer) -> None:
        """A moment has come."""

    def stream_over(self, stream: int) -> None:
        """All frames of a stream were sent that were asked for."""

    def counted(self, ports: list[PortCounters]) -> None:
        """What `counters` asked for."""

    def snmp_answer(self, answer: Snmp) -> None:
        """What came of a question that `snmp` asked."""

    def up(self, connection: int, facts: ConnectionFacts) -> None:
        """A connection that `connect` asked for is up."""

    def lost(self, connection: int, why: str) -> None:
        """A connection was lost, or could not be made."""

    def limit_reached(self, name: str) -> None:
        """What is beyond the limit of this name is counted and left out."""

    def finish(self, ended: str | None) -> None:
        """It is over, for the given reason unless the module said so itself. The last words."""

    # What it can do.

    @property
    def now(self) -> int:
        """The moment of the event that is being told."""
        return self._desk.now

    def send(self, *messages: Mapping[str, Any] | str, connection: int = 0) -> int:
        """Says messages together, each a dict with its kind as "type", or the kind alone. What events call
        `said`."""
        rows = [{"type": it} if isinstance(it, str) else it for it in messages]
        said = self._desk.number()
        self._desk.put("send", said, connection, rows)
        return said

    def raw(self, data: bytes, connection: int = 0) -> int:
        """Says bytes, which may be no message at all."""
        said = self._desk.number()
        self._desk.put("raw", said, connection, data.hex())
        return said

    def connect(self, connection: int) -> None:
        """Makes a connection that is not up."""
        self._desk.put("connect", connection)

    def disconnect(self, connection: int) -> None:
        """Ends a connection."""
        self._desk.put("disconnect", connection)

    def prepare(self, **stream: Any) -> None:
        """Makes a stream ready: the keys of stream files, `id` first; addresses are those that reach the
        target unless given. Ports of streams count from 1."""
        self._desk.put("prepare", {**self.defaults, **stream})

    def begin(
        self, stream: int, *, at: int | None = None, until: int | None = None, frames: int | None = None
    ) -> None:
        """Sends frames of a stream that is ready, from `at` until `until`, `frames` at most."""
        self._desk.put("begin", stream, at, until, frames)

    def change_rate(self, stream: int, rate_pps: float) -> None:
        """Has a stream sent at this rate from now on."""
        self._desk.put("rate", stream, rate_pps)

    def stop(self, stream: int) -> None:
        """Sends no more frames of a stream."""
        self._desk.put("stop", stream)

    def watch(self, port: int, what: str | Sequence[int] = "probes") -> None:
        """Which frames of a port (from 0) are told: "none", "all", "probes", those of these streams, or those
        that a capture filter keeps: an entry a line, as `planimeter capture --filter` has them."""
        self._desk.put("watch", port, what)

    def counters(self) -> None:
        """Asks for the ports' counters."""
        self._desk.put("counters")

    def snmp(self, *names: str, kind: str = "get", agent: int = 0) -> int:
        """Asks an SNMP agent (`--set snmp=...`, counted from 0) for names such as "1.3.6.1.2.1.1.3.0": "get" their
        values, "next" what is behind them, "walk" all that is below them. What the answer calls `asked`."""
        asked = self._desk.number()
        self._desk.put("snmp", asked, agent, kind, list(names))
        return asked

    def timer_at(self, at: int) -> int:
        """Asks to be told at this moment."""
        timer = self._desk.number()
        self._desk.put("timer", timer, at)
        return timer

    def timer_in(self, ns: int) -> int:
        """Asks to be told after so long."""
        return self.timer_at(self.now + int(ns))

    def cancel(self, timer: int) -> None:
        """Takes a timer back."""
        self._desk.put("cancel", timer)

    def log(self, name: str, **values: float | int | bool | str) -> None:
        """Puts a record into the log."""
        self._desk.put("log", self.now, name, values)

    def measured(
        self, name: str, value: float, resolution: float | None = None, *, count: int = 1, note: str | None = None
    ) -> None:
        """Tells a number: its unit is a word of its name (`gap_ns_max`), `resolution` how far the truth may
        be from it, `count` of how many things it tells."""
        self._desk.put("measured", name, float(value), resolution, count, note)

    def series(self, name: str, over: str, points: Sequence[tuple[float, float]]) -> None:
        """Tells a row of points."""
        self._desk.put("series", name, over, [[float(x), float(y)] for x, y in points])

    def end(self) -> None:
        """The module has all that it wanted."""
        self._desk.put("end")


class Desk:
    """Where what is to be done waits until the module has returned."""

    def __init__(self) -> None:
        self.now = 0
        self.rows: list[str] = []
        self._numbers = 0

    def number(self) -> int:
        """A number that nothing else has."""
        self._numbers += 1
        return self._numbers

    def put(self, *row: Any) -> None:
        """One thing to do, with the script's line that says it. What JSON cannot say is an error here."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") != NAME:
            frame = frame.f_back
        line = None if frame is None else frame.f_lineno
        self.rows.append(json.dumps([line, *row], separators=(",", ":"), allow_nan=False))
