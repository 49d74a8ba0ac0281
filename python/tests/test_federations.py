"""Federations: the program's bytes on arrays, results, methods in Python, interruptions."""

import functools
import gzip
import json
import os
import subprocess
import sys
import tomllib

import numpy as np
import pytest

import bitfed
from bitfed.recipe import read_recipe, toml_text


def idx(path):
    with gzip.open(path) as file:
        content = file.read()
    if content[2:4] == b"\x08\x03":
        return np.frombuffer(content, np.uint8, offset=16).reshape(-1, *np.frombuffer(content, ">u4", 2, 8))
    return np.frombuffer(content, np.uint8, offset=8)


def images(tiny, name="mnist"):
    return [idx(tiny / f"data/{name}/{part}-{kind}-ubyte.gz")
            for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]


def rows(tiny):
    lines = [line.split(",") for line in (tiny / "table.csv").read_text().split()[1:]]
    X = np.array([[float(a), float(b)] for _, a, b, _ in lines], np.float32)
    return X, np.array([line[3] for line in lines]), np.array([line[0] for line in lines])


@pytest.mark.parametrize("recipe", ["one-shot", "fedtm", "table", "people", "network"])
def test_arrays_give_the_models_of_files(recipe, tiny, summary_of, tmp_path):
    overrides = {}
    if recipe == "network":  # the catalog knows the pixels of its sets; of arrays the recipe must say
        overrides = {"data.pixel_mean": "[0.286]", "data.pixel_std": "[0.353]"}
        data = images(tiny, "fashion-mnist")
    else:
        data = rows(tiny) if recipe in ("table", "people") else images(tiny)
    expected = summary_of(f"{recipe}.toml", tmp_path / "files", **overrides)
    classes = None if recipe in ("table", "people") else range(10)  # of which the tiny images show four
    result = bitfed.run(tiny / f"{recipe}.toml", data, classes=classes, out=tmp_path / "arrays", set=overrides,
                        progress=False)
    assert result.model_sha256 == expected["model_sha256"]
    assert result.accuracy == expected["accuracy"]
    assert result.summary["total_upload_bytes"] == expected["total_upload_bytes"]


def test_recipes_run_without_arrays(tiny, summary_of, tmp_path):
    expected = summary_of("one-shot.toml", tmp_path / "files")
    text = (tiny / "one-shot.toml").read_text()
    for recipe in (tiny / "one-shot.toml", text, tomllib.loads(text)):
        assert bitfed.run(recipe, progress=False).model_sha256 == expected["model_sha256"]


