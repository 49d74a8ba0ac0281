"""Estimators: what they learn, that scikit-learn takes them for its own, that arrays are not copied."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import bitfed
from bitfed import BinaryMLPClassifier, TsetlinClassifier


def table(seed=0, rows=300):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    X = rng.normal(size=(rows, 4)) + y[:, None] * np.array([3, -3, 0, 1])
    return X.astype(np.float32), np.array(["ant", "bee", "cow"])[y]


def test_convolutional_machine_learns_images(squares):
    X, y, X_test, y_test = squares
    machine = TsetlinClassifier(20, T=50, s=5, patch=4, epochs=5).fit(X, y)
    assert machine.score(X_test, y_test) > 0.95
    assert machine.decision_function(X_test).shape == (len(X_test), 4)


def test_flat_machine_learns_a_table():
    X, y = table()
    machine = TsetlinClassifier(20, epochs=10).fit(X, y)
    assert machine.score(*table(1)) > 0.9
    assert list(machine.classes_) == ["ant", "bee", "cow"]


def test_bits_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 12)) < 0.5
    y = X[:, 0] ^ X[:, 1]
    machine = TsetlinClassifier(20, T=15, s=3.9, epochs=20).fit(X, y)
    assert machine.score(X, y) > 0.99
    as_integers = TsetlinClassifier(20, T=15, s=3.9, epochs=20, booleanizer="bits").fit(X.astype(np.int32), y)
    assert as_integers.model_.sha256 == machine.model_.sha256
    text = str(machine.rules())
    assert "x0" in text and "x1" in text and "p(" not in text


def test_composite_votes_together(squares):
    X, y, X_test, y_test = squares
    members = [{"patch": 4, "booleanizer": {"kind": "threshold", "level": 100}},
               {"patch": (3, 3), "booleanizer": {"kind": "colour-thermometer", "levels": 4}}]
    one = TsetlinClassifier(20, T=50, epochs=5, members=members).fit(X, y)
    two = TsetlinClassifier(20, T=50, epochs=5, members=members, n_jobs=2).fit(X, y)
    assert one.score(X_test, y_test) > 0.95
    assert one.model_.sha256 == two.model_.sha256


def test_names_of_other_libraries_are_taken():
    machine = TsetlinClassifier(number_of_clauses=30, T=20, s=3.0, patch_dim=(3, 3), weighted_clauses=False,
                                max_included_literals=16)
    assert (machine.n_clauses, machine.patch, machine.weighted, machine.max_literals) == (30, (3, 3), False, 16)
    assert machine.set_params(number_of_clauses=40).n_clauses == 40
    with pytest.raises(TypeError, match="several names of the parameter 'n_clauses'"):
        TsetlinClassifier(n_clauses=4, number_of_clauses=6)
    with pytest.raises(TypeError, match="several names of the parameter 'max_literals'"):
        machine.set_params(literal_budget=4, max_included_literals=6)
    with pytest.raises(TypeError, match="unknown parameter 'clauses'"):
        TsetlinClassifier(clauses=3)
    assert TsetlinClassifier(30, platform="CPU").get_params() == TsetlinClassifier(30).get_params()
    with pytest.raises(ValueError, match="^platform: found 'CUDA', expected 'CPU'"):
        TsetlinClassifier(30, platform="CUDA")
    with pytest.raises(TypeError, match="unknown parameter 'platform'"):
        BinaryMLPClassifier(platform="CPU")


@pytest.mark.parametrize("estimator", [TsetlinClassifier(4, epochs=1), BinaryMLPClassifier((4,), epochs=1)])
def test_a_fit_that_is_stopped_leaves_no_model(estimator, monkeypatch):
    """The earlier model would answer with the new classes."""
    X, y = table()
    estimator.fit(X, y)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(estimator, "_train", stopped)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X[:, :2], np.array(["a", "b"])[np.arange(len(X)) % 2])
    for unfitted in (estimator, pickle.loads(pickle.dumps(estimator))):
        with pytest.raises(ValueError, match="not fitted"):
            unfitted.predict(X)
    assert set(estimator.partial_fit(X, y).predict(X)) <= set(y)


def test_probabilities_of_a_perceptron():
    X, y = table()
    for labels in (y, y == y[0]):
        network = BinaryMLPClassifier((16,), epochs=20, learning_rate=0.01).fit(X, labels)
        probabilities = network.predict_proba(X)
        assert probabilities.shape == (len(X), len(network.classes_))
        assert np.allclose(probabilities.sum(axis=1), 1) and (probabilities >= 0).all()
        assert (network.classes_[probabilities.argmax(axis=1)] == network.predict(X)).all()
        # The softmax of scores: the difference of two classes' scores is that of their logarithms.
        scores = network.model_.scores(X)
        assert np.allclose(np.log(probabilities[:, 0] / probabilities[:, 1]), scores[:, 0] - scores[:, 1], atol=1e-3)
    assert not hasattr(TsetlinClassifier(), "predict_proba")


def test_probabilities_of_a_machine_are_calibrated_by_scikit_learn():
    calibration = pytest.importorskip("sklearn.calibration")
    X, y = table()
    calibrated = calibration.CalibratedClassifierCV(TsetlinClassifier(20, epochs=5), cv=2).fit(X, y)
    assert np.mean(calibrated.classes_[calibrated.predict_proba(X).argmax(axis=1)] == y) > 0.8


def test_a_budget_of_literals_makes_clauses_short():
    X, y = table(rows=600)
    lengths = []
    for budget in (None, 3):
        machine = TsetlinClassifier(40, T=30, s=10, max_literals=budget, epochs=20).fit(X, y)
        lengths.append(np.mean([rule.text.count("&") for rule in machine.rules(per_class=10)]))
    assert lengths[1] < lengths[0] and lengths[1] < 5


def test_rules_name_the_columns():
    pandas = pytest.importorskip("pandas")
    X, y = table()
    frame = pandas.DataFrame(X, columns=["length", "width", "noise", "height"])
    rules = TsetlinClassifier(20, epochs=5).fit(frame, y).rules()
    assert "length >" in str(rules) or "width >" in str(rules)
    assert str(rules).startswith("ant\n") and "<pre style" in rules._repr_html_()


def test_rules_of_images_are_pictures(squares):
    rules = TsetlinClassifier(10, T=20, patch=4, epochs=2).fit(*squares[:2]).rules()
    assert "<svg" in rules[0]._repr_svg_() and "<svg" in rules._repr_html_()
    assert "dark: must be 1" in rules._repr_html_()
    assert {rule.class_name for rule in rules} == {0, 1, 2, 3}


def test_partial_fit_continues_and_fit_starts_again(squares):
    X, y, *_ = squares
    stepwise = TsetlinClassifier(20, T=50, patch=4, epochs=3)
    for _ in range(3):
        stepwise.partial_fit(X, y, classes=[0, 1, 2, 3])
    whole = TsetlinClassifier(20, T=50, patch=4, epochs=3).fit(X, y)
    assert stepwise.model_.sha256 == whole.model_.sha256
    assert whole.fit(X, y).model_.sha256 == stepwise.model_.sha256
    stepwise.partial_fit(X[:10], y[:10])
    assert stepwise.model_.sha256 != whole.model_.sha256


@pytest.mark.parametrize("estimator", [TsetlinClassifier(10, epochs=2), BinaryMLPClassifier((8,), epochs=2)])
def test_a_pickled_estimator_trains_on_as_the_original(estimator):
    X, y = table()
    estimator.fit(X, y)
    copy = pickle.loads(pickle.dumps(estimator))
    assert (copy.predict(X) == estimator.predict(X)).all()
    assert estimator.partial_fit(X, y).model_.sha256 == copy.partial_fit(X, y).model_.sha256


@pytest.mark.parametrize("kind", [TsetlinClassifier, BinaryMLPClassifier])
def test_progress_is_shown_on_demand(kind, capfd):
    pytest.importorskip("tqdm")
    X, y = table(rows=3000)
    silent = kind(epochs=20).fit(X, y)
    assert capfd.readouterr().err == ""
    shown = kind(epochs=20, verbose=True).fit(X, y)
    text = capfd.readouterr().err
    assert kind.__name__ in text and "%|" in text
    assert shown.model_.sha256 == silent.model_.sha256


def test_the_seed_decides(squares):
    X, y, *_ = squares
    digests = {TsetlinClassifier(10, T=20, patch=4, epochs=1, seed=seed).fit(X, y).model_.sha256 for seed in (0, 0, 1)}
    assert len(digests) == 2


def test_saved_and_exported_models(squares, tmp_path):
    X, y, X_test, _ = squares
    machine = TsetlinClassifier(10, T=20, patch=4, epochs=2).fit(X, y)
    machine.save(tmp_path / "model.safetensors")
    loaded = bitfed.load(tmp_path / "model.safetensors")
    assert (loaded.scores(X_test) == machine.model_.scores(X_test)).all()
    assert loaded.sha256 == machine.model_.sha256 and loaded.input_shape == (8, 8, 1)
    header, source, trial = machine.export_c(tmp_path / "c", "squares")
    assert "squares" in header.read_text() and source.exists() and trial.exists()
    assert machine.export_onnx(tmp_path / "squares.onnx").stat().st_size > 100


@pytest.mark.parametrize("estimator", [TsetlinClassifier(20, epochs=5), BinaryMLPClassifier((8,), epochs=5)])
def test_a_saved_model_finds_its_columns_by_name(estimator, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = table()
    frame = pandas.DataFrame(X, columns=["length", "width", "noise", "height"])
    expected = estimator.fit(frame, y).predict(frame)
    estimator.save(tmp_path / "model.safetensors")
    loaded = bitfed.load(tmp_path / "model.safetensors")
    turned = frame[["height", "noise", "width", "length"]]
    for model in (loaded, estimator.model_, pickle.loads(pickle.dumps(loaded))):
        assert (model.predict(turned) == expected).all()
    with pytest.raises(ValueError, match="found no column 'width'"):
        loaded.predict(frame.drop(columns="width"))
    with pytest.raises(ValueError, match="row 0, column 2 is nan"):
        loaded.predict(np.where(X == X[0, 2], np.nan, X))
    assert '"length",' in estimator.export_c(tmp_path / "c")[1].read_text()
    if isinstance(estimator, TsetlinClassifier):
        assert str(loaded.rules()) == str(estimator.rules()) and "length" in str(loaded.rules())


def test_a_saved_machine_of_bits_takes_bits(tmp_path):
    X = np.random.default_rng(0).random((500, 12)) < 0.5
    machine = TsetlinClassifier(20, T=15, s=3.9, epochs=5).fit(X, X[:, 0] ^ X[:, 1])
    machine.save(tmp_path / "bits.safetensors")
    loaded = bitfed.load(tmp_path / "bits.safetensors")
    assert (loaded.predict(X) == machine.predict(X).astype(str)).all()
    assert str(loaded.rules()) == str(machine.rules())


def test_bad_input_is_one_line(squares):
    X, y, *_ = squares
    with pytest.raises(ValueError, match="expected an even number"):
        TsetlinClassifier(5).fit(*table())
    with pytest.raises(ValueError, match="expected at most the image's 8 x 8"):
        TsetlinClassifier(4, patch=9).fit(X, y)
    with pytest.raises(ValueError, match="found 399 labels, expected 400"):
        TsetlinClassifier(4, patch=4).fit(X, y[1:])
    with pytest.raises(ValueError, match="expected uint8"):
        TsetlinClassifier(4, patch=4).fit(X.astype(float), y)
    with pytest.raises(ValueError, match="labels are real values such as 0.5"):
        TsetlinClassifier(4, patch=4).fit(X, y + 0.5)
    for seed in (None, -1, 2**64, "0"):
        with pytest.raises(ValueError, match="seed: found"):
            TsetlinClassifier(4, seed=seed).fit(*table())
    with pytest.raises(ValueError, match="expected .* columns|features"):
        BinaryMLPClassifier((4,), epochs=1).fit(*table()).predict(np.zeros((2, 3), np.float32))


def test_perceptron_is_a_federation_of_one_client(summary_of, tmp_path):
    X, y = table()
    rows = ["a,b,c,d,kind"] + [",".join(map(repr, map(float, row))) + f",{label}" for row, label in zip(X, y)]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "one.toml").write_text(f"""seed = 3
