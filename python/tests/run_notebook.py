"""Runs a notebook from its first cell to its last, in an empty folder: `run_notebook.py NOTEBOOK`."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LIMIT_S = 300
"""How long a cell may take."""


def main(path: str) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    stored = [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
    if stored:
        sys.exit(f"{path}: {len(stored)} cells have outputs: clear them before it is stored")
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=LIMIT_S, resources={"metadata": {"path": folder}})
        client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pictures = [out for cell in cells for out in cell.outputs if "image/svg+xml" in out.get("data", {})]
    if not pictures:
        sys.exit(f"{path}: no figure was shown")
    print(f"{Path(path).name}: {len(cells)} cells")


if __name__ == "__main__":
    main(sys.argv[1])
