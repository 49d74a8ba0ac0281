#!/usr/bin/env python3
"""What rank 0 of a simulation costs per round: rank_zero.py PROGRAM [--clients 10,100,1000,10000] [--set KEY=VALUE]...

Runs RECIPE twice for each number of clients per round, with few and with more rounds, under mpirun with two workers. The
table is the difference per round, in CPU seconds and bytes received. Its last columns are computed: the share of a round
with 16 workers that rank 0 would work for, if the two workers' CPU time were divided by 16.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WRAPPER = """
import os, resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
open(f"{sys.argv[1]}/cpu-{os.environ['OMPI_COMM_WORLD_RANK']}", "w").write(str(usage.ru_utime + usage.ru_stime))
sys.exit(status)
"""
WORKERS = 2


def run(arguments, clients, rounds):
    """CPU seconds of rank 0 and of the workers together, and the bytes that rank 0 received per round."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"federation.clients_per_round={clients}", f"rounds={rounds}", f"federation.evaluate_every={rounds}",
                    *arguments.set]
        program = [arguments.program, "run", arguments.recipe, "--quiet", "--out", f"{folder}/run"]
        if arguments.data_dir:
            program += ["--data-dir", arguments.data_dir]
        for setting in settings:
            program += ["--set", setting]
        command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(WORKERS + 1), sys.executable, "-c", WRAPPER,
                   folder, *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cpu = [float(pathlib.Path(folder, f"cpu-{rank}").read_text()) for rank in range(WORKERS + 1)]
        events = [json.loads(line) for line in open(f"{folder}/run/events.jsonl")]
    received = [event["received_bytes"] for event in events if event["event"] == "round-finished" and event["round"] > 0]
    return cpu[0], sum(cpu[1:]), received[-1]


parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--recipe", default=str(pathlib.Path(__file__).parent.parent / "recipes/health-synthetic.toml"))
parser.add_argument("--clients", default="10,100,1000,10000")
parser.add_argument("--set", action="append", default=[])
parser.add_argument("--data-dir")
parser.add_argument("--seconds", type=float, default=10, help="of work per measurement, about")
arguments = parser.parse_args()
os.environ.setdefault("OMPI_MCA_btl", "self,vader")
print("| clients per round | rank 0, ms | workers, ms | received, KB | per client: rank 0, µs | workers, µs | share with 16 |")
print("|---|---|---|---|---|---|---|")
for clients in map(int, arguments.clients.split(",")):
    few = run(arguments, clients, 2)
    probe = run(arguments, clients, 4)
    per_round = max(1e-4, (sum(probe[:2]) - sum(few[:2])) / 2)
    more = 2 + max(4, min(1000, int(arguments.seconds / per_round)))
    many = run(arguments, clients, more)
    zero, workers = ((b - a) / (more - 2) for a, b in zip(few[:2], many[:2]))
    print(f"| {clients:,} | {1e3 * zero:.3g} | {1e3 * workers:.4g} | {many[2] / 1e3:,.0f} | {1e6 * zero / clients:.3g} | "
          f"{1e6 * workers / clients:.4g} | {100 * zero / (workers / 16):.2g} % |", flush=True)
