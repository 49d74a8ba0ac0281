"""Clumsy and hostile calls: each ends in one exception that names the argument, or gives what the tidy call gives."""

import inspect
import re
import sys

import numpy as np
import pytest

import bitfed
from bitfed import BinaryMLPClassifier, TsetlinClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 60)
IMAGES = RNG.integers(0, 256, (60, 8, 8)).astype(np.uint8)
RECIPE = {
    "data": {"partition": {"kind": "iid", "clients": 3}},
    "model": {"name": "tm", "clauses": 4},
    "method": {"name": "fedtmos"},
    "client": {"epochs": 1},
}


def machine(**parameters):
    return TsetlinClassifier(4, epochs=parameters.pop("epochs", 1), **parameters)


@pytest.mark.parametrize("called", [bitfed.run, bitfed.partition, TsetlinClassifier, BinaryMLPClassifier])
def test_help_names_every_parameter(called):
    names = [name for name in inspect.signature(called).parameters if name != "options"]
    assert [name for name in names if not re.search(rf"\b{name}\b", called.__doc__)] == []


def test_any_layout_and_type_of_an_array_is_the_same_array(tmp_path):
    np.save(tmp_path / "x.npy", X)
    fixed = X.copy()
    fixed.flags.writeable = False
    same = [X.astype(float), np.asfortranarray(X), np.repeat(X, 2, 1)[:, ::2], X.astype(">f4"), X.astype(object), fixed,
            X.tolist(), np.load(tmp_path / "x.npy", mmap_mode="r")]
    expected = machine().fit(X, Y).model_.sha256
    assert {machine().fit(other, Y).model_.sha256 for other in same} == {expected}
    of_images = machine(patch=3).fit(IMAGES, Y).model_.sha256
    assert machine(patch=3).fit(np.asfortranarray(IMAGES), Y).model_.sha256 == of_images


@pytest.mark.parametrize("samples, labels, text", [
    (IMAGES[:0], Y[:0], "X: found no samples"),
    (IMAGES[:, :, :0], Y, r"X: found samples of shape \[8, 0\]"),
    (IMAGES[:, :0], Y, r"X: found samples of shape \[0, 8\]"),
    (np.zeros((60, 3, 8, 8), np.uint8), Y, "expected the channels last"),
    (IMAGES, 3, "y: found 3 labels, expected 60"),
    (IMAGES, Y[:, None], r"y: found shape \[60, 1\]"),
    (IMAGES, Y + np.nan, "y: found nan"),
])
def test_images_that_are_none(samples, labels, text):
    with pytest.raises(ValueError, match="^" + text if text[1] == ":" else text):
        machine(booleanizer="threshold").fit(samples, labels)


@pytest.mark.parametrize("scikit_learn", [True, False])
def test_tables_and_images_are_not_taken_for_each_other(scikit_learn, monkeypatch):
    if not scikit_learn:
        monkeypatch.setattr("bitfed.estimator.validate_data", None)
    with pytest.raises(ValueError, match=r"^X: found shape \[60, 4\], expected images as in fit"):
        machine(patch=3).fit(IMAGES, Y).predict(X)
    for estimator in (machine(), BinaryMLPClassifier((4,), epochs=1)):
        with pytest.raises(ValueError, match=r"^X: found shape \[60, 8, 8\], expected a table"):
            estimator.fit(X, Y).predict(IMAGES)
    assert machine(patch=3).fit(IMAGES, Y).set_params(patch=None).fit(X, Y).predict(X).shape == (60,)


