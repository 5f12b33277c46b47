"""Measures, reads and compares runs."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _native
from .command import EXIT_GATE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_IRREGULAR, command, failure
from .errors import GateFailed, GateInconclusive, Interrupted, IrregularError, PlanimeterError, UsageError
from .figures import Figure
from .tables import Table, shown

if TYPE_CHECKING:
    from .campaigns import Campaign

__all__ = ["Comparison", "Histogram", "Progress", "Run", "StoredRun", "Value", "compare", "load", "run", "runs"]

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    done: int
    """Completed trials."""
    trials: int
    """Expected number of trials."""
    text: str
    """Result of the last trial."""


@dataclass(frozen=True)
class Value:
    """A value with its error."""

    value: float
    unit: str
    n: int
    """Number of repeats."""
    low: float | None
    """Lower limit of its interval; None if there was one repeat."""
    high: float | None
    level: float | None
    """The interval's confidence in percent."""
    warnings: tuple[str, ...]
    """Reasons to doubt it."""
    bound: str | None = None
    """The side on which it bounds the true value: "lower" or "upper"; None if it is not a bound."""
    bound_cause: str | None = None
    """Why it is a bound: "search_limit", "tester_limit", "link_limit" or "resolution"."""
    disturbed_repeats: int = 0
    """Number of disturbed repeats, for example because the tester was descheduled."""
    exclusion: str | None = None
    """Why it supports no conclusions."""

    def __str__(self) -> str:
        ends = "n=1" if self.low is None or self.high is None else f"{shown(self.low)} to {shown(self.high)}"
        sign = {None: "", "lower": "≥ ", "upper": "≤ "}[self.bound]
        return f"{sign}{shown(self.value)} {self.unit} ({ends})"


class Histogram:
    """Latencies of a trial, in nanoseconds, counted in buckets of three significant digits."""

    def __init__(self, native: _native.Histogram) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    @property
    def ns_min(self) -> int | None:
        """The exact minimum."""
        return self._native.ns_min

    @property
    def ns_max(self) -> int | None:
        """The exact maximum."""
        return self._native.ns_max

    @property
    def ns_mean(self) -> float | None:
        """The exact mean."""
        return self._native.ns_mean

    def ns_at(self, percent: float) -> int | None:
        """Returns a percentile; None if fewer than ten samples are above it, because it would be unreliable."""
        return self._native.ns_at(percent)

    def buckets(self) -> Table:
        """Returns the upper limit and the count of each bucket."""
        return Table(self._native.buckets())

    def __repr__(self) -> str:
        return f"<Histogram of {len(self)} latencies, {self.ns_min} to {self.ns_max} ns>"