rounds = 1
[data]
file = "{tmp_path}/table.csv"
label = "kind"
test_fraction = 0.3
partition = {{ kind = "iid", clients = 1 }}
[model]
name = "mlp"
hidden = [8, 4]
[method]
name = "fed-bin-mlp"
[client]
epochs = 4
batch = 16
""")
    summary = summary_of(tmp_path / "one.toml", tmp_path / "run")
    train = len(X) - round(0.3 * len(X))  # split = "time": the first rows are for training
    network = BinaryMLPClassifier((8, 4), epochs=4, batch=16, seed=3).fit(X[:train], y[:train])
    assert network.model_.sha256 == summary["model_sha256"]
    assert network.score(X[train:], y[train:]) == pytest.approx(summary["accuracy"])


@pytest.mark.parametrize("make, estimator", [
    ("np.full((20000, 64, 64, 3), 100, np.uint8)",
     "TsetlinClassifier(2, T=5, patch=(64, 64), epochs=1, booleanizer='threshold')"),
    ("np.full((500000, 60), 1, np.float32)", "BinaryMLPClassifier((4,), epochs=1, batch=4096)"),
])
def test_arrays_are_read_where_they_are(make, estimator):
    """Peak memory of fit and predict: less than half of the array's size above it. In a process of its own, whose
    earlier peaks would hide a copy."""
    script = f"""
