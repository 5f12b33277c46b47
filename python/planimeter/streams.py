"""Streams of frames with varying fields and a schedule, described by the keys of stream files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from .renamed import hint

__all__ = ["Stream", "write_streams"]


class Stream:
    """A stream: `Stream(frame_bytes=64, rate_pps=1000, mac_source=..., vary=[{"count": 100, ...}])`.

    Its keys are those of stream files, which the guide describes. `id`, `from_port` and `to_port` (1, 1 and 2) are
    the keys `id`, `from` and `to`. Invalid keys raise an exception immediately.
    """

    def __init__(self, *, id: int = 1, from_port: int = 1, to_port: int = 2, **keys: Any) -> None:
        self.keys: dict[str, Any] = {"id": id, "from": from_port, "to": to_port, **keys}
        self._native = _native.Stream(self.to_toml())

    def to_toml(self) -> str:
        """Returns the text of a stream file, for `planimeter generate --stream` and `--set stream=`."""
        return "[[stream]]\n" + "".join(_lines(self.keys, "stream"))

    def frame(self, number: int) -> bytes:
        """Returns frame `number`, from 0, without its frame check sequence. Its signature belongs to no run."""
        return self._native.frame(number)

    def frames(self, count: int) -> Iterator[tuple[int, bytes]]:
        """Yields the first frames, each with its send time in nanoseconds."""
        return ((self.send_time(number), self.frame(number)) for number in range(count))

    def send_time(self, number: int) -> int:
        """Returns the send time of frame `number`, in nanoseconds after the start of the stream."""
        return self._native.moment(number)

    def moment(self, number: int) -> int:
        """Earlier name of `send_time`."""
        hint("Stream.moment", "send_time")
        return self.send_time(number)

    @property
    def rate_pps(self) -> float:
        """Frames per second."""
        return self._native.rate_pps

    @property
    def frame_bytes_mean(self) -> float:
        """Mean frame size, including the frame check sequence."""
        return self._native.frame_bytes_mean

    @property
    def flow_count(self) -> int:
        """Number of different headers of its frames."""
        return self._native.flow_count

    def write_capture(self, path: str | os.PathLike[str], frames: int) -> Path:
        """Writes this many frames to a pcap or pcapng file (by its name), for `planimeter generate --pcap`."""
        self._native.write(Path(path), frames)
        return Path(path)

    def __repr__(self) -> str:
        return f"<Stream {self.keys['id']}: {self.rate_pps:g} frames/s of {self.frame_bytes_mean:g} bytes>"


def write_streams(path: str | os.PathLike[str], streams: Sequence[Stream]) -> Path:
    """Writes streams to a stream file."""
    file = Path(path)
    file.write_text("\n".join(it.to_toml() for it in streams), encoding="utf-8")
    return file


def _lines(keys: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yields keys with values, followed by nested tables (TOML)."""
    tables = [key for key, value in keys.items() if _is_tables(value)]
    for key, value in keys.items():
        if key not in tables:
            yield f"{key} = {_value(value)}\n"
    for key in tables:
        for table in keys[key]:
            yield f"\n[[{place}.{key}]]\n"
            yield from _lines(table, f"{place}.{key}")


def _is_tables(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and bool(value) and all(isinstance(it, Mapping) for it in value)  # type: ignore[attr-defined]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(it)}" for key, it in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise TypeError(f"a stream file cannot contain {value!r}")
