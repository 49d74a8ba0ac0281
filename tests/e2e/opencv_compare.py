"""Compares booleanize_dump with cv2.adaptiveThreshold; called by opencv_slow_test.sh.

usage: opencv_compare.py DUMP FASHION_MNIST_TEST_IMAGES WORK_DIR
"""

import gzip
import pathlib
import subprocess
import sys

import cv2
import numpy as np


def read_images(path):
    data = pathlib.Path(path).read_bytes()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    magic, count, height, width = np.frombuffer(data, ">u4", 4)
    if magic != 0x803:
        sys.exit(f"{path}: found {magic:#x}, expected an IDX file of images (0x803)")
    return np.frombuffer(data, np.uint8, offset=16).reshape(count, height, width, 1)


def our_bits(dump, images, window, offset, work):
    images.tofile(work / "images.bin")
    sizes = [str(number) for number in (*images.shape[1:], window, offset)]
    subprocess.run([dump, *sizes, work / "images.bin", work / "bits.bin"], check=True)
    return np.fromfile(work / "bits.bin", np.uint8).reshape(images.shape)


def opencv_bits(images, window, offset):
    bits = np.empty_like(images)
    for image, result in zip(images, bits):
        for channel in range(images.shape[3]):
            plane = np.ascontiguousarray(image[:, :, channel])
            result[:, :, channel] = cv2.adaptiveThreshold(
                plane, 1, cv2.ADAPTIVE_THRESH_GAUSSIAN_C, cv2.THRESH_BINARY, window, offset)
    return bits


def main():
    dump, path, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    random = np.random.default_rng(1)
    shapes = [(500, 28, 28, 1), (200, 32, 32, 3), (2000, 3, 40, 1), (500, 1, 1, 1), (20, 1, 70, 2),
              (20, 70, 1, 1)]
    noise = [random.integers(0, 256, shape, np.uint8) for shape in shapes]
    cases = [("Fashion-MNIST test set", read_images(path), 11, 2)]
    cases += [(f"random {images.shape}", images, 11, 2) for images in noise]
    cases += [(f"random {noise[0].shape}", noise[0], window, offset)
              for window, offset in ((3, 2), (5, 0), (7, -3), (9, 2), (13, 5), (31, 2))]
    wrong = 0
    print(f"OpenCV {cv2.__version__}")
    for name, images, window, offset in cases:
        ours = our_bits(dump, images, window, offset, work)
        differing = int((ours != opencv_bits(images, window, offset)).sum())
        print(f"{name}, window {window}, offset {offset}: {differing} of {images.size} bits differ")
        wrong += differing
    sys.exit(1 if wrong else 0)


main()
