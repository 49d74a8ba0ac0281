#!/usr/bin/env python3
"""Prints the table of a folder that scripts/fedtmos_table1 filled:  fedtmos_table1_summary.py [OUT]

A markdown table, paper beside ours: mean and standard deviation over the seeds, in percent. A cell marked ▼ lies
more than the paper's deviation below the paper's mean.
"""
import csv
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = ("fedtmos-ensemble", "fedtmos", "fedtm-bank")
SEEDS = (0, 20, 24)


def accuracies(out, dataset, partition, method):
    found = []
    for seed in SEEDS:
        path = out / f"{dataset}-{partition}-{seed}-{method}" / "summary.json"
        if path.exists():
            found.append(100 * json.loads(path.read_text())["accuracy"])
    return found


def cell(values, floor=None):
    if not values:
        return "–"
    deviation = statistics.pstdev(values) if len(values) > 1 else 0
    mark = " ▼" if floor is not None and statistics.mean(values) < floor else ""
    note = "" if len(values) == len(SEEDS) else f" ({len(values)} of {len(SEEDS)} seeds)"
    return f"{statistics.mean(values):.2f} ± {deviation:.2f}{mark}{note}"


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs/fedtmos-table1")
    print("| data | split | ensemble, paper | ensemble, ours | FedTMOS, paper | FedTMOS, ours | `fedtm-bank`, ours |")
    print("|---|---|---|---|---|---|---|")
    with open(ROOT / "recipes/papers/fedtmos-table1.csv", newline="") as file:
        for row in csv.DictReader(file):
            ours = {method: accuracies(out, row["dataset"], row["partition"], method) for method in METHODS}
            if not any(ours.values()):
                continue
            floors = {name: float(row[name]) - float(row[name + "_deviation"]) for name in ("ensemble", "fedtmos")}
            print(f"| {row['dataset']} | {row['partition']} "
                  f"| {row['ensemble']} ± {row['ensemble_deviation']} "
                  f"| {cell(ours['fedtmos-ensemble'], floors['ensemble'])} "
                  f"| {row['fedtmos']} ± {row['fedtmos_deviation']} | {cell(ours['fedtmos'], floors['fedtmos'])} "
                  f"| {cell(ours['fedtm-bank'])} |")


if __name__ == "__main__":
    main()
