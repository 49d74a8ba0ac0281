"""Published federations by our simulator and others', in turn on the same cores: compare_federation.py [cifar10|mnist]...

Needs the data sets (BITFED_DATA) and the other simulators in build/peers/federation. Prints seconds per round, those of the
evaluation in every tenth round included, and the peak memory of all processes together (their proportional shares).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from report import BUILD, cpu_name, in_times

HERE = pathlib.Path(__file__).resolve().parent
RECIPES = {"cifar10": "fedavg-pfl-cifar10.toml", "mnist": "fedavg-flute-mnist.toml"}
ROUNDS = {"cifar10": 10, "mnist": 100}  # after a first one, which is not counted


def descendants(pid):
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
            except (OSError, IndexError):
                pass
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


def memory_of(pid):
    """Of the process and those it has started, in bytes."""
    total = 0
    for each in descendants(pid):
        try:
            for line in open(f"/proc/{each}/smaps_rollup"):
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
        except OSError:
            pass
    return total


def watch(command, cores):
    """Runs the command on the first cores; its output and peak memory."""
    environment = dict(os.environ, OMP_NUM_THREADS="1" if cores == 1 else str(cores))
    process = subprocess.Popen(["taskset", "-c", f"0-{cores - 1}", *command], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=environment)
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory_of(process.pid))
        time.sleep(0.25)
    output = process.stdout.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return output, peak


def measure_ours(program, setup, rounds, data, cores):
    """With a last round more that is not counted: it would be evaluated whatever its number."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", HERE.parents[1] / "recipes" / RECIPES[setup], "--set", f"rounds={rounds + 2}",
                   "--data-dir", data, "--threads", str(cores), "--out", f"{folder}/run", "--quiet"]
        _, peak = watch(command, cores)
        events = [json.loads(line) for line in open(f"{folder}/run/events.jsonl")]
    ends = [time_of(event) for event in events if event["event"] == "round-finished"][:-1]
    return [b - a for a, b in zip(ends, ends[1:])], peak


def time_of(event):
    clock = event["time"].rstrip("Z").split("T")[1].split(":")
    return 3600 * int(clock[0]) + 60 * int(clock[1]) + float(clock[2])


def measure_other(simulator, setup, rounds, data, cores):
    python = BUILD / "peers" / "federation" / "bin" / "python"
    output, peak = watch([python, HERE / "federation_peers.py", simulator, setup, "--rounds", str(rounds + 1),
                          "--data", data, "--cores", str(cores)], cores)
    return json.loads(output.strip().splitlines()[-1])["seconds"][1:], peak


def measure(name, setup, rounds, arguments):
    """Mean seconds per round, and peak memory."""
    if name == "bitfed":
        seconds, peak = measure_ours(arguments.program, setup, rounds, arguments.data, arguments.cores)
    else:
        seconds, peak = measure_other(name, setup, rounds, arguments.data, arguments.cores)
    return sum(seconds) / len(seconds), peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("setups", nargs="*", choices=[*RECIPES, []])
    parser.add_argument("--program", default=str(BUILD / "benchmark" / "bitfed"))
    parser.add_argument("--data", default=os.environ.get("BITFED_DATA", "data"))
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--turns", type=int, default=1, help="of all simulators; medians are printed")
    parser.add_argument("--simulators", default="bitfed,pfl,flwr")
    arguments = parser.parse_args()
    print(f"{cpu_name()}, {arguments.cores} core(s)\n\n| | | seconds per round | times | peak memory |\n|---|---|---|---|---|")
    for setup in arguments.setups or RECIPES:
        rounds = arguments.rounds or ROUNDS[setup]
        names = arguments.simulators.split(",")
        turns = [{name: measure(name, setup, rounds, arguments) for name in names} for _ in range(arguments.turns)]
        for name in names:
            seconds = statistics.median(turn[name][0] for turn in turns)
            times = statistics.median(turn[name][0] / turn[names[0]][0] for turn in turns)
            memory = max(turn[name][1] for turn in turns)
            print(f"| {setup} | {name} | {seconds:.4g} | {in_times(times)} | {memory / 1e6:,.0f} MB |", flush=True)


main()
