"""Figures of the report: images and their data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Figure"]


class Figure:
    """A figure of a run. A notebook displays its image; `data` has its axes, and its series with intervals."""

    def __init__(self, name: str, title: str, description: str, svg: str, data: str) -> None:
        self.name = name
        self.title = title
        self.description = description
        """Text alternative of the figure."""
        self.svg = svg
        self.data: dict[str, Any] = json.loads(data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the image (SVG)."""
        file = Path(path)
        file.write_text(self.svg, encoding="utf-8")
        return file

    def draw(self, axes: Axes | None = None) -> Axes:
        """Draws it with matplotlib on these axes or new ones: intervals as bars, dashed lines as in the report.

        Values of a bar chart are drawn as points.
        """
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.subplots()[1]
        is_grouped = self.data["x"]["kind"] == "groups"
        for series in self.data["series"]:
            if series.get("choice") not in (None, self.data.get("choice")):
                continue
            x, y = series["x"], series["y"]
            errors = None
            if "low" in series:
                errors = [
                    [0 if it is None else at - it for at, it in zip(y, series["low"], strict=True)],
                    [0 if it is None else it - at for at, it in zip(y, series["high"], strict=True)],
                ]
            axes.errorbar(
                x,
                y,
                yerr=errors,
                label=series["name"],
                color=series["colour"],
                marker=series["marker"],
                linestyle="none" if is_grouped else "--" if series["dashes"] else "-",
                capsize=3,
            )
        for axis, scale in (("x", axes.set_xscale), ("y", axes.set_yscale)):
            scale("linear" if self.data[axis]["kind"] in ("linear", "groups") else "log")
        axes.set_xlabel(self.data["x"]["label"])
        axes.set_ylabel(self.data["y"]["label"])
        axes.set_title(self.title)
        axes.legend()
        return axes

    def __repr__(self) -> str:
        return f"<Figure {self.name}: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg
