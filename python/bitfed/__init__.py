"""Federated learning with one-bit models: Tsetlin machines and binary networks.

Estimators in the manner of scikit-learn: TsetlinClassifier, BinaryMLPClassifier. Federations: run, partition, load,
report; a method of one's own: Method, Fusion. Flower: bitfed.flower.
"""

from importlib import import_module as _import_module

from ._core import Failure, InputError, __version__, instruction_set

# What is imported at first use: `import bitfed` costs little more than numpy.
_HOMES = {
    "TsetlinClassifier": "tsetlin",
    "BinaryMLPClassifier": "perceptron",
    "Federation": "federation",
    "Result": "federation",
    "run": "federation",
    "Method": "methods",
    "Fusion": "methods",
    "Model": "models",
    "load": "models",
    "Report": "reports",
    "report": "reports",
    "Partition": "data",
    "datasets": "data",
    "load_data": "data",
    "partition": "data",
    "recipes": "recipe",
}
_MODULES = {"data", "federation", "flower", "methods", "models", "perceptron", "reports", "tables", "tsetlin"}

__all__ = sorted(["Failure", "InputError", "__version__", "instruction_set", *_HOMES])


def __getattr__(name):
    if name in _HOMES:
        value = getattr(_import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module 'bitfed' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
