"""Measures network data planes: runs with values and figures, streams, switches and modules.

    import planimeter

    run = planimeter.run("forwarding-rate", on=["switch", "bridge"], link="memory", effort="quick")
    run.values.to_pandas()

A measurement module is one class in a script (`planimeter run my_module.py --on switch`). It receives
events and queues commands; all times are on one clock. The module runs in a separate process, so that
Python never delays packets. Events arrive in batches, and their times are those of the events, not of
their arrival in Python. Modules require only the Python files of this package. Everything else requires
its compiled part (`pip install ./python`).
"""

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
from .module import Connection, Module, Needs
from .parameters import Integer, Integers, Number, Parameter, Word, Words
from .renamed import hint

EARLIER = {"Facts": "TestSetup", "Refused": "DecodeFailed", "Snmp": "SnmpReply", "Unsent": "SendFailed"}
"""Earlier names of events."""

__all__ = [
    "Connection",
    "ConnectionFacts",
    "DecodeFailed",
    "Frame",
    "Integer",
    "Integers",
    "Message",
    "Module",
    "Needs",
    "Number",
    "Parameter",
    "Port",
    "PortCounters",
    "Probe",
    "SendFailed",
    "Sent",
    "SnmpReply",
    "TestSetup",
    "Timer",
    "Word",
    "Words",
]


def __getattr__(name: str) -> object:
    if name in EARLIER:
        hint(f"planimeter.{name}", EARLIER[name])
        return globals()[EARLIER[name]]
    if "_native" in globals():
        raise AttributeError(f"module 'planimeter' has no attribute {name!r}")
    text = f"planimeter.{name} requires the compiled part of this package (hint: run 'pip install ./python')"
    raise AttributeError(text)


try:
    from . import _native
except ImportError as error:
    if error.name not in ("planimeter._native", "planimeter"):
        raise
else:
    from .campaigns import Campaign, run_plan
    from .errors import (
        GateFailed,
        GateInconclusive,
        Interrupted,
        IrregularError,
        NeedMissing,
        PlanimeterError,
        UsageError,
    )
    from .figures import Figure
    from .runs import Comparison, Histogram, Progress, Run, StoredRun, Value, compare, load, run, runs
    from .streams import Stream, write_streams
    from .switches import Switch
    from .tables import Table

    __version__: str = _native.version()
    __all__ += [
        "Campaign",
        "Comparison",
        "Figure",
        "GateFailed",
        "GateInconclusive",
        "Histogram",
        "Interrupted",
        "IrregularError",
        "NeedMissing",
        "PlanimeterError",
        "Progress",
        "Run",
        "StoredRun",
        "Stream",
        "Switch",
        "Table",
        "UsageError",
        "Value",
        "compare",
        "load",
        "run",
        "run_plan",
        "runs",
        "write_streams",
    ]
