"""The peer of planimeter in the module's process: reads events, calls the module, and writes commands.

Each line is a JSON array. planimeter writes any number of events and then ["batch", n]. This program
writes only replies to that, which end with [null, "done", n]. Each row of a reply begins with the line
of the script that it comes from. Output of the module goes to standard error.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import inspect
import json
import os
import resource
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from .events import (
    ConnectionFacts,
    DecodeFailed,
    Frame,
    Message,
    Port,
    PortCounters,
    Probe,
    SendFailed,
    Sent,
    SnmpReply,
    TestSetup,
    Timer,
)
from .module import CHART_KEYS, NAME, CommandQueue, Module
from .renamed import earlier_keys


def load(path: str) -> type[Module]:
    """Returns the module class of a script."""
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(NAME, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    script: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = script
    spec.loader.exec_module(script)
    own = [
        it
        for it in vars(script).values()
        if inspect.isclass(it) and issubclass(it, Module) and it.__module__ == NAME
    ]
    leaves = [it for it in own if not any(other is not it and issubclass(other, it) for other in own)]
    if len(leaves) != 1:
        names = ", ".join(it.__name__ for it in leaves) or "none"
        raise TypeError(f"{path} must have one class derived from planimeter.Module: found {names}")
    return leaves[0]


def described(kind: type[Module]) -> dict[str, Any]:
    """Returns the description that planimeter needs before a run."""
    doc = inspect.getdoc(kind) if kind.__doc__ else ""
    title, _, method = (doc or kind.__name__).partition("\n")
    return {
        "title": title.strip().rstrip("."),
        "method": " ".join(method.split()),
        "axis": kind.axis,
        "parameters": [it.described() for it in kind.parameters],
        "charts": [earlier_keys(it, CHART_KEYS) for it in kind.charts],
    }


def fault(path: str, error: BaseException) -> dict[str, Any]:
    """Returns an error with its line in the script."""
    own = str(Path(path).resolve())
    rows = traceback.extract_tb(error.__traceback__)
    here = [row for row in rows if str(Path(row.filename).resolve()) == own]
    line = here[-1].lineno if here else None
    if isinstance(error, SyntaxError) and error.filename and str(Path(error.filename).resolve()) == own:
        line = error.lineno
    text = "".join(traceback.format_exception(error))
    return {"line": line, "kind": type(error).__name__, "message": str(error), "traceback": text}


class Dispatcher:
    """Converts rows to calls of the module's methods."""

    def __init__(self, module: Module, queue: CommandQueue) -> None:
        self.module = module
        self.queue = queue

    def dispatch(self, row: list[Any]) -> None:
        """Delivers one event."""
        self.queue.now = row[1]
        getattr(self, "on_" + row[0])(row)

    def on_frame(self, row: list[Any]) -> None:
        _, at, port, flags, probe, data = row
        bytes_ = None if data is None else bytes.fromhex(data)
        self.module.frame(Frame(at, port, bool(flags), _probe(probe), bytes_))

    def on_message(self, row: list[Any]) -> None:
        _, at, connection, kind, xid, size, is_valid, request, index, probe, body, wire = row
        message = Message(at, connection, kind, xid, size, is_valid, request, index, _probe(probe), body, wire)
        self.module.message(message)

    def on_start(self, row: list[Any]) -> None:
        facts = row[2]
        self.module.start(
            TestSetup(
                [Port(**it) for it in facts["ports"]],
                [ConnectionFacts(**it) for it in facts["connections"]],
                facts["is_simulated"],
                facts["agents"],
            )
        )

    def on_sent(self, row: list[Any]) -> None:
        self.module.sent(Sent(*row[1:]))

    def on_send_failed(self, row: list[Any]) -> None:
        self.module.send_failed(SendFailed(*row[1:]))

    def on_decode_failed(self, row: list[Any]) -> None:
        self.module.decode_failed(DecodeFailed(*row[1:]))

    def on_timer(self, row: list[Any]) -> None:
        self.module.timer(Timer(*row[1:]))

    def on_stream_ended(self, row: list[Any]) -> None:
        self.module.stream_ended(row[2])

    def on_counters(self, row: list[Any]) -> None:
        self.module.port_counters([PortCounters(*it) for it in row[2]])

    def on_snmp(self, row: list[Any]) -> None:
        _, at, agent, request, sent, rounds, values, reason = row
        self.module.snmp_reply(SnmpReply(at, agent, request, sent, rounds, dict(values), reason))

    def on_connected(self, row: list[Any]) -> None:
        self.module.connected(row[2], ConnectionFacts(**row[3]))

    def on_disconnected(self, row: list[Any]) -> None:
        self.module.disconnected(row[2], row[3])

    def on_limit(self, row: list[Any]) -> None:
        self.module.limit_reached(row[2])

    def on_finish(self, row: list[Any]) -> None:
        self.module.finish(row[2])


def _probe(row: list[Any] | None) -> Probe | None:
    if row is None:
        return None
    stream, number, index, sent_at, flags = row
    return Probe(stream, number, index, sent_at, bool(flags & 1), bool(flags & 2))


def write(queue: CommandQueue, output: BinaryIO, *last: Any) -> None:
    """Writes the queued commands, and this row."""
    queue.put(*last)
    rows, queue.rows = queue.rows, []
    sys.stdout.flush()
    output.write(("\n".join(rows) + "\n").encode())
    output.flush()


def serve(path: str, queue: CommandQueue, events: BinaryIO, output: BinaryIO) -> None:
    """Delivers events to the module until the input ends."""
    kind = load(path)
    resource.setrlimit(resource.RLIMIT_DATA, (kind.memory_mib << 20, resource.RLIM_INFINITY))
    dispatcher: Dispatcher | None = None
    for line in events:
        row = json.loads(line)
        if row[0] == "batch":
            write(queue, output, "done", row[1])
        elif row[0] == "init":
            module = kind(queue, row[1])
            dispatcher = Dispatcher(module, queue)
            queue.put("needs", module.needs().to_dict())
        elif dispatcher is not None:
            dispatcher.dispatch(row)


def main(arguments: list[str]) -> int:
    """Runs a module (`protocol.py SCRIPT`), or describes it (`protocol.py SCRIPT --describe`)."""
    path = arguments[0]
    output = os.fdopen(os.dup(1), "wb")
    events = os.fdopen(os.dup(0), "rb")
    # Output of the module must not mix with its commands.
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    faulthandler.enable()
    queue = CommandQueue()
    try:
        if "--describe" in arguments:
            write(queue, output, "described", described(load(path)))
        else:
            serve(path, queue, events, output)
    except BaseException as error:  # every error is reported
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        write(queue, output, "error", fault(path, error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
