"""Measures plans, and reads the runs of their steps and the results of their gates."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .command import EXIT_GATE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_IRREGULAR, Done, command, failure
from .errors import GateFailed, GateInconclusive, Interrupted, IrregularError, UsageError
from .tables import shown

if TYPE_CHECKING:
    from .runs import Progress, Run, StrPath

__all__ = ["Campaign", "run_plan"]


class Campaign:
    """The runs of a plan by step name, and its gates. `data` is the content of `campaign.json`."""

    def __init__(self, folder: StrPath) -> None:
        from .runs import Run

        self.folder = Path(folder)
        try:
            self.data: dict[str, Any] = json.loads((self.folder / "campaign.json").read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise UsageError(f"{self.folder} is not the folder of a campaign: {error}") from error
        folders = {it["name"]: self.folder / it["folder"] for it in self.data["steps"]}
        self.runs: Mapping[str, Run] = {name: Run(it) for name, it in folders.items() if it.is_dir()}
        """The run of each started step."""
        gates = self.folder / "gates.json"
        self.gates: list[dict[str, Any]] = json.loads(gates.read_text(encoding="utf-8")) if gates.is_file() else []
        """Results of the gates: a comparison for each step and pair of sides, as in `planimeter compare --json`."""

    @property
    def name(self) -> str:
        """Name of the plan."""
        return str(self.data["name"])

    def __getitem__(self, step: str) -> Run:
        """Returns the run of a step."""
        if step not in self.runs:
            raise KeyError(f"there is no step {step!r}: known steps are {', '.join(self.runs)}")
        return self.runs[step]

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def outcome(self) -> str | None:
        """The worst result of a gate: "failed", "doubtful", "inconclusive" or "passed"; None without gates."""
        found = [gate["outcome"] for it in self.gates for cell in it["contrast"]["cells"] for gate in cell["gates"]]
        order = ["failed", "doubtful", "inconclusive", "passed"]
        return min(found, key=order.index, default=None)

    @property
    def has_failed(self) -> bool:
        """Whether a gate failed."""
        return self.outcome == "failed"

    def _places(self) -> Iterator[str]:
        """Yields a description of each cell with the worst result."""
        for it in self.gates:
            for cell in it["contrast"]["cells"]:
                for gate in cell["gates"]:
                    if gate["outcome"] == self.outcome:
                        where = f"step {it['step']}: {cell['experiment']}, {cell['target']}"
                        point = f"{cell['point']['name']}={shown(cell['point']['value'])}"
                        yield f"{gate['gate']} {self.outcome}: {where} at {point}"

    def check(self) -> None:
        """Raises `GateFailed`, `IrregularError` or `GateInconclusive` if not every gate passed."""
        line = "; ".join(self._places())
        if self.has_failed:
            raise GateFailed(line)
        if self.outcome == "doubtful":
            raise IrregularError(line)
        if self.outcome == "inconclusive":
            raise GateInconclusive(line)

    @property
    def report(self) -> Path:
        """Path of the page with the reports of all steps."""
        return self.folder / "report.html"

    def __repr__(self) -> str:
        gates = f", gates {self.outcome}" if self.outcome else ""
        return f"<Campaign {self.folder}: {', '.join(self.runs)}{gates}>"

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><td>{escape(name)}</td><td>{escape(', '.join(run.experiments))}</td>"
            f"<td>{escape(', '.join(run.targets))}</td><td>{len(run.trials)}</td></tr>"
            for name, run in self.runs.items()
        )
        gates = f"<p>Gates: {escape(self.outcome)}</p>" if self.outcome else ""
        head = "<tr><th>step</th><th>experiments</th><th>targets</th><th>trials</th></tr>"
        return f"<p><b>{escape(self.name)}</b> ({escape(str(self.folder))})</p><table>{head}{''.join(rows)}</table>{gates}"


def run_plan(
    plan: StrPath,
    *,
    effort: str | None = None,
    seed: int | None = None,
    out: StrPath | None = None,
    strict: bool = False,
    progress: Callable[[Progress], None] | None = None,
    program: StrPath | None = None,
) -> Campaign:
    """Measures a plan (a TOML file) and returns its runs.

    Effort, seed and folder are those of the plan by default. A failed gate does not raise an exception;
    `Campaign.check` does.
    """
    from .runs import progress_of

    words = ["run", os.fspath(plan)]
    words += [f"--effort={effort}"] if effort is not None else []
    words += [f"--seed={seed}"] if seed is not None else []
    words += [f"--output={os.fspath(out)}"] if out is not None else []
    words += ["--strict"] if strict else []
    return measured(command(words, program=program, told=progress_of(progress)))


def measured(done: Done) -> Campaign:
    """Returns the campaign that a command measured."""
    page = Path(done.output.strip().rpartition("\n")[2])
    is_campaign = page.name == "report.html" and (page.parent / "campaign.json").is_file()
    campaign = Campaign(page.parent) if is_campaign else None
    if done.code == EXIT_INTERRUPTED:
        interrupted = Interrupted(done.line)
        interrupted.run = campaign
        raise interrupted
    if campaign is None:
        raise failure(done)
    gates_say = {EXIT_GATE: "failed", EXIT_INCONCLUSIVE: "inconclusive", EXIT_IRREGULAR: "doubtful"}
    if done.code not in (0, EXIT_GATE) and campaign.outcome != gates_say.get(done.code):
        irregular = IrregularError(done.line)
        irregular.run = campaign
        raise irregular
    return campaign
