"""The guide's code runs from top to bottom, on small data."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import bitfed

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/python.md"


def test_the_guide_runs_from_top_to_bottom(squares, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, X_test, y_test = squares
    large = [np.kron(images, np.ones((1, 2, 2), np.uint8)) for images in (X, X_test)]  # patches are of 10 x 10
    monkeypatch.setattr(bitfed, "load_data", lambda name: (large[0], y, large[1], y_test))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    activity = rng.integers(0, 2, 200)
    frame = pandas.DataFrame({"subject": np.arange(200) // 50, "height": activity + rng.normal(0, 0.2, 200),
                              "activity": np.array(["rest", "run"])[activity]})
    frame.to_parquet("readings.parquet")

    names = {"frame": frame}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 5
    for number, block in enumerate(blocks):
        if "flower" in block and importlib.util.find_spec("flwr") is None:
            continue
        exec(compile(block, f"block {number} of {GUIDE.name}", "exec"), names)
    assert names["machine"].score(large[1], y_test) > 0.9
    assert names["result"].accuracy > 0.9  # the method in Python
