"""Measures training steps of networks in PyTorch and ours, and prints one table of ratios. Called by benchmarks/peers/run.

Steps a second of one core (process time), see torch_mlp.py (batches of 32) and torch_networks.py (of 64). PyTorch counts with
the fastest way to run it; all ways are listed below the table. Ours: the benchmark of the same name with the counter
steps_per_second, best of the repetitions. PyTorch and ours take turns. What is missing is said, and the rest measured
nevertheless.
"""
import json
import os
import pathlib
import subprocess
import sys

from report import BUILD, cpu_name, in_times, in_words

NAMES = ("mlp-binary", "mlp-full", "cnn4-real", "cnn4-rotated", "cnn4-rotation", "resnet10-real", "resnet10-rotated",
         "resnet10-rotation")
OURS = BUILD / "benchmark/benchmarks/bitfed_neural_benchmark"
PYTHON = BUILD / "peers/torch/bin/python"


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def lines_of_torch(name):
    """What PyTorch's script printed, and why there is nothing if so."""
    if not PYTHON.exists():
        return [], "PyTorch is not installed in build/peers/torch"
    script = pathlib.Path(__file__).with_name("torch_mlp.py" if name.startswith("mlp") else "torch_networks.py")
    done = subprocess.run([PYTHON, script, name], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        return lines, f"PyTorch failed ({done.returncode}): {last_line(done.stderr)}"
    return lines, "" if any("steps_per_second" in line for line in lines) else "PyTorch gave no figure"


def rate_of_ours(name):
    """Steps a second, or none and why."""
    if not OURS.exists():
        return None, f"{OURS.relative_to(BUILD.parent)} is not built"
    out = BUILD / "peers" / "ours-neural.json"
    out.unlink(missing_ok=True)
    done = subprocess.run([OURS, f"--benchmark_filter=^{name}(/|$)", "--benchmark_repetitions=7",
                           f"--benchmark_out={out}", "--benchmark_out_format=json"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, f"{OURS.name} failed ({done.returncode}): {last_line(done.stderr)}"
    text = out.read_text() if out.exists() else ""  # empty where no benchmark has that name
    results = json.loads(text)["benchmarks"] if text.strip() else []
    rates = [result["steps_per_second"] for result in results
             if result.get("run_type") != "aggregate" and "steps_per_second" in result]
    return (max(rates), "") if rates else (None, f"{OURS.name} has no steps_per_second for {name}")


def main():
    names = sys.argv[1:] or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"unknown network {unknown[0]}; there are {', '.join(NAMES)}")
    print(f"{cpu_name()}, one core, load {os.getloadavg()[0]:.1f}; steps a second: mlp 14-64-32-16-6, "
          "batches of 32; cnn4 28 x 28, resnet10 32 x 32, batches of 64; rotation: a fit of all layers' rotations")
    print("| | ours | PyTorch | ours / PyTorch |")
    print("|---|---|---|---|")
    remarks = []
    for name in names:
        lines, torch_missing = lines_of_torch(name)
        ours, ours_missing = rate_of_ours(name)
        best = max((line for line in lines if "steps_per_second" in line), key=lambda line: line["steps_per_second"],
                   default=None)
        peer = f"{in_words(best['steps_per_second'])} ({best['variant']})" if best else "missing"
        ratio = in_times(ours / best["steps_per_second"]) if ours and best else "–"
        print(f"| {name} | {in_words(ours) if ours else 'missing'} | {peer} | {ratio} |", flush=True)
        for line in lines:
            result = (f"{in_words(line['steps_per_second'])}, median {in_words(line['median_steps_per_second'])}"
                      if "steps_per_second" in line else f"failed: {line['error']}")
            remarks.append(f"{name}, PyTorch {line['torch']} {line['variant']}: {result}")
        remarks += [f"{name}: {missing}" for missing in (torch_missing, ours_missing) if missing]
    print("\n".join(remarks))


if __name__ == "__main__":
    main()
