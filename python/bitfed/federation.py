"""Federations on arrays or recipes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .data import MAX_THREADS, read_parts, whole
from .methods import Fusion, Method
from .models import Model, load
from .progress import Progress
from .recipe import is_source, read_recipe, toml_value
from .reports import Report
from .tables import is_parquet, is_table, read_table

if TYPE_CHECKING:
    from pandas import DataFrame

AnyMethod = Method | Fusion | type[Method] | type[Fusion]


@dataclass
class Result:
    """A finished run. `summary` is summary.json: every figure, by the names of docs/reference/run-folder.md."""

    folder: Path
    summary: dict[str, Any]
    method: Method | Fusion | None = None
    _temporary: Any = field(default=None, repr=False)
    _classes: Any = field(default=None, repr=False)

    @property
    def accuracy(self) -> float:
        return self.summary["accuracy"]

    @property
    def model_sha256(self) -> str:
        return self.summary["model_sha256"]

    @property
    def model(self) -> Model:
        """It predicts labels as they were in the arrays of the run; without arrays, the names of classes."""
        if self.method is not None and not hasattr(self.method, "fuse"):
            raise ValueError("model: the model of a method in Python is its state: see Result.state")
        model = load(self.folder)
        if self._classes is not None:
            model.classes = self._classes
        return model

    @property
    def state(self) -> dict[str, Any]:
        """The tensors of the model."""
        return _core.decode_state((self.folder / "model.safetensors").read_bytes())

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events of the run, or those of one kind: "round-finished", "client-finished" …"""
        with open(self.folder / "events.jsonl", encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        return [event for event in events if kind in (None, event["event"])]

    def _frame(self, kind: str | None, *keys: str) -> DataFrame:
        try:
            import pandas
        except ImportError:
            raise ImportError("pandas is not installed: Result.records() gives dictionaries") from None
        if not keys:
            return pandas.DataFrame(self.records(kind))
        # A run that was killed and resumed logs again what came after its last checkpoint.
        last = {tuple(record[key] for key in keys): record for record in self.records(kind)}
        return pandas.DataFrame(list(last.values()))

    @property
    def events(self) -> DataFrame:
        """All events, as a pandas DataFrame."""
        return self._frame(None)

    @property
    def rounds(self) -> DataFrame:
        """A row per round: accuracy, bytes, seconds."""
        return self._frame("round-finished", "round")

    @property
    def clients(self) -> DataFrame:
        """A row per client and round: samples, bytes, seconds."""
        return self._frame("client-finished", "round", "client")

    def report(self) -> Report:
        return Report([self])

    def __repr__(self) -> str:
        accuracy = f"{100 * self.accuracy:.2f} %" if self.accuracy is not None else "no accuracy"
        return f"<bitfed.Result {self.summary['name']}, {self.summary['method']}: {accuracy}, {self.folder}>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def _data_keys(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("data."): value for key, value in overrides.items() if key.startswith("data.")}


class Federation:
    """A recipe with its data, read and checked. `data`: see `run`."""

    # Of the library's own object.
    name: str
    method_name: str
    seed: int
    rounds: int
    clients: int
    recipe: str  # as resolved
    class_names: list[str]
    partition: list[np.ndarray]  # the indices of each client's training samples
    selects_by_validation: bool

    def __init__(
        self,
        recipe: str | Path | Mapping[str, Any],
        data: Any = None,
        *,
        classes: Any = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002, the option's name in the program
        seed: int | None = None,
        method: AnyMethod | None = None,
        data_dir: str | Path = "",
    ):
        if set is not None and not isinstance(set, Mapping):
            raise TypeError(f"set: found {type(set).__name__}, expected a dictionary of keys such as model.clauses")
        read = read_recipe(recipe)
        keys = read.data() | _data_keys(set or {})
        if data is None and is_parquet(keys.get("file")):
            data = _core.find_data_file(keys["file"], str(data_dir))
        if is_table(data):
            parts = read_table(data, keys)
        else:
            parts = read_parts(data, classes, keys) if data is not None else None
        if parts is not None:
            read = read.without_sources()
        overrides = dict(set or {}) | ({} if seed is None else {"seed": seed})
        if parts is not None:
            overrides = {key: value for key, value in overrides.items() if not is_source(key)}
        self.method = method() if isinstance(method, type) else method
        if self.method is not None and not isinstance(self.method, (Method, Fusion)):
            raise TypeError(f"method: found {self.method!r}, expected a bitfed.Method or a bitfed.Fusion; "
                            "the recipe's method.name chooses one that is built in")
        self.classes = parts.classes if parts is not None else None
        self._core = _core.Federation(
            recipe=read.text,
            source=read.source,
            overrides=[f"{key}={value if isinstance(value, str) else toml_value(value)}"
                       for key, value in overrides.items()],
            default_name=read.default_name,
            data_dir=str(data_dir),
            train=parts.train if parts is not None else None,
            test=parts.test if parts is not None else None,
            method=self.method,
        )

    def __getattr__(self, name: str) -> Any:
        if name == "_core":
            raise AttributeError(name)
        return getattr(self._core, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._core) if not name.startswith("_"))})

    def __repr__(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"<bitfed.Federation {self.name}, {self.method_name}: {self.clients} clients, {rounds}>"

    def evaluate(self, model: Model) -> dict[str, float]:
        """Accuracy and F1 of a model on the test samples; with a validation part, its accuracy, too."""
        return self._core.evaluate(model._core)

    def evaluate_client(self, model: Model, client: int) -> tuple[float, int]:
        """The accuracy of a model on a client's own samples, and their number."""
        return self._core.evaluate_client(model._core, client)

    def run(
        self,
        out: str | Path | None = None,
        *,
        threads: int = 0,
        resume: bool = False,
        overwrite: bool = False,
        reuse: Result | str | Path | None = None,
        progress: bool = True,
    ) -> Result:
        """Runs the federation, or what is left of it."""
        threads = whole("threads", threads, 0, MAX_THREADS)
        if resume and overwrite:
            raise ValueError("overwrite: found it together with resume, expected one of them")
        temporary = tempfile.TemporaryDirectory(prefix="bitfed-") if out is None else None
        folder = Path(temporary.name) / "run" if temporary is not None else Path(out)
        if isinstance(reuse, Result):
            reuse = reuse.folder
        with Progress(progress) as shown:
            self._core.run(
                out=str(folder),
                threads=threads,
                existing="resume" if resume else "overwrite" if overwrite else "refuse",
                reuse=str(reuse or ""),
                callback=shown.event,
            )
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        return Result(folder, summary, self.method, temporary, self.classes)


def run(
    recipe: str | Path | Mapping[str, Any],
    data: Any = None,
    *,
    classes: Any = None,
    out: str | Path | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    method: AnyMethod | None = None,
    threads: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    reuse: Result | str | Path | None = None,
    progress: bool = True,
    data_dir: str | Path = "",
) -> Result:
    """Simulates the federation of a recipe: the same model, byte for byte, as `bitfed run` gives. Returns a Result:
    accuracy, model, rounds, clients, report() and more.

        recipe = {"data": {"partition": {"kind": "dirichlet", "clients": 10, "alpha": 0.1}},
                  "model": {"name": "ctm", "clauses": 100, "patch": [10, 10]},
                  "method": {"name": "fedtm-bank"}}
        result = bitfed.run(recipe, (X, y, X_test, y_test))
        print(result.accuracy, result.model.rules())

    recipe     a file, a dictionary, TOML text, or the name of a recipe of the package (`bitfed.recipes()`)
    data       arrays instead of the recipe's data: (X, y), (X, y, person), (X_train, y_train, X_test, y_test) or
               {"train": (X, y, person), "test": (X, y, person)}. Or a table: a data frame, or a Parquet file, which
               the recipe's data.file may be, too; data.label, person and ignore name its columns. Without test
               samples data.split and data.test_fraction say which samples are for testing
    classes    of the arrays, if y does not show each of them
    out        the run's folder; None: a temporary one that lives as long as the result
    set        values that replace the recipe's: {"model.clauses": 300}
    seed       replaces the recipe's
    method     a method in Python instead of the recipe's
    threads    0: one per processor; their number does not change the model
    resume     go on with an interrupted run
    overwrite  replace the run that is in the folder
    reuse      another run of the same clients to take the uploads from
    progress   show a bar (tqdm), where it is installed
    data_dir   a folder that is searched for the recipe's data first
    """
    federation = Federation(recipe, data, classes=classes, set=set, seed=seed, method=method, data_dir=data_dir)
    return federation.run(out, threads=threads, resume=resume, overwrite=overwrite, reuse=reuse, progress=progress)


__all__ = ["Federation", "Result", "run"]
