"""Measurement modules for planimeter, written in Python: one class, no rebuilding.

A module is told events on one clock and says what is to be done (`planimeter run my_module.py --on ours`).
It runs in a process of its own, beside the packets and never in their way: events come in batches,
moments are those at which things happened, not those at which Python hears of them.
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
