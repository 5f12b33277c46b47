"""Our OpenFlow switch in memory and in virtual time, for experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _native

__all__ = ["Switch"]


class Switch:
    """Our OpenFlow switch with its controller. Only calls change its state, and equal calls give equal results.

        switch = Switch(ports=2)
        switch.send({"type": "flow_mod", "match": {"in_port": 1}, "actions": [{"output": 2}]})
        switch.put(1, frame)
        assert switch.take(2) == [frame]

    Messages have the format of measurement modules (docs/guide).
    """

    def __init__(self, ports: int = 2, version: str = "1.3") -> None:
        self._native = _native.Switch(ports, version)
        self._waiting: list[dict[str, Any]] = []

    @property
    def version(self) -> str | None:
        """The negotiated OpenFlow version."""
        return self._native.version

    @property
    def now(self) -> int:
        """Its virtual time in nanoseconds."""
        return self._native.now

    def send(self, message: Mapping[str, Any] | str) -> list[dict[str, Any]]:
        """Sends a message, a dict with its kind as "type", or only the kind. Returns the replies of the switch.

        A successful change usually has no reply; a rejected one has an "error"."""
        said = {"type": message} if isinstance(message, str) else dict(message)
        xid = self._native.send(json.dumps(said))
        self._hear()
        answers = [it for it in self._waiting if it["xid"] == xid]
        self._waiting = [it for it in self._waiting if it["xid"] != xid]
        return answers

    def messages(self) -> list[dict[str, Any]]:
        """Returns asynchronous messages since the last call: packet-in, flow-removed and port-status messages."""
        self._hear()
        waiting, self._waiting = self._waiting, []
        return waiting

    def put(self, port: int, frame: bytes) -> None:
        """Sends a frame (without frame check sequence) to a port, numbered from 1."""
        self._native.put(port, frame)

    def take(self, port: int) -> list[bytes]:
        """Returns the frames that left through a port since the last call."""
        return self._native.take(port)

    def pass_time(self, seconds: float) -> None:
        """Advances the time, which timeouts, meters and queues depend on."""
        self._native.pass_ns(round(seconds * 1e9))

    def _hear(self) -> None:
        self._waiting += json.loads(self._native.said())
