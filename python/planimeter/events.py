"""Events of a measurement module. All times (`at`, `first`, `sent_at`...) are nanoseconds on one clock.

`is_timestamp_valid` is false if the tester stalled when the frame or message arrived, so that its time is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .renamed import Renamed


@dataclass(slots=True)
class Probe:
    """Identity of a frame: its stream, its number, and the index of its varying value."""

    stream: int
    number: int
    index: int
    sent_at: int
    is_delay_known: bool
    is_intact: bool

    place = Renamed("index")


@dataclass(slots=True)
class Frame:
    """A watched frame. It has its bytes if `Needs.frame_data` requests them."""

    at: int
    port: int
    is_timestamp_valid: bool
    probe: Probe | None
    data: bytes | None

    is_moment_known = Renamed("is_timestamp_valid")


@dataclass(slots=True)
class Message:
    """A received OpenFlow message.

    For a reply, `request` is the number that `send` returned, and `index` is the index of the request among the
    messages sent together, from 0. `wire` is the time when its last byte passed the interface, if that is
    captured (`--set control_capture=timestamps`)."""

    at: int
    connection: int
    kind: str
    xid: int
    bytes: int
    is_timestamp_valid: bool
    request: int | None
    index: int | None
    probe: Probe | None
    body: dict[str, Any] = field(default_factory=dict)
    wire: int | None = None

    is_moment_known = Renamed("is_timestamp_valid")
    said = Renamed("request")
    place = Renamed("index")


@dataclass(slots=True)
class Sent:
    """The socket accepted all messages that were sent together.

    `first` is the time before the first byte, `last` the time after the last byte. `wire` is the time when the last
    byte passed the interface, if that is captured and known by now."""

    at: int
    connection: int
    request: int
    first: int
    last: int
    wire: int | None = None

    said = Renamed("request")


@dataclass(slots=True)
class SendFailed:
    """Messages that were not sent."""

    at: int
    connection: int
    request: int
    reason: str

    said = Renamed("request")
    why = Renamed("reason")


@dataclass(slots=True)
class DecodeFailed:
    """An undecodable message arrived."""

    at: int
    connection: int
    reason: str

    why = Renamed("reason")


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
class SnmpReply:
    """The result of an SNMP request. `request` is the number that `snmp` returned.

    `values` has a value for each name in the order of the reply: a number, text, or None if the agent has no value.
    `reason` states why there are no values. `sent` is the send time of the datagram that was answered first, and
    `at` is the arrival time of the last reply."""

    at: int
    agent: int
    request: int
    sent: int | None
    rounds: int
    values: dict[str, int | str | None]
    reason: str | None

    asked = Renamed("request")
    why = Renamed("reason")


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
class TestSetup:
    """Ports, connections and agents at the start of a module."""

    ports: list[Port]
    connections: list[ConnectionFacts]
    is_simulated: bool
    agents: list[str]
