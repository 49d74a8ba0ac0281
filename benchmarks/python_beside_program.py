#!/usr/bin/env python3
"""What a run costs from Python: PYTHON python_beside_program.py PROGRAM [--turns N] [--epochs N] (PYTHON has bitfed).

The same federation of one client (100 clauses, 10 x 10 patches, Fashion-MNIST, one thread) by the program on the data
set's files and by bitfed.run on arrays, a process each, in turns that change who begins. Compared are the seconds of the
training and those of the whole process; both must give the same model. Let nothing else run beside it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

RECIPE = """
[data]
name = "fashion-mnist"
partition = {{ kind = "iid", clients = 1 }}
[model]
name = "ctm"
clauses = 100
patch = [10, 10]
[method]
name = "fedtm-bank"
[client]
epochs = {epochs}
"""
FROM_PYTHON = """
import bitfed, json, sys
recipe, folder = sys.argv[1:]
run = bitfed.run(recipe, bitfed.load_data("fashion-mnist", folder), classes=range(10), threads=1, progress=False)
print(json.dumps(run.summary))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--data-dir", default=os.environ.get("BITFED_DATA", "data"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recipe = f"{folder}/recipe.toml"
        with open(recipe, "w") as file:
            file.write(RECIPE.format(epochs=arguments.epochs))
        commands = {
            "program": [arguments.program, "run", recipe, "--threads", "1", "--json", "--quiet", "--overwrite",
                        "--out", f"{folder}/run", "--data-dir", arguments.data_dir],
            "Python": [sys.executable, "-c", FROM_PYTHON, recipe, arguments.data_dir],
        }
        training = {name: [] for name in commands}
        whole = {name: [] for name in commands}
        models = set()
        for turn in range(arguments.turns):
            for name in sorted(commands, reverse=turn % 2 == 0):
                start = time.monotonic()
                output = subprocess.run(commands[name], check=True, stdout=subprocess.PIPE, cwd=folder).stdout
                whole[name].append(time.monotonic() - start)
                summary = json.loads(output)
                training[name].append(summary["train_seconds"])
                models.add(summary["model_sha256"])
    if len(models) != 1:
        sys.exit(f"python_beside_program: {len(models)} different models, expected one")
    print(f"| {arguments.turns} turns, {arguments.epochs} epochs, seconds | training: median | fastest | whole process: median "
          "| fastest |\n|---|---|---|---|---|")
    for name in commands:
        cells = [f"{pick(of[name]):.2f}" for of in (training, whole) for pick in (statistics.median, min)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    more = [f"{100 * (pick(of['Python']) / pick(of['program']) - 1):+.1f} %" for of in (training, whole)
            for pick in (statistics.median, min)]
    print("| more | " + " | ".join(more) + " |")


if __name__ == "__main__":
    main()