def test_cells_that_are_no_numbers_without_scikit_learn(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("bitfed.estimator.validate_data", None)
    for column in (["u", "v"], pandas.array([1, None], dtype="Int64"), pandas.date_range("2020", periods=2)):
        with pytest.raises(ValueError, match="^X: found"):
            machine().fit(pandas.DataFrame({"a": [1.0, 2.0], "b": column}), [0, 1])


def test_bits_without_a_value_are_refused():
    with pytest.raises(ValueError, match="expected at least one value per sample"):
        machine().fit(np.zeros((60, 8, 0), bool), Y)


@pytest.mark.parametrize("name, values", {
    "epochs": [-1, 1.5, None, "a", 2**40],
    "n_jobs": ["a", 1.5, 10**9],
    "seed": [True, 1.0],
    "members": [3, [3], [{"clauses": 3}]],
    "booleanizer": [None, 3],
}.items())
def test_parameters_of_a_machine(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name}: found "):
            TsetlinClassifier(**{"n_clauses": 4, "epochs": 1, "patch": 3, name: value}).fit(IMAGES, Y)
    assert machine(patch=np.array([3, 3])).fit(IMAGES, Y).model_.sha256 == machine(patch=3).fit(IMAGES, Y).model_.sha256


@pytest.mark.parametrize("name, values", {
    "hidden": [5, "a", None, (0,), (2.5,), (10**9,)],
    "batch": [0, "a", 1.5, None],
    "learning_rate": [0, -1, float("nan"), "a", None],
    "epochs": [-1, "a"],
}.items())
def test_parameters_of_a_perceptron(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name}: found "):
            BinaryMLPClassifier(**{"hidden": (4,), "epochs": 1, name: value}).fit(X, Y)


def test_classes_of_partial_fit():
    with pytest.raises(ValueError, match="y: found 0 classes"):
        machine().partial_fit(X, Y, classes=[])
    started = machine().partial_fit(X, Y, classes=[0, 1, 2])
    started.partial_fit(X, Y, classes=[2, 1, 0])
    with pytest.raises(ValueError, match="^classes: found .* expected those of the first call"):
        started.partial_fit(X, Y, classes=[0, 1, 2, 3])


@pytest.mark.parametrize("recipe, text", [
    (None, "recipe: found NoneType"),
    (3, "recipe: found int"),
    ([1], "recipe: found list"),
    (b"a = 1", "recipe: found bytes"),
    ({"model": {"name": object()}}, "recipe: found <object"),
    ("a = [\nb", "recipe: line 2: "),
    ("data = 3\n", "recipe: .*data"),
])
def test_recipes_that_are_none(recipe, text):
    with pytest.raises((ValueError, TypeError), match="^" + text):
        bitfed.run(recipe, (X, Y), progress=False)


def test_a_recipe_that_is_no_text(tmp_path):
    (tmp_path / "junk.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="junk.toml: found bytes that are not UTF-8"):
        bitfed.run(tmp_path / "junk.toml", (X, Y))


def test_a_path_in_a_recipe(tmp_path):
    rows = "\n".join(f"{i},{i % 2}" for i in range(40))
    (tmp_path / "täble 1.csv").write_text(f"a,kind\n{rows}\n", encoding="utf-8")
    data = {"file": tmp_path / "täble 1.csv", "label": "kind", "partition": {"kind": "iid", "clients": 2}}
    result = bitfed.run(dict(RECIPE, data=data), out=tmp_path / "läuft", progress=False)
    assert result.folder == tmp_path / "läuft"


@pytest.mark.parametrize("arguments, text", [
    ({"set": ["a"]}, "set: found list"),
    ({"threads": -1}, "threads: found -1"),
    ({"threads": "2"}, "threads: found '2'"),
    ({"threads": 10**9}, "threads: found 1000000000"),
    ({"method": "fedtmos"}, "method: found 'fedtmos'"),
    ({"resume": True, "overwrite": True}, "overwrite: found it together with resume"),
    ({"data": (X, None)}, "y: found None"),
    ({"data": (X, np.array(["a", "a\0b", "c"])[Y])}, r'arrays: classes: found "a\\x00b", expected names without control'),
    ({"data": (X, np.array(["a", "b", ""])[Y])}, "arrays: classes: found one without a name"),
    ({"data": (X, np.stack([Y, Y], 1))}, r"y: found shape \[60, 2\]"),
    ({"data": (np.full((60, 2), "a"), Y)}, "X: found <U1 values, expected numbers"),
    ({"data": (np.zeros((60, 3, 8, 8), np.uint8), Y)}, "X: found .* expected the channels last"),
])
def test_arguments_of_a_run(arguments, text):
    with pytest.raises((ValueError, TypeError), match="^" + text):
        bitfed.run(RECIPE, **{"data": (X, Y), "progress": False, **arguments})


@pytest.mark.parametrize("keys, text", [
    ({"image": [8, 4, 1]}, r"data.image: found \[8, 4, 1\], but X has samples of shape \[8, 8\]"),
    ({"image": 64}, "data.image: found 64, expected"),
    ({"size": [64, 64]}, r"data.size: found \[64, 64\], but X holds images of \[8, 8\]; arrays are not scaled"),
    ({"channels": 3}, "data.channels: found 3, but X holds images of 1"),
    ({"class_names": ["a", "b", "a"]}, "arrays: classes: found 'a' twice, expected distinct names"),
    ({"class_names": ["a", "b"]}, "data.class_names: found 2 names, expected 3, for the labels 0 to 2"),
    ({"class_names": "abc"}, "data.class_names: found 'abc', expected a list"),
])
def test_keys_of_images(keys, text):
    with pytest.raises(ValueError, match="^" + text):
        bitfed.run(dict(RECIPE, data=RECIPE["data"] | keys), (IMAGES, Y), progress=False)
    same = {"size": [8, 8], "channels": 1, "image": [8, 8, 1], "class_names": ["a", "b", "c"]}
    assert bitfed.Federation(dict(RECIPE, data=RECIPE["data"] | same), (IMAGES, Y)).class_names == ["a", "b", "c"]


@pytest.mark.parametrize("samples, text", [
    (IMAGES.astype(np.int64), r"Pixels from 0 to 255: X.astype\('uint8'\)$"),
    (IMAGES.astype(np.float32), r"Pixels from 0 to 255: X.round\(\).astype\('uint8'\)$"),
    (IMAGES / 255, r"Pixels from 0 to 1: \(255 \* X\).round\(\).astype\('uint8'\)$"),
    (IMAGES - 128.0, "Found values from -128.0 to 127.0, expected pixels from 0 to 255$"),
    (IMAGES.astype(str), r"or numbers \[samples, columns\]$"),
])
def test_images_of_other_types_come_with_the_right_hint(samples, text):
    for call in (lambda: bitfed.run(RECIPE, (samples, Y)), lambda: machine(patch=3).fit(samples, Y)):
        with pytest.raises(ValueError, match=text):
            call()


def test_images_of_zero_and_one_are_bits_or_refused():
    bits = (IMAGES > 127).astype(np.uint8)
    for booleanizer in ("auto", "threshold", "adaptive-gaussian"):
        with pytest.raises(ValueError, match="X: found images of 0 and 1 only, .* booleanizer='bits'"):
            machine(patch=3, booleanizer=booleanizer).fit(bits, Y)
    same = [machine(patch=3, booleanizer="bits").fit(bits, Y), machine(patch=3).fit(bits > 0, Y),
            machine(patch=3, booleanizer={"kind": "threshold", "level": 0}).fit(bits, Y),
            machine(patch=3, booleanizer="threshold").fit(bits > 0, Y).fit(255 * bits, Y)]
    assert len({str(fitted.predict(X)) for fitted, X in zip(same, (bits, bits > 0, bits, bits > 0))}) == 1


@pytest.mark.filterwarnings("error")
def test_what_is_no_array():
    class Sparse:
        def toarray(self): ...

    for samples, text in [((row for row in X), "X: found generator, expected an array$"),
                          (Sparse(), r"X: found Sparse, expected an array: X.toarray\(\)$"),
                          (X + 1j, "X: found complex64 values, expected numbers: they have imaginary parts"),
                          (X.astype(float) * 1e300, r"X: row 0, column 0 is \S*e\+2\d\d, expected a finite number of 32 bits")]:
        with pytest.raises(ValueError, match="^" + text):
            bitfed.run(RECIPE, (samples, Y), progress=False)


def test_test_samples_of_another_shape():
    for train, test, text in [(X, X[:, :3], r"\[3\], expected \[4\]"), (IMAGES, IMAGES[:, :6], r"\[6, 8, 1\], expected \[8, 8, 1\]"),
                              (IMAGES, X, r"\[4\], expected \[8, 8, 1\]")]:
        with pytest.raises(ValueError, match="^X: found test samples of shape " + text + " as for training"):
            bitfed.run(RECIPE, (train, Y, test, Y), progress=False)


def test_models_are_asked_about_samples_of_another_shape():
    for fitted, samples, text in [(machine().fit(X, Y), X[:, :3], r"\[3\], expected \[4\]"),
                                  (machine().fit(X > 0, Y), X[:, :3] > 0, r"\[1, 1, 3\], expected \[1, 1, 4\]"),
                                  (machine(patch=3).fit(IMAGES, Y), IMAGES[:, 1:], r"\[7, 8, 1\], expected \[8, 8, 1\]")]:
        with pytest.raises(ValueError, match="^X: found samples of shape " + text):
            fitted.model_.predict(samples)


def test_lists_of_images_are_images():
    with pytest.raises(ValueError, match=r"^X: found int64 \[60, 8, 8\], .*X.astype\('uint8'\)$"):
        machine(patch=3).fit(IMAGES.tolist(), Y)


def test_columns_are_named_by_strings():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).assign(kind=Y)
    for key, value in {"label": 4, "person": 3, "ignore": ["a"]}.items():
        with pytest.raises(ValueError, match=f"^data.{key}: found "):
            bitfed.run(dict(RECIPE, data={"label": "kind", key: value}), frame)
    with pytest.raises(ValueError, match="^data.size: found it with a table"):
        bitfed.run(dict(RECIPE, data={"label": "kind", "size": [8, 8]}), frame)


def test_partitions():
    with pytest.raises(ValueError, match="^seed: found -1"):
        bitfed.partition(Y, clients=2, seed=-1)
    with pytest.raises(ValueError, match="^y: found 70000 classes"):
        bitfed.partition(np.arange(70000), clients=2)


def test_reports_of_what_is_no_run(tmp_path):
    class Fails(bitfed.Method):
        def start(self, about):
            return {"centres": np.zeros(3)}

        def train(self, state, X, y, context):
            raise RuntimeError("boom")

    data = {"data": RECIPE["data"]}
    with pytest.raises(RuntimeError, match="boom"):
        bitfed.run(data, (X, Y), method=Fails, out=tmp_path / "failed", progress=False)
    with pytest.raises(bitfed.InputError, match="summary.json: not found, expected the summary that a finished run"):
        bitfed.report(tmp_path / "failed").page()
    with pytest.raises(ValueError, match="^runs: found none"):
        bitfed.report()
    for run in (3, [tmp_path], machine()):
        with pytest.raises(TypeError, match="^runs: found "):
            bitfed.report(run)
    with pytest.raises(NotImplementedError, match="Half: found no function start"):
        bitfed.run(data, (X, Y), method=type("Half", (bitfed.Method,), {}), progress=False)


def test_tables_of_a_run_without_pandas(monkeypatch):
    result = bitfed.run(RECIPE, (X, Y), progress=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is not installed: Result.records"):
        result.rounds
    assert [record["round"] for record in result.records("round-finished")] == [0, 1]


def test_models_are_asked_for_numbers():
    model = machine().fit(X, Y).model_
    with pytest.raises(ValueError, match="^threads: found -1"):
        model.scores(X, threads=-1)
    with pytest.raises(ValueError, match="^per_class: found -1"):
        model.rules(-1)
