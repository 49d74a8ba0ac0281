#!/usr/bin/env python3
"""One rank per core beside one thread per core: ranks_beside_threads.py PROGRAM [--turns N] [--only NAME]...

Runs recipes in turns by `--threads CORES` and by mpirun with a rank per core. Compared is the time from the
end of the first round to the end of the last, evaluations included; and the whole time, which includes the start of all
processes and the reading of the data by each. Let nothing else run beside it.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

RECIPES = pathlib.Path(__file__).resolve().parents[1] / "recipes"
# name: recipe, rounds, settings
RUNS = {
    "fedbnn": ("fedbnn-fashion-mnist.toml", 4, ["client.epochs=2"]),
    "fedavg": ("fedavg-fashion-mnist.toml", 4, ["client.epochs=1"]),
    "lenet": ("fedavg-lenet-mnist.toml", 8, []),
    "perceptron": ("health-synthetic.toml", 20, ["data.points=50000"]),
    "small perceptrons": ("health-synthetic.toml", 50, ["data.devices=2000", "data.points=50",
                                                        "federation.clients_per_round=1000"]),
    "fedtm": ("fedtm-mnist.toml", 4, ["client.epochs=1"]),
    "flute": ("fedavg-flute-mnist.toml", 400, []),
}


def seconds_of(command):
    """From the end of the first round to the end of the last, and of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        subprocess.run([*command, "--out", f"{folder}/run", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - start
        events = map(json.loads, open(f"{folder}/run/events.jsonl"))
        ends = [datetime.datetime.fromisoformat(event["time"]) for event in events
                if event["event"] == "round-finished" and event["round"] > 0]
        return (ends[-1] - ends[0]).total_seconds(), whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(RUNS))
    parser.add_argument("--data-dir", default=os.environ.get("BITFED_DATA", "data"))
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    os.environ.setdefault("OMPI_MCA_btl", "self,vader")
    ranks = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", str(arguments.cores)]
    print(f"| {arguments.cores} cores, medians of {arguments.turns} | threads, s | ranks, s | as fast by (each turn) | whole: threads, s "
          "| ranks, s |\n|---|---|---|---|---|---|")
    for name in arguments.only or RUNS:
        recipe, rounds, settings = RUNS[name]
        run = [arguments.program, "run", RECIPES / recipe, "--data-dir", arguments.data_dir, "--set", f"rounds={rounds}"]
        for setting in settings:
            run += ["--set", setting]
        turns = [(seconds_of([*run, "--threads", str(arguments.cores)]), seconds_of([*ranks, *run]))
                 for _ in range(arguments.turns)]
        median = [[statistics.median(turn[way][part] for turn in turns) for part in (0, 1)] for way in (0, 1)]
        each = ", ".join(f"{threads[0] / by_ranks[0]:.2f}" for threads, by_ranks in turns)
        print(f"| {name} | {median[0][0]:.3g} | {median[1][0]:.3g} | {median[0][0] / median[1][0]:.2f} ({each}) "
              f"| {median[0][1]:.3g} | {median[1][1]:.3g} |", flush=True)


main()
