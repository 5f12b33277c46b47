"""The command `planimeter` of this package, and processes that run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from .errors import NeedMissing, PlanimeterError, UsageError

NAME = "planimeter"

EXIT_GATE = 1
EXIT_IRREGULAR = 3
EXIT_INCONCLUSIVE = 5
EXIT_INTERRUPTED = 130

_LINES_KEPT = 200
"""Number of lines of standard error that are stored for an error message."""


def main() -> int:
    """Runs the command line in this process."""
    from . import _native

    # The program handles signals itself. Python's handler would only set a flag.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = Path(sys.argv[0]).resolve()
    if not os.access(program, os.X_OK):
        program = installed()
    return _native.main([NAME, *sys.argv[1:]], program)


def installed() -> Path:
    """Returns the path of the command that pip installed with this package."""
    try:
        files = metadata.distribution(NAME).files or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.name == NAME and os.access(path, os.X_OK) and path.is_file():
            return path.resolve()
    raise NeedMissing("the command planimeter is not installed with this package (hint: run 'pip install ./python')")


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    code: int
    output: str
    line: str
    """The last line of standard error, without the program's name."""


def command(
    words: Sequence[str], *, program: str | os.PathLike[str] | None = None, told: Callable[[str], None] | None = None
) -> Done:
    """Runs a command in a separate process, and reports each line of its progress.

    Ctrl-C ends it cleanly: it is signaled, and has unlimited time to store its results. A second Ctrl-C at least
    a second later ends it immediately.
    """
    path = str(program or installed())
    try:
        process = subprocess.Popen(
            [path, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be started: {error.strerror}") from error
    assert process.stdout is not None and process.stderr is not None
    output: list[str] = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    with process:
        while True:
            try:
                for line in process.stderr:
                    lines.append(line.rstrip("\n"))
                    if told is not None:
                        told(lines[-1])
                process.wait()
                break
            except KeyboardInterrupt:
                # In a terminal it has received the signal already, and counts both as one.
                process.send_signal(signal.SIGINT)
            except BaseException:
                process.terminate()
                raise
        reader.join()
    last = lines[-1].removeprefix(f"{NAME}: ") if lines else ""
    return Done(process.returncode, output[0] if output else "", last)


def failure(done: Done) -> PlanimeterError:
    """Returns the exception for a failed command."""
    line = done.line or f"planimeter ended with exit code {done.code}"
    kinds = {2: UsageError, 4: NeedMissing}
    return kinds.get(done.code, PlanimeterError)(line)
