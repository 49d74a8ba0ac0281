"""The command `bitfed`, and `python -m bitfed`."""

import sys

from . import _core
from .recipe import FOLDER


def main() -> int:
    arguments = ["bitfed", *sys.argv[1:]]
    if "reproduce" in arguments[1:2] and not any(a.split("=")[0] == "--recipes" for a in arguments):
        arguments += ["--recipes", str(FOLDER)]
    return _core.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
