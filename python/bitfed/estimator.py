"""What the estimators share. scikit-learn is used where it is installed, and not needed."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from . import _core
from .data import MAX_THREADS, as_labels, distinct_classes, name_of, whole
from .models import Model
from .progress import fit_progress

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError:  # none, or older than 1.6
    validate_data = None

    class ClassifierMixin:
        def score(self, X, y, sample_weight=None):
            """The accuracy."""
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    class BaseEstimator:
        @classmethod
        def _get_param_names(cls):
            parameters = inspect.signature(cls.__init__).parameters.values()
            return sorted(p.name for p in parameters if p.name != "self" and p.kind != p.VAR_KEYWORD)

        def get_params(self, deep=True):
            return {name: getattr(self, name) for name in self._get_param_names()}

        def set_params(self, **parameters):
            for name, value in parameters.items():
                if name not in self._get_param_names():
                    raise ValueError(f"{type(self).__name__} has no parameter '{name}'")
                setattr(self, name, value)
            return self

        def __getstate__(self):
            return self.__dict__.copy()

        def __setstate__(self, state):
            self.__dict__.update(state)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_params().items())})"


def _translate(cls: type, parameters: dict[str, Any]) -> dict[str, Any]:
    """Other libraries' names of parameters become ours. What has one value here is accepted with that value."""
    for name, value in cls._FIXED.items():
        found = parameters.pop(name, value)
        if found != value:
            raise ValueError(f"{name}: found {found!r}, expected {value!r}, which estimators here train on")
    unknown = [name for name in parameters if name not in cls._ALIASES and name not in cls._get_param_names()]
    if unknown:
        raise TypeError(f"{cls.__name__}: unknown parameter '{unknown[0]}'")
    names = [cls._ALIASES.get(name, name) for name in parameters]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise TypeError(f"{cls.__name__}: found several names of the parameter '{twice[0]}', expected one")
    return {cls._ALIASES.get(name, name): value for name, value in parameters.items()}


