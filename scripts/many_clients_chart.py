#!/usr/bin/env python3
"""Draws what scripts/many_clients found:  many_clients_chart.py [OUT]

With a folder of runs, docs/data/many-clients.csv is written from it first; without one the committed file is drawn.
"""
import csv
import json
import math
import pathlib
import sys

from bank_budget_chart import ROOT, text

DATA = ROOT / "docs/data/many-clients.csv"
PICTURE = ROOT / "docs/images/many-clients.svg"
FIELDS = ("dataset", "partition", "clients", "epochs", "method", "accuracy", "validation_accuracy", "model_bytes")
PARTITIONS = {"iid": "IID", "dir0.1": "Dir(0.1)", "dir1": "Dir(1)", "s3": "3 labels"}
DATASETS = {"mnist": ("MNIST", (60, 100)), "fashion-mnist": ("Fashion-MNIST", (50, 90))}
METHODS = {"fedtm-bank": "#0072b2", "two-exchanges": "#cc79a7", "fedtmos": "#d55e00", "fedtmos-ensemble": "#666666",
           "fedtm-largest": "#009e73"}
NAMES = {"fedtmos": "FedTMOS", "two-exchanges": "fedtm-bank, two"}
EPOCHS = 5
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 210, 200, 60, 50, 60, 80


def collect(out):
    rows = []
    for path in out.glob("*/summary.json"):
        name = path.parent.name
        method = next((method for method in sorted(METHODS, key=len, reverse=True) if name.endswith("-" + method)), None)
        dataset = next((dataset for dataset in DATASETS if name.startswith(dataset + "-")), None)
        if method is None or dataset is None:
            continue
        clients, partition, epochs = name[len(dataset) + 1:-len(method) - 1].split("-")
        summary = json.loads(path.read_text())
        rows.append((dataset, partition, int(clients), int(epochs), method, f"{100 * summary['accuracy']:.2f}",
                     f"{100 * summary['validation_accuracy']:.2f}", summary["model_bytes"]))
    with open(DATA, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(sorted(rows))


def panel(x0, y0, title, limits, counts, series):
    def at(clients, accuracy):
        x = x0 + 12 + (WIDTH - 24) * math.log(clients / counts[0]) / math.log(counts[-1] / counts[0])
        return x, y0 + HEIGHT * (limits[1] - accuracy) / (limits[1] - limits[0])

    parts = [f'<rect x="{x0}" y="{y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
             text(x0 + WIDTH / 2, y0 - 8, title, size=14)]
    for step in range(6):
        accuracy = limits[0] + (limits[1] - limits[0]) * step / 5
        y = at(counts[0], accuracy)[1]
        parts += [f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#ddd"/>', text(x0 - 6, y + 4, f"{accuracy:g} %", "end")]
    for clients in counts:
        parts.append(text(at(clients, limits[0])[0], y0 + HEIGHT + 16, clients))
    for method, points in series.items():
        line = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in sorted(points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{METHODS[method]}" stroke-width="2"/>')
        for point in points:
            x, y = at(*point)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{METHODS[method]}"/>')
    return parts


def draw():
    found = {}
    with open(DATA, newline="") as file:
        for row in csv.DictReader(file):
            if int(row["epochs"]) == EPOCHS:
                series = found.setdefault((row["dataset"], row["partition"]), {})
                series.setdefault(row["method"], []).append((int(row["clients"]), float(row["accuracy"])))
    counts = sorted({clients for series in found.values() for points in series.values() for clients, _ in points})
    parts = []
    for line, (dataset, (name, limits)) in enumerate(DATASETS.items()):
        for column, (partition, label) in enumerate(PARTITIONS.items()):
            parts += panel(LEFT + column * (WIDTH + GAP_X), TOP + line * (HEIGHT + GAP_Y), f"{name}, {label}", limits,
                           counts, found.get((dataset, partition), {}))
    width = LEFT + len(PARTITIONS) * (WIDTH + GAP_X) - GAP_X + 20
    height = TOP + len(DATASETS) * (HEIGHT + GAP_Y) + 20
    parts.append(text(width / 2, height - 46, "clients"))
    for number, (method, colour) in enumerate(METHODS.items()):
        x = width / 2 - 415 + 170 * number
        parts += [f'<circle cx="{x}" cy="{height - 18}" r="5" fill="{colour}"/>',
                  text(x + 12, height - 14, NAMES.get(method, method), "start")]
    PICTURE.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                       'font-family="sans-serif"><title>Accuracy over the number of clients</title>'
                       f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(pathlib.Path(sys.argv[1]))
    draw()
