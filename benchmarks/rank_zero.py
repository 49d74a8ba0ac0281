#!/usr/bin/env python3
"""What rank 0 of a simulation costs per round: rank_zero.py PROGRAM [--clients 10,100,1000,10000] [--set KEY=VALUE]...

Runs RECIPE for each number of clients per round under mpirun with two workers and a rank 0 that trains nobody, as its part of
the clients is small where there are many ranks. The table has CPU seconds, of all threads, and bytes received per round, without the first round and the last, which is evaluated. While rank 0 waits it looks for messages now and then.
Each line is therefore run twice, with few epochs and with many: rank 0's work is the same, and what it takes more in the longer
rounds is the looking. The last columns are computed from the many epochs: rank 0's work without the looking, and the share of
a round with 16 workers that work and looking would take, if the two workers' CPU time were divided by 16, or by the clients
if they are fewer.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Starts a rank, and writes the CPU time that it took from the end of the first round to the end of the last but one.
WRAPPER = """
import os, pathlib, subprocess, sys, time
folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
program = subprocess.Popen(sys.argv[3:])
def cpu():  # of threads that have ended, too
    fields = pathlib.Path("/proc", str(program.pid), "stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
taken, done, log = [], 0, None
while program.poll() is None:
    time.sleep(0.005)
    if log is None and (folder / "run" / "events.jsonl").exists():
        log = open(folder / "run" / "events.jsonl")
    done += sum('"round-finished"' in line and '"round":0,' not in line for line in log or [])
    if done >= (1, rounds - 1, rounds + 1)[len(taken)]:
        taken.append(cpu())
(folder / f"cpu-{os.environ['OMPI_COMM_WORLD_RANK']}").write_text(str(taken[1] - taken[0]))
sys.exit(program.returncode)
"""
WORKERS = 2


def time_of(event):
    hours, minutes, seconds = event["time"].rstrip("Z").split("T")[1].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def run(arguments, clients, counted, more_settings=()):
    """Per round: CPU seconds of rank 0 and of the workers together, seconds by the clock, and the bytes that rank 0 received."""
    rounds = counted + 2
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"federation.clients_per_round={clients}", f"rounds={rounds}", f"federation.evaluate_every={rounds}",
                    *arguments.set, *more_settings]
        program = [arguments.program, "run", arguments.recipe, "--quiet", "--out", f"{folder}/run",
               "--device", "auto"]  # without a GPU the CPU, but not by rank 0
        if arguments.data_dir:
            program += ["--data-dir", arguments.data_dir]
        for setting in settings:
            program += ["--set", setting]
        command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(WORKERS + 1), sys.executable, "-c", WRAPPER,
                   folder, str(rounds), *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cpu = [float(pathlib.Path(folder, f"cpu-{rank}").read_text()) for rank in range(WORKERS + 1)]
        events = [json.loads(line) for line in open(f"{folder}/run/events.jsonl")]
    finished = [event for event in events if event["event"] == "round-finished" and event["round"] > 0]
    wall = time_of(finished[-2]) - time_of(finished[0])
    return cpu[0] / counted, sum(cpu[1:]) / counted, wall / counted, finished[-2]["received_bytes"]


parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--recipe", default=str(pathlib.Path(__file__).parent.parent / "recipes/health-synthetic.toml"))
parser.add_argument("--clients", default="10,100,1000,10000")
parser.add_argument("--set", action="append", default=[])
parser.add_argument("--data-dir")
parser.add_argument("--epochs", default="1,10", help="few and many")
parser.add_argument("--seconds", type=float, default=10, help="of work per measurement, about")
arguments = parser.parse_args()
os.environ.setdefault("OMPI_MCA_btl", "self,vader")
few, many = arguments.epochs.split(",")


def measure(clients, epochs):
    settings = [f"client.epochs={epochs}"]
    measured = run(arguments, clients, 2, settings)
    rounds = min(1000, int(arguments.seconds / measured[1]))
    return run(arguments, clients, rounds, settings) if rounds > 2 else measured


print("| clients per round | rank 0, ms | workers, ms | round, ms | received, KB | looking | rank 0's work, ms | share with 16 |")
print("|---|---|---|---|---|---|---|---|")
for clients in map(int, arguments.clients.split(",")):
    short = measure(clients, few)
    zero, workers, wall, received = measure(clients, many)
    looking = max(0, (zero - short[0]) / (wall - short[2]))
    work = zero - looking * wall
    print(f"| {clients:,} | {1e3 * zero:.3g} | {1e3 * workers:.4g} | {1e3 * wall:.4g} | {received / 1e3:,.0f} | "
          f"{100 * looking:.2g} % | {1e3 * work:.3g} | {100 * (work / (workers / min(16, clients)) + looking):.2g} % |", flush=True)