class Run:
    """A stored run, measured here or by the command line."""

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder)
        self._native = _native.Stored(self.folder)
        self.record: dict[str, Any] = json.loads(self._native.record())
        """The complete record, as in `record.json` (docs/record-schema.md)."""

    @property
    def is_partial(self) -> bool:
        """Whether it ended before all planned trials were measured."""
        return bool(self.record["partial"])

    @property
    def command_line(self) -> str:
        """The command that repeats it."""
        return str(self.record["command_line"])

    @property
    def targets(self) -> list[str]:
        """The names of the targets; ratios refer to the first."""
        return [it["name"] for it in self.record["targets"]]

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments."""
        return [it["id"] for it in self.record["experiments"]]

    @property
    def trials(self) -> Table:
        """All trials: load, and account of the frames."""
        return Table(self._native.trials())

    @property
    def values(self) -> Table:
        """All values by target and point, with unit, interval and warnings."""
        return Table(self._native.values())

    def value(
        self, metric: str, *, target: str | None = None, experiment: str | None = None, x: float | None = None
    ) -> Value:
        """Returns one value. An argument can be omitted if it is not needed to identify the value."""
        target = None if target is None else _native.current_name(target)
        rows = [
            it
            for it in self.values
            if it["metric"] == metric
            and target in (None, it["target"])
            and experiment in (None, it["experiment"])
            and x in (None, it["x"])
        ]
        if len(rows) != 1:
            known = sorted({it["metric"] for it in self.values})
            where = [f"{it['experiment']} {it['target']} {it['x_name']}={shown(it['x'])}" for it in rows]
            what = f"found {len(rows)}: {', '.join(where)}" if rows else f"known metrics are {', '.join(known)}"
            raise UsageError(f"{self.folder}: {metric} is not one value: {what}")
        row = rows[0]
        return Value(
            row["value"],
            row["unit"],
            row["n"],
            row["interval_low"],
            row["interval_high"],
            row["interval_level_percent"],
            tuple(row["warnings"].split("; ")) if row["warnings"] else (),
            row["bound"],
            row["bound_cause"],
            row["disturbed_repeats"],
            row["exclusion"],
        )

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt values of the run."""
        return [f"{about}: {sentence}" for about, sentence in self._native.warnings()]

    def histogram(self, trial: int) -> Histogram | None:
        """Returns the latencies of a trial (column `id` of `trials`); None if it has none."""
        found = self._native.histogram(trial)
        return None if found is None else Histogram(found)

    @property
    def figures(self) -> dict[str, str]:
        """Its figures: titles by name."""
        return dict(self._native.figures())

    def plot(self, figure: str | None = None) -> Figure:
        """Returns a figure, by default the first."""
        names = list(self.figures)
        name = figure or (names[0] if names else "")
        found = self._native.figure(name)
        if found is None:
            known = f"known figures are {', '.join(names)}" if names else "the run has none"
            raise UsageError(f"{self.folder}: there is no figure {name!r}: {known}")
        return Figure(name, *found)

    def report(self, out: StrPath | None = None) -> Path:
        """Writes the report again, into the run's folder or another one. Returns the path of its page."""
        return Path(self._native.report(Path(out) if out is not None else self.folder))

    def summary(self) -> str:
        """Returns a summary of the run as Markdown."""
        return self._native.summary()

    def __repr__(self) -> str:
        partial = ", partial" if self.is_partial else ""
        return f"<Run {self.folder}: {', '.join(self.experiments)} on {', '.join(self.targets)}{partial}>"

    def _repr_html_(self) -> str:
        record = self.record
        facts = {
            "experiments": ", ".join(self.experiments),
            "targets": ", ".join(self.targets),
            "link": record["link"],
            "effort": record["effort"],
            "trials": str(len(record["trials"])),
            "warnings": str(len(self.warnings)),
        }
        rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(str(it))}</td></tr>" for key, it in facts.items())
        partial = " (ended early)" if self.is_partial else ""
        return f"<p><b>Run</b> {escape(str(self.folder))}{partial}, {escape(record['created'])}</p><table>{rows}</table>"


@dataclass(frozen=True)
class StoredRun:
    """A row of `planimeter list runs`: a run in a folder of runs."""

    folder: Path
    created: str
    experiments: tuple[str, ...]
    targets: tuple[str, ...]
    link: str
    effort: str
    trials: int
    partial: bool
    doubtful: bool
    version: str

    def load(self) -> Run:
        """Reads the run."""
        return Run(self.folder)


def runs(folder: StrPath = "runs", *, program: StrPath | None = None, **filters: str | bool) -> list[StoredRun]:
    """Returns the runs below a folder, the latest first.

    Filters are those of `planimeter list runs --filter`: `experiment`, `target`, `link`, `metric`, `effort`, `version`,
    `since`, `until`, `partial`, `doubtful`.
    """
    words = ["list", "runs", os.fspath(folder), "--json"]
    words += [f"--filter={key}={_written(value)}" for key, value in filters.items()]
    done = command(words, program=program)
    if done.code != 0:
        raise failure(done)

    def read(row: dict[str, Any]) -> StoredRun:
        return StoredRun(
            folder=Path(folder) / row["folder"],
            created=row["created"],
            experiments=tuple(row["experiments"]),
            targets=tuple(row["targets"]),
            link=row["link"],
            effort=row["effort"],
            trials=row["trials"],
            partial=row["partial"],
            doubtful=row["doubtful"],
            version=row["version"],
        )

    return [read(row) for row in json.loads(done.output)["runs"]]


