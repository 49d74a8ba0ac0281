"""Methods in Python: a client and a server half in the round loop of all methods."""

from __future__ import annotations

import hashlib
import inspect
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, Any]  # arrays by name; strings are kept too


@dataclass
class About:
    """What a server knows of the data before the first round."""

    shape: tuple[int, ...]  # (columns,) or (rows, columns, channels)
    columns: list[str]
    class_names: list[str]

    @property
    def features(self) -> int:
        return int(np.prod(self.shape))

    @property
    def classes(self) -> int:
        return len(self.class_names)


class Context:
    """What a client gets for one round besides the broadcast and its samples."""

    def __init__(self, kept: Arrays | None, seed: tuple[int, int], core: Any):
        self.rng = np.random.default_rng(seed)  # this client's own in this round
        self.kept = kept  # what `keep` was given when this client last took part; None: nothing
        self._keep: Arrays | None = None
        self._core = core

    def keep(self, state: Arrays) -> None:
        """Stores arrays for this client's next round. They never leave the client."""
        self._keep = state

    def progress(self, fraction: float) -> None:
        self._core.progress(fraction)

    @property
    def stopped(self) -> bool:
        """True: the user asked to stop, what train returns is not used."""
        return self._core.stopped()


def _in_recipes(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return isinstance(value, (bool, float, str))


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"{value.dtype} {list(value.shape)} {digest}"
    return repr(value)


class _Named:
    """Public attributes are the options: a run's recipe records them, and a recipe's [method] can set flags, numbers and
    strings."""

    rounds = 1
    name = ""

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def _options(self) -> dict[str, Any]:
        values = {key: value.item() if isinstance(value, np.generic) else value for key, value in self._public()}
        return {key: value for key, value in values.items() if _in_recipes(value)}

    def _recorded(self) -> dict[str, str]:
        """The options that only Python can set, as strings: a run is not resumed with others."""
        return {key: _text(value) for key, value in self._public()
                if value is None or isinstance(value, (int, list, tuple, dict, np.ndarray, os.PathLike))
                if not _in_recipes(value)}

    def _public(self) -> list[tuple[str, Any]]:
        return [(key, value) for key, value in vars(self).items() if not key.startswith("_")]

    def _key(self) -> str:
        """Uploads that were made by other code are not used again."""
        try:
            source = inspect.getsource(type(self))
        except (OSError, TypeError):  # typed into an interpreter
            source = type(self).__qualname__
        options = sorted((self._options() | self._recorded()).items())
        return f"python {self.name} {options} {hashlib.sha256(source.encode()).hexdigest()[:16]}"


class Method(_Named):
    """A method of one's own. A subclass writes four functions of arrays:

    start(about)                     the server's first state
    train(state, X, y, context)      client: the upload, from the broadcast and its own samples
    aggregate(state, uploads)        server: the next state, from the uploads {client: arrays} in client order
    scores(state, X)                 the model: scores [sample, class]

    Sampling, rounds, checkpoints, resuming, evaluation, costs and the report belong to the federation. States are
    dictionaries of arrays, stored between rounds as they are: what a function keeps elsewhere is lost by a resume.
    `train` is called by several threads at once.
    """

    def start(self, about: About) -> Arrays:
        raise NotImplementedError(f"{self.name}: found no function start, expected one")

    def broadcast(self, state: Arrays, round: int) -> Arrays:  # noqa: A002
        """What the clients of a round are sent: by default the state."""
        return state

    def train(self, state: Arrays, X: np.ndarray, y: np.ndarray, context: Context) -> Arrays:
        raise NotImplementedError(f"{self.name}: found no function train, expected one")

    def aggregate(self, state: Arrays, uploads: dict[int, Arrays]) -> Arrays:
        raise NotImplementedError(f"{self.name}: found no function aggregate, expected one")

    def scores(self, state: Arrays, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.name}: found no function scores, expected one")

    # What the library calls.
    def _start(self, about: dict[str, Any]) -> Arrays:
        return self.start(About(**about))

    def _train(self, broadcast, X, y, kept, seed, core):
        context = Context(kept, seed, core)
        return self.train(broadcast, X, y, context), context._keep, None

    def _scores(self, state: Arrays, X: np.ndarray) -> np.ndarray:
        scores = np.ascontiguousarray(self.scores(state, X), dtype=np.float32)
        if not np.isfinite(scores).all():
            raise ValueError(f"{self.name}: scores: found NaN or infinity, expected finite numbers")
        return scores


@dataclass
class Machine:
    """The clauses of a Tsetlin machine: actions [class, clause, literal] are 1 where a clause includes a literal,
    weights [class, clause] are its votes, negative against the class. The sums are clamped to ±clamp (0: not) and
    divided by scale."""

    actions: np.ndarray
    weights: np.ndarray
    clamp: int
    scale: float
    machine: int = 0  # the member of a composite whose literals these are

    def _fields(self) -> dict[str, Any]:
        return {
            "actions": np.ascontiguousarray(self.actions, dtype=np.uint8),
            "weights": np.ascontiguousarray(self.weights, dtype=np.int32),
            "clamp": int(self.clamp),
            "scale": float(self.scale),
            "machine": int(self.machine),
        }


@dataclass
class Bank:
    """What one client's machine learned about its classes, in the order of Upload.classes."""

    actions: np.ndarray  # [class, clause, literal]
    weights: np.ndarray  # [class, clause]
    means: np.ndarray  # [class, 3]: the mean sum over samples of the class, of others, of the hardest other class


@dataclass
class Upload:
    client: int
    classes: np.ndarray  # that this client has seen, ascending
    samples: np.ndarray  # of each
    machines: list[Bank]  # one, unless the model is a composite

    @property
    def actions(self) -> np.ndarray:
        return self.machines[0].actions

    @property
    def weights(self) -> np.ndarray:
        return self.machines[0].weights


@dataclass
class Recipe:
    """The machines of the recipe's model."""

    classes: int
    machines: list[dict[str, int]]  # clauses, threshold, literals

    def empty(self, clauses: int | None = None, machine: int = 0) -> Machine:
        """A machine without clauses: clamped to ±T and divided by T."""
        about = self.machines[machine]
        clauses = about["clauses"] if clauses is None else clauses
        threshold = about["threshold"]
        actions = np.zeros((self.classes, clauses, about["literals"]), np.uint8)
        return Machine(actions, np.zeros((self.classes, clauses), np.int32), threshold, threshold, machine)


class Fusion(_Named):
    """A one-shot Tsetlin method: the clients are those of fedtmos and the others, so that their uploads can be reused;
    `fuse` makes a machine, or several that vote together, of what they sent."""

    def fuse(self, uploads: list[Upload], recipe: Recipe) -> Machine | list[Machine]:
        raise NotImplementedError(f"{self.name}: found no function fuse, expected one")

    # What the library calls.
    def _fuse(self, uploads, machines, classes):
        read = [Upload(u["client"], u["classes"], u["samples"], [Bank(**m) for m in u["machines"]]) for u in uploads]
        fused = self.fuse(read, Recipe(classes, machines))
        return [machine._fields() for machine in (fused if isinstance(fused, list) else [fused])]
