"""Tables with one trial, value or bucket per row. pandas, Polars and pyarrow import them without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]

_ROWS_SHOWN = 20


def shown(value: float) -> str:
    """Formats a number with six significant digits, or all digits of a whole number."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


class Table:
    """Rows and columns in Arrow format (`__arrow_c_stream__`): `pyarrow.table(it)`, `polars.DataFrame(it)`.

    Values that were not measured are None, never zero. The unit of a column is in `units` and in the metadata.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.names()

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        return dict(self._native.units())

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self._native.row(row) for row in range(len(self)))

    def __getitem__(self, row: int) -> dict[str, Any]:
        at = row + len(self) if row < 0 else row
        if not 0 <= at < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self._native.row(at)

    def column(self, name: str) -> list[Any]:
        """Returns the values of a column."""
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}: known columns are {', '.join(self.columns)}")
        return [row[name] for row in self]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """Returns a pyarrow table."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a pandas data frame."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Returns a Polars data frame."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from html import escape

        def cell(value: object) -> str:
            text = shown(value) if isinstance(value, float) else "" if value is None else str(value)
            return f"<td>{escape(text)}</td>"

        units = self.units
        heads = "".join(f"<th>{escape(it)}<br><small>{escape(units.get(it, ''))}</small></th>" for it in self.columns)
        rows = [self[at] for at in range(min(len(self), _ROWS_SHOWN))]
        body = "".join(f"<tr>{''.join(cell(it) for it in row.values())}</tr>" for row in rows)
        more = f"<p>{len(self)} rows</p>" if len(self) > _ROWS_SHOWN else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"
