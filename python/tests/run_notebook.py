"""Runs all cells of a notebook in an empty folder: `run_notebook.py NOTEBOOK`."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LIMIT_S = 300
"""Time limit of a cell."""


def main(path: str) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    stored = [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
    if stored:
        sys.exit(f"{path}: {len(stored)} cells have outputs (hint: clear them before you commit)")
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=LIMIT_S, resources={"metadata": {"path": folder}})
        client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pictures = [out for cell in cells for out in cell.outputs if "image/svg+xml" in out.get("data", {})]
    if not pictures:
        sys.exit(f"{path}: no cell displays a figure")
    print(f"{Path(path).name}: {len(cells)} cells")


if __name__ == "__main__":
    main(sys.argv[1])
