import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).resolve().parents[2]


def pytest_configure(config):
    config.addinivalue_line("markers", "program: needs the program, BITFED_PROGRAM")


@pytest.fixture(scope="session")
def program():
    """`bitfed` as a function of its arguments that returns its standard output."""
    path = os.environ.get("BITFED_PROGRAM")
    if not path:
        pytest.skip("BITFED_PROGRAM is not set")

    def run(*arguments, cwd):
        done = subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The tiny data and recipes of the end-to-end tests."""
    folder = tmp_path_factory.mktemp("tiny")
    subprocess.run([sys.executable, str(SOURCE / "tests/e2e/tiny_data.py"), str(folder)], check=True)
    os.environ["BITFED_DATA"] = str(folder / "data")
    return folder


@pytest.fixture(scope="session")
def summary_of(program, tiny):
    """summary.json of the program's run of a tiny recipe, with other values."""

    def run(recipe, out, **overrides):
        sets = [word for key, value in overrides.items() for word in ("--set", f"{key}={value}")]
        return json.loads(program("run", str(recipe), "--json", "--quiet", "--out", str(out), *sets, cwd=tiny))

    return run


@pytest.fixture(scope="session")
def squares():
    """Images of 8 x 8 whose class is where a bright square stands, with noise."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 500)
    X = np.full((500, 8, 8), 10, np.uint8)
    for image, label in zip(X, y):
        image[4 * (label // 2):, 4 * (label % 2):][:4, :4] = 200
    noise = rng.random(X.shape) < 0.1
    X[noise] = 210 - X[noise]
    return X[:400], y[:400], X[400:], y[400:]