class Estimator(ClassifierMixin, BaseEstimator):
    """fit, partial_fit, predict, decision_function, export. A subclass makes the trainer and says how X is read."""

    _ALIASES: dict[str, str] = {}
    _FIXED: dict[str, Any] = {}
    classes_: np.ndarray
    model_: Model
    if TYPE_CHECKING:  # scikit-learn's have no types

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        own = cls.__init__

        @functools.wraps(own)  # the signature stays the estimator's: scikit-learn reads it
        def translated(self, *arguments, **parameters):
            own(self, *arguments, **_translate(cls, parameters))

        cls.__init__ = translated

    def set_params(self, **parameters: Any) -> Self:
        own = {n: v for n, v in parameters.items() if n in self._ALIASES}
        rest = {n: v for n, v in parameters.items() if n not in self._ALIASES}
        return super().set_params(**rest, **_translate(type(self), own))

    # Of the subclass.
    def _read(self, X: Any) -> np.ndarray: ...
    def _make_trainer(self, X: np.ndarray) -> tuple[type, tuple]: ...
    def _prepare(self, X: np.ndarray) -> None: ...
    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, progress: Any) -> None: ...

    def fit(self, X: Any, y: Any) -> Self:
        epochs = whole("epochs", self.epochs, 0, 2**32 - 1)
        self._forget()
        X, y = self._labelled(X, y, reset=True)
        self._start(X, distinct_classes(y))
        try:
            return self._learn(X, y, epochs)
        except BaseException:  # Ctrl-C, too: half a fit is none
            self._forget()
            raise

    def _forget(self) -> None:
        """What an earlier fit left: its model would go with other classes and columns."""
        for name in ("_trainer", "model_"):
            self.__dict__.pop(name, None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continues with one pass over these samples. The first call should name all classes."""
        first = not hasattr(self, "_trainer")
        X, y = self._labelled(X, y, reset=first)
        if first:
            self._start(X, distinct_classes(y if classes is None else classes))
        elif classes is not None and not np.array_equal(distinct_classes(classes), self.classes_):
            raise ValueError(f"classes: found {list(classes)}, expected those of the first call: "
                             f"{self.classes_.tolist()}")
        return self._learn(X, y, 1)

    def _labelled(self, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X, y = self._validated(X, y, reset)
        if len(X) == 0:
            raise ValueError("X: found no samples, expected at least one")
        return X, y

    def _start(self, X: np.ndarray, classes: np.ndarray) -> None:
        self.classes_ = classes
        self._of_tables = X.ndim == 2
        samples = self._read(X)
        kind, arguments = self._make_trainer(samples)
        try:
            self._trainer = kind(*arguments)
        except _core.InputError as error:
            raise type(error)(self._in_own_words(str(error))) from None
        self._trainer_arguments = (kind, arguments)
        self._prepare(samples)

    def _learn(self, X: np.ndarray, y: np.ndarray, epochs: int):
        with fit_progress(self.verbose, type(self).__name__) as progress:
            self._train(self._read(X), as_labels(y, self.classes_), epochs, progress)
        self._make_model()
        return self

    def _make_model(self) -> None:
        named = hasattr(self, "feature_names_in_") and not self._takes_bits()
        core = self._trainer.model([name_of(c) for c in self.classes_], self._column_names() if named else [])
        self.model_ = Model(core, self.classes_, self._column_names(), self._takes_bits())

    def _takes_bits(self) -> bool:
        return False

    def _in_own_words(self, text: str) -> str:
        """An error about a recipe as one about the parameter that the recipe was made from."""
        return text

    def _seed(self) -> int:
        return whole("seed", self.seed, 0, 2**64 - 1)

    def _column_names(self) -> list[str]:
        if not hasattr(self, "n_features_in_"):
            return []
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _validated(self, X, y=None, reset: bool = False):
        """Images are checked by shape and type alone; tables as scikit-learn checks them, where it is installed."""
        if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)) and np.ndim(X[0]) > 1:
            X = np.asarray(X)  # lists of images
        shape = getattr(X, "shape", ())
        if not reset and len(shape) > 1 and (len(shape) == 2) != getattr(self, "_of_tables", len(shape) == 2):
            expected = "a table [samples, features]" if self._of_tables else "images"
            raise ValueError(f"X: found shape {list(shape)}, expected {expected} as in fit")
        if len(shape) > 2:
            if y is not None and np.shape(y)[:1] != (len(X),):
                raise ValueError(f"y: found {len(y) if np.ndim(y) else y!r} labels, expected {len(X)}")
            return (np.asarray(X), np.asarray(y)) if y is not None else np.asarray(X)
        if validate_data is None:
            return self._checked_table(X, y, reset)
        options = {"dtype": [np.float32, np.uint8, np.bool_], "order": "C", "reset": reset}
        if y is None:
            return validate_data(self, X, **options)
        X, y = validate_data(self, X, y, **options)
        check_classification_targets(y)
        return X, y

    def _checked_table(self, X, y, reset: bool):
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns"):
            names = np.asarray(X.columns, dtype=object)
            if reset:
                self.feature_names_in_ = names
            elif list(names) != list(getattr(self, "feature_names_in_", names)):
                raise ValueError(f"X: found columns {list(names)}, expected those of fit, in their order: "
                                 f"{list(self.feature_names_in_)}")
        try:
            X = np.asarray(X)
            X = X if X.dtype in (np.float32, np.uint8, np.bool_) else X.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X: found what is no number, expected numbers [samples, features]: {error}") from None
        if X.ndim != 2 or X.size == 0:
            raise ValueError(f"X: found shape {list(X.shape)}, expected [samples, features]")
        if X.dtype == np.float32 and not np.isfinite(X).all():
            raise ValueError("X: found NaN or infinity, expected finite numbers")
        if reset:
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(f"X: found {X.shape[1]} features, expected {self.n_features_in_}")
        if y is None:
            return X
        if len(y) != len(X):
            raise ValueError(f"y: found {len(y)} labels, expected {len(X)}")
        return X, np.asarray(y)

    def _check_fitted(self) -> None:
        if hasattr(self, "model_"):
            return
        text = f"This {type(self).__name__} is not fitted: call fit first"
        if validate_data is None:
            raise ValueError(text)
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(text)

    def _scores(self, X) -> np.ndarray:
        self._check_fitted()
        X = self._validated(X)
        return self.model_._core.scores(self._read(X), self._threads())

    def _threads(self) -> int:
        jobs = getattr(self, "n_jobs", None)
        return 1 if jobs is None else max(0, whole("n_jobs", jobs, -MAX_THREADS, MAX_THREADS))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores [sample, class]; of two classes, how much the second one is ahead."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def save(self, path: str | Path) -> None:
        """Writes the model (safetensors), for `bitfed.load` and the program."""
        self._check_fitted()
        self.model_.save(path)

    def export_c(self, folder: str | Path, name: str = "model") -> list[Path]:
        """C99 without a heap, for microcontrollers."""
        self._check_fitted()
        return self.model_.export_c(folder, name)

    def export_onnx(self, path: str | Path) -> Path:
        self._check_fitted()
        return self.model_.export_onnx(path)

    def __getstate__(self):
        state = dict(super().__getstate__())
        if "_trainer" in state:
            state["_trainer"] = state["_trainer"].save()
            state.pop("model_", None)
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_trainer" in state:
            kind, arguments = self._trainer_arguments
            self._trainer = kind(*arguments)
            self._trainer.restore(state["_trainer"])
            self._make_model()
