"""What the comparisons with other libraries share: where things lie, and how figures are written."""
import pathlib

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"


def in_words(value):
    if value < 100:
        return f"{value:.3g}"
    return f"{value / 1e6:.2f} M" if value >= 1e6 else f"{value / 1e3:.1f} k" if value >= 1e4 else f"{value:,.0f}"


def in_times(value):
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unnamed CPU"
