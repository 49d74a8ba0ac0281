"""Reports: one page about one run or several."""

from __future__ import annotations

import html
from os import PathLike
from pathlib import Path
from typing import Any

from . import _core


class Report:
    """Curves, tables and costs of runs; shown by a notebook, or saved as a page."""

    def __init__(self, runs: list[Any]):
        """Results, or folders of runs. Results are kept: a temporary folder lives as long as its result."""
        if not runs:
            raise ValueError("runs: found none, expected results or folders of runs")
        wrong = [run for run in runs if not hasattr(run, "folder") and not isinstance(run, (str, PathLike))]
        if wrong:
            raise TypeError(f"runs: found {type(wrong[0]).__name__}, expected results or folders of runs")
        self.runs = runs
        self.folders = [str(getattr(run, "folder", run)) for run in runs]

    def page(self) -> str:
        return _core.report_page(self.folders)

    def save(self, path: str | Path) -> Path:
        path = Path(path)
        path.write_text(self.page(), encoding="utf-8")
        return path

    def __str__(self) -> str:
        return _core.comparison_text(self.folders)

    def _repr_html_(self) -> str:
        # A frame of its own: the page's style stays in it.
        page = html.escape(self.page(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 700px; border: 0"></iframe>'


def report(*runs: Any, out: str | Path | None = None) -> Report:
    """Compares results or run folders; `out`: the page to write."""
    made = Report(list(runs))
    if out is not None:
        made.save(out)
    return made
