"""Measures predictions of CNN4 and ResNet10 with real weights in PyTorch on one thread, images of 32 x 32 x 3, batches of 64 and one by
one; and a convolution of 3 x 3 from 128 to 128 channels on 16 x 16 pixels. Lines of JSON: samples a second of process time,
the best of the repetitions, for each way to run PyTorch; "error" where one does not work here.
"""
import json
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from torch_networks import ResNet10

REPETITIONS = 5
SECONDS = 0.5


def cnn4():
    layers, channels = [], 3
    for width in (32, 64, 128, 256):
        layers += [torch.nn.Conv2d(channels, width, 3, padding=1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                   torch.nn.MaxPool2d(2)]
        channels = width
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(1024, 10, bias=False)).eval()


def ways(model, sample):
    """Name and callable, or what it failed with."""
    yield "eager", lambda: (model, sample)
    last = {"memory_format": torch.channels_last}
    yield "eager, channels last", lambda: (model.to(**last), sample.to(**last))
    yield "frozen", lambda: (torch.jit.optimize_for_inference(torch.jit.trace(model, sample)), sample)


def rates(model, sample):
    for _ in range(3):
        model(sample)
    found = []
    for _ in range(REPETITIONS):
        calls, begin = 0, time.process_time()
        while time.process_time() - begin < SECONDS:
            model(sample)
            calls += 1
        found.append(calls * len(sample) / (time.process_time() - begin))
    return found


def main():
    torch.set_num_threads(1)
    cases = (("cnn4-32/64", cnn4(), torch.randn(64, 3, 32, 32)), ("cnn4-32/1", cnn4(), torch.randn(1, 3, 32, 32)),
             ("resnet10-32/64", ResNet10(False).layers.eval(), torch.randn(64, 3, 32, 32)),
             ("resnet10-32/1", ResNet10(False).layers.eval(), torch.randn(1, 3, 32, 32)),
             ("convolution-binary", torch.nn.Conv2d(128, 128, 3, padding=1, bias=False).eval(), torch.randn(1, 128, 16, 16)))
    with torch.inference_mode():
        for name, model, sample in cases:
            for way, make in ways(model, sample):
                line = {"name": name, "torch": torch.__version__, "variant": way}
                try:
                    found = rates(*make())
                    line |= {"samples_per_second": max(found), "median": statistics.median(found)}
                except Exception as error:  # whatever a backend throws
                    line["error"] = str(error).splitlines()[0]
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