import numpy as np, resource
from bitfed import TsetlinClassifier, BinaryMLPClassifier
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
X = {make}
X[::2] = 0
y = np.arange(len(X)) % 2
estimator = {estimator}
estimator.fit(X[:10], y[:10]).predict(X[:10])
before = peak()
estimator.fit(X, y).predict(X)
assert peak() - before < X.nbytes / 2, (peak() - before, X.nbytes)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_errors_speak_of_the_parameters(squares):
    X, y, *_ = squares
    rows = X.reshape(len(X), -1)
    for text, parameters in {
        "n_clauses: found 11, expected an even number": {"n_clauses": 11},
        "T: found 0, expected": {"T": 0},
        "s: found 0.5, expected": {"s": 0.5},
        "patch: found a patch for a table": {"patch": 3},
        "booleanizer.kind: found 'none'": {"booleanizer": "none"},
        "max_literals: found -1": {"max_literals": -1},
    }.items():
        with pytest.raises(bitfed.InputError, match="^" + text):
            TsetlinClassifier(**parameters).fit(rows, y)
    with pytest.raises(ValueError, match="y: found 9, expected one of 4 known values"):
        TsetlinClassifier(4).partial_fit(rows, y).partial_fit(rows, y * 0 + 9)


# scikit-learn's own view.


