#!/usr/bin/env python3
"""Draws what lambda does in fed-bin-mlp:  lambda_chart.py [TABLE.csv]

With the table.csv of `bitfed reproduce fed-bin-mlp:lambda`, docs/data/fed-bin-mlp-lambda.csv is written from it first;
without it the committed file is drawn, as docs/images/fed-bin-mlp-lambda.svg.
"""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/data/fed-bin-mlp-lambda.csv"
PICTURE = ROOT / "docs/images/fed-bin-mlp-lambda.svg"
FIELDS = ("data", "network", "lambda", "model", "mean", "deviation", "seeds")
COLOURS = {"global": "#0072b2", "personal, mean": "#d55e00"}
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 330, 230, 50, 40, 60, 90
PANELS = (("hapt14", "binary", (70, 90)), ("hapt14", "full", (70, 90)), ("watch", "binary", (20, 50)),
          ("watch", "full", (20, 50)))


def collect(table):
    with open(table, newline="") as file, open(DATA, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(FIELDS)
        for line in csv.DictReader(file):
            data, network, value = line["row"].split("/")
            writer.writerow((data, network, value, line["column"], f"{float(line['ours_mean']):.2f}",
                             f"{float(line['ours_deviation']):.2f}", line["seeds"]))


def place(panel, value, percent):
    low, high = PANELS[panel][2]
    return (LEFT + panel % 2 * (WIDTH + GAP_X) + WIDTH * value,
            TOP + panel // 2 * (HEIGHT + GAP_Y) + HEIGHT * (high - percent) / (high - low))


def panel_svg(panel, rows):
    data, network, (low, high) = PANELS[panel]
    left, top = place(panel, 0, high)
    right, bottom = place(panel, 1, low)
    parts = [f'<text x="{left}" y="{top - 14}" class="title">{data}, {network}</text>']
    for percent in range(low, high + 1, 5):
        y = place(panel, 0, percent)[1]
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for value in (0, 0.2, 0.4, 0.6, 0.8, 1):
        x = place(panel, value, low)[0]
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 36}" text-anchor="middle">lambda</text>')
    for model, colour in COLOURS.items():
        points = sorted((float(r["lambda"]), float(r["mean"]), float(r["deviation"])) for r in rows
                        if (r["data"], r["network"], r["model"]) == (data, network, model))
        line = " ".join("{:.1f},{:.1f}".format(*place(panel, value, mean)) for value, mean, _ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for value, mean, deviation in points:
            x, y = place(panel, value, mean)
            upper, lower = (place(panel, value, mean + d)[1] for d in (deviation, -deviation))
            parts.append(f'<line x1="{x:.1f}" y1="{upper:.1f}" x2="{x:.1f}" y2="{lower:.1f}" stroke="{colour}"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>lambda {value:g}: '
                         f'{mean:.2f} ± {deviation:.2f} %</title></circle>')
    return parts


def draw():
    with open(DATA, newline="") as file:
        rows = list(csv.DictReader(file))
    width, height = LEFT + 2 * WIDTH + GAP_X + 20, TOP + 2 * (HEIGHT + GAP_Y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'role="img" aria-label="accuracy over lambda">',
             "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:14px}.grid{stroke:#ddd}</style>",
             f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for panel in range(len(PANELS)):
        parts += panel_svg(panel, rows)
    for i, (model, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + i * 170, height - 12
        parts.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{colour}"/><text x="{x + 10}" y="{y}">'
                     f'{"global model" if model == "global" else "personal models, mean"}</text>')
    PICTURE.write_text("\n".join(parts + ["</svg>"]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(sys.argv[1])
    draw()
