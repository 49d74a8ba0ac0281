"""Arrays in, arrays out: the shapes that the library takes, built-in data sets, partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .recipe import toml_text

if TYPE_CHECKING:
    from pandas import DataFrame

# X: uint8 [samples, rows, columns(, channels)] or numbers [samples, columns].
Samples = Any


def whole(name: str, value: Any, low: int, high: int) -> int:
    """The value of an argument that must be a whole number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{name}: found {value!r}, expected a whole number from {low} to {high}")
    return int(value)


MAX_THREADS = 4096
MAX_LABEL = np.iinfo(np.uint16).max


def _checked_shape(X: np.ndarray) -> np.ndarray:
    if X.ndim > 1 and 0 in X.shape[1:]:
        raise ValueError(f"X: found samples of shape {list(X.shape[1:])}, expected at least one value per sample")
    return X


def as_samples(X: Samples) -> np.ndarray:
    """X as the library reads it, uint8 [samples, rows, columns, channels] or float32 [samples, columns]: the same
    memory where it has that type already, and is contiguous."""
    given, X = X, _checked_shape(np.asarray(X))
    if X.ndim == 0:
        dense = ": X.toarray()" if hasattr(given, "toarray") else ""
        raise ValueError(f"X: found {type(given).__name__}, expected an array{dense}")
    if X.ndim == 2:
        try:
            if X.dtype.kind == "c":
                raise TypeError("they have imaginary parts")
            with np.errstate(all="ignore"):  # the error below says which number is too large
                values = np.ascontiguousarray(X, dtype=np.float32)
                total = values.sum(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X: found {X.dtype} values, expected numbers: {error}") from None
        if not np.isfinite(total):  # of finite floats the sum is finite; no mask of X's size
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(f"X: row {row}, column {column} is {X[row, column]}, expected a finite number of 32 bits")
        return values
    if X.ndim not in (3, 4) or X.dtype not in (np.uint8, np.bool_):
        raise ValueError(
            f"X: found {X.dtype} {list(X.shape)}, expected uint8 [samples, rows, columns] or "
            "[samples, rows, columns, channels], or numbers [samples, columns]"
            + (_as_pixels(X) if X.ndim in (3, 4) else "")
        )
    if X.ndim == 4 and X.shape[1] in (1, 3) and X.shape[3] not in (1, 3):
        raise ValueError(f"X: found {list(X.shape)}, expected the channels last: X.transpose(0, 2, 3, 1)")
    X = X * np.uint8(255) if X.dtype == np.bool_ else X  # as in a file
    X = np.ascontiguousarray(X)
    return X[..., np.newaxis] if X.ndim == 3 else X


def _as_pixels(X: np.ndarray) -> str:
    """How numbers of another type become pixels, as far as their range shows it."""
    if X.dtype.kind not in "iuf" or X.size == 0:
        return ""
    low, high = X.min(), X.max()
    if X.dtype.kind == "f" and low >= 0 and high <= 1:
        return ". Pixels from 0 to 1: (255 * X).round().astype('uint8')"
    if low >= 0 and high <= 255:
        return ". Pixels from 0 to 255: X" + (".round()" if X.dtype.kind == "f" else "") + ".astype('uint8')"
    return f". Found values from {low} to {high}, expected pixels from 0 to 255"


def _shaped(X: Samples, keys: Mapping[str, Any]) -> Samples:
    """data.image gives rows of pixels their shape, as in a file."""
    image = keys.get("image")
    if image is None:
        return X
    if not isinstance(image, (list, tuple)) or len(image) != 3 or not all(_is_side(side) for side in image):
        raise ValueError(f"data.image: found {image!r}, expected [height, width, channels]")
    X = np.asarray(X)
    if X.ndim < 2 or np.prod(X.shape[1:]) != np.prod(image):
        raise ValueError(f"data.image: found {list(image)}, but X has samples of shape {list(X.shape[1:])}")
    return X.reshape(len(X), *image) if X.ndim == 2 else X


def _is_side(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value > 0


def _check_size(X: np.ndarray, keys: Mapping[str, Any]) -> None:
    """Files of images are scaled to data.size and data.channels; arrays must have them."""
    found = {"size": list(X.shape[1:3]), "channels": X.shape[3]} if X.ndim == 4 else {}
    for key in ("size", "channels"):
        value = keys.get(key)
        value = list(value) if isinstance(value, tuple) else value
        if value is not None and value != found.get(key):
            shape = f"images of {found[key]}" if found else "a table"
            raise ValueError(f"data.{key}: found {value!r}, but X holds {shape}; arrays are not scaled: leave the key "
                             "out")


def as_bits(X: Samples) -> np.ndarray:
    """Bits [samples, features] or [samples, rows, columns(, planes)]: anything but 0 is 1. Features are the planes of
    one pixel."""
    X = np.ascontiguousarray(_checked_shape(np.asarray(X)))
    X = X.view(np.uint8) if X.dtype in (np.uint8, np.int8, np.bool_) else (X != 0).view(np.uint8)
    if X.ndim == 2:
        return X[:, np.newaxis, np.newaxis, :]
    return X[..., np.newaxis] if X.ndim == 3 else X


def column_names(X: Samples) -> list[str]:
    """Of a table: the names of a data frame's columns, or their numbers."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    shape = np.shape(X)
    return [f"column {i + 1}" for i in range(shape[1])] if len(shape) == 2 else []


def distinct(values: Any, what: str) -> np.ndarray:
    """The classes of labels, or the people: each value once, sorted."""
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"{what}: found shape {list(values.shape)}, expected one value per sample")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{what}: found {values[~np.isfinite(values)][0]}, expected numbers or strings")
    try:
        return np.unique(values)
    except TypeError:
        raise ValueError(f"{what}: found None or values of several types, expected numbers or strings") from None


def distinct_classes(y: Any) -> np.ndarray:
    classes = distinct(y, "y")
    if not 0 < len(classes) <= MAX_LABEL:
        raise ValueError(f"y: found {len(classes)} classes, expected from 1 to {MAX_LABEL}")
    real = classes[classes != np.floor(classes)] if classes.dtype.kind == "f" else []
    if len(real) > 0:
        raise ValueError(f"y: labels are real values such as {real[0]}, expected classes")
    return classes


def name_of(value: Any) -> str:
    """The name of a class or a person in models and reports, as the program has it from files: "3", not "3.0"."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (float, np.floating)) and abs(value) < 1e15 and value == np.floor(value):
        return str(int(value))
    return str(value)


_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def in_order(values: np.ndarray) -> np.ndarray:
    """Sorted values in the order of the program: strings that are all whole numbers by their number."""
    if values.dtype.kind in "biuf":
        return values
    names = [name_of(value) for value in values]
    if not all(_NUMBER.fullmatch(name) and float(name) == np.floor(float(name)) for name in names):
        return values
    return values[sorted(range(len(names)), key=lambda i: (float(names[i]), names[i]))]


def _ranks(values: np.ndarray, names: np.ndarray, dtype: type, what: str) -> np.ndarray:
    values, order = np.asarray(values), np.argsort(names)
    places = np.searchsorted(names, values, sorter=order)
    ranks = order[np.minimum(places, len(names) - 1)]
    wrong = names[ranks] != values
    if wrong.any():
        raise ValueError(f"{what}: found {values[wrong].tolist()[0]!r}, expected one of {len(names)} known values")
    return np.ascontiguousarray(ranks, dtype=dtype)


def as_labels(y: Any, classes: np.ndarray) -> np.ndarray:
    return _ranks(y, classes, np.uint16, "y")


@dataclass
class Parts:
    """Training and test samples of a federation; without test samples the recipe splits the data."""

    train: Any
    test: Any
    classes: np.ndarray


def _triple(part: Any) -> tuple[Any, Any, Any]:
    X, y, *person = part
    return X, y, person[0] if person else None


def _class_names(classes: np.ndarray, keys: Mapping[str, Any]) -> list[str]:
    names = keys.get("class_names")
    if names is None:
        return [name_of(c) for c in classes]
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"data.class_names: found {names!r}, expected a list of names")
    if len(names) != len(classes):
        raise ValueError(f"data.class_names: found {len(names)} names, expected {len(classes)}, for the labels "
                         f"{name_of(classes[0])} to {name_of(classes[-1])}")
    return list(names)


def read_parts(data: Any, classes: Any = None, keys: Mapping[str, Any] | None = None) -> Parts:
    """From (X, y), (X, y, person), (X_train, y_train, X_test, y_test) or {"train": (X, y), "test": (X, y)}, where
    `person` may follow each y. `classes`: all there are, if y does not show each. `keys`: the recipe's [data]."""
    keys = keys or {}
    if isinstance(data, dict) and "train" in data:
        train, test = data["train"], data.get("test")
    elif isinstance(data, (tuple, list)) and len(data) == 4:
        train, test = data[:2], data[2:]
    else:
        train, test = data, None
    if isinstance(data, (str, os.PathLike)):
        raise ValueError(f"data: found {str(data)!r}, expected arrays, a data frame or a Parquet file; the recipe names "
                         "other files: data.file or data.folder")
    for part in (train, test):
        if part is not None and not (isinstance(part, (tuple, list)) and len(part) in (2, 3)):
            found = f"{len(part)} values" if isinstance(part, (tuple, list)) else type(part).__name__
            raise ValueError(f"data: found {found}, expected (X, y), (X, y, person), (X_train, y_train, X_test, y_test) "
                             'or {"train": (X, y), "test": (X, y)}')
    parts = [_triple(part) for part in (train, test) if part is not None]
    for _, y, _ in parts:
        if np.ndim(y) != 1:
            found = "None" if y is None else f"shape {list(np.shape(y))}"
            raise ValueError(f"y: found {found}, expected one label per sample")
    labels = np.concatenate([np.asarray(y) for _, y, _ in parts]) if classes is None else list(classes)
    classes = in_order(distinct_classes(labels))
    people = [np.asarray(person) for _, _, person in parts if person is not None]
    everyone = in_order(distinct(np.concatenate(people), "person")) if people else np.array([], dtype=str)
    names = _class_names(classes, keys)
    samples = [as_samples(_shaped(X, keys)) for X, _, _ in parts]
    if samples[0].shape[1:] != samples[-1].shape[1:]:
        raise ValueError(f"X: found test samples of shape {list(samples[-1].shape[1:])}, expected "
                         f"{list(samples[0].shape[1:])} as for training")
    _check_size(samples[0], keys)
    made = [_dataset(X, part, classes, names, everyone) for X, part in zip(samples, parts)]
    return Parts(made[0], made[1] if len(made) > 1 else None, classes)


def _dataset(samples: np.ndarray, part: tuple[Any, Any, Any], classes: np.ndarray, class_names: list[str],
             everyone: np.ndarray) -> Any:
    X, y, person = part
    return _core.Dataset(
        name="arrays",
        X=samples,
        y=as_labels(y, classes),
        class_names=class_names,
        columns=column_names(X) if samples.ndim == 2 else [],
        groups=None if person is None else _ranks(person, everyone, np.uint32, "person"),
        group_names=[name_of(p) for p in everyone],
    )


def datasets() -> list[str]:
    """The names of the built-in data sets."""
    return list(_core.datasets())


def load_data(name: str, data_dir: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, y_train, X_test, y_test of a built-in data set. Grey images come without a channel axis."""
    parts = []
    for part in _core.load_arrays(name, str(data_dir)):
        X = part["X"]
        parts += [X[..., 0] if X.ndim == 4 and X.shape[3] == 1 else X, part["y"]]
    return tuple(parts)


@dataclass
class Partition:
    """Who holds which samples: a list of index arrays, one per client."""

    indices: list[np.ndarray]
    counts: np.ndarray  # [client, class]
    classes: np.ndarray
    svg: str

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, client: int) -> np.ndarray:
        return self.indices[client]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.indices)

    def to_frame(self) -> DataFrame:
        """Samples by client and class, as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.counts, columns=self.classes).rename_axis("client")

    def _repr_svg_(self) -> str:
        return self.svg


def partition(y: Any, kind: str = "iid", *, person: Any = None, seed: int = 0, **options: Any) -> Partition:
    """Deals samples to clients as the recipe's data.partition does.

        parts = bitfed.partition(y, "dirichlet", clients=10, alpha=0.1)
        X[parts[0]]  # the samples of the first client

    y        the labels
    kind     "iid", "dirichlet", "dirichlet-balanced", "label-subset", "classes" or "column" (by person)
    person   whose each sample is, for "column"
    seed     the recipe's: the same one gives the same parts
    options  clients, alpha, labels, minimum, allotment
    """
    seed = whole("seed", seed, 0, 2**64 - 1)
    classes = in_order(distinct_classes(y))
    people = np.array([], dtype=str) if person is None else in_order(distinct(person, "person"))
    indices, counts, svg = _core.partition(
        spec=toml_text({"kind": kind, **options}),
        y=as_labels(y, classes),
        class_names=[name_of(c) for c in classes],
        groups=None if person is None else _ranks(person, people, np.uint32, "person"),
        group_names=[name_of(p) for p in people],
        seed=seed,
    )
    return Partition(list(indices), np.array(counts), classes, svg)