def load(folder: StrPath) -> Run:
    """Reads a stored run from its folder, which contains `record.json`."""
    return Run(folder)


@overload
def run(
    plan: os.PathLike[str],
    /,
    *,
    effort: str | None = None,
    seed: int | None = None,
    out: StrPath | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    program: StrPath | None = None,
) -> Campaign: ...


@overload
def run(
    *experiments: str,
    on: str | Sequence[str] = (),
    link: str | Sequence[str] = (),
    effort: str | None = None,
    set: Mapping[str, object] | None = None,
    topology: StrPath | None = None,
    before: str | None = None,
    between: str | None = None,
    after: str | None = None,
    seed: int | None = None,
    out: StrPath | None = None,
    resume: StrPath | None = None,
    trust: bool = False,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    program: StrPath | None = None,
) -> Run: ...


def run(
    *experiments: StrPath,
    on: str | Sequence[str] = (),
    link: str | Sequence[str] = (),
    effort: str | None = None,
    set: Mapping[str, object] | None = None,
    topology: StrPath | None = None,
    before: str | None = None,
    between: str | None = None,
    after: str | None = None,
    seed: int | None = None,
    out: StrPath | None = None,
    resume: StrPath | None = None,
    trust: bool = False,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    program: StrPath | None = None,
) -> Run | Campaign:
    """Measures targets side by side, like `planimeter run`, and returns the run.

    A plan (`run(Path("PLAN.toml"))`, or its name as text) returns a `Campaign`, like `run_plan`. For type checkers, pass
    a `Path` or use `run_plan`. Defaults are those of the command line.

    The run has a separate process. `program` selects another planimeter, for example one with file capabilities. If
    another user or host started the resumed run, its commands, scripts and programs require `trust`.
    Ctrl-C ends the run cleanly and raises `Interrupted`, which has the results until then.
    """
    words = ["run", *(os.fspath(it) for it in experiments)]
    if resume is not None:
        words += ["--resume", os.fspath(resume)]
        words += ["--allow-commands"] if trust else []
    else:
        words += [f"--on={it}" for it in _several(on)]
        words += [f"--link={it}" for it in _several(link)]
        words += [f"--topology={os.fspath(topology)}"] if topology is not None else []
        words += [f"--set={key}={_written(value)}" for key, value in (set or {}).items()]
        hooks = {"before": before, "between": between, "after": after}
        words += [f"--{when}={command}" for when, command in hooks.items() if command is not None]
        words += [f"--effort={effort}"] if effort is not None else []
        words += [f"--seed={seed}"] if seed is not None else []
        words += [f"--output={os.fspath(out)}"] if out is not None else []
    words += ["--strict"] if strict else []
    done = command(words, program=program, told=progress_of(progress))
    resumes_plan = resume is not None and (Path(resume) / "campaign.json").is_file()
    if resumes_plan or any(os.fspath(it).endswith(".toml") for it in experiments):
        from . import campaigns

        return campaigns.measured(done)
    page = Path(done.output.strip().rpartition("\n")[2])
    measured = Run(page.parent) if page.name == "report.html" else None
    if done.code == EXIT_INTERRUPTED:
        interrupted = Interrupted(done.line)
        interrupted.run = measured
        raise interrupted
    if done.code == EXIT_IRREGULAR:
        irregular = IrregularError(done.line)
        irregular.run = measured
        raise irregular
    if done.code != 0 or measured is None:
        raise failure(done)
    return measured


def progress_of(progress: Callable[[Progress], None] | None) -> Callable[[str], None]:
    """Returns a function that converts output lines of a command to `Progress`."""
    step = re.compile(r"\[(\d+)/(\d+)\] (.*)")

    def told(line: str) -> None:
        if progress is not None and (found := step.match(line)):
            progress(Progress(int(found[1]), int(found[2]), found[3]))

    return told


def _several(said: str | Sequence[str]) -> Sequence[str]:
    return [said] if isinstance(said, str) else said


