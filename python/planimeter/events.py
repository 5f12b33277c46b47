"""What a module is told. Moments (`at`, `first`, `sent_at`...) are nanoseconds on one clock.

`is_moment_known` is false where the tester was away when something came, so that nobody knows when it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Probe:
    """Which frame of which stream it is: its number, and which value of what varies it has (`place`)."""

    stream: int
    number: int
    place: int
    sent_at: int
    is_delay_known: bool
    is_intact: bool


@dataclass(slots=True)
class Frame:
    """A frame that was watched. Its bytes are told where `Needs.frame_data` asks for them."""

    at: int
    port: int
    is_moment_known: bool
    probe: Probe | None
    data: bytes | None


@dataclass(slots=True)
class Message:
    """An OpenFlow message that came. `said` is what `send` gave back for what it answers, if it answers
    anything, and `place` which of the messages that were sent together, from 0. `wire` is when its last byte had
    passed the interface, where that is captured (`--set control_capture=stamps`)."""

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
    """The socket took all that was said together: `first` is before the first byte, `last` after the last, `wire`
    when that had passed the interface, where it is captured and had by now."""

    at: int
    connection: int
    said: int
    first: int
    last: int
    wire: int | None = None


@dataclass(slots=True)
class Unsent:
    """What was to be said is not said, and why."""

    at: int
    connection: int
    said: int
    why: str


@dataclass(slots=True)
class Refused:
    """A message came that nobody can understand."""

    at: int
    connection: int
    why: str


@dataclass(slots=True)
class Timer:
    """A moment that was asked for; `timer` is what `timer_at` gave back."""

    at: int
    timer: int
    due: int


@dataclass(slots=True)
class PortCounters:
    """What a port has counted since it was opened."""

    rx_frames: int
    tx_frames: int
    lost: int


@dataclass(slots=True)
class Snmp:
    """What came of a question to an SNMP agent: `asked` is what `snmp` gave back. `values` has a value for each
    name in the order in which they came: a number, text, or None where the agent has none. `why` says why there
    are no values at all; `sent` is when the datagram left that was answered first, `at` when the last answer came."""

    at: int
    agent: int
    asked: int
    sent: int | None
    rounds: int
    values: dict[str, int | str | None]
    why: str | None


@dataclass(slots=True)
class Port:
    """A port of the tester, counted from 0, and which port of which switch is at its other end."""

    name: str
    switch: int | None
    switch_port: int | None


@dataclass(slots=True)
class ConnectionFacts:
    """What is known of a connection: its version ("1.3"), and what the switch says it is."""

    peer: str
    version: str | None
    datapath_id: int | None
    tables: int | None
    buffers: int | None


@dataclass(slots=True)
class Facts:
    """What is known when a module starts."""

    ports: list[Port]
    connections: list[ConnectionFacts]
    is_simulated: bool
    agents: list[str]
