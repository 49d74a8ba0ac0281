"""Tsetlin machines as scikit-learn estimators."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import _core
from .data import as_bits, as_samples
from .estimator import Estimator
from .models import Rules
from .recipe import toml_text

_MEMBER = ("n_clauses", "T", "s", "patch", "max_literals", "booleanizer")

# Keys of a recipe whose parameters are called otherwise.
_PARAMETERS = {"clauses": "n_clauses", "threshold": "T", "sensitivity": "s", "booleanize": "booleanizer"}


class TsetlinClassifier(Estimator):
    """A Tsetlin machine: flat for tables, convolutional with `patch`, a composite of several with `members`.

    n_clauses     clauses per class, an even number: half vote for the class, half against
    T             the target of the class sums (default: 50, convolutional 1000)
    s             1 / s is the rate of forgetting (default: 10, convolutional 5)
    patch         height and width of the patches of an image, or one number for both; None: the whole sample
    max_literals  a clause that includes more is not rewarded; None: no limit
    epochs        passes over the data in fit
    booleanizer   how samples become bits. "auto": "bits" for boolean arrays, "quantile" for tables, "threshold" for
                  images. Also "adaptive-gaussian", "colour-thermometer", or a dictionary with the options of a
                  recipe: {"kind": "threshold", "level": 75}
    weighted      clauses have integer weights
    boost         reward true positives always
    update        "one-vs-all", or "one-vs-one-random": one other class per sample
    members       of a composite: dictionaries of n_clauses, T, s, patch, max_literals, booleanizer
    n_jobs        threads in prediction, and machines of a composite trained at once; -1: one per processor
    seed          the same seed gives the same machine, on every computer
    verbose       show the progress of fit (tqdm)

    Class sums are votes of clauses and no log-likelihoods, so there is no predict_proba: scikit-learn's
    CalibratedClassifierCV fits one to decision_function.

    X is [samples, features], or uint8 images [samples, rows, columns] or [samples, rows, columns, channels]. It is
    read where it is, without a copy, if it is a contiguous array of float32, uint8 or bool.
    """

    _FIXED = {"platform": "CPU"}
    _ALIASES = {
        "number_of_clauses": "n_clauses",
        "threshold": "T",
        "patch_dim": "patch",
        "weighted_clauses": "weighted",
        "max_included_literals": "max_literals",
        "literal_budget": "max_literals",
        "boost_true_positive_feedback": "boost",
    }

    def __init__(
        self,
        n_clauses: int = 100,
        T: int | None = None,
        s: float | None = None,
        patch: int | tuple[int, int] | None = None,
        max_literals: int | None = None,
        epochs: int = 30,
        booleanizer: str | dict[str, Any] = "auto",
        weighted: bool = True,
        boost: bool = True,
        update: str = "one-vs-all",
        members: list[dict[str, Any]] | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.n_clauses = n_clauses
        self.T = T
        self.s = s
        self.patch = patch
        self.max_literals = max_literals
        self.epochs = epochs
        self.booleanizer = booleanizer
        self.weighted = weighted
        self.boost = boost
        self.update = update
        self.members = members
        self.n_jobs = n_jobs
        self.seed = seed
        self.verbose = verbose

    def rules(self, per_class: int = 3, literals: int = 24) -> Rules:
        """The strongest clauses of each class, as text and as pictures."""
        self._check_fitted()
        return self.model_.rules(per_class, literals)

    def _validated(self, X, y=None, reset: bool = False):
        if reset:
            self._bits = self.booleanizer == "bits" or (self.booleanizer == "auto" and _is_boolean(X))
        return super()._validated(X, y, reset)

    def _takes_bits(self) -> bool:
        return self._bits

    def _read(self, X: np.ndarray) -> np.ndarray:
        return as_bits(X) if self._bits else as_samples(X)

    def _make_trainer(self, X: np.ndarray) -> tuple[type, tuple]:
        shape = list(X.shape[1:])
        columns = self._column_names() if X.ndim == 2 else []
        recipe = toml_text(self._recipe(X.ndim == 2))
        return _core.TsetlinTrainer, (recipe, columns, shape, len(self.classes_), self._seed())

    def _prepare(self, X: np.ndarray) -> None:
        given = [member.get("booleanizer", "auto") for member in self.members or [{"booleanizer": self.booleanizer}]]
        if X.ndim == 4 and not self._bits and any(isinstance(kind, str) for kind in given) and X.max() <= 1:
            raise ValueError("X: found images of 0 and 1 only, expected pixels from 0 to 255; booleanizer='bits' takes "
                             "them as bits")
        self._trainer.fit_booleanizer(X)

    def _in_own_words(self, text: str) -> str:
        text = re.sub(r"^TsetlinClassifier: line \d+: (model|data)\.", "", text)
        if text.startswith("name: "):
            return "patch: found a patch for a table, expected None"
        return re.sub("|".join(_PARAMETERS), lambda key: _PARAMETERS[key[0]], text, count=1)

    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, progress: Any) -> None:
        self._trainer.train(X, y, epochs, self._threads(), progress)

    def _recipe(self, table: bool) -> dict[str, Any]:
        """[model] and data.booleanize as a recipe has them."""
        if self.members is not None:
            if not isinstance(self.members, (list, tuple)) or not all(isinstance(m, dict) for m in self.members):
                raise ValueError(f"members: found {self.members!r}, expected a list of dictionaries")
            unknown = [name for member in self.members for name in member if name not in _MEMBER]
            if unknown:
                raise ValueError(f"members: found '{unknown[0]}', expected {', '.join(_MEMBER)}")
            members = [self._machine(member, table) | _booleanize(member.get("booleanizer", "auto"), table, False)
                       for member in self.members]
            return {"model": {"name": "ctm-composite", "member": members}}
        model = {"name": "tm" if self.patch is None else "ctm", **self._machine({}, table)}
        return {"model": model, "data": _booleanize(self.booleanizer, table, self._bits)}

    def _machine(self, member: dict[str, Any], table: bool) -> dict[str, Any]:
        patch = member.get("patch", self.patch)
        patch = patch.tolist() if isinstance(patch, np.ndarray) else patch
        options = {
            "clauses": member.get("n_clauses", self.n_clauses),
            "threshold": member.get("T", self.T),
            "sensitivity": member.get("s", self.s),
            "patch": [patch, patch] if isinstance(patch, (int, np.integer)) else patch,
            "max_literals": member.get("max_literals", self.max_literals),
            "weighted": bool(self.weighted),
            "boost": bool(self.boost),
            "update": self.update,
        }
        return {name: value for name, value in options.items() if value is not None}


def _is_boolean(X: Any) -> bool:
    return getattr(X, "dtype", None) == np.bool_


def _booleanize(given: str | dict[str, Any], table: bool, bits: bool) -> dict[str, Any]:
    if bits:
        return {"booleanize": {"kind": "threshold", "level": 0}}
    if not isinstance(given, (str, dict)):
        raise ValueError(f"booleanizer: found {given!r}, expected its name or a dictionary")
    if isinstance(given, dict):
        return {"booleanize": given}
    return {"booleanize": {"kind": given if given != "auto" else "quantile" if table else "threshold"}}
