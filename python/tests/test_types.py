"""A type checker in its strict mode follows a user's script, and finds the user's mistakes in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bitfed

# Lines with "type: ignore" are mistakes: a checker that does not find one complains of the comment.
SCRIPT = '''
import numpy as np
import numpy.typing as npt

import bitfed
from bitfed.methods import About, Arrays, Context, Machine, Recipe, Upload


def estimator() -> float:
    X, y, X_test, y_test = bitfed.load_data("fashion-mnist")
    machine = bitfed.TsetlinClassifier(200, T=1000, s=5, patch=10).fit(X, y).set_params(epochs=3)
    print(machine.predict(X_test).shape, machine.classes_.tolist(), machine.model_.costs["bytes"], machine.get_params())
    for rule in machine.rules(per_class=2):
        print(rule.class_name, rule.vote + 1, rule.text.upper())
    print(machine.export_c("folder")[0].read_text())
    bitfed.BinaryMLPClassifier((8, 4)).fit(X, y)
    bitfed.TsetlinClassifier("many")  # type: ignore[arg-type]
    return machine.score(X_test, y_test)


class Centroids(bitfed.Method):
    rounds = 3

    def start(self, about: About) -> Arrays:
        return {"centres": np.zeros((about.classes, about.features))}

    def train(self, state: Arrays, X: npt.NDArray[np.float32], y: npt.NDArray[np.uint16], context: Context) -> Arrays:
        context.keep({"drawn": context.rng.normal(size=3)})
        return {"counts": np.bincount(y)}


class First(bitfed.Fusion):
    def fuse(self, uploads: list[Upload], recipe: Recipe) -> Machine:
        machine = recipe.empty()
        machine.actions[0] = uploads[0].actions[0]
        return machine


def federation() -> None:
    X, y, X_test, y_test = bitfed.load_data("fashion-mnist")
    result = bitfed.run({"seed": 0}, (X, y, X_test, y_test), set={"model.clauses": 20}, method=Centroids())
    print(100 * result.accuracy, result.folder / "report.html", result.rounds["accuracy"], result.records()[0]["event"])
    for method in (Centroids, First, First()):
        bitfed.run("quickstart", method=method)
    bitfed.run("quickstart", method="fedtmos")  # type: ignore[arg-type]
    prepared = bitfed.Federation("quickstart")
    print(prepared.clients + 1, prepared.name.upper(), prepared.partition[0].sum(), prepared.evaluate(result.model))
    print(bitfed.partition(y, "dirichlet", clients=10, alpha=0.1)[0].sum(), bitfed.report(result, "runs/other").page())
    try:
        bitfed.load("model.safetensors").predict(X)
    except bitfed.InputError as error:
        print(error)
'''


def test_a_script_passes_a_strict_checker(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(SCRIPT)
    package = Path(bitfed.__file__).parents[1]  # an installed one is found without a path
    path = {} if package.name == "site-packages" else {"MYPYPATH": str(package)}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "script.py"], text=True,
                          cwd=tmp_path, capture_output=True, env=os.environ | path, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
