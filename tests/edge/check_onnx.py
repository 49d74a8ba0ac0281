"""Runs an ONNX model and compares it with given answers: check_onnx.py MODEL.onnx SAMPLES ANSWERS

SAMPLES: raw inputs, one sample behind the other; ANSWERS: a line a sample, the class, then all scores. Classes must be
equal, scores within 1e-4 of the largest score's size, or of 1. Prints how many scores are equal to the last bit.
"""
import sys

import numpy
import onnx
import onnxruntime


def main():
    model, samples, answers = sys.argv[1:]
    onnx.checker.check_model(onnx.load(model), full_check=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (wanted,) = session.get_inputs()
    kind = {"tensor(uint8)": numpy.uint8, "tensor(float)": numpy.float32}[wanted.type]
    inputs = numpy.fromfile(samples, kind).reshape([-1] + wanted.shape[1:])
    table = numpy.loadtxt(answers, ndmin=2)
    classes, scores = table[:, 0].astype(int), table[:, 1:].astype(numpy.float32)
    assert len(inputs) == len(table) > 0, (len(inputs), len(table))
    found_classes, found_scores = [], []
    for first in range(0, len(inputs), 50):
        best, values = session.run(["class", "scores"], {wanted.name: inputs[first:first + 50]})
        found_classes.append(best)
        found_scores.append(values)
    found_classes, found_scores = numpy.concatenate(found_classes), numpy.concatenate(found_scores)
    other = numpy.flatnonzero(found_classes != classes)
    assert len(other) == 0, f"{len(other)} classes differ, the first of sample {other[0]}"
    error = numpy.abs(found_scores - scores).max() / max(1, numpy.abs(scores).max())
    assert error <= 1e-4, f"scores differ by {error}"
    print(f"{len(inputs)} samples, {(found_scores == scores).mean():.2%} of scores equal, the others by {error:.1e}")


if __name__ == "__main__":
    main()
