"""Measures network data planes from Python: runs, their numbers and figures, streams, switches, and modules.

    import planimeter

    run = planimeter.run("forwarding-rate", on=["ours", "bridge"], link="memory", effort="quick")
    run.values.to_pandas()

A measurement module is one class, without rebuilding anything (`planimeter run my_module.py --on ours`): it is told
events on one clock and says what is to be done. It runs in a process of its own, beside the packets and never in
their way: events come in batches, moments are those at which things happened, not those at which Python hears of
them. For that, the files of this package are enough; everything else needs its compiled part (`pip install ./python`).
"""

from .events import (
    ConnectionFacts,
    Facts,
    Frame,
    Message,
    Port,
    PortCounters,
    Probe,
    Refused,
    Sent,
    Snmp,
    Timer,
    Unsent,
)
from .module import Connection, Module, Needs
from .parameters import Integer, Integers, Number, Parameter, Word, Words

__all__ = [
    "Connection",
    "ConnectionFacts",
    "Facts",
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
    "Refused",
    "Sent",
    "Snmp",
    "Timer",
    "Unsent",
    "Word",
    "Words",
]

try:
    from . import _native
except ImportError as error:
    if error.name not in ("planimeter._native", "planimeter"):
        raise

    def __getattr__(name: str) -> object:
        text = f"planimeter.{name} needs the compiled part of this package: pip install ./python"
        raise AttributeError(text)

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
