"""Events of a measurement module. All times (`at`, `first`, `sent_at`...) are nanoseconds on one clock.

`is_moment_known` is false if the tester stalled when the frame or message arrived, so that its time is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Probe:
    """Identity of a frame: its stream, its number, and the index of its varying value (`place`)."""

    stream: int
    number: int
    place: int
    sent_at: int
    is_delay_known: bool
    is_intact: bool


@dataclass(slots=True)
class Frame:
    """A watched frame. It has its bytes if `Needs.frame_data` requests them."""

    at: int
    port: int
    is_moment_known: bool
    probe: Probe | None
    data: bytes | None


@dataclass(slots=True)
class Message:
    """A received OpenFlow message.

    For a reply, `said` is the number that `send` returned for the request, and `place` is the index of the request
    among the messages sent together, from 0. `wire` is the time when its last byte passed the interface, if that is
    captured (`--set control_capture=timestamps`)."""

    at: int
    connection: int
    kind: str
    xid: int
    bytes: int
    is_moment_known: bool
    said: int | None
    place: int | None
    probe: Probe | None
    body: dict[str, Any] = field(default_factory=dict)
    wire: int | None = None


@dataclass(slots=True)
class Sent:
    """The socket accepted all messages that were sent together.

    `first` is the time before the first byte, `last` the time after the last byte. `wire` is the time when the last
    byte passed the interface, if that is captured and known by now."""

    at: int
    connection: int
    said: int
    first: int
    last: int
    wire: int | None = None


@dataclass(slots=True)
class Unsent:
    """Messages that were not sent, and the reason."""

    at: int
    connection: int
    said: int
    why: str


@dataclass(slots=True)
class Refused:
    """An undecodable message arrived."""

    at: int
    connection: int
    why: str


@dataclass(slots=True)
class Timer:
    """A timer expired. `timer` is the number that `timer_at` returned."""

    at: int
    timer: int
    due: int


@dataclass(slots=True)
class PortCounters:
    """Counters of a port since it was opened."""

    rx_frames: int
    tx_frames: int
    lost: int


@dataclass(slots=True)
class Snmp:
    """The result of an SNMP request. `asked` is the number that `snmp` returned.

    `values` has a value for each name in the order of the reply: a number, text, or None if the agent has no value.
    `why` is the reason if there are no values. `sent` is the send time of the datagram that was answered first, and
    `at` is the arrival time of the last reply."""

    at: int
    agent: int
    asked: int
    sent: int | None
    rounds: int
    values: dict[str, int | str | None]
    why: str | None


@dataclass(slots=True)
class Port:
    """A port of the tester, numbered from 0, with the switch and the port at its other end."""

    name: str
    switch: int | None
    switch_port: int | None


@dataclass(slots=True)
class ConnectionFacts:
    """Properties of a connection: its version ("1.3"), and the features that the switch reports."""

    peer: str
    version: str | None
    datapath_id: int | None
    tables: int | None
    buffers: int | None


@dataclass(slots=True)
class Facts:
    """Ports, connections and agents at the start of a module."""

    ports: list[Port]
    connections: list[ConnectionFacts]
    is_simulated: bool
    agents: list[str]
