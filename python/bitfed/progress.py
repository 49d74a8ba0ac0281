"""Progress of runs and of estimators through tqdm, where it is installed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_FORMAT = "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"


def _tqdm() -> Any:
    """tqdm's bar, of a notebook in a notebook; None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets shows text
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class Progress:
    """Counts the work of clients: 1 per client and round."""

    def __init__(self, shown: bool):
        self._bar = None
        self._shown = shown
        self._rounds = 1
        self._per_round = 1
        self._fractions: dict[int, float] = {}
        self._finished = 0.0

    def __enter__(self) -> "Progress":
        tqdm = _tqdm() if self._shown else None
        if tqdm is not None:
            self._bar = tqdm(total=1.0, bar_format=_FORMAT, leave=False)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def event(self, line: str) -> None:
        if self._bar is None:
            return
        event = json.loads(line)
        kind = event["event"]
        if kind == "run-started":
            self._rounds = event["rounds"]
            self._bar.set_description(f"{event['name']} ({event['method']})")
        elif kind == "round-started":
            self._per_round = max(1, len(event["clients"]))
            self._fractions = {}
        elif kind == "client-progress":
            self._fractions[event["client"]] = event["fraction"]
        elif kind == "client-finished":
            self._fractions[event["client"]] = 1.0
        elif kind == "round-finished":
            self._finished = event["round"] / self._rounds
            self._fractions = {}
            if event.get("accuracy") is not None:
                self._bar.set_postfix_str(f"{100 * event['accuracy']:.1f} %")
        done = self._finished + sum(self._fractions.values()) / self._per_round / self._rounds
        self._bar.update(min(1.0, done) - self._bar.n)


@contextmanager
def fit_progress(shown: bool, name: str) -> Iterator[Callable[[float], None] | None]:
    """What a trainer tells the fraction done; None if nothing is shown."""
    tqdm = _tqdm() if shown else None
    if tqdm is None:
        yield None
        return
    with tqdm(total=1.0, desc=name, bar_format=_FORMAT, leave=False) as bar:
        yield lambda fraction: bar.update(fraction - bar.n)