def test_check_estimator():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    checks.check_estimator(TsetlinClassifier(20, epochs=10))
    checks.check_estimator(BinaryMLPClassifier((16,), epochs=60, learning_rate=0.01))


def test_grid_search_pipeline_and_clone(squares):
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table()
    search = selection.GridSearchCV(TsetlinClassifier(epochs=3), {"n_clauses": [2, 20], "s": [2.0, 10.0]}, cv=2)
    search.fit(X, y)
    assert search.best_score_ > 0.8
    images, labels = squares[:2]
    of_images = selection.GridSearchCV(TsetlinClassifier(T=20, epochs=2), {"n_clauses": [2, 10], "patch": [4, (6, 6)]}, cv=2)
    assert of_images.fit(images, labels).best_score_ > 0.8
    assert of_images.predict(images).shape == labels.shape
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
    assert make_pipeline(StandardScaler(), TsetlinClassifier(20, epochs=5)).fit(X, y).score(X, y) > 0.9


def test_without_scikit_learn():
    """The same machine in a process that cannot import scikit-learn."""
    script = """
import sys
sys.modules["sklearn"] = None
import numpy as np, pickle
from bitfed import TsetlinClassifier
X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
machine = TsetlinClassifier(4, epochs=1).fit(X, X[:, 0] > 0)
print(machine.model_.sha256, pickle.loads(pickle.dumps(machine)).score(X, X[:, 0] > 0) > 0.5)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    assert done.stdout.split() == [TsetlinClassifier(4, epochs=1).fit(X, X[:, 0] > 0).model_.sha256, "True"]


@pytest.mark.parametrize("scikit_learn", [True, False])
def test_columns_in_another_order_are_refused(scikit_learn):
    """By position, reversed columns would give other classes without a word."""
    pytest.importorskip("pandas")
    if scikit_learn:
        pytest.importorskip("sklearn")
    script = f"""
import sys
if not {scikit_learn}: sys.modules["sklearn"] = None
import numpy as np, pandas
from bitfed import TsetlinClassifier
X = pandas.DataFrame(np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32), columns=["a", "b", "c"])
machine = TsetlinClassifier(4, epochs=1).fit(X, X["a"] > 0)
machine.predict(X)
try:
    machine.predict(X[["c", "b", "a"]])
except ValueError as error:
    print("refused")
machine.fit(X.to_numpy(), X["a"] > 0).predict(X.to_numpy())
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "refused\n"