def test_names_of_recipes_and_text_beyond_ascii(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text("#!/bin/sh\n")  # not the recipe
    assert "fashion-mnist" in read_recipe("quickstart").text
    names = ["\U0001f600", "é", "\x7f", "a\"b\\"]
    recipe = {"data": {"class_names": names, "partition": {"kind": "iid", "clients": 2}}, "model": {"name": "tm"}}
    assert tomllib.loads(toml_text(recipe)) == recipe
    federation = bitfed.Federation({"name": "n", "data": recipe["data"] | {"class_names": names}} | {
        "model": {"name": "tm", "clauses": 4}, "method": {"name": "fedtm-bank"}}, images(tiny))
    assert federation.name == "n"
    assert federation.class_names == names


def test_a_result_shows_itself(tiny):
    pytest.importorskip("pandas")
    result = bitfed.run(tiny / "fedtm.toml", progress=False)
    assert list(result.rounds["round"]) == [1, 2, 3, 4]
    assert len(result.clients) == 16 and result.clients["upload_bytes"].min() > 0
    assert set(result.events["event"]) >= {"run-started", "round-finished", "run-finished"}
    assert "<iframe" in result._repr_html_() and (result.folder / "report.html").exists()
    X, y = images(tiny)[2:]
    model = result.model
    assert np.mean(model.predict(X[64:]).astype(int) == y[64:]) == pytest.approx(result.accuracy, abs=0.1)
    assert "fedtm" in str(bitfed.report(result, result))


def test_a_notebook_without_widgets_is_not_warned(tiny):
    """A kernel has a configuration of this name; tqdm looks for it and for ipywidgets."""
    pytest.importorskip("tqdm")
    script = f"""
import sys, types, warnings
sys.modules["ipywidgets"] = None
kernel = types.ModuleType("IPython")
kernel.get_ipython = lambda: types.SimpleNamespace(config=dict(IPKernelApp=dict()))
sys.modules["IPython"] = kernel
import bitfed
warnings.simplefilter("error")
bitfed.TsetlinClassifier(4, epochs=1).fit([[0.0], [1.0]], [0, 1])
assert "tqdm" not in sys.modules
bitfed.run({str(tiny / 'fedtm.toml')!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "fedtm" in done.stderr and "ipywidgets" not in done.stderr, done.stderr


def test_progress_uses_tqdm(tiny, capsys):
    pytest.importorskip("tqdm")
    bitfed.run(tiny / "fedtm.toml")
    assert "fedtm" in capsys.readouterr().err


def test_partitions_are_the_programs(tiny):
    y = images(tiny)[1]
    parts = bitfed.partition(y, "dirichlet", clients=4, alpha=0.5, seed=5)
    federation = bitfed.Federation(
        tiny / "one-shot.toml", images(tiny),
        set={"data.partition": {"kind": "dirichlet", "clients": 4, "alpha": 0.5}})
    assert all((a == b).all() for a, b in zip(parts, federation.partition))
    assert sorted(np.concatenate(list(parts))) == list(range(len(y)))
    assert (parts.counts.sum(axis=0) == np.bincount(y)).all()
    assert "<svg" in parts._repr_svg_()
    with pytest.raises(bitfed.InputError, match="kind"):
        bitfed.partition(y, "dirichlett", clients=4)


def test_built_in_data_comes_as_arrays(tiny):
    X, y, X_test, y_test = bitfed.load_data("mnist", tiny / "data")
    assert all((a == b).all() for a, b in zip((X, y, X_test, y_test), images(tiny)))
    assert "mnist" in bitfed.datasets() and "quickstart" in bitfed.recipes()


def test_bad_recipes_are_one_line(tiny):
    with pytest.raises(bitfed.InputError, match="model.clauses: found 3, expected an even number"):
        bitfed.run(tiny / "one-shot.toml", set={"model.clauses": 3})
    with pytest.raises(bitfed.InputError, match="no method is called 'fedtmoss'"):
        bitfed.run(tiny / "one-shot.toml", set={"method.name": "fedtmoss"})
    (tiny / "wrong.toml").write_text((tiny / "one-shot.toml").read_text().replace("clauses", "clause"))
    with pytest.raises(bitfed.InputError, match=r"wrong.toml: line 11: .*clause"):
        bitfed.run(tiny / "wrong.toml")
    with pytest.raises(FileNotFoundError, match="quickstart"):
        bitfed.run("quick-start")
    with pytest.raises(ValueError, match="y: found 399 labels, expected 400"):
        bitfed.run(tiny / "one-shot.toml", (images(tiny)[0], images(tiny)[1][:-1]))


MEASURED = {
    "images": ("np.full((20000, 64, 64, 3), 1, np.uint8)", "(X, y, X, y)", {
        "model": {"name": "ctm", "clauses": 2, "patch": [64, 64]}, "method": {"name": "fedtm-bank"},
        "client": {"epochs": 1}}),
    "table": ("np.zeros((20000, 3000), np.float32)", "(X, y, X, y)", {
        "rounds": 1, "model": {"name": "mlp", "hidden": [4]}, "method": {"name": "fed-bin-mlp"},
        "client": {"epochs": 1}}),
}
MEASURED["split"] = (MEASURED["table"][0], "(X, y)", MEASURED["table"][2])  # the last rows are for testing


@pytest.mark.parametrize("case", MEASURED)
def test_arrays_are_read_where_they_are(case):
    """Peak memory of a run: less than half of the array's size above it. In a process of its own, whose earlier peaks
    would hide a copy. A client's own part is copied while the client trains."""
    make, data, recipe = MEASURED[case]
    script = f"""
import bitfed, gc, numpy as np, resource, sys
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
recipe = {recipe | {"data": {"partition": {"kind": "iid", "clients": 40}}}}
X = {make}
X[::2, :32] = 200
y = np.arange(20000) % 2
bitfed.run(recipe, (X[:400], y[:400], X[:10], y[:10]), threads=1, progress=False)
before, counts = peak(), [sys.getrefcount(array) for array in (X, y)]
bitfed.run(recipe, {data}, threads=1, progress=False)
assert peak() - before < X.nbytes / 2, (peak() - before, X.nbytes)
gc.collect()
assert [sys.getrefcount(array) for array in (X, y)] == counts  # nobody keeps them
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_images_without_test_samples_are_split_as_in_a_file(tiny, program, tmp_path):
    X, y, *_ = images(tiny)
    np.savez(tmp_path / "set.npz", x=X, y=y)
    recipe = {"seed": 3, "data": {"partition": {"kind": "iid", "clients": 4}}, "method": {"name": "fedtm-bank"},
              "model": {"name": "ctm", "clauses": 4, "patch": [4, 4]}, "client": {"epochs": 1}}
    (tmp_path / "npz.toml").write_text(toml_text(dict(recipe, data=dict(recipe["data"], file="set.npz"))))
    expected = json.loads(program("run", "npz.toml", "--json", "--quiet", cwd=tmp_path))
    result = bitfed.run(recipe, (X, y), progress=False)
    assert result.model_sha256 == expected["model_sha256"] and result.accuracy == expected["accuracy"]


OF_IMAGES = {"seed": 3, "data": {"partition": {"kind": "iid", "clients": 4}}, "method": {"name": "fedtm-bank"},
             "model": {"name": "ctm", "clauses": 4, "patch": [4, 4]}, "client": {"epochs": 1}}


@pytest.mark.parametrize("image", [None, [8, 8, 1]])
def test_flags_are_the_pixels_of_a_file(image, tiny, program, tmp_path):
    """Images, and rows of pixels that data.image gives their shape; the names of classes are the recipe's."""
    X, y, *_ = images(tiny)
    X = X > 100
    if image:
        X = X.astype(np.uint8).reshape(len(X), -1) * 255
    np.savez(tmp_path / "set.npz", x=X, y=y)
    keys = {"class_names": ["north-west", "north-east", "south-west", "south-east"]} | ({"image": image} if image else {})
    recipe = dict(OF_IMAGES, data=OF_IMAGES["data"] | keys)
    (tmp_path / "npz.toml").write_text(toml_text(dict(recipe, data=dict(recipe["data"], file="set.npz"))))
    expected = json.loads(program("run", "npz.toml", "--json", "--quiet", cwd=tmp_path))
    result = bitfed.run(recipe, (X, y), progress=False)
    assert result.model_sha256 == expected["model_sha256"] and result.accuracy == expected["accuracy"] > 0.5
    assert result.summary["class_names"] == keys["class_names"] == expected["class_names"]
    assert bitfed.load(result.folder).classes.tolist() == keys["class_names"]
    by_set = bitfed.run(OF_IMAGES, (X, y), set={f"data.{key}": value for key, value in keys.items()}, progress=False)
    assert by_set.model_sha256 == result.model_sha256


def test_images_of_zero_and_one_are_not_taken_for_black_ones(tiny):
    X, y, *_ = images(tiny)
    with pytest.raises(bitfed.InputError, match="^arrays: found no pixel above 75, .* every bit 0; images of 0 and 1"):
        bitfed.run(OF_IMAGES, ((X > 100).astype(np.uint8), y), progress=False)
    level = {"data.booleanize": {"kind": "threshold", "level": 0}}
    for data, keys in (((X > 100).astype(np.uint8), level), (X > 100, {}), (X, {})):
        assert bitfed.run(OF_IMAGES, (data, y), set=keys, progress=False).accuracy > 0.5


@pytest.mark.parametrize("labels, people", [
    (np.array(["8", "9", "10", "11"]), np.array(["2", "10", "1"])),  # by number
    (np.array([3.0, 1.0, 20.0, 4.0]), np.array([5.0, 40.0, 7.0])),  # "3", not "3.0"
    (np.array(["10", "9", "é", "-1"]), np.array(["b", "10", "9"])),
])
def test_names_of_classes_and_people_are_those_of_files(labels, people, tiny, program, tmp_path):
    X, y, *_ = images(tiny)
    y, person = labels[np.unique(y, return_inverse=True)[1]], people[np.arange(len(y)) % 3]
    np.savez(tmp_path / "set.npz", x=X, y=y, person=person)
    recipe = {"data": {"partition": {"kind": "column"}}, "method": {"name": "fedtm-bank"}, "client": {"epochs": 1},
              "model": {"name": "ctm", "clauses": 4, "patch": [4, 4]}}
    (tmp_path / "npz.toml").write_text(toml_text(dict(recipe, data=dict(recipe["data"], file="set.npz"))))
    expected = json.loads(program("run", "npz.toml", "--json", "--quiet", cwd=tmp_path))
    result = bitfed.run(recipe, (X, y, person), progress=False)
    assert result.model_sha256 == expected["model_sha256"] and result.accuracy == expected["accuracy"]
    assert bitfed.load(result.folder).classes.tolist() == bitfed.load(tmp_path / "runs/npz").classes.tolist()
    # Predictions are labels as they were given.
    assert set(result.model.predict(X)) <= set(labels) and np.mean(result.model.predict(X) == y) > 0.5


# Methods in Python.


class Centroids(bitfed.Method):
    """Class means, averaged over clients by their samples."""

    rounds = 3

    def __init__(self, step: float = 0.5):
        self.step = step

    def start(self, about):
        return {"centres": np.zeros((about.classes, about.features))}

    def train(self, state, X, y, context):
        X = X.reshape(len(X), -1).astype(float)
        counts = np.bincount(y, minlength=len(state["centres"]))
        sums = np.zeros_like(state["centres"])
        np.add.at(sums, y, X)
        seen = (context.kept or {"rounds": np.int64(0)})["rounds"] + 1
        context.keep({"rounds": seen})
        return {"sums": sums + 1e-9 * context.rng.normal(size=sums.shape), "counts": counts, "rounds": seen}

    def aggregate(self, state, uploads):
        counts = sum(upload["counts"] for upload in uploads.values())
        means = sum(upload["sums"] for upload in uploads.values()) / np.maximum(counts, 1)[:, None]
        return {"centres": (1 - self.step) * state["centres"] + self.step * means,
                "rounds": max(upload["rounds"] for upload in uploads.values())}

    def scores(self, state, X):
        X = X.reshape(len(X), -1).astype(float)
        return -((X[:, None] - state["centres"]) ** 2).sum(axis=2)


RECIPE = {"seed": 1, "data": {"partition": {"kind": "dirichlet", "clients": 5, "alpha": 1.0}}}


def test_a_method_in_python(tiny, tmp_path):
    result = bitfed.run(RECIPE, images(tiny), method=Centroids(step=0.6), out=tmp_path / "run", progress=False)
    assert result.accuracy > 0.9
    assert result.summary["method"] == "Centroids" and result.summary["rounds"] == 3
    assert result.state["rounds"] == 3  # clients found what they had kept
    assert "step = 0.6" in (tmp_path / "run/recipe.toml").read_text()
    again = bitfed.run(RECIPE | {"method": {"step": 0.6}}, images(tiny), method=Centroids, threads=1, progress=False)
    assert again.model_sha256 == result.model_sha256
    assert bitfed.run(RECIPE, images(tiny), method=Centroids, progress=False).model_sha256 != result.model_sha256
    assert "<iframe" in result._repr_html_()


def test_a_run_is_not_resumed_with_other_arrays(tiny, tmp_path):
    """Not a finished one either, whose result would be returned."""
    arrays = images(tiny)
    run = functools.partial(bitfed.run, RECIPE, method=Centroids(step=0.6), out=tmp_path / "run", progress=False)
    result = run(arrays)
    assert run(arrays, resume=True).model_sha256 == result.model_sha256
    with pytest.raises(bitfed.InputError, match="begun with other data"):
        run([255 - arrays[0], *arrays[1:]], resume=True)


class Wide(Centroids):
    def __init__(self, step=0.5, widths=(8, 4), table=None):
        super().__init__(step)
        self.widths, self.table = widths, table


def test_options_of_any_type_are_recorded(tiny, tmp_path):
    """A number of numpy is a number; what a recipe cannot hold is written as text, and a run is not resumed with other
    values."""
    run = functools.partial(bitfed.run, RECIPE, images(tiny), out=tmp_path / "run", progress=False)
    table = np.arange(6.0).reshape(2, 3)
    result = run(method=Wide(np.float32(0.25), table=table))
    recorded = tomllib.loads((tmp_path / "run/recipe.toml").read_text())["method"]
    assert recorded["step"] == 0.25 and recorded["widths"] == "(8, 4)" and recorded["table"].startswith("float64 [2, 3] ")
    assert run(method=Wide(0.25, table=table), resume=True).model_sha256 == result.model_sha256
    for other in (Wide(np.float64(0.75), table=table), Wide(0.25, (8, 5), table), Wide(0.25, table=table + 1)):
        with pytest.raises(bitfed.InputError, match="recipe"):
            run(method=other, resume=True)
    with pytest.raises(bitfed.InputError, match="^recipe: .*method.widths: found 'many'"):
        bitfed.run(RECIPE | {"method": {"widths": "many"}}, images(tiny), method=Wide, progress=False)


def test_a_method_in_python_is_resumed(tiny, tmp_path):
    """Killed in its third round, then resumed: the model of an undisturbed run."""
    whole = bitfed.run(RECIPE, images(tiny), method=Slow(), out=tmp_path / "whole", progress=False)
    script = f"""
import sys; sys.path[:0] = {[os.path.dirname(__file__)]!r}
import os, pathlib
from test_federations import *
Slow.die = True
bitfed.run(RECIPE, images(pathlib.Path({str(tiny)!r})), method=Slow(), out={str(tmp_path / 'run')!r}, progress=False)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    resumed = bitfed.run(RECIPE, images(tiny), method=Slow(), out=tmp_path / "run", resume=True, progress=False)
    assert resumed.model_sha256 == whole.model_sha256
    rounds = [event["round"] for event in resumed.records("round-finished")]
    assert rounds.count(1) == 1 and rounds[-1] == 4  # the first round was not repeated
    with open(resumed.folder / "events.jsonl", "a") as log:  # as if killed after a round that was not checkpointed
        log.writelines(json.dumps(event) + "\n" for event in resumed.records() if event.get("round") == 4)
    assert resumed.rounds["round"].tolist() == [1, 2, 3, 4]
    assert len(resumed.clients) == 4 * resumed.summary["clients"]
    assert len(resumed.records("round-finished")) == len(rounds) + 1


class Slow(Centroids):
    """Rounds long enough to be checkpointed; dies in the third if it is told to."""

    rounds = 4
    die = False

    def aggregate(self, state, uploads):
        if self.die and state.get("rounds", 0) == 2:
            os._exit(9)
        import time

        time.sleep(1.1)
        return super().aggregate(state, uploads)


def test_errors_in_python_keep_their_trace(tiny):
    class Wrong(Centroids):
        def train(self, state, X, y, context):
            return {"sums": 1 / np.array([{}], dtype=object)}

    with pytest.raises(TypeError):
        bitfed.run(RECIPE, images(tiny), method=Wrong, progress=False)

    class Short(Centroids):
        def scores(self, state, X):
            return np.zeros((len(X), 2))

    with pytest.raises(bitfed.InputError, match="scores: found"):
        bitfed.run(RECIPE, images(tiny), method=Short, progress=False)


class BestHolder(bitfed.Fusion):
    """Each class from the client that has most samples of it."""

    def fuse(self, uploads, recipe):
        machine, most = recipe.empty(), np.zeros(recipe.classes)
        for upload in uploads:
            for i, label in enumerate(upload.classes):
                if upload.samples[i] > most[label]:
                    most[label] = upload.samples[i]
                    machine.actions[label], machine.weights[label] = upload.actions[i], upload.weights[i]
        return machine


def test_a_fusion_in_python_reuses_the_clients_of_others(tiny, tmp_path):
    first = bitfed.run(tiny / "one-shot.toml", set={"method.name": "fedtmos"}, out=tmp_path / "fedtmos", progress=False)
    recipe = tomllib.loads((tiny / "one-shot.toml").read_text())
    del recipe["method"]
    own = bitfed.run(recipe, method=BestHolder, reuse=first, progress=False)
    assert own.summary["reused_uploads"] == 4 and own.accuracy > 0.5
    assert own.model_sha256 == bitfed.run(recipe, method=BestHolder, progress=False).model_sha256
    assert own.model.rules()


def test_bad_arrays_are_one_line(tiny):
    X, y, person = rows(tiny)
    recipe = {"data": {"partition": {"kind": "iid", "clients": 3}}, "model": {"name": "tm", "clauses": 4}}

    def refuse(text, *data, recipe=recipe):
        with pytest.raises(ValueError, match=text):
            bitfed.run(recipe, data, progress=False)

    refuse("y: labels are real values such as", X, X[:, 0])
    refuse("y: found nan", X, np.where(y == "cat", np.nan, 1.0))
    refuse("y: found None or values of several types", X, np.where(y == "cat", None, y))
    refuse(r"y: found shape \[200, 2\]", X, np.zeros((200, 2)))
    refuse("found one class", X, np.zeros(200))
    refuse("row 7, column 1 is inf", np.where(np.arange(400).reshape(200, 2) == 15, np.inf, X), y)
    refuse("person: found None or values of several types", X, y, np.where(y == "cat", None, person))
    refuse("found 10, expected 200", X, y, person[:10])
    refuse("data: found 1 values, expected", X)
    refuse("data: found 5 values, expected", X, y, X, y, X)
    refuse(r"float64 \[200, 2, 2\], .*astype", np.zeros((200, 2, 2)), y)
    for data in (X, {"x": X}, {"train": X}):
        with pytest.raises(ValueError, match="data: found (ndarray|dict), expected"):
            bitfed.run(recipe, data, progress=False)
    with pytest.raises(ValueError, match="data: found 'set.npz', expected arrays.* the recipe names other files"):
        bitfed.run(recipe, "set.npz", progress=False)
    refuse("recipe: found None", X, y, recipe=dict(recipe, seed=None))


def test_a_report_keeps_the_runs_it_is_about(tiny):
    def run(seed):
        return bitfed.run(tiny / "one-shot.toml", seed=seed, progress=False)

    assert "mean ± sample deviation" in str(bitfed.report(run(0), run(1)))
    assert "<html" in run(0).report().page()


# Interruptions.


def test_ctrl_c_stops_and_the_run_is_resumed(tiny, tmp_path):
    """The signal comes after a round, which the resumed run does not repeat; its model is that of an undisturbed run."""
    script = f"""
import sys; sys.path[:0] = {[os.path.dirname(__file__)]!r}
import os, pathlib, signal, threading, time
from test_federations import *
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
events = pathlib.Path({str(tmp_path / 'run/events.jsonl')!r})
def stop_after_a_round():
    while not events.exists() or "round-finished" not in events.read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop_after_a_round, daemon=True).start()
