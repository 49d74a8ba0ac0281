"""Measures other Tsetlin machine libraries and ours, and prints one table of ratios. Called by benchmarks/peers/run.

Everything is samples a second of one core (process time). Training: the mean of the first three epochs over 6,000
samples of Fashion-MNIST; the peers train a sample's class and one other, so does our "one negative". Inference: all
10,000 test samples for us, as many as take some seconds for the peers. Peers and ours take turns.
"""
import json
import os
import subprocess
import sys
import time

import numpy as np

from report import BUILD, cpu_name, in_times, in_words

EPOCHS = 3
TRAIN_SAMPLES = 6000
CONFIGURATIONS = {  # name in our benchmark: booleanizer, patch, clauses, T, s, samples that the peers predict
    "flat_100": ("threshold", None, 100, 50, 10.0, 10000),
    "flat_2000": ("threshold", None, 2000, 50, 10.0, 2000),
    "ctm_10x10_100": ("threshold", (10, 10), 100, 1000, 5.0, 2000),
    "ctm_5x5_200": ("adaptive-gaussian", (5, 5), 200, 1000, 5.0, 600),
}


def load(booleanizer, part, count, dtype):
    stem = BUILD / "peers" / "bits" / f"{booleanizer}-{part}"
    bits = np.fromfile(f"{stem}-bits.u8", dtype=np.uint8).reshape(-1, 28, 28)[:count].astype(dtype)
    labels = np.fromfile(f"{stem}-labels.u8", dtype=np.uint8)[:count].astype(dtype)
    return bits, labels


def rate(samples, work):
    start = time.process_time()
    work()
    return samples / (time.process_time() - start)


def measure_parallel(configuration):
    from pyTsetlinMachineParallel.tm import MultiClassConvolutionalTsetlinMachine2D, MultiClassTsetlinMachine

    booleanizer, patch, clauses, threshold, s, test_count = configuration
    images, labels = load(booleanizer, "train", TRAIN_SAMPLES, np.uint32)
    test, _ = load(booleanizer, "test", test_count, np.uint32)
    if patch is None:
        machine = MultiClassTsetlinMachine(clauses, threshold, s, weighted_clauses=True)
        images, test = images.reshape(-1, 784), test.reshape(-1, 784)
    else:
        machine = MultiClassConvolutionalTsetlinMachine2D(clauses, threshold, s, patch, weighted_clauses=True)
    train = rate(TRAIN_SAMPLES * EPOCHS, lambda: machine.fit(images, labels, epochs=EPOCHS, incremental=True))
    return train, rate(test_count, lambda: machine.predict(test))


def measure_tmu(configuration):
    from tmu.models.classification.vanilla_classifier import TMClassifier

    booleanizer, patch, clauses, threshold, s, test_count = configuration
    images, labels = load(booleanizer, "train", TRAIN_SAMPLES, np.uint32)
    test, _ = load(booleanizer, "test", test_count, np.uint32)
    if patch is None:
        images, test = images.reshape(-1, 784), test.reshape(-1, 784)
    machine = TMClassifier(clauses, threshold, s, platform="CPU", weighted_clauses=True, patch_dim=patch, seed=1)

    def fit():
        for _ in range(EPOCHS):
            machine.fit(images, labels)

    train = rate(TRAIN_SAMPLES * EPOCHS, fit)
    return train, rate(test_count, lambda: machine.predict(test))


def measure_ours(name):
    out = BUILD / "peers" / "ours.json"
    subprocess.run([BUILD / "benchmark/benchmarks/bitfed_tsetlin_benchmark", f"--benchmark_filter=^{name}/",
                    f"--benchmark_out={out}", "--benchmark_out_format=json"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    rates = {}
    for result in json.loads(out.read_text())["benchmarks"]:
        rates[result["name"].split("/")[1]] = result["samples_per_second"]
    return rates


def main():
    names = sys.argv[1:] or list(CONFIGURATIONS)
    unknown = [name for name in names if name not in CONFIGURATIONS]
    if unknown:
        sys.exit(f"unknown configuration {unknown[0]}; there are {', '.join(CONFIGURATIONS)}")
    print(f"{cpu_name()}, one core, load {os.getloadavg()[0]:.1f}; samples a second, Fashion-MNIST")
    print("| | ours | pyTsetlinMachineParallel | times | tmu | times |")
    print("|---|---|---|---|---|---|")
    for name in names:
        parallel_train, parallel_predict = measure_parallel(CONFIGURATIONS[name])
        ours = measure_ours(name)
        tmu_train, tmu_predict = measure_tmu(CONFIGURATIONS[name])
        for what, parallel, tmu in (("train_one_negative", parallel_train, tmu_train),
                                    ("train_one_vs_all", parallel_train, tmu_train),
                                    ("predict", parallel_predict, tmu_predict)):
            print(f"| {name} {what.replace('_', ' ')} | {in_words(ours[what])} | {in_words(parallel)} "
                  f"| {in_times(ours[what] / parallel)} | {in_words(tmu)} | {in_times(ours[what] / tmu)} |", flush=True)
    print("One vs all is set against the peers' one negative: it teaches five times as many classes a sample.")


if __name__ == "__main__":
    main()
