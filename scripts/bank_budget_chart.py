#!/usr/bin/env python3
"""Draws what scripts/bank_budget found:  bank_budget_chart.py [OUT]

With a folder of runs, docs/data/bank-budget.csv is written from it first; without one the committed file is drawn.
"""
import csv
import json
import math
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/data/bank-budget.csv"
PICTURE = ROOT / "docs/images/bank-budget.svg"
FIELDS = ("dataset", "partition", "seed", "method", "budget", "accuracy", "validation_accuracy", "model_bytes")
PANELS = (("mnist", "Dir(0.1)", (88, 100)), ("mnist", "S(2)", (80, 100)),
          ("fashion-mnist", "Dir(0.1)", (60, 90)), ("fashion-mnist", "S(2)", (40, 80)))
COLOURS = {"fedtm-bank": "#0072b2", "fedtmos": "#d55e00"}
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 360, 220, 60, 50, 70, 80
BYTES = (5e3, 6e5)


def collect(out):
    rows = []
    for path in sorted(out.glob("*/summary.json")):
        summary = json.loads(path.read_text())
        dataset, rest = path.parent.name.split("-Dir(" if "-Dir(" in path.parent.name else "-S(")
        partition = ("Dir(" if "-Dir(" in path.parent.name else "S(") + rest.split("-")[0]
        rows.append((dataset, partition, summary["seed"], summary["method"], float(path.parent.name.split("-")[-1]),
                     f"{100 * summary['accuracy']:.2f}", f"{100 * summary['validation_accuracy']:.2f}",
                     summary["model_bytes"]))
    with open(DATA, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(sorted(rows))


def means():
    """(dataset, partition, method) -> [(budget, bytes, accuracy)], means over the seeds."""
    groups = {}
    with open(DATA, newline="") as file:
        for row in csv.DictReader(file):
            key = (row["dataset"], row["partition"], row["method"])
            groups.setdefault(key, {}).setdefault(float(row["budget"]), []).append(row)
    return {key: [(budget, statistics.mean(float(row["model_bytes"]) for row in rows),
                   statistics.mean(float(row["accuracy"]) for row in rows))
                  for budget, rows in sorted(budgets.items())] for key, budgets in groups.items()}


def text(x, y, content, anchor="middle", colour="#333", size=12):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">'
            f'{content}</text>')


def panel(x0, y0, dataset, partition, limits, series):
    def at(size, accuracy):
        x = x0 + WIDTH * math.log(size / BYTES[0]) / math.log(BYTES[1] / BYTES[0])
        return x, y0 + HEIGHT * (limits[1] - accuracy) / (limits[1] - limits[0])

    name = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}[dataset]
    parts = [f'<rect x="{x0}" y="{y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
             text(x0 + WIDTH / 2, y0 - 8, f"{name}, {partition}", size=14)]
    for step in range(5):
        accuracy = limits[0] + (limits[1] - limits[0]) * step / 4
        y = at(BYTES[0], accuracy)[1]
        parts += [f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#ddd"/>', text(x0 - 6, y + 4, f"{accuracy:g} %", "end")]
    for kilobytes in (10, 30, 100, 300):
        x = at(1000 * kilobytes, limits[0])[0]
        parts += [f'<path d="M{x:.1f} {y0}v{HEIGHT}" stroke="#eee"/>',
                  text(x, y0 + HEIGHT + 16, f"{kilobytes} KB")]
    for method, points in series:
        placed = {}  # a budget that the uploads cannot fill gives the model of a smaller one: one point for both
        for budget, size, accuracy in points:
            placed.setdefault(at(size, accuracy), []).append(f"{budget:g}")
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[method]}" stroke-width="2"/>')
        for (x, y), budgets in placed.items():
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[method]}"/>')
            parts.append(text(x, y + (-8 if method == "fedtm-bank" else 17), ", ".join(budgets),
                              colour=COLOURS[method], size=11))
    return parts


def draw():
    found = means()
    parts = []
    for number, (dataset, partition, limits) in enumerate(PANELS):
        series = [(method, found[dataset, partition, method]) for method in COLOURS
                  if (dataset, partition, method) in found]
        parts += panel(LEFT + number % 2 * (WIDTH + GAP_X), TOP + number // 2 * (HEIGHT + GAP_Y), dataset, partition,
                       limits, series)
    width, height = LEFT + 2 * WIDTH + GAP_X + 20, TOP + 2 * HEIGHT + GAP_Y + 60
    for number, (method, colour) in enumerate(COLOURS.items()):
        x = width / 2 - 150 + 160 * number
        parts += [f'<circle cx="{x}" cy="{height - 18}" r="5" fill="{colour}"/>',
                  text(x + 12, height - 14, {"fedtmos": "FedTMOS"}.get(method, method), "start")]
    PICTURE.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                       'font-family="sans-serif"><title>Accuracy over the size of the server model</title>'
                       f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(pathlib.Path(sys.argv[1]))
    draw()
