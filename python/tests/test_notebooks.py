"""The notebooks run from top to bottom."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples/notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path, tmp_path):
    pytest.importorskip("pandas")
    notebook = json.loads(path.read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    # Cell by cell, as a kernel does it: what the last line gives is shown as a notebook would.
    runner = """
import ast, json, sys
names = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin)):
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    shown = eval(compile(last, f"cell {number}", "eval"), names) if last else None
    for form in ("_repr_html_", "_repr_svg_"):
        if hasattr(shown, form): getattr(shown, form)()
"""
    done = subprocess.run([sys.executable, "-c", runner], input=json.dumps(cells), text=True, capture_output=True,
                          cwd=tmp_path, env=os.environ, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
