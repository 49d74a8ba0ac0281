"""The command `bitfed`, and `python -m bitfed`."""

import os
import sys

from . import _core
from .recipe import FOLDER, recipes


def _recipe(argument: str) -> str:
    """`quickstart`, or `recipes/quickstart.toml` as the guides have it: the package's, where there is no such file."""
    name = argument.removeprefix("recipes/").removesuffix(".toml")
    return str(FOLDER / f"{name}.toml") if name in recipes() and not os.path.exists(argument) else argument


def main() -> int:
    arguments = ["bitfed", *sys.argv[1:]]
    if "reproduce" in arguments[1:2] and not any(a.split("=")[0] == "--recipes" for a in arguments):
        arguments += ["--recipes", str(FOLDER)]
    if arguments[1:2] in (["run"], ["sweep"]):
        arguments[2:3] = [_recipe(argument) for argument in arguments[2:3]]
    return _core.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