try:
    bitfed.run(RECIPE, images(pathlib.Path({str(tiny)!r})), method=Slow(), out=events.parent, progress=False)
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr
    assert not (tmp_path / "run/summary.json").exists()
    run = functools.partial(bitfed.run, RECIPE, images(tiny), method=Slow(), progress=False)
    with pytest.raises(bitfed.InputError, match="resume"):
        run(out=tmp_path / "run")
    resumed = run(out=tmp_path / "run", resume=True)
    assert resumed.model_sha256 == run(out=tmp_path / "whole").model_sha256
    rounds = [event["round"] for event in resumed.records("round-finished")]
    assert rounds.count(1) == 1 and rounds[-1] == 4


def test_ctrl_c_stops_an_estimator():
    script = """
import bitfed, numpy as np, os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
X = np.random.default_rng(0).integers(0, 255, (500, 28, 28), dtype=np.uint8)
try:
    bitfed.TsetlinClassifier(200, patch=10, epochs=100000).fit(X, np.arange(500) % 10)
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr


def test_the_package_is_a_program(tmp_path):
    done = subprocess.run([sys.executable, "-m", "bitfed", "methods"], capture_output=True, text=True)
    assert done.returncode == 0 and "fedtmos" in done.stdout
    done = subprocess.run([sys.executable, "-m", "bitfed", "run", "nothing.toml"], capture_output=True, text=True)
    assert done.returncode == 2 and "nothing.toml" in done.stderr
    for name in ("quickstart", "recipes/quickstart.toml"):
        done = subprocess.run([sys.executable, "-m", "bitfed", "run", name, "--set", "model.clauses=x"], capture_output=True,
                              text=True, cwd=tmp_path)
        assert "model.clauses: found the string 'x'" in done.stderr
    done = subprocess.run([sys.executable, "-m", "bitfed", "reproduce", "--list"], capture_output=True, text=True)
    assert "fedtmos:table1" in done.stdout
