"""Measures predictions of CNN4 and ResNet10 on 32 x 32 x 3 in PyTorch (real weights) and ours (binary), and a convolution; prints one
table of ratios. Called by benchmarks/peers/run. Samples a second of one core; PyTorch as it is called plainly (eager), and by
the fastest way to run it. PyTorch and ours take turns, twice; the best of each counts.
"""
import json
import os
import pathlib
import subprocess

from compare_neural import PYTHON, last_line
from report import BUILD, cpu_name, in_times, in_words

OURS = pathlib.Path(os.environ.get("BITFED_INFERENCE_BENCHMARK", BUILD / "benchmark/benchmarks/bitfed_inference_benchmark"))
NAMES = {"cnn4-32/64": "CNN4, batches of 64", "cnn4-32/1": "CNN4, one by one",
         "resnet10-32/64": "ResNet10, batches of 64", "resnet10-32/1": "ResNet10, one by one",
         "convolution-binary": "convolution 3 x 3, 128 to 128, 16 x 16"}
TURNS = 2


def lines_of_torch():
    script = pathlib.Path(__file__).with_name("torch_inference.py")
    done = subprocess.run([PYTHON, script], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"PyTorch failed ({done.returncode}): {last_line(done.stderr)}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def rates_of_ours():
    done = subprocess.run([OURS, "--benchmark_repetitions=5", "--benchmark_format=json"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{OURS.name} failed ({done.returncode}): {last_line(done.stderr)}")
        return {}
    best = {}
    for result in json.loads(done.stdout)["benchmarks"]:
        if result["run_type"] == "iteration":
            name = result["run_name"]
            best[name] = max(best.get(name, 0), result["samples_per_second"])
    return best


def keep_best(line, best, name):
    if line.get("samples_per_second", 0) > best.get(name, {}).get("samples_per_second", 0):
        best[name] = line


def main():
    ours, eager, fastest = {}, {}, {}
    for _ in range(TURNS):
        for name, rate in rates_of_ours().items():
            ours[name] = max(ours.get(name, 0), rate)
        for line in lines_of_torch() if PYTHON.exists() else []:
            keep_best(line, fastest, line["name"])
            if line["variant"] == "eager":
                keep_best(line, eager, line["name"])
    print(f"{cpu_name()}, one core, load {os.getloadavg()[0]:.1f}; samples a second")
    print("| | ours, binary | PyTorch f32, eager | times | fastest | times |")
    print("|---|---|---|---|---|---|")
    for name, words in NAMES.items():
        mine = ours.get(name)
        cells = [words, in_words(mine) if mine else "missing"]
        for peer, way in ((eager.get(name), ""), (fastest.get(name), "variant")):
            rate = peer["samples_per_second"] if peer else None
            cells.append(in_words(rate) + (f" ({peer[way]})" if way else "") if peer else "missing")
            cells.append(in_times(mine / rate) if mine and peer else "–")
        print("| " + " | ".join(cells) + " |")
    if fastest:
        print(f"PyTorch {next(iter(fastest.values()))['torch']}")
    for name, words in (("convolution-float", "our own kernels"), ("eigen-convolution-float", "plain Eigen")):
        if name in ours:
            print(f"The convolution in floats by {words}: {in_words(ours[name])}")


if __name__ == "__main__":
    main()
