"""What can go wrong. Each exception has the text that the command line prints, and stands for one of its exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .campaigns import Campaign
    from .runs import Run

__all__ = ["GateFailed", "GateInconclusive", "Interrupted", "IrregularError", "NeedMissing", "PlanimeterError", "UsageError"]


class PlanimeterError(Exception):
    """Whatever planimeter could not do."""


class UsageError(PlanimeterError):
    """What was asked for makes no sense, or a file is not what it should be (exit code 2)."""


class NeedMissing(PlanimeterError):
    """This machine lacks what it takes: rights, a program, a feature of the kernel (exit code 4)."""


class IrregularError(PlanimeterError):
    """Every trial failed, a module failed in one, or a result is irregular or limited by the tester and `strict` was
    given (exit code 3)."""

    run: Run | Campaign | None = None
    """What was measured."""


class GateFailed(PlanimeterError):
    """A gate failed (exit code 1): raised by `Comparison.check` and `Campaign.check`."""


class GateInconclusive(PlanimeterError):
    """No gate failed, and one was not shown to hold (exit code 5): raised by `Comparison.check` and `Campaign.check`."""


class Interrupted(KeyboardInterrupt):
    """The run was ended from outside (exit code 130). What was measured is kept: `run` is that, if anything was."""

    run: Run | Campaign | None = None