def _written(value: object) -> str:
    """Formats a parameter's value for the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_written, value))
    return str(value)


class Comparison:
    """Result of a comparison: improvements, regressions and gates."""

    def __init__(self, data: dict[str, Any], markdown: str, code: int, line: str) -> None:
        self.data = data
        """The complete result, as `planimeter compare --json` prints it."""
        self._markdown = markdown
        self._code = code
        self._line = line

    @property
    def verdict(self) -> str:
        """The overall result: "better", "worse", "same" or "inconclusive"."""
        return str(self.data["verdict"])

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Each metric at each point: base, new, ratio with its interval, verdict, gates."""
        return list(self.data["cells"])

    @property
    def has_failed(self) -> bool:
        """Whether a gate failed."""
        return self._code == EXIT_GATE

    @property
    def is_doubtful(self) -> bool:
        """Whether a gate depends on values that are missing, irregular or limited by the tester."""
        return self._code == EXIT_IRREGULAR

    @property
    def is_inconclusive(self) -> bool:
        """Whether no gate failed, and at least one is inconclusive."""
        return self._code == EXIT_INCONCLUSIVE

    @property
    def worse(self) -> list[str]:
        """Descriptions of all regressions."""
        return list(self.data["worse"])

    def check(self) -> None:
        """Raises `GateFailed` if a gate failed, `IrregularError` if one depends on unreliable values, and
        `GateInconclusive` if one is inconclusive."""
        if self.has_failed:
            raise GateFailed("; ".join(self._failed()))
        if self.is_doubtful:
            raise IrregularError(self._line)
        if self.is_inconclusive:
            raise GateInconclusive(self._line)

    def _failed(self) -> Iterator[str]:
        for cell in self.cells:
            for gate in cell["gates"]:
                if gate["outcome"] == "failed":
                    point = cell["point"]
                    where = f"{cell['experiment']}, {cell['target']} at {point['name']}={shown(point['value'])}"
                    yield f"{gate['gate']} failed: {where} has a ratio of {cell['ratio']:.4g}"

    def to_markdown(self) -> str:
        """Returns the result as Markdown for a comment on a pull request."""
        return self._markdown

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict}{', a gate failed' if self.has_failed else ''}>"

    def _repr_markdown_(self) -> str:
        return self._markdown


def compare(
    base: Run | StrPath,
    new: Run | StrPath,
    *,
    gates: str | Sequence[str] = (),
    run: str | Sequence[str] = (),
    like: Run | StrPath | None = None,
    link: str | Sequence[str] = (),
    effort: str | None = None,
    set: Mapping[str, object] | None = None,
    out: StrPath = "runs",
    program: StrPath | None = None,
) -> Comparison:
    """Compares two stored runs or two targets.

    A side can be a run, a target of a run ("DIR:TARGET"), or a target to measure now. With two targets to
    measure, the trials of both alternate in the experiments of `run`, or in those of the run `like`. A single gate or
    experiment can be given as text."""
    words = ["compare", _side(base), _side(new), "--json", f"--output={os.fspath(out)}"]
    words += [f"--gate={it}" for it in _several(gates)]
    words += [f"--run={it}" for it in _several(run)]
    words += [f"--config-from={_side(like)}"] if like is not None else []
    words += [f"--link={it}" for it in _several(link)]
    words += [f"--set={key}={_written(value)}" for key, value in (set or {}).items()]
    words += [f"--effort={effort}"] if effort is not None else []
    with tempfile.TemporaryDirectory() as folder:
        markdown = Path(folder) / "compare.md"
        done = command([*words, f"--markdown={markdown}"], program=program)
        if done.code == EXIT_INTERRUPTED:
            raise Interrupted(done.line)
        if done.code not in (0, EXIT_GATE, EXIT_IRREGULAR, EXIT_INCONCLUSIVE):
            raise failure(done)
        try:
            data = json.loads(done.output)
        except json.JSONDecodeError as error:
            raise PlanimeterError(f"planimeter compare did not print JSON: {error}") from error
        return Comparison(data, markdown.read_text(encoding="utf-8"), done.code, done.line)


def _side(side: Run | StrPath) -> str:
    return os.fspath(side.folder if isinstance(side, Run) else side)
