"""Convolutional Tsetlin machines of Python libraries on the same bits of Fashion-MNIST: compare_python.py [LIBRARY]...

Each library trains in a process of its own, on one thread. Time is CPU time, so that other work on the machine counts
little. A library that is not installed is left out.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np


def bits(X, y, samples):
    """Pixels above 75, as all libraries get them."""
    return np.ascontiguousarray(X[:samples] > 75), y[:samples].astype(np.uint32)


def bitfed_machine(options, X, y):
    import bitfed

    machine = bitfed.TsetlinClassifier(options.clauses, T=options.T, s=options.s, patch=options.patch, booleanizer="bits",
                                       update=options.update)
    return lambda: machine.partial_fit(X, y), machine.predict


def tmu_machine(options, X, y):
    from tmu.models.classification.vanilla_classifier import TMClassifier

    machine = TMClassifier(options.clauses, options.T, options.s, platform="CPU", weighted_clauses=True,
                           patch_dim=(options.patch, options.patch))
    X = X.astype(np.uint32)
    return lambda: machine.fit(X, y), lambda X: machine.predict(X.astype(np.uint32))


def parallel_machine(options, X, y):
    from pyTsetlinMachineParallel.tm import MultiClassConvolutionalTsetlinMachine2D

    machine = MultiClassConvolutionalTsetlinMachine2D(options.clauses, options.T, options.s,
                                                      (options.patch, options.patch), weighted_clauses=True)
    X = X.astype(np.uint32)
    return lambda: machine.fit(X, y, epochs=1, incremental=True), lambda X: machine.predict(X.astype(np.uint32))


def torch_machine(options, X, y):
    import torch
    import torchtsetlin

    torch.set_num_threads(1)
    torch.manual_seed(0)
    machine = torchtsetlin.ConvTsetlinMachine(int(y.max()) + 1, options.clauses, options.T, options.s,
                                              patch_size=options.patch, weighted=True)
    X, y = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))

    def train():
        machine.train()
        order = torch.randperm(len(X))
        for first in range(0, len(X), options.batch):
            batch = order[first:first + options.batch]
            machine.update(X[batch], y[batch])

    def predict(X):
        machine.eval()
        parts = [machine(torch.from_numpy(X[first:first + 100])).argmax(1) for first in range(0, len(X), 100)]
        return torch.cat(parts).numpy()

    return train, predict


LIBRARIES = {"bitfed": bitfed_machine, "tmu": tmu_machine, "pyTsetlinMachineParallel": parallel_machine,
             "torchtsetlin": torch_machine}


def measure(name, options):
    import bitfed

    X, y, X_test, y_test = bitfed.load_data("fashion-mnist")
    X, y = bits(X, y, options.samples)
    X_test, y_test = bits(X_test, y_test, options.tests)
    train, predict = LIBRARIES[name](options, X, y)
    seconds = []
    for _ in range(options.epochs):
        start = time.process_time()
        train()
        seconds.append(time.process_time() - start)
    start = time.process_time()
    accuracy = np.mean(predict(X_test) == y_test)
    predicting = time.process_time() - start
    print(f"{name:<26} {len(X) / min(seconds):>10.0f} {len(X_test) / predicting:>12.0f} {100 * accuracy:>9.1f} %",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", default=list(LIBRARIES))
    parser.add_argument("--clauses", type=int, default=100)
    parser.add_argument("--T", type=int, default=500)
    parser.add_argument("--s", type=float, default=5.0)
    parser.add_argument("--patch", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=10, help="of torchtsetlin, whose steps are of batches")
    parser.add_argument("--update", default="one-vs-one-random", help="of bitfed; the others draw one other class too")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options)
        return
    print(f"{'library':<26} {'training':>10} {'prediction':>12} {'accuracy':>11}   (samples per second of CPU time)")
    for name in options.libraries:
        done = subprocess.run([sys.executable, *sys.argv, "--measure", name], capture_output=True, text=True,
                              env=os.environ | {"OMP_NUM_THREADS": "1"})
        failed = f"{name:<26} not measured: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}"
        print(failed if done.returncode != 0 else done.stdout.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
