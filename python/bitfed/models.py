"""Trained models, of runs and of estimators."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .data import MAX_THREADS, as_bits, as_samples, whole
from .tables import by_name


# The key, and what of the report's style sheet a notebook needs.
_PICTURES = (
    "<style>.clauses{display:flex;flex-wrap:wrap;gap:4px 16px}.clauses h4{flex-basis:100%;margin:8px 0 0}"
    ".clauses figure{margin:0}</style><p>dark: must be 1; orange: must be 0; white: either; at the right, where in the "
    "image the patch may lie</p>\n"
)


class Rules(list["Rule"]):
    """The strongest clauses of each class; each has class_index, vote, text and svg."""

    def __init__(self, rules: list["Rule"], class_names: Any, html: str):
        super().__init__(rules)
        self._class_names = class_names
        self._html = html

    def __str__(self) -> str:
        lines = []
        for index, name in enumerate(self._class_names):
            lines.append(str(name))
            lines += [f"  {rule.text}" for rule in self if rule.class_index == index]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self._html:
            return _PICTURES + self._html
        text = str(self).replace("&", "&amp;").replace("<", "&lt;")
        return f'<pre style="white-space: pre-wrap">{text}</pre>'


class Rule:
    """A clause that votes for its class."""

    def __init__(self, class_index: int, class_name: Any, vote: float, text: str, svg: str):
        self.class_index = class_index
        self.class_name = class_name
        self.vote = vote
        self.text = text
        self.svg = svg

    def __repr__(self) -> str:
        return f"{self.class_name}: {self.text}"

    def _repr_svg_(self) -> str | None:
        return self.svg or None


def _named(text: str, columns: list[str], bits: bool) -> str:
    """The text of a clause with the columns' own names."""
    if bits:
        return re.sub(r"p\(0,0,(\d+)\)", lambda found: columns[int(found[1])] if columns else f"x{found[1]}", text)
    return re.sub(r"column (\d+)", lambda found: columns[int(found[1]) - 1], text) if columns else text


class Model:
    """A trained model: predict, scores, rules, export. `bits`: it takes bits [samples, features]."""

    def __init__(self, core: Any, classes: Any = None, columns: list[str] | None = None, bits: bool = False):
        self._core = core
        self._columns = columns or []
        self._bits = bits
        self.classes = np.asarray(core.class_names if classes is None else classes)

    @property
    def sha256(self) -> str:
        return self._core.sha256

    @property
    def costs(self) -> dict[str, int]:
        return self._core.costs

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self._core.input_shape

    def state(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._core.state()

    def scores(self, X: Any, threads: int = 0) -> np.ndarray:
        """Scores [sample, class]. The columns of a data frame are found by name."""
        threads = whole("threads", threads, 0, MAX_THREADS)
        X = as_bits(X) if self._bits else as_samples(by_name(X, self._core.columns))
        if X.shape[1:] != self.input_shape:
            raise ValueError(f"X: found samples of shape {list(X.shape[1:])}, expected {list(self.input_shape)}")
        return self._core.scores(X, threads)

    def predict(self, X: Any, threads: int = 0) -> np.ndarray:
        """The class with the largest score of each sample."""
        return self.classes[self.scores(X, threads).argmax(axis=1)]

    def rules(self, per_class: int = 3, literals: int = 24) -> Rules:
        """The strongest clauses of each class of a Tsetlin machine: text, and pictures of patches."""
        per_class, literals = whole("per_class", per_class, 0, 2**31), whole("literals", literals, 0, 2**31)
        unnamed = [] if self._core.columns else self._columns
        rules = [
            Rule(r.class_index, self.classes[r.class_index], r.vote, _named(r.text, unnamed, self._bits), r.svg)
            for r in self._core.rules(per_class, literals)
        ]
        html = "" if self._bits or self._columns else self._core.rules_html(per_class)
        return Rules(rules, self.classes, html)

    def save(self, path: str | Path) -> None:
        """Writes a model file (safetensors), for `bitfed.load` and the program."""
        self._core.save(str(path))

    def export_c(self, folder: str | Path, name: str = "model") -> list[Path]:
        """C99 without a heap: NAME.h, NAME.c, and main.c to try it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.h", folder / f"{name}.c", folder / "main.c"]
        for path, text in zip(paths, self._core.export_c(name)):
            path.write_text(text)
        return paths

    def export_onnx(self, path: str | Path) -> Path:
        """Standard operators, for ONNX runtimes."""
        path = Path(path)
        path.write_bytes(self._core.export_onnx(path.stem))
        return path

    def __repr__(self) -> str:
        name = f" {self._core.name}," if self._core.name else ""
        return f"<bitfed.Model{name} {len(self.classes)} classes, {self.costs['bytes']} bytes>"

    def _repr_html_(self) -> str:
        try:
            return self.rules()._repr_html_()
        except _core.InputError:  # not a Tsetlin machine
            return f"<code>{repr(self).replace('<', '&lt;')}</code>"


def load(path: str | Path) -> Model:
    """A model file, or the model of a run's folder."""
    path = Path(path)
    core = _core.Model.load(str(path / "model.safetensors" if path.is_dir() else path))
    return Model(core, bits=core.input_shape[:2] == (1, 1))  # planes of one pixel: an estimator's bits
