"""Exceptions. Each has the text that the command line prints, and corresponds to one of its exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .campaigns import Campaign
    from .runs import Run

__all__ = ["GateFailed", "GateInconclusive", "Interrupted", "IrregularError", "NeedMissing", "PlanimeterError", "UsageError"]


class PlanimeterError(Exception):
    """Base class of all errors of planimeter."""


class UsageError(PlanimeterError):
    """The request or a file is invalid (exit code 2)."""


class NeedMissing(PlanimeterError):
    """A requirement is missing: privileges, a program, or a feature of the kernel (exit code 4)."""


class IrregularError(PlanimeterError):
    """Every trial failed, a module failed in a trial, or with `strict` a result is irregular or limited by the tester
    (exit code 3)."""

    run: Run | Campaign | None = None
    """The results."""


class GateFailed(PlanimeterError):
    """A gate failed (exit code 1): raised by `Comparison.check` and `Campaign.check`."""


class GateInconclusive(PlanimeterError):
    """No gate failed, but one is inconclusive (exit code 5): raised by `Comparison.check` and `Campaign.check`."""


class Interrupted(KeyboardInterrupt):
    """The run was interrupted (exit code 130). `run` has the results until then, if there are any."""

    run: Run | Campaign | None = None
