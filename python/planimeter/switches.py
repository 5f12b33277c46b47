"""A switch to try things on: our OpenFlow switch in memory, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _native

__all__ = ["Switch"]


class Switch:
    """Our OpenFlow switch with its controller. Nothing happens by itself, and the same calls give the same answers.

        switch = Switch(ports=2)
        switch.send({"type": "flow_mod", "match": {"in_port": 1}, "actions": [{"output": 2}]})
        switch.put(1, frame)
        assert switch.take(2) == [frame]

    Messages are said as modules say them (docs/guide).
    """

    def __init__(self, ports: int = 2, version: str = "1.3") -> None:
        self._native = _native.Switch(ports, version)
        self._waiting: list[dict[str, Any]] = []

    @property
    def version(self) -> str | None:
        """The version of OpenFlow that both agreed on."""
        return self._native.version

    @property
    def now(self) -> int:
        """Its time, in nanoseconds."""
        return self._native.now

    def send(self, message: Mapping[str, Any] | str) -> list[dict[str, Any]]:
        """Says a message, a dict with its kind as "type" or the kind alone; what the switch answers to it: nothing, as
        a rule, to what it has done, and an "error" to what it will not do."""
        said = {"type": message} if isinstance(message, str) else dict(message)
        xid = self._native.send(json.dumps(said))
        self._hear()
        answers = [it for it in self._waiting if it["xid"] == xid]
        self._waiting = [it for it in self._waiting if it["xid"] != xid]
        return answers

    def messages(self) -> list[dict[str, Any]]:
        """What the switch said by itself since this was last asked: packet-ins, removed flows, changes of ports."""
        self._hear()
        waiting, self._waiting = self._waiting, []
        return waiting

    def put(self, port: int, frame: bytes) -> None:
        """Puts a frame (without check sequence) on the wire to a port, counted from 1."""
        self._native.put(port, frame)

    def take(self, port: int) -> list[bytes]:
        """The frames that left by a port since this was last asked."""
        return self._native.take(port)

    def pass_time(self, seconds: float) -> None:
        """Lets time pass: timeouts, meters and queues go by it."""
        self._native.pass_ns(round(seconds * 1e9))

    def _hear(self) -> None:
        self._waiting += json.loads(self._native.said())
