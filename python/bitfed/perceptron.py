"""Binary perceptrons as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from . import _core
from .data import as_samples, whole
from .estimator import Estimator


_MAX_WIDTH = 65536  # wider layers would not fit into memory


class BinaryMLPClassifier(Estimator):
    """A multilayer perceptron with weights and activations of one bit and batch norm, for tables; that of the method
    fed-bin-mlp. Columns are scaled by their 5 % and 95 % quantiles.

    hidden         widths of the hidden layers
    binary         False: real-valued weights and ReLU
    epochs         passes over the data in fit
    batch          samples per step
    learning_rate  of Adam, which starts anew in every call
    n_jobs         threads in prediction; -1: one per processor
    seed           the same seed gives the same network, on every computer
    verbose        show the progress of fit (tqdm)
    """

    _ALIASES = {"hidden_layer_sizes": "hidden", "batch_size": "batch", "learning_rate_init": "learning_rate"}

    def __init__(
        self,
        hidden: Sequence[int] = (64, 32, 16),
        binary: bool = True,
        epochs: int = 30,
        batch: int = 32,
        learning_rate: float = 1e-3,
        n_jobs: int | None = None,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.hidden = hidden
        self.binary = binary
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.n_jobs = n_jobs
        self.seed = seed
        self.verbose = verbose

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [sample, class]: the softmax of the scores, as in training."""
        scores = self._scores(X).astype(np.float64)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def _read(self, X: np.ndarray) -> np.ndarray:
        if X.ndim != 2:
            raise ValueError(f"X: found {X.ndim} dimensions, expected a table [samples, features]")
        return as_samples(X)

    def _make_trainer(self, X: np.ndarray) -> tuple[type, tuple]:
        if isinstance(self.hidden, str) or not isinstance(self.hidden, (Sequence, np.ndarray)):
            raise ValueError(f"hidden: found {self.hidden!r}, expected the widths of the hidden layers")
        widths = [X.shape[1], *(whole("hidden", width, 1, _MAX_WIDTH) for width in self.hidden), len(self.classes_)]
        batch = whole("batch", self.batch, 1, 2**31 - 1)
        if not isinstance(self.learning_rate, Real) or not 0 < self.learning_rate < np.inf:
            raise ValueError(f"learning_rate: found {self.learning_rate!r}, expected a positive number")
        arguments = (widths, bool(self.binary), float(self.learning_rate), batch, self._seed())
        return _core.PerceptronTrainer, arguments

    def _prepare(self, X: np.ndarray) -> None:
        self._trainer.fit_scaling(X)

    def _train(self, X: np.ndarray, y: np.ndarray, epochs: int, progress: Any) -> None:
        self._trainer.train(X, y, epochs, progress)
