#!/usr/bin/env python3
"""Tables of docs/results/hostile-clients.md from the lines of hostile_clients: hostile_clients_table.py OUT.csv"""
import collections
import sys

RULES = ["mean", "norm-bound", "median", "trimmed-mean", "geometric-median"]
ATTACKS = ["none", "sign-flip", "scaling", "label-flip", "round-0", "backdoor"]


def text(values):
    if not values:
        return "—"
    mean = 100 * sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.1f}"
    deviation = (sum((100 * value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.1f} ± {deviation:.1f}"


def table(title, cells, rows):
    print(f"{title}\n\n| attack | hostile | " + " | ".join(RULES) + " |")
    print("|---|---|" + "---|" * len(RULES))
    for attack, percent in rows:
        print(f"| {attack} | {percent} % | " + " | ".join(text(cells[rule, attack, percent]) for rule in RULES) + " |")
    print()


def main():
    accuracy, personal, trigger = (collections.defaultdict(list) for _ in range(3))
    seeds = collections.Counter()
    for line in open(sys.argv[1]):
        _, rule, attack, percent, seed, *figures = line.strip().split(",")
        seeds[seed] += 1
        for cells, figure in zip((accuracy, personal, trigger), figures):
            if figure:
                cells[rule, attack, int(percent)].append(float(figure))
    rows = [(attack, percent) for attack in ATTACKS for percent in (0, 10, 30)
            if any(accuracy[rule, attack, percent] for rule in RULES)]
    print(f"runs by seed: {dict(seeds)}\n")
    table("Accuracy of the federation's model, %", accuracy, rows)
    if personal:
        table("Mean accuracy of the honest clients' own models, %", personal, rows)
    table("Test samples that the trigger turns into the target, %", trigger,
          [row for row in rows if row[0] in ("none", "backdoor")])


main()
